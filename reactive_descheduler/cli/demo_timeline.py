"""What happens between a change and a replacement that is Ready, told step by step.

Decisions and answers come from the daemon's hooks; that a replacement is Ready, and where, is seen
by a watch of the demo's own.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

import anyio

from reactive_descheduler.api.eviction import Answer, Decision, EvictionOutcome
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    controller_of,
    is_ready,
    is_terminating,
    name_of,
    text,
    uid_of,
)

_ONE_CHANGE = timedelta(milliseconds=50)
"""Keys that one change concerns say when it was seen up to this far apart."""


class Step(NamedTuple):
    """One line. `kind` is `change` (made by a scene or by hand), `seen` (by the daemon, for a
    strategy), a verdict (`to go`, `held`, `rejected`, `dropped`), `evicted` or `refused` (the API
    server's answer), `deleted` (a Pod, and not by the daemon), or `ready` (a Pod, perhaps a
    replacement)."""

    time: datetime
    kind: str
    text: str
    pod: str = ""
    uid: str = ""
    node: str = ""
    strategy: str = ""
    replaces: str = ""
    """`ready`: the UID of the evicted Pod in whose place it came."""
    seen: datetime | None = None
    """When the change that led here was seen; None if it was no change but the time."""


Listener = Callable[[Step], None]


class Timeline:
    """Hands each step to whoever listens; keeps none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.listeners: list[Listener] = []

    def tell(self, step: Step) -> None:
        for listener in tuple(self.listeners):
            listener(step)

    def change(self, text: str) -> datetime:
        """Tell that a change is made now, and return the time."""
        now = self._clock.now()
        self.tell(Step(now, "change", text))
        return now

    def now(self) -> datetime:
        return self._clock.now()

    @contextmanager
    def expecting(self, wanted: Callable[[Step], bool]) -> Iterator[anyio.Event]:
        """Give an event that is set at the first such step within the block."""
        event = anyio.Event()

        def listen(step: Step) -> None:
            if wanted(step):
                event.set()

        self.listeners.append(listen)
        try:
            yield event
        finally:
            self.listeners.remove(listen)


class _Evicted(NamedTuple):
    """What is remembered of a Pod for the line of its replacement."""

    uid: str
    name: str
    seen: datetime | None


class Observer:
    """A hook of the daemon and a listener of Pods in one: together they know which Pod came in
    whose place."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._last_seen: dict[str, datetime] = {}
        """By strategy."""
        self._held: dict[str, tuple[str, str]] = {}
        self._sent: dict[str, _Evicted] = {}
        """By UID: Pods whose eviction was asked for."""
        self._vacant: defaultdict[str, deque[_Evicted]] = defaultdict(deque)
        """By owner: Pods that go and that nothing has replaced yet."""
        self._replaces: dict[str, _Evicted] = {}

    def on_decision(self, decision: Decision, /) -> None:
        pod, seen = decision.candidate.pod, decision.change_seen
        strategy = decision.candidate.key.strategy
        self._tell_seen(seen, strategy)
        kind, reason = decision.verdict, decision.reason
        if kind == "held":
            # A gate is asked again whenever something might have opened it.
            if self._held.get(pod.uid) == (decision.by, reason):
                return
            self._held[pod.uid] = (decision.by, reason)
            until = f" until {decision.until:%T.%f}"[:-3] if decision.until else ""
            reason = f"by {decision.by}{until}: {reason}"
        else:
            self._held.pop(pod.uid, None)
        if kind == "accepted":
            self._sent[pod.uid] = _Evicted(pod.uid, pod.name, seen)
            kind = "to go"
        self._timeline.tell(
            Step(
                decision.time,
                kind,
                reason,
                pod.name,
                pod.uid,
                pod.node_name,
                strategy,
                seen=seen,
            )
        )

    def on_outcome(self, outcome: EvictionOutcome, /) -> None:
        pod, answer = outcome.candidate.pod, outcome.answer
        kind, told = "evicted", f"from {pod.node_name}"
        if answer is not Answer.EVICTED:
            kind, told = "refused", f"{answer}: {outcome.message}"
        sent = self._sent.get(pod.uid)
        self._timeline.tell(
            Step(
                outcome.ended,
                kind,
                told,
                pod.name,
                pod.uid,
                pod.node_name,
                outcome.candidate.key.strategy,
                seen=sent.seen if sent is not None else None,
            )
        )

    def on_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            for memory in (self._held, self._sent, self._replaces):
                memory.pop(uid_of(old), None)
            return
        uid, owner = uid_of(new), text(controller_of(new), "uid")
        if is_terminating(new):
            if is_terminating(old):
                return
            if uid in self._sent:
                # The watch tells that it goes before it tells what comes in its place.
                self._vacant[owner].append(self._sent[uid])
            else:
                self._tell_deleted(new)
            return
        if old is None and (vacant := self._vacant.get(owner)):
            self._replaces[uid] = vacant.popleft()
        if is_ready(new) and not is_ready(old):
            self._tell_ready(new)

    def _tell_ready(self, pod: JsonObject) -> None:
        node = text(pod, "spec", "nodeName")
        replaced = self._replaces.get(uid_of(pod))
        step = Step(self._timeline.now(), "ready", f"on {node}", name_of(pod), uid_of(pod), node)
        if replaced is not None:
            told = f"{step.text}, in place of {replaced.name}"
            step = step._replace(text=told, replaces=replaced.uid, seen=replaced.seen)
        self._timeline.tell(step)

    def _tell_deleted(self, pod: JsonObject) -> None:
        node = text(pod, "spec", "nodeName")
        told = f"not by the descheduler, from {node or 'no node'}"
        self._timeline.tell(
            Step(self._timeline.now(), "deleted", told, name_of(pod), uid_of(pod), node)
        )

    def _tell_seen(self, seen: datetime | None, strategy: str) -> None:
        last = self._last_seen.get(strategy)
        if seen is None or (last is not None and seen - last < _ONE_CHANGE):
            return
        self._last_seen[strategy] = seen
        told = "by the descheduler, on its watch"
        self._timeline.tell(Step(seen, "seen", told, strategy=strategy, seen=seen))
