"""Our own settings: the key `reactive:` of the policy file, which upstream ignores."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from .args import Arguments, Listed, Span, Unsigned
from .corrections import ALL, Corrections, parse_corrections
from .doubt_kinds import Doubt
from .findings import brief, close_match

_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)%", re.ASCII)


@dataclass(frozen=True, slots=True)
class Percent:
    """A share of a hundred."""

    value: float

    @property
    def fraction(self) -> float:
        """The share of one: 0.25 for 25%."""
        return self.value / 100

    def __str__(self) -> str:
        """Write it as in the file."""
        return f"{self.value:g}%"


def _percent(value: object) -> Percent:
    if isinstance(value, Percent):
        return value
    match = _PERCENT.fullmatch(value) if isinstance(value, str) and len(value) < 20 else None
    if match is None or float(match[1]) > 100:
        raise ValueError(f'must be a percentage from "0%" to "100%", not {brief(value)}')
    return Percent(float(match[1]))


def _count_or_percent(value: object) -> int | Percent:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return value
    try:
        return _percent(value)
    except ValueError:
        raise ValueError(
            f'must be a number or a percentage from "0%" to "100%", not {brief(value)}'
        ) from None


def _number(value: object) -> object:
    return float(value) if isinstance(value, int) and abs(value) < 2**53 else value


def _some_time(value: timedelta) -> timedelta:
    if not value:
        raise ValueError("must be more than 0s")
    return value


Share = Annotated[Percent, BeforeValidator(_percent)]
"""A percentage: `"55%"`."""
CountOrShare = Annotated[int | Percent, BeforeValidator(_count_or_percent)]
"""A number or a percentage, as Kubernetes has them."""
Interval = Annotated[Span, AfterValidator(_some_time)]
"""A duration above zero."""
Positive = Annotated[float, BeforeValidator(_number), Field(gt=0, le=1e6)]
"""A number above zero."""
PositiveCount = Annotated[Unsigned, Field(ge=1)]
"""A whole number from 1 on."""

TRANSIENT_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cilium.io/agent-not-ready",
)
"""Keys of taints that pass by themselves while a node starts or is short of something."""


class Debounce(Arguments):
    """How long changes are gathered before a key is evaluated."""

    quiet: Annotated[
        Span,
        Field(
            description="A key is evaluated when nothing of it changed for this long; one kubectl"
            " command often makes several changes."
        ),
    ] = timedelta(milliseconds=100)
    max_wait: Annotated[
        Span,
        Field(description="Evaluated after this long at the latest, however busy the key is."),
    ] = timedelta(seconds=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.quiet > self.max_wait:
            raise ValueError("quiet must not be longer than maxWait")
        return self


class Settle(Arguments):
    """How long the cause of an eviction must have stood without a break."""

    default: Annotated[
        Span,
        Field(
            description="For causes that a node brings and for balance; long enough to take back"
            " a slip. Causes whose own timestamp proves their age wait no longer."
        ),
    ] = timedelta(seconds=5)
    transient: Annotated[
        Span,
        Field(description="For transient taints, which mostly pass before an eviction helps."),
    ] = timedelta(seconds=60)
    transient_taints: Annotated[
        Listed[str],
        Field(description="Keys of the taints that pass by themselves; replaces the default."),
    ] = TRANSIENT_TAINTS


DRAINERS_TAINTS = (
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
)


class Drainers(Arguments):
    """Who else empties nodes."""

    taints: Annotated[
        Listed[str],
        Field(
            description="Keys of the taints by which another drainer says that it has begun; the"
            " node's Pods are left to it. Replaces the default."
        ),
    ] = DRAINERS_TAINTS


class StrategyDebounce(Arguments):
    """`debounce` for one strategy; what is absent is as for all."""

    quiet: Annotated[Span | None, Field(description="Instead of reactive.debounce.quiet.")] = None
    max_wait: Annotated[Span | None, Field(description="Instead of reactive.debounce.maxWait.")] = (
        None
    )


class StrategySettings(Arguments):
    """What differs for one strategy."""

    debounce: Annotated[StrategyDebounce, Field(description="Instead of reactive.debounce.")] = (
        StrategyDebounce()
    )
    settle: Annotated[
        Span | None,
        Field(
            description="Instead of reactive.settle.default; 0s acts at once. Transient taints"
            " wait at least reactive.settle.transient all the same."
        ),
    ] = None
    mode: Annotated[
        Literal["act", "observe"],
        Field(description="observe decides and reports, but evicts nothing."),
    ] = "act"


class RateLimit(Arguments):
    """The token bucket in front of the API server."""

    evictions_per_second: Annotated[
        Positive,
        Field(description="Tokens a second; a few, so that a mistake can be stopped by hand."),
    ] = 5.0
    burst: Annotated[
        PositiveCount, Field(description="Evictions that may go at once after a rest.")
    ] = 10
    adaptive: Annotated[
        bool,
        Field(description="Slow down when the API server says that it is overloaded."),
    ] = True


class WindowLimits(Arguments):
    """Upper bounds in a sliding window, beside the policy's maxNoOfPodsToEvict*."""

    window: Annotated[
        Interval,
        Field(
            description="Window in which the daemon counts; as long as upstream's interval, so"
            " that upstream's limits mean about the same."
        ),
    ] = timedelta(minutes=5)
    per_workload: Annotated[
        PositiveCount | None,
        Field(description="Evictions per top controller (such as a Deployment) and window."),
    ] = 10


