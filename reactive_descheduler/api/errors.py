"""Every exception of ours, in one file.

- DeschedulerError
    - PolicyError: the policy or a setting is wrong; no retry helps, the file has to change
    - ClientError: the API server, or a Prometheus, could not be used
        - Unreachable: no connection, or lost before an answer; retry with backoff
        - ApiStatusError: it answered with a Status that is no success
        - ExpiredError: 410, the version is too old; list anew
        - AnswerError: what it answered cannot be used
    - AddressError: nothing can listen there
    - AmbiguousError: a request was sent and its answer never came; it may have been carried out
    - SnapshotError: a dump given to `plan` cannot be used
    - UsageError: measured usage that a strategy asks for is not there
"""

from __future__ import annotations

import os
from typing import NamedTuple


class DeschedulerError(Exception):
    """Root of all. `hint` says what would mend it, for the second line of a message."""

    hint = ""


class Problem(NamedTuple):
    """One mistake in a document: dotted path, line (1-based, None if unknown), what is wrong, what
    would mend it."""

    path: str
    line: int | None
    message: str
    hint: str = ""

    def told(self, source: str) -> str:
        """Return it as one line about the file `source`."""
        place = source if self.line is None else f"{source}:{self.line}"
        path = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {path}{self.message}{hint}"


class PolicyError(DeschedulerError):
    """Raised when a policy is refused; holds every mistake that was found, not only the first."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        super().__init__("\n".join(problem.told(source) for problem in problems))


class ClientError(DeschedulerError):
    """Raised by the client layer; see the subclasses for whether a retry helps."""


class Unreachable(ClientError):
    """Raised when no connection could be made or it was lost before an answer. A retry may help."""


class ApiStatusError(ClientError):
    """Raised when the API server answered with a failure. 429 and 5xx may pass; the rest will not
    by itself."""

    def __init__(
        self, status: int, reason: str, message: str, *, retry_after: float | None = None
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        super().__init__(f"{status} {reason}: {message}")


class ExpiredError(ClientError):
    """Raised for a 410 in any form: as HTTP status, as an ERROR event, as a plain body. Only a new
    list helps."""


class AnswerError(ClientError):
    """Raised when an answer was a success by its status and is not what was asked for: another
    program answers there, or it failed in a way of its own."""


class AddressError(DeschedulerError):
    """Raised when nothing can listen at an address: it is taken, forbidden, or none of this
    machine."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        # asyncio words errors of the system itself, with the address once more.
        number = error.errno or 0
        why = os.strerror(number) if number > 0 else error.strerror
        super().__init__(f"cannot listen on {host}, port {port}: {why}")


class AmbiguousError(DeschedulerError):
    """Raised when a request was sent and no answer came. A retry may do it twice: look first."""


class SnapshotError(DeschedulerError):
    """Raised when a dump is unreadable or lacks a kind that the policy needs."""


class UsageError(DeschedulerError):
    """Raised by a strategy that measured usage is missing to: nothing is evicted by guess."""
