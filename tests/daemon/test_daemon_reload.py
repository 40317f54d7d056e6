"""The policy file changes under a running daemon: the new one takes over, or the old one stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest
from structlog.typing import EventDict

from reactive_descheduler.app.policy_file import LOOK_EVERY
from reactive_descheduler.sandbox.faults import Fault
from tests.builders import make_namespace, make_node, make_pod
from tests.daemon.world import AT_ONCE, TAINTS, World, world

SOON = 2 * LOOK_EVERY
SPARING = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: RemovePodsViolatingNodeTaints
    args: {excludedTaints: [dedicated]}
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
"""
OTHER = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: other
  pluginConfig:
  - name: RemovePodsHavingTooManyRestarts
    args: {podRestartThreshold: 100}
  plugins: {deschedule: {enabled: [RemovePodsHavingTooManyRestarts]}}
"""
SETTLING = "reactive: {settle: {default: 20s}, debounce: {quiet: 0s}, resync: 10h}\n"
TWO_VICTIMS = [
    make_namespace(),
    make_node("node-1"),
    make_node("node-2"),
    make_pod("a", node="node-1"),
    make_pod("b", node="node-1"),
]


def file_of(daemon: World) -> Mapping[str, object]:
    policy = cast(Mapping[str, object], daemon.status()["policy"])
    return cast(Mapping[str, object], policy["file"])


async def reload(here: World, text: str) -> None:
    here.file.text = text
    await here.rest(SOON)


async def test_a_new_policy_takes_over_and_looks_at_everything() -> None:
    async with world(SPARING + AT_ONCE) as here:
        await here.live()
        await here.taint()
        await here.rest()
        assert await here.leaving() == set()

        await reload(here, TAINTS + AT_ONCE)

        assert await here.leaving() == {"a"}
        assert file_of(here)["reloads"] == 1
        assert here.metric("policy_reloads", result="ok") == 1


async def test_the_same_content_again_is_no_reload() -> None:
    async with world() as here:
        await here.live()
        await here.rest(10 * LOOK_EVERY)
        assert file_of(here)["reloads"] == 0


async def test_a_candidate_that_waits_does_not_outlive_its_strategy() -> None:
    async with world(TAINTS + SETTLING) as here:
        await here.live()
        await here.taint()
        await here.rest(5)
        assert here.held() == {"a": "settle"}

        await reload(here, OTHER + SETTLING)
        await here.rest(60)

        assert here.requests.hits == 0
        assert here.held() == {}


async def test_a_cause_that_settles_goes_on_settling() -> None:
    async with world(TAINTS + SETTLING) as here:
        await here.live()
        await here.taint()
        await here.rest(12)

        await reload(here, TAINTS.replace("name: default", "name: renamed") + SETTLING)
        await here.rest(5)

        assert await here.leaving() == {"a"}, "20 s after the taint, not after the reload"


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (TAINTS.replace("RemovePods", "RemovePoods"), "RemovePoodsViolatingNodeTaints"),
        ("profiles: [", "policy.yaml:"),
        (TAINTS + "reactive: {resync: soon}", "resync"),
    ],
    ids=["unknown-strategy", "no-yaml", "bad-setting"],
)
async def test_a_broken_file_is_told_and_the_last_good_policy_stays(
    broken: str, named: str
) -> None:
    async with world() as here:
        await here.live()

        await reload(here, broken)

        assert named in str(file_of(here)["error"])
        assert here.metric("policy_reloads", result="refused") == 1
        await here.taint()
        await here.rest()
        assert await here.leaving() == {"a"}

        await reload(here, TAINTS + AT_ONCE)
        assert file_of(here)["error"] == ""


async def test_each_mistake_of_a_refused_file_is_a_line_of_its_own(logs: list[EventDict]) -> None:
    broken = TAINTS.replace("RemovePods", "RemovePoods") + "reactive: {resync: soon, brake: {}}\n"
    async with world() as here:
        await here.live()
        await reload(here, broken)

    summary, *mistakes = [line for line in logs if line["log_level"] == "error"]
    assert summary["event"] == "Policy refused; the last good one stays in force"
    assert (summary["source"], summary["mistakes"]) == ("policy.yaml", len(mistakes))
    assert {line["path"] for line in mistakes} >= {"reactive.resync", "reactive.brake"}
    assert {line["event"] for line in mistakes} == {"Mistake in the policy"}
    assert all(line["line"] and line["problem"] and line.get("hint", "-") for line in mistakes)
    assert not [line for line in mistakes if "\n" in str(line)]


async def test_a_file_that_is_gone_for_a_moment_changes_nothing() -> None:
    async with world() as here:
        await here.live()
        here.file.error = FileNotFoundError("policy.yaml")
        await here.rest(SOON)
        assert "policy.yaml" in str(file_of(here)["error"])
        here.file.error = None
        await here.rest(SOON)
        assert file_of(here)["error"] == ""
        assert file_of(here)["reloads"] == 0


async def test_what_went_in_the_window_still_counts() -> None:
    limit = "maxNoOfPodsToEvictTotal: 1\n"
    async with world(limit + TAINTS + AT_ONCE, TWO_VICTIMS) as here:
        await here.live()
        await here.taint()
        await here.rest()
        assert len(await here.leaving()) == 1

        await reload(here, limit + TAINTS.replace("name: default", "name: new") + AT_ONCE)

        assert len(await here.leaving()) == 1
        assert set(here.held().values()) == {"limits"}


async def test_a_limit_that_comes_new_counts_what_went_before_it() -> None:
    async with world(TAINTS + AT_ONCE) as here:
        await here.live()
        await here.taint()
        await here.rest()
        assert await here.leaving() == {"a"}

        await reload(here, "maxNoOfPodsToEvictTotal: 1\n" + TAINTS + AT_ONCE)
        await here.taint("node-2")
        await here.rest()

        assert here.held() == {"c": "limits"}


async def test_a_request_in_flight_ends_and_is_not_sent_again() -> None:
    slow = Fault(verb="create", resource="pods/eviction", latency=10)
    async with world(faults=[slow]) as here:
        await here.live()
        await here.taint()
        await here.rest(1)

        await reload(here, TAINTS.replace("name: default", "name: new") + AT_ONCE)
        await here.rest(20)

        assert await here.leaving() == {"a"}
        assert slow.hits == 1
        assert here.answers() == [("a", "evicted")]


async def test_a_kind_that_only_the_new_policy_needs_is_watched() -> None:
    protecting = TAINTS.replace(
        "  plugins:",
        """  pluginConfig:
  - name: DefaultEvictor
    args:
      podProtections:
        extraEnabled: [PodsWithPVC]
        config: {PodsWithPVC: {protectedStorageClasses: [{name: gold}]}}
  plugins:""",
    )
    async with world() as here:
        await here.live()

        await reload(here, protecting + AT_ONCE)

        streams = cast(list[Mapping[str, object]], here.status()["streams"])
        assert "PersistentVolumeClaim" in {each["kind"] for each in streams}
        await here.taint()
        await here.rest()
        assert await here.leaving() == {"a"}


async def test_a_kind_that_may_not_be_read_keeps_the_new_policy_out() -> None:
    protecting = TAINTS.replace(
        "  plugins:",
        """  pluginConfig:
  - name: DefaultEvictor
    args:
      podProtections:
        extraEnabled: [PodsWithPVC]
        config: {PodsWithPVC: {protectedStorageClasses: [{name: gold}]}}
  plugins:""",
    )
    forbidden = Fault(resource="persistentvolumeclaims", status=403, message="forbidden")
    async with world(faults=[forbidden]) as here:
        await here.live()

        await reload(here, protecting + AT_ONCE)
        await here.rest(70)

        assert "PersistentVolumeClaim" in str(file_of(here)["error"])
        assert here.daemon.not_ready() == []
        await here.taint()
        await here.rest()
        assert await here.leaving() == {"a"}


async def test_a_threshold_by_a_class_that_is_missing_keeps_the_new_policy_out() -> None:
    by_name = TAINTS.replace(
        "  plugins:",
        """  pluginConfig:
  - name: DefaultEvictor
    args: {priorityThreshold: {name: nobody-made-this}}
  plugins:""",
    )
    async with world() as here:
        await here.live()
        await reload(here, by_name + AT_ONCE)
        assert "nobody-made-this" in str(file_of(here)["error"])
        assert file_of(here)["reloads"] == 0


async def test_stopping_after_a_reload_ends_both() -> None:
    async with world() as here:
        await here.live()
        await reload(here, OTHER + AT_ONCE)
        await here.end()
        assert file_of(here)["reloads"] == 1