class Pacing(Arguments):
    """How much of a workload may be on its way at once."""

    max_unavailable: Annotated[
        CountOrShare,
        Field(
            description="Replicas that are going or not yet Ready again, as number or share"
            " (at least 1); a rolling update's default."
        ),
    ] = Percent(25)
    timeout: Annotated[
        Interval,
        Field(
            description="For how long the replacement of an evicted Pod is waited for, and before"
            " that the end of the Pod past its grace period: then room that was promised is free,"
            " and strategies that balance go on. What goes on in background has no such end."
        ),
    ] = timedelta(minutes=5)


class Cooldown(Arguments):
    """How long a workload rests whose replacement came back to the same violation."""

    initial: Annotated[Interval, Field(description="First rest.")] = timedelta(minutes=5)
    factor: Annotated[
        Positive, Field(ge=1, description="Each further rest is this many times as long.")
    ] = 2.0
    max: Annotated[
        Interval, Field(description="Longest rest; a fight is then seen a few times a day.")
    ] = timedelta(hours=6)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.initial > self.max:
            raise ValueError("initial must not be longer than max")
        return self


class BlastRadius(Arguments):
    """How much may be wanted at once before it looks like a mistake."""

    nodes: Annotated[
        Share, Field(description="Share of the nodes; at least 3 nodes must be concerned.")
    ] = Percent(30)
    pods: Annotated[
        Share, Field(description="Share of the Pods; at least 50 must be concerned.")
    ] = Percent(20)
    within: Annotated[Interval, Field(description="By causes that began within this time.")] = (
        timedelta(seconds=60)
    )


class Brakes(Arguments):
    """What stops all evictions."""

    not_ready_nodes: Annotated[
        Share,
        Field(
            description="Share of nodes of the cluster or a zone that are not ready (and more than"
            " 2); from where the node controller too stops evicting."
        ),
    ] = Percent(55)
    blast_radius: Annotated[BlastRadius, Field(description="Too much wanted at once.")] = (
        BlastRadius()
    )
    pending_pods: Annotated[
        Share,
        Field(
            description="Replacements without a place, as share of the evictions of 10 minutes"
            " (and at least 5)."
        ),
    ] = Percent(10)


class Staleness(Arguments):
    """When the cache is too old to decide on."""

    max_age: Annotated[
        Interval,
        Field(
            description="No eviction while a watch that is needed has been silent for longer;"
            " any byte is a sign of life."
        ),
    ] = timedelta(seconds=45)


