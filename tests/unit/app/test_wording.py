"""Every wake can be said in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reactive_descheduler.api.changes import Action, At, Never, On, Wake
from reactive_descheduler.api.pod import shape
from reactive_descheduler.app.wording import describe_action, describe_wake
from tests.builders import make_pod, pod_view

SHAPE = shape(pod_view(make_pod()))


@pytest.mark.parametrize("action", Action, ids=lambda action: action.name)
def test_every_action_has_words(action: Action) -> None:
    assert describe_action(action)
    assert describe_wake(On(action, None)).startswith(("any ", "the "))
    assert describe_wake(On(action, ("Owner", "", "uid")))


@pytest.mark.parametrize(
    ("wake", "words"),
    [
        pytest.param(
            At(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)), "it is 2026-01-02T03:04:05Z", id="time"
        ),
        pytest.param(Never("uid"), "never: only another Pod in its place can go", id="never"),
        pytest.param(
            On(Action.NODE_TAINTS | Action.NODE_LABELS, ("Node", "", "node-1")),
            "Node node-1 gets other taints or gets other labels",
            id="node",
        ),
        pytest.param(
            On(Action.POD_ADDED | Action.POD_DELETED, ("Owner", "", "uid")),
            "a Pod of its owner is added or is deleted",
            id="owner",
        ),
        pytest.param(
            On(Action.BUDGET_SELECTION, ("Namespace", "", "shop")),
            "a budget in namespace shop comes, goes or selects other Pods",
            id="budgets of a namespace",
        ),
        pytest.param(
            On(Action.NODE_ADDED | Action.POD_GONE, None, SHAPE),
            "any node is added, or any Pod finishes or is deleted, and could take the Pod then",
            id="room",
        ),
    ],
)
def test_wakes_in_words(wake: Wake, words: str) -> None:
    assert describe_wake(wake) == words
