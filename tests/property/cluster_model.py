"""A small cluster whose objects change at random, and random policies over it.

Alphabets are small, so that things collide: three nodes, seven places for Pods in two namespaces,
few labels and taints. An event changes one field of one object and makes the object if it is not
there, so that every event does something. Fields that the API server never lets change (priority,
volumes, what asks for a node) are chosen when the object is made. Pods also come as a crowd, all
alike and on one node, or hardly any balance strategy would have anything to do.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple, cast

from hypothesis import strategies as st

from reactive_descheduler.api.changes import WatchEvent, WatchEventType
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.pod import (
    EVICTION_IN_PROGRESS_ANNOTATION,
    REQUEST_EVICT_ONLY_ANNOTATION,
)
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.strategies import PLUGINS
from tests.builders import (
    Manifest,
    make_budget,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_volume,
    owner,
    taint,
    view,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
NODES = ("n1", "n2", "n3")
NAMESPACES = ("x", "y")
PODS = tuple(
    (namespace, f"p{number}")
    for namespace, most in zip(NAMESPACES, (4, 3), strict=True)
    for number in range(1, most + 1)
)
BUDGETS = tuple((namespace, f"b{number}") for namespace in NAMESPACES for number in (1, 2))
CLAIMS = tuple((namespace, "data") for namespace in NAMESPACES)

GONE, RENEWED, REPLACED, FRESH = "gone", "renewed", "replaced", "fresh"
"""Deleted; deleted and back under the same name; the same, but not bound yet; the same, and nothing
has happened to it yet."""
HEARTBEAT = "heartbeat"
"""Nothing changed."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EVICT = "descheduler.alpha.kubernetes.io/evict"
_STAY = "descheduler.alpha.kubernetes.io/prefer-no-eviction"

Name = tuple[str, str]
Fields = dict[str, Any]
"""An object as it is drawn, before it becomes a manifest."""


class Event(NamedTuple):
    kind: str
    name: Name
    field: str
    value: Any = None


def _zone(*values: str) -> Manifest:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(values)}]}


def _anti(label: str, namespaces: Sequence[str] = ()) -> Manifest:
    term: Manifest = {
        "labelSelector": {"matchLabels": {"app": label}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {_REQUIRED: [term | ({"namespaces": list(namespaces)})]}}


def _near(label: str, key: str, **more: object) -> Manifest:
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": key, **more}
    return {"podAffinity": {_REQUIRED: [term]}}


def _spread(key: str, label: str = "web", **more: object) -> Manifest:
    selector: Manifest = {"matchLabels": {"app": label}}
    return {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


_anti_zone: Manifest = {
    "podAntiAffinity": {
        _REQUIRED: [
            {
                "labelSelector": {"matchLabels": {"app": "db"}},
                "namespaceSelector": {"matchLabels": {"team": "red"}},
                "topologyKey": "zone",
            }
        ]
    }
}
_prefers_b: Manifest = {
    "nodeAffinity": {
        _PREFERRED: [
            {"weight": 5, "preference": _zone("b")},
            {"weight": 3, "preference": _zone("a")},
        ]
    }
}
_wants_a: Manifest = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [_zone("a")]}}}

