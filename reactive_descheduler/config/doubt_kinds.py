"""The names of what `doubts` warns of, apart from the checks, for settings silence them by name."""

from __future__ import annotations

from enum import StrEnum


class Doubt(StrEnum):
    """What a policy may say and hardly anybody means (docs/configuration, Warnings)."""

    NO_PROFILE = "noProfile"
    NO_STRATEGY = "noStrategy"
    LIMIT_ZERO = "limitZero"
    DOES_NOTHING = "doesNothing"
    UTILIZATION_FIGHT = "utilizationFight"
    PACKING_FIGHT = "packingFight"
    NO_TARGET = "noTarget"
    ENABLED_TWICE = "enabledTwice"
    SETTLE_LONGER = "settleLonger"
    AGE_ZERO = "ageZero"
