"""The sandbox scheduler's reading of the rules of placement."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox import fitting

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.documents import JsonObject


def make_pod(name: str = "a", app: str = "a", **spec: object) -> JsonObject:
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {"metadata": metadata, "spec": spec}


def make_node(
    name: str = "n", *, taints: list[JsonObject] | None = None, **labels: str
) -> JsonObject:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints or []},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "2"}},
    }


def asking(cpu: str) -> JsonObject:
    return make_pod(containers=[{"resources": {"requests": {"cpu": cpu}}}])


def required(*terms: JsonObject) -> JsonObject:
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return make_pod(affinity={"nodeAffinity": chosen})


def repelling(key: str, app: str) -> JsonObject:
    return make_pod(affinity={"podAntiAffinity": _about((key, app))})


def attached(*terms: tuple[str, str]) -> JsonObject:
    return make_pod(affinity={"podAffinity": _about(*terms)})


def _about(*terms: tuple[str, str]) -> JsonObject:
    found = [
        {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} for key, app in terms
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": found}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param("500m", Decimal("0.5"), id="milli"),
        pytest.param("1.5Gi", Decimal(3 * 2**29), id="binary"),
        pytest.param("2k", Decimal(2000), id="decimal"),
        pytest.param(3, Decimal(3), id="number"),
        pytest.param("1e3", Decimal(1000), id="exponent"),
    ],
)
def test_quantities(source: object, value: Decimal) -> None:
    assert fitting.quantity(source) == value


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param({"key": "k", "value": "v", "effect": "NoSchedule"}, True, id="exact"),
        pytest.param({"key": "k", "value": "other"}, False, id="another-value"),
        pytest.param({"key": "k", "operator": "Exists"}, True, id="exists"),
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False, id="effect"),
        pytest.param({"key": "other", "operator": "Exists"}, False, id="another-key"),
    ],
)
def test_tolerations(toleration: JsonObject, tolerated: bool) -> None:
    taint: JsonObject = {"key": "k", "value": "v", "effect": "NoSchedule"}

    assert fitting.tolerates(make_pod(tolerations=[toleration]), taint) is tolerated


@pytest.mark.parametrize(
    ("pod", "attracted"),
    [
        pytest.param(make_pod(nodeSelector={"disk": "ssd"}), True, id="selector"),
        pytest.param(make_pod(nodeSelector={"disk": "hdd"}), False, id="selector-differs"),
        pytest.param(required(), False, id="no-terms"),
        pytest.param(required({}), False, id="empty-term"),
        pytest.param(
            required({"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["3"]}]}),
            True,
            id="greater",
        ),
        pytest.param(
            required({"matchExpressions": [{"key": "gen", "operator": "Lt", "values": ["4"]}]}),
            False,
            id="not-less",
        ),
        pytest.param(
            required({"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["4"]}]}),
            False,
            id="no-number",
        ),
        pytest.param(
            required(
                {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
            ),
            True,
            id="any-term-will-do",
        ),
    ],
)
def test_attraction(pod: JsonObject, attracted: bool) -> None:
    assert fitting.is_attracted(pod, make_node(disk="ssd", gen="4")) is attracted


@pytest.mark.parametrize(
    ("taken", "room"),
    [
        pytest.param({}, True, id="empty"),
        pytest.param({"cpu": "0.5", "pods": 1}, True, id="just"),
        pytest.param({"cpu": "0.501", "pods": 1}, False, id="cpu"),
        pytest.param({"pods": 2}, False, id="count"),
    ],
)
def test_room(taken: dict[str, object], room: bool) -> None:
    amounts = {name: fitting.quantity(value) for name, value in taken.items()}
    wanted = fitting.requests_of(asking("500m"))

    assert fitting.has_room(wanted, make_node(), amounts) is room


def test_init_containers_count_by_the_largest() -> None:
    def container(cpu: str) -> JsonObject:
        return {"resources": {"requests": {"cpu": cpu}}}

    pod = make_pod(
        containers=[container("1"), container("1")], initContainers=[container("3"), container("1")]
    )

    assert fitting.requests_of(pod)["cpu"] == 3


@pytest.mark.parametrize(
    ("pod", "other", "apart"),
    [
        pytest.param(repelling("zone", "a"), make_pod(app="a"), False, id="own-term"),
        pytest.param(make_pod(app="a"), repelling("zone", "a"), False, id="term-of-the-other"),
        pytest.param(repelling("host", "a"), make_pod(app="a"), True, id="another-domain"),
        pytest.param(repelling("rack", "a"), make_pod(app="a"), True, id="label-missing"),
        pytest.param(repelling("zone", "b"), make_pod(app="a"), True, id="another-app"),
    ],
)
def test_anti_affinity_holds_both_ways(pod: JsonObject, other: JsonObject, apart: bool) -> None:
    here, there = make_node(zone="z", host="1"), make_node(zone="z", host="2")

    assert fitting.is_apart(pod, here, [(other, there)]) is apart


@pytest.mark.parametrize(
    ("pod", "others", "near"),
    [
        pytest.param(make_pod(), [], True, id="no-terms"),
        pytest.param(attached(("zone", "b")), [make_pod(app="b")], True, id="in-its-domain"),
        pytest.param(attached(("host", "b")), [make_pod(app="b")], False, id="in-another-domain"),
        pytest.param(attached(("zone", "b")), [make_pod(app="c")], False, id="another-app"),
        pytest.param(attached(("rack", "b")), [make_pod(app="b")], False, id="label-missing"),
        pytest.param(attached(("host", "a")), [], True, id="first-of-its-kind"),
        pytest.param(attached(("host", "a")), [make_pod(app="a")], False, id="not-the-first"),
        pytest.param(
            attached(("zone", "b"), ("zone", "c")),
            [make_pod(app="b"), make_pod(app="c")],
            False,
            id="one-for-each-term-is-nobody-for-all",
        ),
    ],
)
def test_affinity_to_pods(pod: JsonObject, others: list[JsonObject], near: bool) -> None:
    here, there = make_node(zone="z", host="1"), make_node(zone="z", host="2")

    assert fitting.is_near(pod, here, [(other, there) for other in others]) is near


@pytest.mark.parametrize(
    ("tolerations", "admitted"),
    [
        pytest.param([], False, id="cordoned"),
        pytest.param(
            [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], True, id="tolerant"
        ),
    ],
)
def test_a_cordon_holds_before_its_taint_stands(
    tolerations: list[JsonObject], admitted: bool
) -> None:
    node = make_node()
    node["spec"] = {"unschedulable": True}

    assert fitting.admits(node, make_pod(tolerations=tolerations)) is admitted