SHAPES: tuple[Fields, ...] = (
    {},
    {"affinity": _wants_a},
    {"affinity": _prefers_b},
    {"affinity": _prefers_b, "cpu": "2"},
    {
        "affinity": {
            "nodeAffinity": {
                _REQUIRED: {"nodeSelectorTerms": [_zone("a", "b")]},
                _PREFERRED: [{"weight": 1, "preference": _zone("b")}],
            }
        }
    },
    {"node_selector": {"zone": "a"}},
    {"node_selector": {"zone": "b"}, "affinity": _wants_a, "cpu": "1"},
    {"affinity": _anti("web")},
    {"affinity": _anti("db", ["x", "y"])},
    {"affinity": _wants_a | _anti("web", ["y"])},
    {"affinity": _prefers_b | _anti("web", ["x", "y"])},
    {"claims": ("data",)},
    {"local": True},
    {"priority": 50},
    {"priority": 100},
    {"priority": 2_000_000_000},
    {"cpu": "3"},
    {"spread": (_spread("zone"),)},
    {"spread": (_spread("zone"), _spread("kubernetes.io/hostname", maxSkew=2))},
    {"spread": (_spread("kubernetes.io/hostname", nodeTaintsPolicy="Honor", minDomains=3),)},
    {"spread": (_spread("zone", "db", nodeAffinityPolicy="Ignore"),), "affinity": _wants_a},
    {"spread": (_spread("zone", whenUnsatisfiable="ScheduleAnyway", matchLabelKeys=["app"]),)},
    {"affinity": _anti_zone},
    {"affinity": _near("web", "zone")},
    {"affinity": _near("db", "kubernetes.io/hostname", namespaces=["x", "y"])},
    {"affinity": _near("db", "zone", namespaceSelector={"matchLabels": {"team": "red"}})},
    {"affinity": _prefers_b | _near("web", "zone", matchLabelKeys=["app"])},
    {"affinity": _near("web", "zone") | _anti("web")},
    {"host_port": 8080},
)
"""What a Pod never changes; `cpu` may be resized all the same."""
CROWD_SHAPES: tuple[Fields, ...] = (
    {},
    {},
    {"affinity": _anti("web")},
    {"affinity": _anti("web", ["x", "y"])},
    {"affinity": _prefers_b},
    {"affinity": _near("web", "zone")},
    {"affinity": _prefers_b | _near("web", "kubernetes.io/hostname")},
    {"spread": (_spread("zone"),)},
    {"spread": (_spread("kubernetes.io/hostname"),)},
    {"spread": (_spread("zone"),), "owners": ("b",)},
    {"phase": "Failed"},
    {"phase": "Failed", "state": {"terminated": {"reason": "Error", "exitCode": 1}}},
)
"""What is wrong when many of one shape are on one node."""
WRONG: dict[str, tuple[Fields, ...]] = {
    "RemovePodsViolatingNodeAffinity": (
        {"affinity": _prefers_b},
        {"affinity": _wants_a},
        {"affinity": _wants_a | _near("db", "zone")},
    ),
    "RemoveFailedPods": tuple(shape for shape in CROWD_SHAPES if "phase" in shape),
    "RemovePodsViolatingInterPodAntiAffinity": tuple(
        shape for shape in CROWD_SHAPES if "podAntiAffinity" in shape.get("affinity", {})
    ),
    "RemovePodsViolatingTopologySpreadConstraint": tuple(
        shape for shape in SHAPES if "spread" in shape
    ),
}
"""The shapes with which a strategy has something to do; for the rest any will do."""

