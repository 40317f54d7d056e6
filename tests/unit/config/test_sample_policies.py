"""Every sample policy loads, strictly, and enables what its name says."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactive_descheduler.config.corrections import NONE, Corrections
from reactive_descheduler.config.doubts import doubts
from reactive_descheduler.config.load import LoadedPolicy, load_policy
from reactive_descheduler.strategies import IN_TREE, PLUGINS

ROOT = Path(__file__).parents[3]
SAMPLES = sorted((ROOT / "config").glob("*.yaml"))
DEMO = ROOT / "reactive_descheduler" / "cli" / "demo-policy.yaml"
BUILT = {each.spec.name for each in IN_TREE}


def _load(sample: Path, corrections: Corrections | None = None) -> LoadedPolicy:
    text = sample.read_bytes()
    return load_policy(text, source=sample.name, plugins=PLUGINS, corrections=corrections)


def _enabled(policy: LoadedPolicy) -> set[str]:
    return {
        plugin.name
        for profile in policy.profiles
        for plugin in (*profile.deschedule, *profile.balance)
    }


@pytest.mark.parametrize("sample", [*SAMPLES, DEMO], ids=lambda path: path.name)
def test_a_sample_loads_without_a_word(sample: Path) -> None:
    policy = _load(sample)
    assert policy.warnings == ()
    assert doubts(policy) == ()
    assert _enabled(policy)


@pytest.mark.parametrize("sample", [*SAMPLES, DEMO], ids=lambda path: path.name)
def test_a_sample_serves_upstream_too(sample: Path) -> None:
    # With no correction in force a document is read as upstream reads it.
    policy = _load(sample, NONE)
    assert policy.warnings == ()


def test_every_strategy_has_a_sample_and_one_has_all_that_go_together() -> None:
    enabled = {sample.name: _enabled(_load(sample)) for sample in SAMPLES}
    assert enabled["sample-policy.yaml"] == BUILT - {"HighNodeUtilization"}  # they would fight
    alone = {name for names in enabled.values() if len(names) == 1 for name in names}
    assert alone == BUILT
