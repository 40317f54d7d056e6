from __future__ import annotations

import re
from pathlib import Path

import pytest

from reactive_descheduler.observability import metrics as module
from reactive_descheduler.observability.metrics import (
    BuildInfo,
    Family,
    Metrics,
    Result,
    render_process,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(BuildInfo("0.1.0"))


def series(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """Samples of that name after a scrape; label values in alphabetical order of the labels."""
    metrics.refresh()
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def count(metrics: Metrics, *, node: str, result: Result = Result.SUCCESS) -> None:
    metrics.count_eviction(result, strategy="S", profile="p", namespace="ns", node=node)


def test_the_document_lists_exactly_what_there_is(metrics: Metrics) -> None:
    documented = [
        Family(
            name.strip("`"),
            kind,
            () if labels == "-" else tuple(label.strip("` ") for label in labels.split(",")),
            text,
        )
        for name, kind, labels, text in (
            [cell.strip() for cell in row.strip("|").split("|")]
            for row in DOCUMENT.read_text(encoding="utf-8").splitlines()
            if re.match(r"\| `(reactive_)?descheduler_\w+` \|", row)
        )
    ]
    assert documented == metrics.families


def served(text: bytes) -> list[tuple[str, str]]:
    return sorted(re.findall(r"^# TYPE (\S+) (\S+)$", text.decode(), re.MULTILINE))


def test_everything_served_is_documented(metrics: Metrics) -> None:
    assert served(metrics.render()) == sorted(
        (family.name, family.kind) for family in metrics.families
    )


def test_the_process_has_its_usual_series() -> None:
    names = {name for name, _ in served(render_process())}
    assert {"process_cpu_seconds_total", "python_info", "python_gc_collections_total"} <= names
    assert all(name.startswith(("process_", "python_")) for name in names)


def test_two_sets_of_metrics_do_not_share_anything() -> None:
    one, other = Metrics(BuildInfo("1")), Metrics(BuildInfo("2"))
    one.clock_jumps.inc()
    assert series(other, "reactive_descheduler_clock_jumps_total") == {(): 0}


def test_former_names_are_always_equal_to_the_present_ones(metrics: Metrics) -> None:
    count(metrics, node="n1")
    count(metrics, node="n1")
    count(metrics, node="n2", result=Result.ERROR)
    metrics.loop_duration.observe(0.3)
    metrics.strategy_duration.labels("S", "p").observe(0.02)
    present = series(metrics, "descheduler_pods_evicted_total")
    assert present == {
        ("ns", "n1", "p", "success", "S"): 2,
        ("ns", "n2", "p", "error", "S"): 1,
    }
    assert series(metrics, "descheduler_pods_evicted") == present
    for what in ("loop", "strategy"):
        for suffix in ("bucket", "sum", "count"):
            name = f"descheduler_{what}_duration_seconds_{suffix}"
            assert series(metrics, name)
            assert series(metrics, f"descheduler_{name}") == series(metrics, name)


def test_build_info_is_one(metrics: Metrics) -> None:
    assert series(metrics, "descheduler_build_info") == {("0.1.0", "0.1.0", "", "", ""): 1}


def test_results_are_the_sentences_that_alerts_match() -> None:
    assert [result.value for result in Result] == [
        "success",
        "error",
        "background",
        "maximum number of evicted pods per a descheduling cycle reached",
        "maximum number of evicted pods per node reached",
        "maximum number of evicted pods per namespace reached",
    ]


def test_past_the_cap_new_series_have_no_node(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SERIES_CAP", 3)
    for node in ("n1", "n2", "n3", "n4", "n5", "n1"):
        count(metrics, node=node)
    nodes = {
        labels[1]: value
        for labels, value in series(metrics, "descheduler_pods_evicted_total").items()
    }
    assert nodes == {"n1": 2, "n2": 1, "n3": 1, "": 2}


def test_gauges_are_set_when_somebody_looks(metrics: Metrics) -> None:
    parked = [7]
    metrics.on_scrape(lambda: metrics.parked_keys.set(parked[0]))
    assert series(metrics, "reactive_descheduler_parked_keys") == {(): 7}
    parked[0] = 8
    assert series(metrics, "reactive_descheduler_parked_keys") == {(): 8}
