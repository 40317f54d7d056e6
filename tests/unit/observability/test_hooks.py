from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from reactive_descheduler.api.changes import Key, Never
from reactive_descheduler.api.eviction import (
    Answer,
    Candidate,
    Cause,
    Decision,
    EvictionOutcome,
    Rejection,
    Stay,
)
from reactive_descheduler.api.pod import Pod, PodTemplate
from reactive_descheduler.observability import hooks as module
from reactive_descheduler.observability.hooks import Hooks, LogHook, MetricsHook
from reactive_descheduler.observability.logs import get_logger
from reactive_descheduler.observability.metrics import BuildInfo, Metrics, Result

START = datetime(2026, 1, 1, tzinfo=UTC)
OWN = "reactive_descheduler_"
BY_STRATEGY = {"strategy": "NodeTaints"}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(BuildInfo("0.1.0"))


@pytest.fixture
def hook(metrics: Metrics) -> MetricsHook:
    return MetricsHook(metrics, ["main", "second"].__getitem__)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def candidate(uid: str = "u1") -> Candidate:
    template = PodTemplate(labels={}, owners=(), node_selector={}, requests={})
    pod = Pod(
        namespace="shop",
        name="web-1",
        uid=uid,
        resource_version="1",
        template=template,
        node_name="n1",
    )
    cause = Cause("taint", ("n1", "k", "", "NoSchedule"), (("Node", "", "n1"),))
    return Candidate(Key(0, "NodeTaints", (uid,)), pod, cause, "taint k is not tolerated")


def decision(
    verdict: str, *, by: str = "", reason: str = "", seen: float | None = 0, time: float = 1
) -> Decision:
    change_seen = None if seen is None else at(seen)
    return Decision(at(time), "main", candidate(), verdict, by, reason, change_seen)


def outcome(answer: Answer, *, started: float = 3, uid: str = "u1") -> EvictionOutcome:
    return EvictionOutcome(
        candidate(uid), answer, 500, "said so", None, at(started), at(started + 0.1)
    )


def value(metrics: Metrics, name: str, labels: dict[str, str] | None = None) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def evicted(metrics: Metrics, result: Result) -> float | None:
    labels = {"result": result.value, "strategy": "NodeTaints", "profile": "main"}
    return value(
        metrics, "descheduler_pods_evicted_total", {**labels, "namespace": "shop", "node": "n1"}
    )


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (Answer.EVICTED, Result.SUCCESS),
        (Answer.DRY_RUN, Result.SUCCESS),
        (Answer.NOT_FOUND, Result.ERROR),
        (Answer.BUDGET, Result.ERROR),
        (Answer.SERVER_ERROR, Result.ERROR),
        (Answer.UNKNOWN, None),
    ],
)
def test_answers_count_as_upstream_counts_them(
    metrics: Metrics, hook: MetricsHook, answer: Answer, result: Result | None
) -> None:
    hook.on_outcome(outcome(answer))
    for one in Result:
        assert evicted(metrics, one) == (1 if one is result else None)
    assert value(metrics, OWN + "answers_total", {"answer": answer.value}) == 1


def test_a_dry_run_is_also_counted_apart(metrics: Metrics, hook: MetricsHook) -> None:
    hook.on_outcome(outcome(Answer.DRY_RUN))
    assert value(metrics, OWN + "dry_run_reports_total", BY_STRATEGY) == 1


@pytest.mark.parametrize(
    ("verdict", "name", "labels"),
    [
        ("held", "holds_total", {"gate": "x"}),
        ("rejected", "rejections_total", {"filter": "x"}),
        ("dropped", "dropped_total", BY_STRATEGY),
    ],
)
def test_verdicts_are_counted_by_who_gave_them(
    metrics: Metrics, hook: MetricsHook, verdict: str, name: str, labels: dict[str, str]
) -> None:
    hook.on_decision(decision(verdict, by="x"))
    assert value(metrics, OWN + name, labels) == 1


def test_a_limit_reached_counts_under_upstreams_sentence(
    metrics: Metrics, hook: MetricsHook
) -> None:
    hook.on_decision(decision("held", by="limits", reason=f"{Result.NODE_LIMIT}: 3 on n1"))
    assert evicted(metrics, Result.NODE_LIMIT) == 1
    assert evicted(metrics, Result.TOTAL_LIMIT) is None


