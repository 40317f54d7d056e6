"""Whether a Pod would fit a node."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reactive_descheduler.api.pod import shape
from reactive_descheduler.api.scheduling.fit import misfit, shape_misfit
from tests.builders import Manifest, cluster, make_node, make_pod, taint

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}


def apart(*terms: Mapping[str, object]) -> Manifest:
    return {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*map(dict, terms)]}
    }


def require_zone(*values: str) -> Manifest:
    expression = {"key": "zone", "operator": "In", "values": [*values]}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        }
    }


def reason(pod: Manifest, node: Manifest, *others: Manifest) -> str | None:
    lister = cluster(pod, node, *others)
    found, target = lister.pod_named("default", "p"), lister.node("n1")
    assert found is not None
    assert target is not None
    return misfit(found, target, lister)


DB = make_pod("db", node="n1", labels={"app": "db"})
ZONED = make_node("n1", labels={"zone": "a"})


@pytest.mark.parametrize(
    ("pod", "node", "others", "expected"),
    [
        pytest.param(make_pod("p"), make_node("n1"), [], None, id="room"),
        pytest.param(
            make_pod("p"), make_node("n1", unschedulable=True), [], "cordoned", id="cordoned"
        ),
        pytest.param(
            make_pod("p", node_selector={"zone": "b"}), ZONED, [], "does not match", id="selector"
        ),
        pytest.param(
            make_pod("p", affinity=require_zone("b")), ZONED, [], "does not match", id="affinity"
        ),
        pytest.param(
            make_pod("p", affinity=require_zone()), ZONED, [], "malformed", id="malformed-affinity"
        ),
        pytest.param(
            make_pod("p"), make_node("n1", taints=[taint("gpu")]), [], "gpu:NoSchedule", id="taint"
        ),
        pytest.param(
            make_pod("p"),
            make_node("n1", taints=[taint("gpu", effect="NoExecute")]),
            [],
            "gpu:NoExecute",
            id="no-execute-taint",
        ),
        pytest.param(
            make_pod("p"),
            make_node("n1", taints=[taint("gpu", effect="PreferNoSchedule")]),
            [],
            None,
            id="soft-taint",
        ),
        pytest.param(
            make_pod("p", affinity=apart(TERM)), ZONED, [DB], "default/db", id="anti-affinity"
        ),
        pytest.param(
            make_pod("p", affinity=apart(TERM)),
            make_node("n1"),
            [DB],
            None,
            id="anti-affinity-without-topology-label",
        ),
        pytest.param(
            make_pod("p", affinity=apart(TERM)),
            ZONED,
            [make_pod("db", node="n1", labels={"app": "db"}, phase="Succeeded")],
            None,
            id="anti-affinity-to-a-finished-pod",
        ),
        pytest.param(
            make_pod("p", affinity=apart(TERM)),
            ZONED,
            [make_pod("p", namespace="other", node="n1", labels={"app": "db"})],
            None,
            id="anti-affinity-of-its-own-namespace",
        ),
        pytest.param(
            make_pod("p", affinity=apart({**TERM, "namespaces": ["other"]})),
            ZONED,
            [make_pod("q", namespace="other", node="n1", labels={"app": "db"})],
            "other/q",
            id="anti-affinity-in-named-namespaces",
        ),
        pytest.param(
            make_pod("p", affinity=apart({**TERM, "namespaces": ["other"]})),
            ZONED,
            [make_pod("p", namespace="other", node="n1", labels={"app": "db"})],
            None,
            id="anti-affinity-takes-the-same-name-for-itself",
        ),
        pytest.param(
            make_pod("p", affinity=apart({"topologyKey": "zone"})),
            ZONED,
            [DB],
            None,
            id="anti-affinity-without-selector",
        ),
        pytest.param(
            make_pod(
                "p",
                affinity=apart(
                    {
                        "topologyKey": "none",
                        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]},
                    }
                ),
            ),
            ZONED,
            [],
            "malformed",
            id="malformed-anti-affinity",
        ),
        pytest.param(
            make_pod("p", requests={"cpu": "500m"}),
            make_node("n1", allocatable={"cpu": "1", "pods": "9"}),
            [make_pod("q", node="n1", requests={"cpu": "500m"})],
            None,
            id="just-enough-cpu",
        ),
        pytest.param(
            make_pod("p", requests={"cpu": "500m"}),
            make_node("n1", allocatable={"cpu": "1", "pods": "9"}),
            [make_pod("q", node="n1", requests={"cpu": "501m"})],
            "insufficient cpu",
            id="too-little-cpu",
        ),
        pytest.param(
            make_pod("p", requests={"cpu": "1"}),
            make_node("n1", allocatable={"cpu": "1", "pods": "9"}),
            [make_pod("q", node="n1", requests={"cpu": "1"}, phase="Failed")],
            None,
            id="finished-pods-take-no-room",
        ),
        pytest.param(
            make_pod("p", requests={"memory": "1Gi"}),
            make_node("n1", allocatable={"pods": "9"}),
            [],
            "insufficient memory",
            id="memory-not-listed",
        ),
        pytest.param(
            make_pod("p", requests={"example.com/gpu": "1"}),
            make_node("n1"),
            [],
            "insufficient example.com/gpu",
            id="extended-resource-not-listed",
        ),
        pytest.param(
            make_pod("p", requests={"example.com/gpu": "0"}),
            make_node("n1"),
            [],
            None,
            id="none-of-a-resource-not-listed",
        ),
        pytest.param(
            make_pod("p"),
            make_node("n1", allocatable={"cpu": "1", "pods": "1"}),
            [make_pod("q", node="n1")],
            "insufficient pods",
            id="no-slot",
        ),
        pytest.param(
            make_pod("p"),
            make_node("n1", allocatable={"cpu": "1"}),
            [],
            "insufficient pods",
            id="slots-not-listed",
        ),
        pytest.param(
            make_pod("p", node="n1", requests={"cpu": "2"}),
            make_node("n1", allocatable={"cpu": "1", "pods": "1"}),
            [],
            None,
            id="own-node-has-its-room",
        ),
        pytest.param(
            make_pod("p", node="n1"),
            make_node("n1", taints=[taint("gpu")]),
            [],
            "gpu:NoSchedule",
            id="own-node-is-tainted",
        ),
    ],
)
def test_first_reason_against_a_node_is_told(
    pod: Manifest, node: Manifest, others: list[Manifest], expected: str | None
) -> None:
    found = reason(pod, node, *others)

    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert expected in found


def test_opaque_node_takes_no_pod() -> None:
    unreadable = make_node("n1")
    unreadable["spec"] = {"taints": 7}

    assert "could not be read" in str(reason(make_pod("p"), unreadable))


def test_shape_may_fit_beside_a_namesake_that_only_its_pod_could_tell() -> None:
    term = {**TERM, "namespaces": ["other"]}
    namesake = make_pod("p", namespace="other", node="n1", labels={"app": "db"})
    lister = cluster(make_pod("p", affinity=apart(term)), ZONED, namesake)
    pod, node = lister.pod_named("default", "p"), lister.node("n1")
    assert pod is not None
    assert node is not None

    assert misfit(pod, node, lister) is None
    assert shape_misfit(shape(pod), node, lister) is None


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(make_node("n1"), None, id="room"),
        pytest.param(make_node("n1", unschedulable=True), "cordoned", id="cordoned"),
        pytest.param(make_node("n1", taints=[taint("gpu")]), "gpu", id="tainted"),
        pytest.param(make_node("n1", allocatable={"pods": "0"}), "insufficient", id="full"),
    ],
)
def test_shape_needs_what_any_of_its_pods_needs(node: Manifest, expected: str | None) -> None:
    lister = cluster(make_pod("p", node="n1"), node)
    pod, target = lister.pod_named("default", "p"), lister.node("n1")
    assert pod is not None
    assert target is not None

    found = shape_misfit(shape(pod), target, lister)

    assert (expected in (found or "")) if expected else found is None
