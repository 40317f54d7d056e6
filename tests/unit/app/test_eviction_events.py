"""Kubernetes Events on evicted and on refused Pods."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.eviction import Answer, Decision
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.app.eviction_events import EvictionEventsHook
from tests.unit.evictor.samples import NOW, candidate, outcome


class Sent:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, bool]] = []

    def __call__(self, pod: Pod, *, reason: str, note: str, warning: bool) -> None:
        self.events.append((reason, note, warning))


def decision(verdict: str, by: str) -> Decision:
    return Decision(NOW, "p", candidate(), verdict, by, "too many", None)


EVICTED = ("Strategy", "pod evicted from node-1 node by sigs.k8s.io/descheduler", False)
FAILED = ("EvictionFailed", "pod eviction from node-1 node failed: told so", True)
QUIET = {
    Answer.EVICTED,
    Answer.DRY_RUN,
    Answer.OBSERVED,
    Answer.BACKGROUND,
    Answer.UNKNOWN,
}


@pytest.mark.parametrize("answer", sorted(Answer))
@pytest.mark.parametrize("failures", [True, False])
@pytest.mark.parametrize("dry_run", [True, False])
def test_events_for_each_answer(answer: Answer, failures: bool, dry_run: bool) -> None:
    sent = Sent()
    hook = EvictionEventsHook(sent, failures=failures, dry_run=dry_run)
    hook.on_outcome(outcome(answer))

    if answer is Answer.EVICTED:
        assert sent.events == [EVICTED]
    else:
        told = failures and not dry_run and answer not in QUIET
        assert sent.events == ([FAILED] if told else [])


@pytest.mark.parametrize(
    ("verdict", "by", "told"),
    [("held", "limits", True), ("held", "lane", False), ("dropped", "limits", False)],
)
def test_only_limits_are_told_as_failures_without_a_request(
    verdict: str, by: str, told: bool
) -> None:
    sent = Sent()
    EvictionEventsHook(sent, failures=True, dry_run=False).on_decision(decision(verdict, by))

    assert bool(sent.events) is told