def test_latencies_start_at_the_change_that_was_seen_first(
    metrics: Metrics, hook: MetricsHook
) -> None:
    hook.on_decision(decision("held", by="settle", seen=0, time=0.5))
    hook.on_decision(decision("accepted", seen=2, time=2.5))
    hook.on_outcome(outcome(Answer.EVICTED, started=5))
    assert value(metrics, OWN + "cause_to_verdict_seconds_sum", BY_STRATEGY) == 1.0
    assert value(metrics, OWN + "cause_to_request_seconds_sum", BY_STRATEGY) == 5.0
    assert value(metrics, OWN + "cause_to_request_seconds_count", BY_STRATEGY) == 1


@pytest.mark.parametrize(
    "before",
    [
        [decision("accepted", seen=None)],
        [decision("accepted"), decision("dropped")],
        [decision("held"), decision("rejected")],
    ],
    ids=["found by a full pass", "dropped since", "rejected since"],
)
def test_no_latency_without_a_change_that_still_counts(
    metrics: Metrics, hook: MetricsHook, before: list[Decision]
) -> None:
    for one in before:
        hook.on_decision(one)
    hook.on_outcome(outcome(Answer.EVICTED))
    assert value(metrics, OWN + "cause_to_request_seconds_count", BY_STRATEGY) is None


def test_a_clock_that_jumps_back_makes_no_negative_latency(
    metrics: Metrics, hook: MetricsHook
) -> None:
    hook.on_decision(decision("accepted", seen=100, time=1))
    assert value(metrics, OWN + "cause_to_verdict_seconds_sum", BY_STRATEGY) == 0


def test_what_is_remembered_has_an_end(
    metrics: Metrics, hook: MetricsHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_CHANGES", 2)
    for number in range(3):
        one = decision("held")
        hook.on_decision(one._replace(candidate=candidate(f"u{number}")))
    for number in range(3):
        hook.on_outcome(outcome(Answer.EVICTED, uid=f"u{number}"))
    assert value(metrics, OWN + "cause_to_request_seconds_count", BY_STRATEGY) == 2


class Broken:
    def on_decision(self, decision: Decision, /) -> None:
        raise ValueError("boom")

    def on_outcome(self, outcome: EvictionOutcome, /) -> None:
        raise ValueError("boom")

    def on_stay(self, stay: Stay, /) -> None:
        raise ValueError("boom")


def test_a_broken_hook_is_counted_and_disturbs_no_other(
    metrics: Metrics, hook: MetricsHook
) -> None:
    hooks = Hooks([Broken(), hook], metrics=metrics, log=get_logger("hooks"))
    with capture_logs() as logs:
        hooks.on_decision(decision("held", by="x"))
        hooks.on_outcome(outcome(Answer.EVICTED))
        hooks.on_stay(
            Stay("main", "NodeTaints", Rejection("nodeFit", "it fits nowhere", (Never("u1"),)))
        )
    assert value(metrics, OWN + "hook_errors_total", {"hook": "Broken"}) == 3
    assert value(metrics, OWN + "holds_total", {"gate": "x"}) == 1
    assert evicted(metrics, Result.SUCCESS) == 1
    assert [log["event"] for log in logs] == ["Hook failed"] * 3


@pytest.mark.parametrize(
    ("answer", "level", "message"),
    [
        (Answer.EVICTED, "info", "Evicted pod"),
        (Answer.DRY_RUN, "info", "Evicted pod in dry run mode"),
        (Answer.BUDGET, "warning", "Error evicting pod"),
        (Answer.SERVER_ERROR, "error", "Error evicting pod"),
    ],
)
def test_logs_carry_the_keys_that_alerts_stand_on(answer: Answer, level: str, message: str) -> None:
    hook = LogHook(get_logger("evictor"), ["main"].__getitem__)
    with capture_logs() as logs:
        hook.on_outcome(outcome(answer))
    (line,) = logs
    assert (line["event"], line["log_level"]) == (message, level)
    assert {key: line[key] for key in ("pod", "reason", "strategy", "node", "profile")} == {
        "pod": "shop/web-1",
        "reason": "taint k is not tolerated",
        "strategy": "NodeTaints",
        "node": "n1",
        "profile": "main",
    }


def test_candidates_that_stay_are_logged_at_verbosity_four() -> None:
    hook = LogHook(get_logger("evictor"), ["main"].__getitem__)
    with capture_logs() as logs:
        hook.on_decision(decision("accepted"))
        hook.on_decision(decision("rejected", by="DaemonSetPods", reason="owned by a DaemonSet"))
    (line,) = logs
    assert (line["v"], line["verdict"], line["by"]) == (4, "rejected", "DaemonSetPods")
