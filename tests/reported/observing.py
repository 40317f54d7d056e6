"""Writes down what happens while a case is played, in the lists that the judge reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import TypeAlias

import structlog
from structlog.typing import WrappedLogger

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.eviction import Answer, Decision, EvictionOutcome, Stay
from reactive_descheduler.api.pod import Pod, controller
from reactive_descheduler.cache.store import Store
from reactive_descheduler.evictor.gates.reported import ReportedGate

Record: TypeAlias = dict[str, object]

LISTS = (
    "starts",
    "ready",
    "calls",
    "reported",
    "refusals",
    "runs",
    "lists",
    "watches",
    "changes",
    "cache",
    "brakes",
    "leaders",
    "warnings",
)
CACHED = ("Node", "Pod", "Namespace", "PodDisruptionBudget", "PersistentVolumeClaim")


class Observation:
    """The lists of one play. It is a Hook too: decisions become `refusals` and `reported`."""

    def __init__(self, at: Callable[[], float]) -> None:
        """`at`: the case's clock."""
        self.at = at
        self.lists: dict[str, list[Record]] = {name: [] for name in LISTS}
        self.ended = False
        """Nothing is written down any more."""
        self._once: set[tuple[str, ...]] = set()
        self._going: set[str] = set()
        """Pods whose eviction was accepted: nothing holds them back."""

    def note(self, what: str, **fields: object) -> Record:
        """Write a record and return it, for what is known of it only later."""
        record: Record = {"at": round(self.at(), 6), **fields}
        if not self.ended:
            self.lists[what].append(record)
        return record

    def complete(self, record: Record, **fields: object) -> None:
        """Add to a record, unless the observation has ended."""
        if not self.ended:
            record.update(fields)

    def note_once(self, what: str, *key: str, **fields: object) -> None:
        if (what, *key) not in self._once:
            self._once.add((what, *key))
            self.note(what, **fields)

    def end(self, store: Store | None) -> None:
        """Add what the cache holds, and write down nothing from now on."""
        if self.ended:
            return
        self.ended = True
        if store is not None:
            self.lists["cache"] = [
                {"kind": kind, "object": _named(each.namespace, each.name)}
                for kind in CACHED
                for each in store.all(kind)
            ]

    def run(self, strategy: str) -> None:
        self.note_once("runs", strategy, str(self.at()), strategy=strategy)

    def change(self, change: Change) -> None:
        kind = "ADDED" if change.old is None else "DELETED" if change.new is None else "MODIFIED"
        found = change.object
        self.note(
            "changes", kind=change.kind, type=kind, object=_named(found.namespace, found.name)
        )

    def ready(self, value: bool) -> None:
        """Take down what the process answers, if it answers something else now."""
        before = self.lists["ready"]
        if value is not bool(before and before[-1]["value"]):
            self.note("ready", value=value)

    def on_decision(self, decision: Decision, /) -> None:
        if decision.verdict in ("held", "rejected"):
            self._refused(_of(decision.candidate.pod), decision.by)

    def on_stay(self, stay: Stay, /) -> None:
        if stay.rejection.pod is not None:
            _, namespace, name = stay.rejection.pod
            self._refused(f"{namespace}/{name}", stay.rejection.by)

    def on_outcome(self, outcome: EvictionOutcome, /) -> None:
        if outcome.answer is Answer.EVICTED:
            self._going.add(_of(outcome.candidate.pod))
        if outcome.answer is Answer.DRY_RUN:
            candidate = outcome.candidate
            pod, owner = candidate.pod, controller(candidate.pod)
            self.note_once(
                "reported",
                pod.uid,
                str(candidate.cause),
                pod=_of(pod),
                owner=f"{owner.kind}/{owner.name}" if owner is not None else None,
            )

    def _refused(self, pod: str, by: str) -> None:
        if pod not in self._going and by != ReportedGate.NAME:
            self.note_once("refusals", pod, by, pod=pod, by=by)


class Runs(Counter[str]):
    """The loop's counter of evaluations, which tells of each."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def __setitem__(self, strategy: str, number: int) -> None:
        super().__setitem__(strategy, number)
        self._tell(strategy)


@contextmanager
def warnings_noted(observation: Observation) -> Iterator[None]:
    """Note what the program logs from warnings up, and let it write nothing."""

    def take(_: WrappedLogger, method: str, event: MutableMapping[str, object]) -> str:
        if method not in ("debug", "info"):
            fields = [f"{name}={value}" for name, value in event.items() if name != "event"]
            observation.note("warnings", text=" ".join([str(event["event"]), *fields]))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[take], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def _of(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _named(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
