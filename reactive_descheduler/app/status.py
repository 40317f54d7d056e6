"""What `/status` tells and what gauges are set to: read from the core, nothing kept twice."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Protocol

from reactive_descheduler.api.changes import Key
from reactive_descheduler.api.eviction import Candidate, Decision, EvictionOutcome, Held, Rejection
from reactive_descheduler.app.core import Core
from reactive_descheduler.app.measuring import Measuring
from reactive_descheduler.app.policy_file import Reloads
from reactive_descheduler.app.streams import Streams
from reactive_descheduler.app.wording import describe_wake
from reactive_descheduler.config.doubts import all_warnings
from reactive_descheduler.observability.metrics import Metrics

RECENT = 50


class Recent:
    """A hook that keeps the last decisions and answers for the status page."""

    def __init__(self) -> None:
        self._decisions: deque[Decision] = deque(maxlen=RECENT)
        self._outcomes: deque[EvictionOutcome] = deque(maxlen=RECENT)

    def on_decision(self, decision: Decision, /) -> None:
        self._decisions.append(decision)

    def on_outcome(self, outcome: EvictionOutcome, /) -> None:
        self._outcomes.append(outcome)

    def decisions(self) -> list[dict[str, object]]:
        return [
            {
                "time": each.time,
                "profile": each.profile,
                **_told(each.candidate),
                "verdict": each.verdict,
                "by": each.by,
                "why": each.reason,
                "changeSeen": each.change_seen,
            }
            for each in self._decisions
        ]

    def outcomes(self) -> list[dict[str, object]]:
        return [
            {
                **_told(each.candidate),
                "answer": each.answer.value,
                "status": each.status,
                "message": each.message,
                "sent": each.started,
                "answered": each.ended,
            }
            for each in self._outcomes
        ]


class Status:
    def __init__(
        self,
        core: Callable[[], Core],
        streams: Streams,
        measuring: Measuring,
        recent: Recent,
        reloads: Callable[[], Reloads] | None,
        *,
        now: Callable[[], datetime],
        ready: Callable[[], list[str]],
        dry_run: bool,
    ) -> None:
        """`core`: the one that decides now. `reloads`: what became of the policy file.

        `ready`: why the process is not; empty when it is.
        """
        self._current = core
        self._reloads = reloads
        self._streams = streams
        self._measuring = measuring
        self._recent = recent
        self._now = now
        self._ready = ready
        self._dry_run = dry_run
        self._started = now()

    @property
    def _core(self) -> Core:
        return self._current()

    def snapshot(self) -> Mapping[str, object]:
        core = self._core
        dispatcher = core.dispatcher.statistics()
        held = [entry for entry in core.evictions.candidates() if entry.held is not None]
        return {
            "now": self._now(),
            "started": self._started,
            "dryRun": self._dry_run,
            "notReady": self._ready(),
            "policy": {
                "source": core.policy.source,
                "profiles": [profile.name for profile in core.profiles],
                "corrections": sorted(core.policy.corrections),
                "warnings": [problem._asdict() for problem in all_warnings(core.policy)],
                "file": None if self._reloads is None else _fields(self._reloads()),
            },
            "streams": self._of_streams(),
            "streamAges": self._streams.ages(),
            "usage": self._usage(),
            "cycleNodes": len(core.cycle),
            "resting": not core.cycle.alive,
            "queue": _fields(core.queue.statistics()),
            "bus": self._bus(),
            "keys": _fields(core.parking.statistics()),
            "runs": dict(core.loop.runs),
            "failing": [
                {"strategy": key.strategy, "profile": key.profile, "unit": key.unit, **f._asdict()}
                for key, f in list(core.loop.failures.items())[:RECENT]
            ],
            "degraded": self.degraded(),
            "evictions": _fields(core.evictions.statistics()),
            "closed": _held(dispatcher.closed),
            "inFlight": [_told(entry.candidate) for entry in core.evictions.in_flight()],
            "held": [{**_told(e.candidate), **(_held(e.held) or {})} for e in held[:RECENT]],
            **self._staying(),
            "assumedGoing": len(core.assumed.pods),
            "bucket": _fields(core.bucket.statistics()),
            "lanesInFlight": core.gates.lane.in_flight,
            "recentDecisions": self._recent.decisions(),
            "recentOutcomes": self._recent.outcomes(),
        }

    def _of_streams(self) -> list[dict[str, object]]:
        """A time on the monotonic clock says nothing outside: ages in seconds do."""
        now = self._core.clock.monotonic()
        shown = []
        for each in self._streams.statistics():
            fields = _fields(each)
            for name, time in (("lastByte", each.last_byte), ("inStep", each.in_step)):
                del fields[name]
                fields[f"{name}Age"] = None if time is None else now - time
            shown.append(fields)
        return shown

    def _usage(self) -> list[dict[str, object]]:
        """Return each question to a source of measured usage, with the age of its samples."""
        now, shown = self._now(), []
        for each in self._measuring.statistics():
            fields = _fields(each)
            del fields["oldest"]
            fields["age"] = None if each.oldest is None else (now - each.oldest).total_seconds()
            shown.append(fields)
        return shown

    def _staying(self) -> dict[str, object]:
        """Return who is placed wrong and stays, and why; apart, how many are only not due yet."""
        shown: list[tuple[Key, Rejection]] = []
        by: Counter[str] = Counter()
        not_yet = 0
        for key, rejection in self._rejections():
            if rejection.not_yet(key.strategy):
                not_yet += 1
                continue
            by[rejection.by] += 1
            if len(shown) < RECENT:
                shown.append((key, rejection))
        return {
            "rejected": [self._rejected(key, rejection) for key, rejection in shown],
            "rejectedBy": dict(by),
            "notYet": not_yet,
        }

    def _rejections(self) -> Iterator[tuple[Key, Rejection]]:
        for key, evaluated in self._core.parking.items():
            for rejection in evaluated.rejected:
                yield key, rejection

    def _rejected(self, key: Key, rejection: Rejection) -> dict[str, object]:
        _, namespace, name = rejection.pod or ("", "", "")
        pod = self._core.lister.pod_named(namespace, name)
        return {
            "pod": f"{namespace}/{name}" if name else None,
            "node": pod.node_name if pod is not None else None,
            "profile": self._core.profiles[key.profile].name,
            "strategy": key.strategy,
            "by": rejection.by,
            "why": rejection.reason,
            "liftedWhen": list(dict.fromkeys(map(describe_wake, rejection.wakes))),
        }

    def _bus(self) -> dict[str, object]:
        bus = self._core.bus.statistics()
        keys = [
            {"action": action, "strategy": strategy, "keys": count}
            for (action, strategy), count in bus.keys.items()
        ]
        return {**_fields(bus), "keys": keys}

    def degraded(self) -> list[str]:
        """Return the strategies of which every key fails."""
        failures = self._core.loop.failures
        failing = {(key.profile, key.strategy) for key in failures}
        return sorted({name for profile, name in failing if self._all_fail(profile, name)})

    def _all_fail(self, profile: int, name: str) -> bool:
        of_profile = self._core.profiles[profile]
        strategies = (*of_profile.deschedule, *of_profile.balance)
        strategy = next(each for each in strategies if name == each.NAME)
        failures = self._core.loop.failures
        if Key(profile, name, ()) in failures:
            return True  # it cannot even name its keys
        return all(key in failures for key in strategy.keys_of(self._core.live))

    def held_by_gate(self) -> Counter[str]:
        return Counter(
            entry.held.by for entry in self._core.evictions.candidates() if entry.held is not None
        )


class Gauges:
    """Sets what is an amount at a moment, and carries counts over, when somebody scrapes."""

    def __init__(
        self,
        status: Status,
        core: Callable[[], Core],
        streams: Streams,
        measuring: Measuring,
        metrics: Metrics,
    ) -> None:
        self._status = status
        self._current = core
        self._streams = streams
        self._measuring = measuring
        self._metrics = metrics
        self._before: Counter[tuple[str, ...]] = Counter()

    @property
    def _core(self) -> Core:
        return self._current()

    def refresh(self) -> None:
        core, metrics = self._core, self._metrics
        queue, evictions = core.queue.statistics(), core.evictions.statistics()
        metrics.queue_depth.labels("keys").set(queue.ready)
        metrics.queue_depth.labels("timers").set(queue.waiting)
        metrics.queue_depth.labels("evictions").set(evictions.ready)
        metrics.parked_keys.set(core.parking.statistics().parked)
        metrics.remembered_candidates.set(evictions.ready + evictions.held)
        metrics.held_candidates.clear()
        for gate, count in self._status.held_by_gate().items():
            metrics.held_candidates.labels(gate).set(count)
        bucket = core.bucket.statistics()
        metrics.bucket_tokens.set(bucket.tokens)
        metrics.bucket_rate.set(bucket.rate)
        metrics.lanes_in_flight.set(core.gates.lane.in_flight)
        self._refresh_streams()
        self._refresh_usage()
        self._refresh_bus()

    def _refresh_streams(self) -> None:
        metrics = self._metrics
        for kind, age in self._streams.ages().items():
            metrics.watch_age.labels(kind).set(age)
        for each in self._streams.statistics():
            metrics.watch_synced.labels(each.kind).set(each.synced)
            metrics.opaque_objects.labels(each.kind).set(each.opaque)
            lists = each.relists + int(each.synced)
            metrics.relists.labels(each.kind).inc(self._since("lists", each.kind, count=lists))
            restarts = self._since("restarts", each.kind, count=each.restarts)
            metrics.watch_restarts.labels(each.kind).inc(restarts)

    def _refresh_usage(self) -> None:
        metrics, now = self._metrics, self._core.clock.now()
        metrics.usage_age.clear()  # another policy may ask other questions
        for each in self._measuring.statistics():
            labels = (each.source, each.query)
            if each.oldest is not None:
                metrics.usage_age.labels(*labels).set((now - each.oldest).total_seconds())
            errors = self._since("usage errors", *labels, count=each.errors)
            metrics.usage_errors.labels(*labels).inc(errors)

    def _refresh_bus(self) -> None:
        metrics, bus = self._metrics, self._core.bus.statistics()
        for action, count in bus.events.items():
            metrics.cluster_events.labels(action).inc(self._since("event", action, count=count))
        for labels, count in bus.keys.items():
            metrics.triggered_runs.labels(*labels).inc(self._since("keys", *labels, count=count))
        for strategy, count in bus.narrow_errors.items():
            metrics.narrow_errors.labels(strategy).inc(self._since("narrow", strategy, count=count))
        metrics.clock_jumps.inc(self._since("jumps", count=self._core.gates.clock.jumps))

    def _since(self, *what: str, count: int) -> int:
        """Return what was added to a count since the last scrape."""
        before = self._before[what]
        self._before[what] = count
        # A reloaded policy counts from 0 again.
        return count - before if count >= before else count


class _Fields(Protocol):
    def _asdict(self) -> dict[str, object]: ...


def _fields(statistics: _Fields) -> dict[str, object]:
    """Return a named tuple under names as the rest of the page has them."""
    return {_camel(name): value for name, value in statistics._asdict().items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _told(candidate: Candidate) -> dict[str, object]:
    pod = candidate.pod
    return {
        "pod": f"{pod.namespace}/{pod.name}",
        "node": pod.node_name,
        "strategy": candidate.key.strategy,
        "cause": " ".join((candidate.cause.kind, *candidate.cause.ident)),
        "reason": candidate.reason,
    }


def _held(held: Held | None) -> dict[str, object] | None:
    return None if held is None else {"by": held.by, "why": held.reason}
