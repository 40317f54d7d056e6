"""Decoding: what is read, what is shared, and what becomes of what cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import orjson
import pytest

from reactive_descheduler.api.changes import WatchEventType
from reactive_descheduler.api.decoding import KINDS, Decoder, UnreadableError
from reactive_descheduler.api.errors import ApiStatusError, ExpiredError
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import ContainerStatus, Pod, PodCondition
from reactive_descheduler.api.quantity import NANOS
from reactive_descheduler.api.surroundings import PersistentVolumeClaim, PodDisruptionBudget
from reactive_descheduler.api.terms import NodeSelector, NodeSelectorTerm, Requirement, Taint
from tests.builders import (
    Manifest,
    budget_view,
    claim_view,
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_priority_class,
    make_volume,
    namespace_view,
    node_view,
    owner,
    pod_view,
    priority_class_view,
    taint,
    volume_view,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def decoder() -> Decoder:
    return Decoder()


def decode_pod(decoder: Decoder, manifest: Mapping[str, object]) -> Pod:
    found = decoder.decode_object("Pod", manifest)
    assert isinstance(found, Pod)
    return found


def line(kind: str, manifest: object) -> bytes:
    return orjson.dumps({"type": kind, "object": manifest})


def test_pod_is_read_whole() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    pod = pod_view(
        make_pod(
            node="n1",
            labels={"app": "web"},
            annotations={"kubernetes.io/config.source": "file", "example.com/ip": "10.0.0.1"},
            restarts=3,
            state=waiting,
            init_restarts=2,
            reason="Odd",
            qos="Burstable",
            priority=7,
            deleted="2026-01-01T00:00:09Z",
            conditions=[
                {
                    "type": "Initialized",
                    "status": "False",
                    "reason": "No",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        )
    )
    assert (pod.namespace, pod.name, pod.uid) == ("default", "web-1", "uid-default-web-1")
    assert (pod.resource_version, pod.node_name, pod.phase) == ("1", "n1", "Running")
    assert (pod.reason, pod.qos, pod.ready, pod.opaque) == ("Odd", "Burstable", True, "")
    assert (pod.created, pod.started) == (START, START)
    assert pod.deleted == datetime(2026, 1, 1, 0, 0, 9, tzinfo=UTC)
    assert pod.annotations == {"kubernetes.io/config.source": "file"}
    assert pod.containers == (ContainerStatus(restarts=3, waiting="CrashLoopBackOff"),)
    assert pod.init_containers == (
        ContainerStatus(restarts=2, terminated="Completed", exit_code=0),
    )
    assert pod.conditions == (
        PodCondition(type="Ready", status="True"),
        PodCondition("Initialized", "False", "No", START),
    )
    assert pod.template.labels == {"app": "web"}
    assert [each.uid for each in pod.template.owners] == ["uid-replicaset-web"]
    assert pod.template.priority == 7


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({"metadata": {"name": "bare"}}, id="absent"),
        pytest.param({"metadata": {"name": "bare"}, "spec": None, "status": None}, id="null"),
        pytest.param(
            {
                "metadata": {
                    "name": "bare",
                    "namespace": None,
                    "uid": None,
                    "labels": None,
                    "annotations": None,
                    "ownerReferences": None,
                    "creationTimestamp": None,
                },
                "spec": {
                    "containers": None,
                    "initContainers": None,
                    "volumes": None,
                    "affinity": None,
                    "tolerations": None,
                    "nodeSelector": None,
                    "topologySpreadConstraints": None,
                    "overhead": None,
                    "resources": None,
                    "resourceClaims": None,
                    "priority": None,
                },
                "status": {"conditions": None, "containerStatuses": None, "startTime": None},
            },
            id="all-null",
        ),
        pytest.param(
            {
                "metadata": {"name": "bare", "annotations": {}, "labels": {}},
                "spec": {"affinity": {"nodeAffinity": None}, "containers": []},
                "status": {},
            },
            id="empty",
        ),
    ],
)
def test_what_is_left_out_of_a_pod_has_its_default(decoder: Decoder, manifest: Manifest) -> None:
    pod = decode_pod(decoder, manifest)
    assert (pod.namespace, pod.uid, pod.resource_version) == ("default", "default/bare", "")
    assert (pod.node_name, pod.phase, pod.ready, pod.opaque) == ("", "", False, "")
    assert (pod.created, pod.started, pod.deleted, pod.annotations) == (None, None, None, {})
    assert (pod.template.labels, pod.template.owners, pod.template.requests) == ({}, (), {})
    assert (pod.template.required_node_affinity, pod.template.anti_affinity) == (None, ())
    assert pod.qos == "BestEffort"


def test_terms_of_a_spec_are_read(decoder: Decoder) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    zone_in = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    manifest = make_pod(
        affinity={
            "nodeAffinity": {
                required: {"nodeSelectorTerms": [zone_in]},
                preferred: [{"weight": 5, "preference": zone_in}],
            },
            "podAffinity": {
                required: [{"topologyKey": "rack"}],
                preferred: [{"weight": 1, "podAffinityTerm": {"topologyKey": "ignored"}}],
            },
            "podAntiAffinity": {required: [{"topologyKey": "zone", "labelSelector": {}}]},
        },
        tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
        node_selector={"disk": "ssd"},
        spread=[{"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}],
    )
    template = decode_pod(decoder, manifest).template
    zone = Requirement("zone", "In", ("a",))
    assert template.required_node_affinity is not None
    terms = template.required_node_affinity.node_selector_terms
    assert terms is not None
    assert terms[0].match_expressions == (zone,)
    assert [each.weight for each in template.preferred_node_affinity] == [5]
    assert [each.topology_key for each in template.pod_affinity] == ["rack"]
    assert [each.topology_key for each in template.anti_affinity] == ["zone"]
    assert template.anti_affinity[0].label_selector is not None
    assert [each.operator for each in template.tolerations] == ["Exists"]
    assert template.node_selector == {"disk": "ssd"}
    assert [each.max_skew for each in template.spread_constraints] == [2]


@pytest.mark.parametrize(
    ("volume", "local", "claims"),
    [
        ({"hostPath": {"path": "/"}}, True, ()),
        ({"emptyDir": {}}, True, ()),
        ({"persistentVolumeClaim": {"claimName": "data"}}, False, ("data",)),
        ({"ephemeral": {}, "hostPath": None}, False, ()),
        ({"projected": {"sources": []}}, False, ()),
    ],
)
def test_volumes_tell_local_storage_and_claims(
    decoder: Decoder, volume: Manifest, local: bool, claims: tuple[str, ...]
) -> None:
    template = decode_pod(decoder, make_pod(volumes=[{"name": "v", **volume}])).template
    assert (template.local_storage, template.claims) == (local, claims)


def test_images_ports_and_resource_claims_are_read(decoder: Decoder) -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81, "protocol": "UDP"}]
    spec = {
        "containers": [{"image": "b", "ports": ports}, {"image": "a"}],
        "initContainers": [{"image": "init"}],
        "resourceClaims": [{"name": "gpu"}],
    }
    template = decode_pod(decoder, make_pod(spec=spec)).template
    assert template.images == ("b", "a")
    assert template.host_ports == ("0.0.0.0:81/UDP",)
    assert template.resource_claims


def container(
    cpu: str | None = None, limit: str | None = None, **fields: object
) -> dict[str, object]:
    resources = {
        "requests": {} if cpu is None else {"cpu": cpu},
        "limits": {} if limit is None else {"cpu": limit},
    }
    return {"image": "i", "resources": resources, **fields}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        pytest.param({"containers": [container()]}, {}, id="none"),
        pytest.param({"containers": [container("1"), container("500m")]}, {"cpu": 1.5}, id="sum"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3")]},
            {"cpu": 3},
            id="init container above the sum",
        ),
        pytest.param(
            {"containers": [container("2")], "initContainers": [container("1")]},
            {"cpu": 2},
            id="init container below the sum",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("1", **SIDECAR)]},
            {"cpu": 2},
            id="sidecar adds",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [
                    container("3"),
                    container("2", **SIDECAR),
                    container("4"),
                    container("1", **SIDECAR),
                ],
            },
            {"cpu": 6},
            id="init container beside the sidecars before it",
        ),
        pytest.param(
            {"containers": [container("1")], "overhead": {"cpu": "250m", "memory": 1}},
            {"cpu": 1.25, "memory": 1},
            id="overhead",
        ),
        pytest.param(
            {
                "containers": [container("3")],
                "resources": {"requests": {"cpu": "2", "hugepages-2Mi": "4", "gpu": "1"}},
                "overhead": {"cpu": "1"},
            },
            {"cpu": 3, "hugepages-2Mi": 4},
            id="pod level replaces what it may name",
        ),
        pytest.param({"containers": [container("0")]}, {"cpu": 0}, id="zero is named"),
        pytest.param({"containers": [container(None, "2")]}, {}, id="limits are no requests"),
    ],
)
def test_requests_are_counted_as_by_the_scheduler(
    decoder: Decoder, spec: Manifest, requests: Mapping[str, float]
) -> None:
    template = decode_pod(decoder, make_pod(spec=spec)).template
    assert template.requests == {name: int(each * NANOS) for name, each in requests.items()}


def both(requests: str | None, limits: str | None) -> dict[str, object]:
    named = {"requests": requests, "limits": limits}
    full = {side: {"cpu": each, "memory": each} for side, each in named.items() if each is not None}
    return {"image": "i", "resources": full}


@pytest.mark.parametrize(
    ("spec", "qos"),
    [
        pytest.param({"containers": [both(None, None)]}, "BestEffort", id="nothing"),
        pytest.param({"containers": [both("0", "0")]}, "BestEffort", id="zeros"),
        pytest.param({"containers": [both("1", "1")]}, "Guaranteed", id="equal"),
        pytest.param({"containers": [both("1", "2")]}, "Burstable", id="limit above"),
        pytest.param({"containers": [both(None, "1")]}, "Burstable", id="limits only"),
        pytest.param({"containers": [container("1", "1")]}, "Burstable", id="cpu only"),
        pytest.param(
            {"containers": [both("1", "1"), both(None, None)]}, "Burstable", id="one bare"
        ),
        pytest.param(
            {"containers": [both("1", "1")], "initContainers": [both(None, None)]},
            "Burstable",
            id="init container bare",
        ),
        pytest.param(
            {
                "containers": [{"image": "i", "resources": {"requests": {"gpu": "1"}}}],
                "resources": {"requests": {"cpu": "1"}},
            },
            "BestEffort",
            id="other resources and pod level do not count",
        ),
    ],
)
def test_qos_class_is_computed_where_the_status_names_none(
    decoder: Decoder, spec: Manifest, qos: str
) -> None:
    assert decode_pod(decoder, make_pod(spec=spec)).qos == qos


def test_replicas_share_one_template(decoder: Decoder) -> None:
    mounts = [{"name": "kube-api-access-abc"}]
    first = decode_pod(decoder, make_pod("a", node="n1", spec={"volumes": mounts}))
    second = decode_pod(decoder, make_pod("b", node="n2", restarts=4, phase="Failed"))
    third = decode_pod(decoder, make_pod("c", spec={"volumes": [{"name": "kube-api-access-def"}]}))
    assert first.template is third.template
    assert first.template.labels is second.template.labels
    assert decode_pod(decoder, make_pod("b", node="n1")).template is second.template


@pytest.mark.parametrize(
    "changed",
    [
        make_pod(labels={"app": "other"}),
        make_pod(owners=[owner("other")]),
        make_pod(requests={"cpu": "1"}),
        make_pod(images=["app:2"]),
        make_pod(priority=0),
        make_pod(tolerations=[{"operator": "Exists"}]),
        make_pod(node_selector={"a": "b"}),
        make_pod(volumes=[{"emptyDir": {}}]),
        make_pod(init_containers=[{"image": "app:1"}]),
        make_pod(spec={"overhead": {"cpu": "1"}}),
        make_pod(spec={"resources": {"requests": {"cpu": "1"}}}),
        make_pod(spec={"resourceClaims": [{"name": "x"}]}),
    ],
)
def test_another_content_is_another_template(decoder: Decoder, changed: Manifest) -> None:
    usual = decode_pod(decoder, make_pod())
    assert decode_pod(decoder, changed).template is not usual.template


def test_sweep_keeps_what_is_in_use_and_forgets_the_rest(decoder: Decoder) -> None:
    kept = decode_pod(decoder, make_pod("kept", labels={"app": "kept"}))
    gone = decode_pod(decoder, make_pod("gone", labels={"app": "gone"}))
    decoder.sweep([kept])
    again = decode_pod(decoder, make_pod("kept", labels={"app": "kept"}))
    assert again.template is kept.template
    newer = decode_pod(decoder, make_pod("kept", labels={"app": "kept"}, priority=1))
    assert newer.template.labels is kept.template.labels
    assert decode_pod(decoder, make_pod("gone", labels={"app": "gone"})).template is not (
        gone.template
    )


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        pytest.param(None, True, id="no status"),
        pytest.param([], True, id="no conditions"),
        pytest.param([{"type": "MemoryPressure", "status": "True"}], True, id="another condition"),
        pytest.param([{"type": "Ready", "status": "True"}], True, id="true"),
        pytest.param([{"type": "Ready", "status": "False"}], False, id="false"),
        pytest.param([{"type": "Ready", "status": "Unknown"}], False, id="unknown"),
    ],
)
def test_node_is_ready_unless_a_condition_says_otherwise(
    decoder: Decoder, conditions: object, ready: bool
) -> None:
    status = {} if conditions is None else {"status": {"conditions": conditions}}
    node = decoder.decode_object("Node", {"metadata": {"name": "n"}, **status})
    assert isinstance(node, Node)
    assert (node.ready, node.namespace) == (ready, "")


def test_node_is_read_whole() -> None:
    node = node_view(
        make_node(
            "n1",
            labels={"zone": "a"},
            taints=[taint("k", "v"), {"key": "bare", "effect": "NoExecute"}],
            unschedulable=True,
            allocatable={"cpu": "1500m"},
            capacity={"cpu": 2},
        )
    )
    assert node.labels == {"kubernetes.io/hostname": "n1", "zone": "a"}
    assert node.taints == (Taint("k", "v", "NoSchedule"), Taint("bare", "", "NoExecute"))
    assert node.unschedulable
    assert (node.allocatable, node.capacity) == ({"cpu": 1_500_000_000}, {"cpu": 2 * NANOS})


def test_surroundings_are_read_whole() -> None:
    assert namespace_view(make_namespace("ns", labels={"a": "b"})).labels["a"] == "b"
    budget = budget_view(make_budget(allowed=3, observed=0, disrupted=["web-1"]))
    assert (budget.generation, budget.observed_generation) == (1, 0)
    assert (budget.disruptions_allowed, budget.current_healthy) == (3, 2)
    assert (budget.desired_healthy, budget.expected_pods) == (1, 2)
    assert budget.disrupted_pods == ("web-1",)
    assert budget.unhealthy_pod_eviction_policy == "IfHealthyBudget"
    assert claim_view(make_claim(storage_class="fast")).storage_class == "fast"
    assert claim_view(make_claim(storage_class=None)).storage_class == ""
    assert priority_class_view(make_priority_class(value=9)).value == 9


def test_volumes_are_read_with_what_says_from_where_they_can_be_reached() -> None:
    assert claim_view(make_claim(volume="disk")).volume == "disk"
    assert claim_view(make_claim()).volume == ""
    assert claim_view(make_claim(deleted="2026-01-01T00:00:00Z")).deleted
    assert not claim_view(make_claim()).deleted
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    labels = {"topology.kubernetes.io/zone": "a__b", "app": "db"}
    volume = volume_view(make_volume(labels=labels, terms=[{"matchExpressions": [zone]}]))
    assert volume.places == {"topology.kubernetes.io/zone": "a__b"}
    assert volume.affinity == NodeSelector(
        (NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),)
    )
    assert volume_view(make_volume()).affinity is None
    unreadable = make_volume() | {"spec": 1}
    assert volume_view(unreadable).opaque


def test_host_ports_of_sidecars_count_and_of_other_init_containers_do_not(
    decoder: Decoder,
) -> None:
    ports = [{"containerPort": 1, "hostPort": 80, "hostIP": "10.0.0.1"}]
    spec = {
        "initContainers": [
            {"name": "a", "ports": ports, "restartPolicy": "Always"},
            {"name": "b", "ports": [{"containerPort": 1, "hostPort": 81}]},
        ]
    }
    template = decode_pod(decoder, make_pod(spec=spec)).template
    assert template.host_ports == ("10.0.0.1:80/TCP",)


def test_budget_tells_no_selector_from_an_empty_one(decoder: Decoder) -> None:
    without = decoder.decode_object("PodDisruptionBudget", {"metadata": {"name": "b"}})
    assert isinstance(without, PodDisruptionBudget)
    assert without.selector is None
    assert budget_view(make_budget(selector={})).selector is not None


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"spec": {"nodeName": "n1", "priority": "high"}}, id="type in spec"),
        pytest.param({"spec": {"nodeName": "n1", "tolerations": {}}}, id="type in a shared part"),
        pytest.param(
            {
                "spec": {
                    "nodeName": "n1",
                    "containers": [{"resources": {"requests": {"cpu": "lots"}}}],
                }
            },
            id="quantity",
        ),
        pytest.param({"spec": {"nodeName": "n1"}, "status": {"startTime": "yesterday"}}, id="time"),
        pytest.param(
            {"spec": {"nodeName": "n1"}, "status": {"startTime": "2026-01-01T00:00:00"}},
            id="time without zone",
        ),
        pytest.param({"spec": {"nodeName": "n1"}, "status": []}, id="status"),
    ],
)
def test_pod_that_cannot_be_read_is_opaque_and_keeps_its_identity(
    decoder: Decoder, wrong: Manifest
) -> None:
    meta = {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "5"}
    pod = decode_pod(decoder, {"metadata": meta, **wrong})
    assert (pod.namespace, pod.name, pod.uid) == ("ns", "p", "u")
    assert (pod.resource_version, pod.node_name) == ("5", "n1")
    assert pod.opaque
    assert decoder.unreadable == 1


@pytest.mark.parametrize(
    ("kind", "wrong", "namespace"),
    [
        ("Node", {"spec": {"taints": "none"}}, ""),
        ("Node", {"status": {"allocatable": {"cpu": "?"}}}, ""),
        ("Namespace", {"metadata": {"name": "x", "labels": []}}, ""),
        ("PodDisruptionBudget", {"spec": {"selector": []}}, "default"),
        ("PersistentVolumeClaim", {"spec": {"storageClassName": 1}}, "default"),
        ("PriorityClass", {"value": "high"}, ""),
    ],
)
def test_every_kind_can_be_opaque(
    decoder: Decoder, kind: str, wrong: Manifest, namespace: str
) -> None:
    found = decoder.decode_object(kind, {"metadata": {"name": "x"}, **wrong})
    assert type(found).__name__ == kind
    assert (found.namespace, found.name) == (namespace, "x")
    assert found.opaque


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b'{"metadata":{"name":5}}'])
def test_what_has_no_name_is_refused(decoder: Decoder, raw: bytes) -> None:
    with pytest.raises(UnreadableError):
        decoder.decode("Pod", raw)


@pytest.mark.parametrize("wrong", [{1: "x"}, {"metadata": {"name": object()}}])
def test_what_json_cannot_say_is_refused(decoder: Decoder, wrong: Manifest) -> None:
    with pytest.raises(UnreadableError):
        decoder.decode_object("Pod", wrong)


def test_every_kind_is_decoded(decoder: Decoder) -> None:
    for kind in KINDS:
        found = decoder.decode_object(kind, {"metadata": {"name": "x"}})
        assert (type(found).__name__, found.name, found.opaque) == (kind, "x", "")


def test_list_is_read_with_its_version_and_token(decoder: Decoder) -> None:
    body = orjson.dumps(
        {
            "kind": "PodList",
            "metadata": {"resourceVersion": "9", "continue": "next"},
            "items": [make_pod("a"), make_pod("b")],
        }
    )
    page = decoder.decode_list("Pod", body)
    assert [each.name for each in page.items] == ["a", "b"]
    assert (page.resource_version, page.continue_token) == ("9", "next")


def test_one_bad_item_does_not_hurt_the_list(decoder: Decoder) -> None:
    items = [make_pod("a"), make_pod("b", spec={"priority": "x"}), {"metadata": {}}, make_pod("c")]
    body = orjson.dumps({"metadata": {"resourceVersion": "9"}, "items": items})
    page = decoder.decode_list("Pod", body)
    assert [(each.name, bool(each.opaque)) for each in page.items] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]
    assert decoder.unreadable == 2


def test_empty_list_is_read_and_what_is_none_refused(decoder: Decoder) -> None:
    assert decoder.decode_list("Pod", b'{"metadata":{},"items":null}').items == []
    with pytest.raises(UnreadableError):
        decoder.decode_list("Pod", b"<html>")


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_watch_line_is_read(decoder: Decoder, kind: str) -> None:
    event = decoder.decode_line("Pod", line(kind, make_pod("a", version="7")))
    assert event.type == WatchEventType(kind)
    assert event.object is not None
    assert (event.object.name, event.resource_version) == ("a", "7")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"8",'
        b'"creationTimestamp":null},"spec":{"containers":null},"status":{}}}',
        b' { "type" : "BOOKMARK" , "object" : {"metadata":{"resourceVersion":"8"}}}',
        b'{"object":{"metadata":{"resourceVersion":"8"},"kind":"Pod"},"type":"BOOKMARK"}',
    ],
)
def test_bookmark_has_only_its_version(decoder: Decoder, raw: bytes) -> None:
    assert decoder.decode_line("Pod", raw) == (WatchEventType.BOOKMARK, None, "8")


def test_error_line_for_an_old_version_is_expired(decoder: Decoder) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    with pytest.raises(ExpiredError, match="too old"):
        decoder.decode_line("Pod", line("ERROR", gone))


def test_error_line_is_raised_with_what_it_says(decoder: Decoder) -> None:
    status = {
        "kind": "Status",
        "code": 429,
        "reason": "TooManyRequests",
        "message": "slow down",
        "details": {"retryAfterSeconds": 2},
    }
    with pytest.raises(ApiStatusError) as caught:
        decoder.decode_line("Pod", line("ERROR", status))
    assert (caught.value.status, caught.value.reason) == (429, "TooManyRequests")
    assert caught.value.retry_after == 2


def test_object_that_cannot_be_read_comes_out_of_a_line_opaque(decoder: Decoder) -> None:
    event = decoder.decode_line("Pod", line("MODIFIED", make_pod("a", spec={"priority": "x"})))
    assert event.type == WatchEventType.MODIFIED
    assert isinstance(event.object, Pod)
    assert event.object.opaque


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":{}}',
        b'{"type":"WHAT","object":{"metadata":{"name":"a"}}}',
        b'{"type":"ERROR"}',
        b'{"type":"BOOKMARK","object":{}}',
    ],
)
def test_line_that_is_no_watch_event_is_refused(decoder: Decoder, raw: bytes) -> None:
    with pytest.raises(UnreadableError):
        decoder.decode_line("Pod", raw)


def test_name_that_looks_like_a_type_is_no_matter(decoder: Decoder) -> None:
    raw = b'{"type":"ADDED","object":{"x":"ERROR","metadata":{"name":"BOOKMARK"}}}'
    event = decoder.decode_line("PersistentVolumeClaim", raw)
    assert isinstance(event.object, PersistentVolumeClaim)
    assert event.object.name == "BOOKMARK"
