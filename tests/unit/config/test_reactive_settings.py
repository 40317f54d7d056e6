"""Our own settings: every one has a default, and a wrong one is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from reactive_descheduler.config.corrections import ALL
from reactive_descheduler.config.findings import path_text, validation_findings
from reactive_descheduler.config.reactive import Debounce, Percent, ReactiveSettings

SECOND = timedelta(seconds=1)
Document = dict[str, object]


def test_defaults() -> None:
    settings = ReactiveSettings.read({})
    assert settings.debounce == Debounce(quiet=SECOND / 10, max_wait=SECOND)
    assert (settings.settle.default, settings.settle.transient) == (5 * SECOND, 60 * SECOND)
    assert "node.kubernetes.io/not-ready" in settings.settle.transient_taints
    assert (settings.rate_limit.evictions_per_second, settings.rate_limit.burst) == (5, 10)
    assert settings.rate_limit.adaptive
    assert (settings.limits.window, settings.limits.per_workload) == (300 * SECOND, 10)
    assert settings.pacing.max_unavailable == Percent(25)
    assert settings.staleness.max_age == 45 * SECOND
    assert settings.resync == 1800 * SECOND
    assert settings.corrections == ALL


def test_the_whole_key_is_read() -> None:
    settings = ReactiveSettings.read(
        {
            "debounce": {"quiet": "1ms", "maxWait": "2ms"},
            "settle": {"default": "0s", "transient": "1m", "transientTaints": []},
            "strategies": {"A": {"debounce": {"quiet": "20ms"}, "settle": "0s", "mode": "observe"}},
            "rateLimit": {"evictionsPerSecond": 0.5, "burst": 1, "adaptive": False},
            "limits": {"window": "10m", "perWorkload": 3},
            "pacing": {"maxUnavailable": 2, "timeout": "1m"},
            "cooldown": {"initial": "1m", "factor": 3, "max": "1h"},
            "brakes": {
                "notReadyNodes": "50%",
                "blastRadius": {"nodes": "12.5%", "pods": "5%", "within": "30s"},
                "pendingPods": "0%",
            },
            "staleness": {"maxAge": "10s"},
            "usage": {"pollInterval": "5s", "samples": 3, "maxAge": "1m"},
            "resync": "1h",
            "corrections": "none",
        }
    )
    assert settings.settle.transient_taints == ()
    assert settings.strategies["A"].mode == "observe"
    assert settings.pacing.max_unavailable == 2
    assert settings.cooldown.factor == 3
    assert settings.brakes.blast_radius.nodes.fraction == 0.125
    assert settings.usage.samples == 3
    assert settings.corrections == frozenset()


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"debounce": {"quiet": "2s"}}, "debounce"),
        ({"debounce": {"quiet": "-1s"}}, "debounce.quiet"),
        ({"debounce": {"quiet": 100}}, "debounce.quiet"),
        ({"settle": "5s"}, "settle"),
        ({"settle": {"transientTaints": "a"}}, "settle.transientTaints"),
        ({"strategies": {"A": {"mode": "dry"}}}, "strategies.A.mode"),
        ({"strategies": {"A": {"wait": "1s"}}}, "strategies.A.wait"),
        ({"rateLimit": {"evictionsPerSecond": 0}}, "rateLimit.evictionsPerSecond"),
        ({"rateLimit": {"evictionsPerSecond": float("nan")}}, "rateLimit.evictionsPerSecond"),
        ({"rateLimit": {"burst": 0}}, "rateLimit.burst"),
        ({"limits": {"window": "0s"}}, "limits.window"),
        ({"limits": {"perWorkload": -1}}, "limits.perWorkload"),
        ({"pacing": {"maxUnavailable": "101%"}}, "pacing.maxUnavailable"),
        ({"pacing": {"maxUnavailable": "25"}}, "pacing.maxUnavailable"),
        ({"pacing": {"maxUnavailable": True}}, "pacing.maxUnavailable"),
        ({"cooldown": {"factor": 0.5}}, "cooldown.factor"),
        ({"cooldown": {"initial": "7h"}}, "cooldown"),
        ({"brakes": {"notReadyNodes": 55}}, "brakes.notReadyNodes"),
        ({"brakes": {"blastRadius": {"nodes": "-1%"}}}, "brakes.blastRadius.nodes"),
        ({"staleness": {"maxAge": "0s"}}, "staleness.maxAge"),
        ({"usage": {"samples": 0}}, "usage.samples"),
        ({"resync": "0s"}, "resync"),
        ({"corrections": ["nope"]}, "corrections"),
    ],
    ids=repr,
)
def test_a_mistake_is_refused_where_it_stands(document: Document, path: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        ReactiveSettings.read(document)
    found = list(validation_findings(refusal.value, ReactiveSettings, document))
    assert [path_text(each.path) for each in found] == [path]


@pytest.mark.parametrize(
    ("own", "quiet", "max_wait"),
    [
        ({}, 0.1, 1),
        ({"quiet": "20ms"}, 0.02, 1),
        ({"maxWait": "5s"}, 0.1, 5),
        ({"quiet": "3s"}, 3, 3),
        ({"quiet": "0s", "maxWait": "0s"}, 0, 0),
    ],
    ids=repr,
)
def test_a_strategy_may_have_its_own_debounce(own: Document, quiet: float, max_wait: float) -> None:
    settings = ReactiveSettings.read({"strategies": {"A": {"debounce": own}}})
    assert settings.debounce_of("A") == Debounce(quiet=quiet * SECOND, max_wait=max_wait * SECOND)
    assert settings.debounce_of("B") == settings.debounce


@pytest.mark.parametrize(
    ("strategy", "taint", "seconds"),
    [
        ("A", "", 0),
        ("A", "dedicated", 0),
        ("A", "node.kubernetes.io/not-ready", 60),
        ("B", "", 5),
        ("B", "node.kubernetes.io/not-ready", 60),
        ("C", "node.kubernetes.io/not-ready", 120),
    ],
)
def test_transient_taints_settle_longer(strategy: str, taint: str, seconds: int) -> None:
    settings = ReactiveSettings.read({"strategies": {"A": {"settle": "0s"}, "C": {"settle": "2m"}}})
    assert settings.settle_of(strategy, taint=taint) == seconds * SECOND
