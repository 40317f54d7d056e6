"""What a doubt is, and the names by which settings silence them; apart from the checks."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from reactive_descheduler.api.errors import Problem


class Doubt(StrEnum):
    """What a policy may say and hardly anybody means (docs/configuration, Warnings)."""

    NO_PROFILE = "noProfile"
    NO_STRATEGY = "noStrategy"
    NO_NODE = "noNode"
    NO_POD = "noPod"
    ALL_PROTECTED = "allProtected"
    LIMIT_ZERO = "limitZero"
    DOES_NOTHING = "doesNothing"
    UTILIZATION_FIGHT = "utilizationFight"
    PACKING_FIGHT = "packingFight"
    NO_TARGET = "noTarget"
    ENABLED_TWICE = "enabledTwice"
    SETTLE_LONGER = "settleLonger"
    AGE_ZERO = "ageZero"


class Doubtful(NamedTuple):
    """One doubt: its kind, the path of what raises it, what will happen, what would mend it."""

    kind: Doubt
    path: str
    message: str
    hint: str = ""

    def problem_on(self, line: int | None) -> Problem:
        return Problem(self.path, line, f"{self.message} [{self.kind}]", self.hint)