class Usage(Arguments):
    """How measured usage is asked for."""

    poll_interval: Annotated[
        Interval, Field(description="Time between two questions; metrics-server's own interval.")
    ] = timedelta(seconds=15)
    samples: Annotated[
        PositiveCount,
        Field(description="Samples in a row that must be over before a node counts as overused."),
    ] = 1
    max_age: Annotated[
        Interval, Field(description="Where a sample that is needed is older, nothing is evicted.")
    ] = timedelta(minutes=2)


def _corrections(value: object) -> Corrections:
    return value if isinstance(value, frozenset) else parse_corrections(value)


def _doubts(value: object) -> object:
    if not isinstance(value, list):
        return value
    known = {doubt.value: doubt for doubt in Doubt}
    for name in value:
        if name not in known:
            hint = close_match(str(name), known) or f"known are {', '.join(known)}"
            raise ValueError(f"unknown warning {brief(name)}; {hint}")
    return tuple(known[name] for name in value)


class ReactiveSettings(Arguments):
    """Settings of the daemon; every one has a default."""

    debounce: Annotated[Debounce, Field(description="How long changes are gathered.")] = Debounce()
    settle: Annotated[Settle, Field(description="How long a cause must have stood.")] = Settle()
    strategies: dict[str, StrategySettings] = Field(
        default_factory=dict, description="What differs for a strategy, by its name."
    )
    rate_limit: Annotated[RateLimit, Field(description="Evictions a second.")] = RateLimit()
    limits: Annotated[WindowLimits, Field(description="Upper bounds in a sliding window.")] = (
        WindowLimits()
    )
    pacing: Annotated[Pacing, Field(description="How much of a workload may be on its way.")] = (
        Pacing()
    )
    cooldown: Annotated[Cooldown, Field(description="How long a workload rests.")] = Cooldown()
    brakes: Annotated[Brakes, Field(description="What stops all evictions.")] = Brakes()
    drainers: Annotated[Drainers, Field(description="Who else empties nodes.")] = Drainers()
    staleness: Annotated[Staleness, Field(description="When the cache is too old.")] = Staleness()
    usage: Annotated[Usage, Field(description="How measured usage is asked for.")] = Usage()
    resync: Annotated[
        Interval,
        Field(
            description="Time between full passes, which find what no change told; --descheduling-"
            "interval above 0 sets it."
        ),
    ] = timedelta(minutes=30)
    silenced_warnings: Annotated[
        Listed[Doubt],
        BeforeValidator(_doubts),
        Field(description="Warnings of validate that somebody has read and wants so, by name."),
    ] = ()
    corrections: Annotated[
        Corrections,
        BeforeValidator(_corrections),
        Field(description="Differences from upstream in force: all, none or a list of names."),
    ] = ALL

    def debounce_of(self, strategy: str) -> Debounce:
        """Return the two numbers that hold for a strategy."""
        own = self.strategies.get(strategy, StrategySettings()).debounce
        quiet = self.debounce.quiet if own.quiet is None else own.quiet
        longest = self.debounce.max_wait if own.max_wait is None else own.max_wait
        # One that is set alone may pass the other, inherited one, which then follows.
        return Debounce(quiet=quiet, max_wait=max(quiet, longest))

    @property
    def observing(self) -> frozenset[str]:
        """Return the strategies that decide and report, but evict nothing."""
        return frozenset(name for name, own in self.strategies.items() if own.mode == "observe")

    def settle_of(self, strategy: str, *, taint: str = "") -> timedelta:
        """Return how long a cause must have stood; `taint` is its key where it is a taint."""
        own = self.strategies.get(strategy)
        usual = self.settle.default if own is None or own.settle is None else own.settle
        is_transient = taint in self.settle.transient_taints
        return max(usual, self.settle.transient) if is_transient else usual
