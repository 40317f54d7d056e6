"""Candidates, verdicts and outcomes: the words in which the program says whom it would evict and
why not."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, StrEnum
from typing import NamedTuple

from reactive_descheduler.api.changes import At, Key, Wakes
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.api.pod import Pod


class Rejection(NamedTuple):
    """Why not, and what would change that. `pod` None means the whole key (no samples, no
    destination)."""

    by: str
    reason: str
    wakes: Wakes
    pod: Ref | None = None

    def not_yet(self, strategy: str) -> bool:
        """Say whether it is this strategy's own word that nothing but time is missing."""
        return self.by == strategy and all(isinstance(wake, At) for wake in self.wakes)


class Stay(NamedTuple):
    """A Pod that is placed wrong and stays, or stays for another reason now; as handed to hooks."""

    profile: str
    strategy: str
    rejection: Rejection


class Held(NamedTuple):
    """A gate's "not yet", and what would change that."""

    by: str
    reason: str
    wakes: Wakes


class Cause(NamedTuple):
    """What made a placement wrong, as something that began at a time and may vanish again.

    `ident`: taint: node, key, value, effect; label or affinity: node, Pod; age, restarts: the Pod;
    balance: the key's unit. `objects`: what it stands on; a change of one of them may break it.
    `proven_since`: its own timestamp proves its age, so there is nothing to settle.
    """

    kind: str
    ident: tuple[str, ...]
    objects: tuple[Ref, ...]
    proven_since: datetime | None = None


class Candidate(NamedTuple):
    """A Pod that a strategy would evict.

    `rank`: where not all may go, which of several keys of a strategy goes first: the lowest.
    """

    key: Key
    pod: Pod
    cause: Cause
    reason: str
    rank: float = 0.0


class Stop(Enum):
    """Upstream's typed limit errors (spec/strategies 3)."""

    NO = "no"
    NODE = "node"
    """Leave this node."""
    ALL = "all"
    """End the strategy's pass."""


class Verdict(NamedTuple):
    """What became of an offered candidate. `taken`: accepted, or held by a gate; only a Rejection
    makes a strategy pass on."""

    taken: bool
    stop: Stop = Stop.NO
    why: Rejection | Held | None = None


TAKEN = Verdict(taken=True)


class Pause(NamedTuple):
    """Yielded by a strategy at a good place to give way."""


class Failed(NamedTuple):
    """A strategy ended with an error; the others run all the same."""

    key: Key | None
    profile: int
    strategy: str
    error: str


class Answer(StrEnum):
    """What the API server said to an eviction request (api server behaviour measured on 1.36;
    design 5.5)."""

    EVICTED = "evicted"
    DRY_RUN = "dry-run"
    BACKGROUND = "background"
    """429 of a webhook that has taken the eviction over and finishes it by itself (KEP 1397)."""
    OBSERVED = "observed"
    """Nothing was sent, for the strategy only observes."""
    NOT_FOUND = "not-found"
    UID_CONFLICT = "uid-conflict"
    """409: another Pod of that name is there now."""
    BUDGET = "budget"
    """429 with cause DisruptionBudget and no Retry-After: the budget is used up."""
    BUDGET_UNOBSERVED = "budget-unobserved"
    """429 with cause DisruptionBudget and Retry-After: the disruption controller has not seen the
    budget yet."""
    THROTTLED = "throttled"
    """429 without that cause: the API server is overloaded, the whole client slows down."""
    WEBHOOK_DENIED = "webhook-denied"
    FORBIDDEN = "forbidden"
    """403 by RBAC: no eviction can succeed."""
    SEVERAL_BUDGETS = "several-budgets"
    """500 for ever: the API server refuses Pods under more than one budget."""
    INVALID = "invalid"
    """400, 422 and other refusals of the request itself."""
    SERVER_ERROR = "server-error"
    UNKNOWN = "unknown"
    """Time-out or connection lost after sending: it may have been granted."""


class EvictionOutcome(NamedTuple):
    """One request and its answer. `status` is the HTTP status, None where there was no answer."""

    candidate: Candidate
    answer: Answer
    status: int | None
    message: str
    retry_after: float | None
    """Seconds, where the server named them."""
    started: datetime
    ended: datetime


class Decision(NamedTuple):
    """One thing that was decided, as handed to hooks: metrics, logs, Kubernetes Events, the status
    page.

    `change_seen`: when the change that led here was seen, None for what a full pass found.
    """

    time: datetime
    profile: str
    candidate: Candidate
    verdict: str
    """`accepted`, `held`, `rejected` or `dropped` (no longer offered at the check before the
    call)."""
    by: str
    reason: str
    change_seen: datetime | None
    until: datetime | None = None
    """`held`: when it is asked again for the time alone; None if only a change lets it go."""
