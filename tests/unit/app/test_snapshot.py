"""Every form in which a dump may come, and every way in which it may be of no use."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import yaml

from reactive_descheduler.api.errors import SnapshotError
from reactive_descheduler.api.quantity import NANOS
from reactive_descheduler.app.snapshot import read_snapshot
from tests.builders import Manifest, make_node, make_pod, make_priority_class

NODE, POD = make_node("node-1"), make_pod("web-1", node="node-1")


def _list(*items: Manifest, kind: str = "List") -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "items": list(items), "metadata": {}}


def _without_kind(manifest: Manifest) -> Manifest:
    return {key: value for key, value in manifest.items() if key not in ("kind", "apiVersion")}


def _json(*documents: object, indent: int | None = 4) -> str:
    return "\n".join(json.dumps(document, indent=indent) for document in documents)


def _yaml(*documents: object) -> str:
    return yaml.safe_dump_all(documents)


FORMS = {
    "kubectl get -o json": _json(_list(NODE, POD)),
    "kubectl get -o yaml": _yaml(_list(NODE, POD)),
    "two kubectl get -o json": _json(_list(NODE), _list(POD)),
    "JSON a line": _json(NODE, POD, indent=None),
    "YAML documents": _yaml(NODE, None, POD),
    "YAML with a head": "---\n" + _yaml(NODE, POD),
    "lists of one kind": _json(
        _list(_without_kind(NODE), kind="NodeList"), _list(_without_kind(POD), kind="PodList")
    ),
    "list of lists": _json(_list(_list(NODE), _list(POD))),
    "bare array": _json([NODE, POD]),
    "with other kinds": _json(_list({"kind": "Secret", "metadata": {"name": "s"}}, NODE, POD)),
    "times without quotes": _yaml(_list(NODE, POD)).replace(
        "'2026-01-01T00:00:00Z'", "2026-01-01T00:00:00Z"
    ),
    "with a byte order mark": "\ufeff" + _json(_list(NODE, POD)),
}


def test_reads_what_powershell_wrote() -> None:
    text = _json(_list(NODE, POD)).encode("utf-16")
    assert read_snapshot(text, source="dump").counts == {"Node": 1, "Pod": 1}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_reads(text: str) -> None:
    snapshot = read_snapshot(text.encode(), source="dump")
    pod = snapshot.lister.pod_named("default", "web-1")
    assert pod is not None
    assert pod.created is not None
    assert not pod.opaque
    assert [node.name for node in snapshot.lister.nodes()] == ["node-1"]
    assert snapshot.counts == {"Node": 1, "Pod": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "dump: is empty", id="empty"),
        pytest.param("{", "dump: is not JSON", id="JSON cut off"),
        pytest.param("a: b: c", "dump: is not YAML on line 1", id="no YAML"),
        pytest.param("a: \x00", "dump: is not YAML", id="control characters"),
        pytest.param("\xff\xfe", "dump: is empty", id="nothing but a mark"),
        pytest.param("hello", "dump: holds str, not objects", id="plain text"),
        pytest.param("[1]", "dump: holds int, not objects", id="numbers"),
        pytest.param("{}", "dump: holds an object without a kind", id="no kind"),
        pytest.param('{"kind": "List", "items": [3]}', "holds int", id="list of numbers"),
        pytest.param(
            '{"kind": "Pod"}', "dump: object 1: an object of kind Pod without a name", id="no name"
        ),
        pytest.param("kind: Pod\nmetadata: {name: .nan}", "without a name", id="strange name"),
        pytest.param("&a [*a]", "nested", id="endless"),
        pytest.param("[" * 100_000, "nested too deeply", id="deep"),
    ],
)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(SnapshotError, match="dump: ") as refusal:
        read_snapshot(text.encode("latin-1"), source="dump")
    assert message in str(refusal.value)
    assert "kubectl get" in refusal.value.hint


def test_an_object_that_cannot_be_read_is_kept_as_unreadable() -> None:
    broken = make_pod("broken", spec={"priority": "high"})
    snapshot = read_snapshot(_json(_list(NODE, POD, broken)).encode(), source="dump")
    found = snapshot.lister.pod_named("default", "broken")
    assert found is not None
    assert found.opaque


def _node_metrics(name: str, cpu: str, time: str) -> Manifest:
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": {"name": name},
        "timestamp": time,
        "window": "10.5s",
        "usage": {"cpu": cpu, "memory": "3Ki"},
    }


MEASURED: tuple[Manifest, ...] = (
    _node_metrics("old", "500m", "2026-01-01T00:00:00Z"),
    _node_metrics("new", "500m", "2026-01-01T10:00:00Z"),
    {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": "web-1", "namespace": "default"},
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "10.5s",
        "containers": [{"name": "c", "usage": {"cpu": "7u"}}],
    },
)


@pytest.mark.parametrize("write", [_json, _yaml])
def test_measurements_are_kept_with_their_time(write: Callable[[object], str]) -> None:
    snapshot = read_snapshot(write(_list(POD, *MEASURED)).encode(), source="dump")
    pod = snapshot.lister.pod_named("default", "web-1")
    assert pod is not None
    samples = [*snapshot.usage.node("old"), *snapshot.usage.node("new"), snapshot.usage.pod(pod)]
    known = [(dict(each.usage), each.sampled, each.received) for each in samples if each]
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 10, tzinfo=UTC)
    of_node = {"cpu": NANOS // 2, "memory": 3 * 1024 * NANOS}
    assert known == [
        (of_node, first, first),
        (of_node, last, last),
        ({"cpu": 7_000}, first, first),
    ]
    assert snapshot.counts == {"Pod": 1, "NodeMetrics": 2, "PodMetrics": 1}


def test_a_measurement_that_cannot_be_read_is_refused() -> None:
    broken = _node_metrics("odd", "much", "2026-01-01T00:00:00Z")
    with pytest.raises(SnapshotError, match="dump: object 2: 'much' is not a quantity"):
        read_snapshot(_json(_list(NODE, broken)).encode(), source="dump")


def test_priority_classes_by_name() -> None:
    text = _json(_list(make_priority_class("gold", 9), make_priority_class("iron", 1)))
    snapshot = read_snapshot(text.encode(), source="dump")
    assert snapshot.priority_classes == {"gold": 9, "iron": 1}