_TAINTS = (
    (),
    (taint("dedicated"),),
    (taint("dedicated", "web"),),
    (taint("dedicated", "", "PreferNoSchedule"),),
    (taint("gpu", "", "NoExecute"),),
    (taint("node.kubernetes.io/unschedulable"),),
    (taint("ToBeDeletedByClusterAutoscaler"),),
    (taint("gpu"), taint("dedicated")),
)
_NODE_CHANGES: tuple[tuple[str, object], ...] = (
    *(("taints", taints) for taints in _TAINTS),
    *(("labels", labels) for labels in ({}, {"zone": "a"}, {"zone": "b"}, {"tier": "spare"})),
    *(("unschedulable", flag) for flag in (False, False, True)),
    *(("ready", flag) for flag in (True, True, True, False)),
    *(("room", room) for room in (("6", "110"), ("1", "4"), ("6", "2"), ("6", "6"))),
    *(("opaque", flag) for flag in (False, False, False, True)),
    (HEARTBEAT, None),
    (GONE, None),
    (RENEWED, None),
)
_STATES: tuple[Manifest, ...] = (
    {"running": {}},
    {"waiting": {"reason": "CrashLoopBackOff"}},
    {"waiting": {"reason": "ImagePullBackOff"}},
    {"terminated": {"reason": "Error", "exitCode": 1}},
    {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
)
_POD_CHANGES: tuple[tuple[str, object], ...] = (
    *(("node", node) for node in NODES for _ in range(4)),
    *(
        ("phase", phase)
        for phase in ("Running", "Failed", "Running", "Pending", "Failed", "Succeeded")
    ),
    *(("labels", labels) for labels in ({"app": "web"}, {"app": "db"}, {})),
    *(
        ("annotations", annotations)
        for annotations in (
            {},
            {},
            {_EVICT: "true"},
            {_EVICT: "false"},
            {_STAY: ""},
            {REQUEST_EVICT_ONLY_ANNOTATION: ""},
            {REQUEST_EVICT_ONLY_ANNOTATION: "", EVICTION_IN_PROGRESS_ANNOTATION: ""},
        )
    ),
    *(
        ("owners", owners)
        for owners in (("a",), ("b",), ("a",), ("b",), ("a", "b"), ("agent",), ())
    ),
    *(
        ("tolerations", tolerations)
        for tolerations in (
            ({"key": "dedicated", "value": "web"},),
            ({"key": "gpu", "operator": "Exists"},),
        )
    ),
    *(("cpu", cpu) for cpu in (None, "1", "2", "3")),
    *(("images", images) for images in (("app:1",), ("app:2",), ("app:1", "proxy:1"))),
    *(("restarts", restarts) for restarts in (0, 3, 4, 7)),
    *(("init_restarts", restarts) for restarts in (None, 3)),
    *(("state", state) for state in _STATES),
    *(("reason", reason) for reason in ("", "NodeLost")),
    *(("ready", ready) for ready in (True, False)),
    *(("condition", status) for status in ("", "True", "False")),
    *(("started", started) for started in (True, True, False)),
    *(("opaque", flag) for flag in (False, False, False, True)),
    ("deleted", True),
    (HEARTBEAT, None),
    (GONE, None),
    (GONE, None),
    (RENEWED, None),
)
_NAMESPACE_CHANGES: tuple[tuple[str, object], ...] = (
    *(("labels", labels) for labels in ({"team": "red"}, {"team": "red"}, {"team": "blue"})),
    *(("opaque", flag) for flag in (False, True)),
    (GONE, None),
    (RENEWED, None),
)
_BUDGET_CHANGES: tuple[tuple[str, object], ...] = (
    *(
        ("selector", selector)
        for selector in ({"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}, {})
    ),
    *(("allowed", allowed) for allowed in (0, 1, 2)),
    *(("generation", generation) for generation in (1, 2)),
    *(("observed", generation) for generation in (1, 2)),
    *(("policy", policy) for policy in ("AlwaysAllow", "IfHealthyBudget")),
    *(("healthy", healthy) for healthy in (0, 2)),
    ("opaque", True),
    *(("opaque", False) for _ in range(4)),
    *((GONE, None) for _ in range(6)),
)
_CLAIM_CHANGES: tuple[tuple[str, object], ...] = (
    *(("volume", name) for name in ("disk", "disk", "")),
    *(("storage_class", name) for name in ("fast", "slow", "slow", None)),
    ("opaque", True),
    (GONE, None),
)


_VOLUME_CHANGES: tuple[tuple[str, object], ...] = (
    *(("terms", terms) for terms in (None, [_zone("a")], [_zone("b")])),
    *(("labels", labels) for labels in ({}, {"topology.kubernetes.io/zone": "a"})),
    ("opaque", True),
    ("opaque", False),
    (GONE, None),
)


def _events(kind: str, names: Iterable[Name], changes: Sequence[tuple[str, object]]) -> list[Event]:
    return [Event(kind, name, *change) for name in names for change in changes]


_OLD = timedelta(hours=1)
_NODE_EVENTS = _events("Node", [("", name) for name in NODES], _NODE_CHANGES)
_POD_EVENTS = _events("Pod", PODS, _POD_CHANGES)
_ARRIVALS = [
    Event("Pod", name, "made", {**shape, "node": node, "age": age})
    for shape in (*SHAPES[:6], *SHAPES)
    for name in PODS
    for node in (*NODES, *NODES, "")
    for age in (_OLD, timedelta())
]
_OTHER_EVENTS = [
    *_events("Namespace", [("", name) for name in NAMESPACES], _NAMESPACE_CHANGES),
    *_events("PodDisruptionBudget", BUDGETS, _BUDGET_CHANGES),
    *_events("PersistentVolumeClaim", CLAIMS, _CLAIM_CHANGES),
    *_events("PersistentVolume", [("", "disk")], _VOLUME_CHANGES),
]


def _crowds(shapes: Iterable[Fields]) -> list[list[Event]]:
    return [
        [Event("Pod", name, "made", {**shape, "node": node, "age": _OLD}) for name in names]
        for shape in shapes
        for node in (*NODES, "n2")
        for names in (PODS[:4], PODS[:3], PODS[1:3], PODS[4:], PODS[3:6])
    ]


# One draw an event: drawing is what costs most.
events = st.sampled_from((*_POD_EVENTS * 4, *_NODE_EVENTS * 20, *_ARRIVALS, *_OTHER_EVENTS * 3))
bindings = st.sampled_from(_events("Pod", PODS, [("node", name) for name in NODES]))
crowds = st.sampled_from(_crowds((*CROWD_SHAPES, *CROWD_SHAPES, *SHAPES)))
crowds_for = {name: st.sampled_from(_crowds(shapes)) for name, shapes in WRONG.items()}
deletions = st.sampled_from(_events("Pod", PODS, [("deleted", True)]))
pod_changes = st.sampled_from([change for change in _POD_CHANGES if change[0] != "node"])
"""Fields and values, for a Pod that is there."""
_happenings = st.lists(events, min_size=1, max_size=8)
happenings: st.SearchStrategy[list[Event]] = st.one_of(
    _happenings, _happenings, _happenings, _happenings, crowds
)

Start = tuple[list[Event], list[list[Event]], list[tuple[Event, Event]]]
some_cluster: st.SearchStrategy[Start] = st.tuples(
    st.lists(st.sampled_from(_NODE_EVENTS), max_size=4),
    st.lists(crowds, min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from(_ARRIVALS), st.sampled_from(_POD_EVENTS)), max_size=4),
)
"""What happens to three plain nodes before the start, who comes, and Pods with one change each."""


class Cluster:
    """What the API server holds; tells an informer, at once or by a later list."""

    def __init__(self, informer: Informer, clock: Clock) -> None:
        self._informer = informer
        self._clock = clock
        self._objects: dict[str, dict[Name, Fields]] = {kind: {} for kind in _MAKERS}
        self._version = 0

    def begin(self, start: Start) -> None:
        """Fill the cluster and send the first lists."""
        on_nodes, coming, changed = start
        nodes = [
            Event("Node", ("", name), field, value)
            for name, zone, taints in zip(NODES, "aab", (_TAINTS[1], (), ()), strict=True)
            for field, value in (("labels", {"zone": zone}), ("taints", taints))
        ]
        spaces = [Event("Namespace", ("", name), "labels", {"team": "red"}) for name in NAMESPACES]
        for event in (*nodes, *spaces, *on_nodes, *chain(*coming, *changed)):
            self._make_true(event)
        for kind in _MAKERS:
            self.relist(kind)

    def tell(self, event: Event) -> None:
        """Let an event happen, and send its line of the watch."""
        before = self.found(event.kind, event.name)
        self._make_true(event)
        after = self.found(event.kind, event.name)
        if before is not None and (after is None or after["uid"] != before["uid"]):
            self._version += 1
            last = self._view(event.kind, event.name, {**before, "version": self._version})
            self._informer.apply(WatchEvent(WatchEventType.DELETED, last, str(self._version)))
        if after is not None:
            now = self._view(event.kind, event.name, after)
            self._informer.apply(WatchEvent(WatchEventType.MODIFIED, now, str(self._version)))

    def miss(self, missed: Iterable[Event]) -> None:
        """Let events happen on a broken stream, and send the list that follows."""
        kinds = {}
        for event in missed:
            self._make_true(event)
            kinds[event.kind] = True
        for kind in kinds:
            self.relist(kind)

    def relist(self, kind: str) -> None:
        views = [self._view(kind, name, fields) for name, fields in self._objects[kind].items()]
        deque(self._informer.replace(kind, views, str(self._version)), maxlen=0)

    def found(self, kind: str, name: Name) -> Fields | None:
        return self._objects[kind].get(name)

    def _make_true(self, event: Event) -> None:
        self._version += 1
        objects = self._objects[event.kind]
        before = objects.pop(event.name, None)
        if event.field == GONE:
            return
        fields = dict(before or {"uid": f"u{self._version}", "created": self._clock.now()})
        if event.field == "made":
            fields = dict(event.value)
            fields["uid"] = f"u{self._version}"
            fields["created"] = self._clock.now() - fields.pop("age", timedelta())
        elif event.field in (RENEWED, REPLACED, FRESH):
            fields |= {"uid": f"u{self._version}", "created": self._clock.now()}
            for field in ("deleted", "opaque", "started", "phase", "restarts", "state"):
                fields.pop(field, None)
            if event.field != RENEWED:
                fields["node"] = ""
            if event.field == FRESH:
                for field in ("init_restarts", "reason", "condition", "ready"):
                    fields.pop(field, None)
                fields["restarts"] = 0
        elif event.field == "node" and fields.get("node"):
            pass  # bound once and for all
        elif event.field in ("deleted", "started", "condition"):
            fields[event.field] = (event.value, self._clock.now())
        elif event.field == "tolerations":
            known = fields.get("tolerations", ())
            fields["tolerations"] = known + tuple(t for t in event.value if t not in known)
        elif event.field != HEARTBEAT:
            fields[event.field] = event.value
        fields["version"] = self._version
        objects[event.name] = fields

    def _view(self, kind: str, name: Name, fields: Fields) -> KubeObject:
        return view(_MAKERS[kind](name, fields))


def _pod(name: Name, fields: Fields) -> Manifest:
    extra = _taken(fields, "labels", "annotations", "node_selector", "affinity", "priority")
    extra |= _taken(fields, "spread", "images")
    extra |= _taken(fields, "phase", "node", "init_restarts", "state", "reason")
    extra |= _taken(fields, "ready", "tolerations", "created", "uid")
    volumes: list[Manifest] = [
        {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
        for claim in fields.get("claims", ())
    ]
    if fields.get("local"):
        volumes.append({"name": "scratch", "emptyDir": {}})
    owners = [
        owner(each, kind="DaemonSet" if each == "agent" else "ReplicaSet")
        for each in fields.get("owners", ("a",))
    ]
    status, since = fields.get("condition", ("", None))
    conditions = [{"type": "Fit", "status": status, "lastTransitionTime": _text(since)}]
    deleted, deleted_at = fields.get("deleted", (False, None))
    started, started_at = fields.get("started", (True, fields["created"]))
    made = make_pod(
        name[1],
        namespace=name[0],
        version=str(fields["version"]),
        restarts=fields.get("restarts", 4),
        owners=owners,
        requests={"cpu": cpu} if (cpu := fields.get("cpu", "1")) else {},
        volumes=volumes,
        conditions=conditions if status else (),
        deleted=deleted_at if deleted else None,
        started=started_at if started else None,
        **extra,
    )
    if port := fields.get("host_port"):
        spec = cast(Manifest, made["spec"])
        containers = cast(list[Manifest], spec["containers"])
        containers[0]["ports"] = [{"containerPort": port, "hostPort": port}]
    return made | {"status": 1} if fields.get("opaque") else made


def _node(name: Name, fields: Fields) -> Manifest:
    cpu, pods = fields.get("room", ("6", "6"))
    made = make_node(
        name[1],
        version=str(fields["version"]),
        allocatable={"cpu": cpu, "memory": "8Gi", "pods": pods},
        **_taken(fields, "taints", "labels", "unschedulable", "ready", "uid"),
    )
    return made | {"status": 1} if fields.get("opaque") else made


def _namespace(name: Name, fields: Fields) -> Manifest:
    made = make_namespace(
        name[1],
        version=str(fields["version"]),
        **_taken(fields, "labels"),
    )
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    metadata["uid"] = fields["uid"]
    if fields.get("opaque"):
        metadata["labels"] = 1
    return made


def _budget(name: Name, fields: Fields) -> Manifest:
    made = make_budget(
        name[1],
        namespace=name[0],
        version=str(fields["version"]),
        **_taken(
            fields,
            "uid",
            "selector",
            "allowed",
            "generation",
            "observed",
            "policy",
            "healthy",
            "disrupted",
        ),
    )
    return made | {"status": 1} if fields.get("opaque") else made


def _claim(name: Name, fields: Fields) -> Manifest:
    made = make_claim(
        name[1],
        namespace=name[0],
        version=str(fields["version"]),
        **_taken(fields, "storage_class", "volume"),
    )
    return made | {"spec": 1} if fields.get("opaque") else made


def _volume(name: Name, fields: Fields) -> Manifest:
    made = make_volume(name[1], version=str(fields["version"]), **_taken(fields, "labels", "terms"))
    return made | {"spec": 1} if fields.get("opaque") else made


def _taken(fields: Fields, *names: str) -> Fields:
    return {name: fields[name] for name in names if name in fields}


def _text(time: object) -> str | None:
    return time.isoformat() if isinstance(time, datetime) else None


_MAKERS = {
    "Node": _node,
    "Namespace": _namespace,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "PodDisruptionBudget": _budget,
    "Pod": _pod,
}


# Policies


def _some(**fields: Sequence[object]) -> st.SearchStrategy[Manifest]:
    """Draw a value for each field; `...` leaves the field out."""
    drawn = st.fixed_dictionaries(
        {name: st.sampled_from(values) for name, values in fields.items()}
    )
    return drawn.map(lambda found: {k: v for k, v in found.items() if v is not ...})


_COMMON: dict[str, Sequence[object]] = {
    "namespaces": (..., ..., ..., ..., {"include": ["x"]}, {"exclude": ["x"]}),
    "labelSelector": (..., ..., ..., ..., {"matchLabels": {"app": "web"}}),
}
_TAINT_LISTS: tuple[Manifest, ...] = (
    {},
    {},
    {},
    {},
    {"excludedTaints": ["dedicated"]},
    {"excludedTaints": ["dedicated=web", "gpu"]},
    {"includedTaints": ["dedicated"]},
    {"includedTaints": ["dedicated=web", "node.kubernetes.io/unschedulable"]},
)
_CONDITIONS = (
    [{"type": "Fit", "status": "False"}],
    [{"type": "Fit", "minTimeSinceLastTransitionSeconds": 5}],
    [
        {"status": "True", "minTimeSinceLastTransitionSeconds": 20},
        {"type": "Fit", "status": "False"},
    ],
)
ARGUMENTS: dict[str, st.SearchStrategy[Manifest]] = {
    "RemovePodsViolatingNodeTaints": st.builds(
        lambda some, lists: {**some, **lists},
        _some(**_COMMON, includePreferNoSchedule=(..., True)),
        st.sampled_from(_TAINT_LISTS),
    ),
    "RemovePodsViolatingNodeAffinity": _some(
        **_COMMON,
        nodeAffinityType=(
            [_REQUIRED, _PREFERRED],
            [_PREFERRED, _REQUIRED],
            [_PREFERRED],
            [_REQUIRED],
        ),
    ),
    "RemovePodsHavingTooManyRestarts": _some(
        **_COMMON,
        podRestartThreshold=(3, 5),
        includingInitContainers=(..., True),
        states=(..., ["Running"], ["CrashLoopBackOff"]),
    ),
    "PodLifeTime": _some(
        **_COMMON,
        maxPodLifeTimeSeconds=(10, 10, 600, 0),
        states=(..., ..., ..., ["Running"], ["Failed", "CrashLoopBackOff"], ["NodeLost"]),
        conditions=(..., ..., ..., ..., *_CONDITIONS),
        exitCodes=(..., ..., ..., [1]),
        ownerKinds=(..., ..., ..., {"exclude": ["DaemonSet"]}, {"include": ["ReplicaSet"]}),
        includingInitContainers=(..., True),
    )
    | _some(
        states=(["Pending"], ["Error", "Succeeded"]),
        conditions=(..., *_CONDITIONS),
        exitCodes=(..., [137]),
    ),
    "RemoveFailedPods": _some(
        **_COMMON,
        minPodLifetimeSeconds=(..., 10, 600),
        reasons=(..., ..., ["Error"], ["NodeLost", "OOMKilled"]),
        exitCodes=(..., ..., [1], [137]),
        excludeOwnerKinds=(..., ..., ["DaemonSet"]),
        includingInitContainers=(..., True),
    ),
    "RemovePodsViolatingInterPodAntiAffinity": _some(**_COMMON),
    "RemoveDuplicates": _some(
        namespaces=_COMMON["namespaces"], excludeOwnerKinds=(..., ..., ["DaemonSet"])
    ),
    "RemovePodsViolatingTopologySpreadConstraint": _some(
        **_COMMON,
        constraints=(..., ["DoNotSchedule", "ScheduleAnyway"]),
        topologyBalanceNodeFit=(..., ..., False),
    ),
    "LowNodeUtilization": st.builds(
        lambda some, levels: {**some, **levels},
        _some(
            numberOfNodes=(..., ..., 1),
            evictableNamespaces=(..., ..., {"exclude": ["x"]}),
            evictionLimits=(..., ..., {"node": 1}),
        ),
        st.sampled_from(
            (
                {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
                {"thresholds": {"pods": 40}, "targetThresholds": {"pods": 60}},
                {
                    "thresholds": {"cpu": 30, "pods": 60},
                    "targetThresholds": {"cpu": 60, "pods": 90},
                },
                {
                    "thresholds": {"cpu": 10},
                    "targetThresholds": {"cpu": 10},
                    "useDeviationThresholds": True,
                },
            )
        ),
    ),
    "HighNodeUtilization": _some(
        thresholds=({"cpu": 40}, {"pods": 40}, {"cpu": 20}, {"cpu": 40, "pods": 60}),
        numberOfNodes=(..., ..., ..., 1),
        evictableNamespaces=(..., ..., {"exclude": ["x"]}),
        evictionModes=(..., ["OnlyThresholdingResources"]),
    ),
}
BALANCE = frozenset(name for name, spec in PLUGINS.items() if "balance" in spec.extension_points)
_DEFAULTS = ("PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods")
_EVICTOR = st.builds(
    lambda some, disabled, extra: {
        **some,
        "podProtections": {"defaultDisabled": disabled, **extra},
    },
    _some(
        nodeFit=(..., True, True, False),
        nodeSelector=(..., ..., ..., ..., "tier=spare", "zone"),
        minReplicas=(..., ..., ..., 2, 3),
        minPodAge=(..., ..., ..., "15s"),
        labelSelector=(..., ..., ..., ..., {"matchLabels": {"app": "web"}}),
        namespaceLabelSelector=(..., ..., ..., {"matchLabels": {"team": "red"}}),
        priorityThreshold=(..., ..., {"value": 100}),
        noEvictionPolicy=(..., "Mandatory"),
    ),
    st.lists(st.sampled_from(_DEFAULTS), unique=True, max_size=3),
    st.sampled_from(
        (
            {},
            {},
            {},
            {},
            {},
            {"extraEnabled": ["PodsWithPVC"]},
            {
                "extraEnabled": ["PodsWithPVC"],
                "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}},
            },
            {"extraEnabled": ["PodsWithoutPDB"]},
        )
    ),
)


@st.composite
def _profiles(draw: st.DrawFn, alone: str | None, among: Sequence[str]) -> Manifest:
    several = st.lists(st.sampled_from(among), unique=True, min_size=3)
    names = draw(several) if alone is None else [alone]
    configured = [{"name": name, "args": draw(ARGUMENTS[name])} for name in names]
    return {
        "name": "some",
        "pluginConfig": [{"name": "DefaultEvictor", "args": draw(_EVICTOR)}, *configured],
        "plugins": {
            "deschedule": {"enabled": [name for name in names if name not in BALANCE]},
            "balance": {"enabled": [name for name in names if name in BALANCE]},
        },
    }


@st.composite
def policies(
    draw: st.DrawFn,
    *,
    acting: bool,
    corrections: Sequence[str] = ("all", "none"),
    alone: str | None = None,
    among: Sequence[str] = tuple(ARGUMENTS),
) -> str:
    """Draw a policy file. `alone`: the only strategy; `among`: else at least three of these."""
    reactive: Manifest = draw(
        _some(
            corrections=corrections,
            debounce=({"quiet": "0s", "maxWait": "0s"}, {"quiet": "100ms", "maxWait": "1s"}),
            pacing=(..., {"timeout": "10s"}, {"timeout": "60s"}),
        )
    )
    limits: Manifest = {}
    if acting:
        reactive |= draw(
            _some(
                settle=({"default": "0s", "transient": "0s"}, {"default": "3s", "transient": "9s"}),
                rateLimit=(
                    {"evictionsPerSecond": 1, "burst": 2},
                    {"evictionsPerSecond": 50, "burst": 50},
                ),
                limits=({"window": "20s", "perWorkload": 2}, {"window": "60s"}),
            )
        )
        limits = draw(
            _some(
                maxNoOfPodsToEvictPerNode=(..., ..., 1, 2),
                maxNoOfPodsToEvictPerNamespace=(..., ..., 2),
                maxNoOfPodsToEvictTotal=(..., ..., 3),
            )
        )
    some = _profiles(alone, among)
    return json.dumps(
        {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "profiles": draw(st.lists(some, min_size=1, max_size=1 if alone else 2)),
            "reactive": reactive,
            **limits,
            **draw(_some(nodeSelector=(..., ..., ..., "zone", "zone=a"))),
        }
    )


SECONDS = (0.2, 1.0, 5.0, 15.0, 70.0)
"""By how much the clock moves: less than the debounce's longest wait, and past every age."""
