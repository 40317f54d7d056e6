"""Small random clusters that have in them what the scheduler decides by.

A cluster follows from its seed alone. Its Pods stand where they stand, whatever they ask for: node
fit has to be right in every state, also in one that the scheduler would not have made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

Object = dict[str, object]
T = TypeVar("T")

NAMESPACES: dict[str, dict[str, str]] = {
    "blue": {"team": "blue"},
    "red": {"team": "red"},
    "none": {},
}
"""With their labels; all clusters share these."""
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
CORDON = "node.kubernetes.io/unschedulable"
_TAINTS: list[Object] = [
    {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "db", "effect": "NoExecute"},
    {"key": "old", "value": "3", "effect": "NoSchedule"},
    {"key": "slow", "effect": "PreferNoSchedule"},
]
_TOLERATIONS: list[Object] = [
    {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Exists"},
    {"key": "old", "operator": "Exists", "effect": "NoSchedule"},
    {"key": CORDON, "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists"},
]
_APPS = ("web", "db", "job")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The objects of one cluster, in the order in which they have to be made."""

    seed: int
    nodes: list[Object]
    volumes: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    """Names of the Pods that are Succeeded or Failed, with which."""
    terminating: set[str] = field(default_factory=set)
    leaving_claims: set[str] = field(default_factory=set)
    """Names of the claims that somebody has deleted while Pods use them."""

    def node_names(self) -> list[str]:
        """In order."""
        return [name_of(node) for node in self.nodes]

    def standing(self) -> list[Object]:
        """The Pods that may be evicted: neither at an end nor on their way."""
        gone = self.terminating | self.ended.keys()
        return [pod for pod in self.pods if name_of(pod) not in gone]


def name_of(document: Object) -> str:
    """The name of an object."""
    return str(part(document, "metadata")["name"])


def part(document: Object, key: str) -> Object:
    """A part of an object that is an object too."""
    found = document[key]
    assert isinstance(found, dict)
    return found


def anywhere_but(node: str) -> str:
    """An extended resource that all nodes have, but for this one.

    To ask for it keeps a Pod off the node, and changes nothing else: a taint or an affinity would
    also change over which nodes the Pod is spread.
    """
    return f"e2e.test/not-{node}"


def make_cluster(seed: int) -> Cluster:
    """The cluster of a seed: 3 to 6 nodes, 5 to 15 Pods."""
    return _Maker(seed).cluster


class _Maker:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.zones = ["zone-a", "zone-b", "zone-c"][: self.random.randint(2, 3)]
        self.names = [f"c{seed}-n{at}" for at in range(self.random.randint(3, 6))]
        self.cluster = Cluster(seed, [self._node(name) for name in self.names])
        left = self.random.randint(5, 15)
        while left > 0:
            count = min(left, self.random.randint(1, 5))
            self._add_workload(f"w{left}", count)
            left -= count

    def _often(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def _one(self, *of: T) -> T:
        return self.random.choice(of)

    def _object(self, *of: Object) -> Object:
        return self.random.choice(of)

    def _node(self, name: str) -> Object:
        labels = {}
        if self._often(95):
            labels[HOSTNAME] = name
        if self._often(90):
            labels[ZONE] = self._one(*self.zones)
        if self._often(70):
            labels |= {"disk": self._one("ssd", "hdd"), "size": self._one("1", "2", "10")}
        room = {
            "cpu": self._one("1", "1500m", "2", "4"),
            "memory": self._one("1Gi", "2Gi", "4Gi"),
            "pods": self._one("3", "4", "6", "10"),
            "ephemeral-storage": "10Gi",
            **{anywhere_but(other): "1000" for other in self.names if other != name},
        }
        if self._often(30):
            room["example.test/gpu"] = self._one("1", "2")
        taints = self.random.sample(_TAINTS, self._one(0, 0, 0, 1, 2))
        spec: Object = {}
        if self._often(12):
            spec["unschedulable"] = True
            taints.append({"key": CORDON, "effect": "NoSchedule"})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": spec | {"taints": taints},
            "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
        }

    def _add_workload(self, name: str, count: int) -> None:
        app, spec = self._one(*_APPS), self._pod_spec()
        namespace = self._one(*NAMESPACES)
        shared = self._claim(f"{name}-shared", namespace) if self._often(6) else None
        own = self._often(12)
        for at in range(count):
            pod = f"{name}-{at}"
            claim = self._claim(pod, namespace) if own else shared
            volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
            labels = {"app": app, "version": self._one("v1", "v2")}
            if self._often(50):
                labels["track"] = self._one("stable", "canary")
            if self._often(70):
                labels["hash"] = self._one("a", "b")
            self.cluster.pods.append(
                {
                    "metadata": {"name": pod, "namespace": namespace, "labels": labels},
                    "spec": spec
                    | {"nodeName": self._one(*self.names)}
                    | ({"volumes": volumes} if claim else {}),
                }
            )
            match self.random.randrange(20):
                case 0:
                    self.cluster.ended[pod] = self._one("Succeeded", "Failed")
                case 1:
                    self.cluster.terminating.add(pod)

    def _pod_spec(self) -> Object:
        spec: Object = {"terminationGracePeriodSeconds": 30, "containers": [self._container()]}
        if self._often(15):
            init: Object = {"name": "init", "image": "none", "resources": self._requests()}
            if self._often(50):
                init["restartPolicy"] = "Always"
            spec["initContainers"] = [init]
        if self._often(5):
            spec["resources"] = {"requests": {"cpu": "2"}}
        if self._often(35):
            spec["tolerations"] = self.random.sample(_TOLERATIONS, self._one(1, 2))
        if self._often(12):
            spec["nodeSelector"] = {"disk": self._one("ssd", "hdd")}
        affinity: Object = {}
        if self._often(20):
            terms = [self._node_term() for _ in range(self._one(1, 1, 2))]
            affinity["nodeAffinity"] = {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        if self._often(35):
            affinity["podAntiAffinity"] = self._pod_terms(self._one(1, 1, 2))
        if self._often(8):
            affinity["podAffinity"] = self._pod_terms(1)
        if affinity:
            spec["affinity"] = affinity
        if self._often(40):
            spec["topologySpreadConstraints"] = self._spread()
        return spec

    def _container(self) -> Object:
        container: Object = {"name": "main", "image": "none", "resources": self._requests()}
        if self._often(15):
            port: Object = {"containerPort": 80, "hostPort": self._one(8080, 8081)}
            address = self._one("", "", "0.0.0.0", "127.0.0.1", "::")
            port |= {"protocol": self._one("TCP", "TCP", "UDP"), "hostIP": address}
            container["ports"] = [port]
        return container

    def _requests(self) -> Object:
        if self._often(15):
            return {}
        requests = {
            "cpu": self._one("100m", "250m", "500m", "1"),
            "memory": self._one("64Mi", "200M", "512Mi"),
        }
        if self._often(10):
            requests["ephemeral-storage"] = self._one("1Gi", "6Gi")
        gpus = {"example.test/gpu": "1"} if self._often(6) else {}
        return {"requests": requests | gpus, "limits": gpus}

    def _node_term(self) -> Object:
        if self._often(20):
            names = [self._one(*self.names)]
            operator = self._one("In", "NotIn", "NotIn")
            return {
                "matchFields": [{"key": "metadata.name", "operator": operator, "values": names}]
            }
        return {
            "matchExpressions": [
                self._object(
                    {"key": ZONE, "operator": "In", "values": self.zones[:2]},
                    {"key": ZONE, "operator": "NotIn", "values": self.zones[:1]},
                    {"key": "disk", "operator": "Exists"},
                    {"key": "disk", "operator": "DoesNotExist"},
                    {"key": "size", "operator": "Gt", "values": ["1"]},
                    {"key": HOSTNAME, "operator": "NotIn", "values": self.names[:1]},
                )
            ]
        }

    def _selector(self) -> Object:
        app = self._one(*_APPS)
        return self._object(
            {"matchLabels": {"app": app}},
            {"matchLabels": {"app": app}},
            {"matchLabels": {"app": app, "version": "v1"}},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]},
            {"matchExpressions": [{"key": "track", "operator": "Exists"}]},
            {},
        )

    def _select(self, term: Object, narrower: list[str]) -> None:
        """Let a term choose Pods by their labels; some, by leaving that out, choose none."""
        if self._often(94):
            term["labelSelector"] = self._selector()
            if self._often(25):
                term[self.random.choice(narrower)] = ["hash"]

    def _pod_terms(self, count: int) -> Object:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                self._pod_term() for _ in range(count)
            ]
        }

    def _pod_term(self) -> Object:
        term: Object = {"topologyKey": self._one(HOSTNAME, HOSTNAME, ZONE)}
        self._select(term, ["matchLabelKeys", "mismatchLabelKeys"])
        if self._often(25):
            term["namespaces"] = self.random.sample(sorted(NAMESPACES), self._one(1, 2))
        if self._often(25):
            term["namespaceSelector"] = self._object(
                {},
                {"matchLabels": {"team": "blue"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            )
        return term

    def _spread(self) -> list[Object]:
        keys = self.random.sample([HOSTNAME, ZONE], self._one(1, 1, 2))
        return [self._constraint(key) for key in keys]

    def _constraint(self, key: str) -> Object:
        hard = self._often(80)
        constraint: Object = {
            "topologyKey": key,
            "maxSkew": self._one(1, 1, 2),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        self._select(constraint, ["matchLabelKeys"])
        if hard and self._often(30):
            constraint["minDomains"] = self._one(1, 2, 3, 5)
        if self._often(40):
            constraint["nodeTaintsPolicy"] = self._one("Honor", "Ignore")
        if self._often(40):
            constraint["nodeAffinityPolicy"] = self._one("Honor", "Ignore")
        return constraint

    def _claim(self, name: str, namespace: str) -> str:
        """Add a claim that is bound to a volume of its own; give its name."""
        name = f"c{self.cluster.seed}-{name}"
        spec: Object = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        room = {"storage": "1Gi"}
        flaw = self.random.randrange(25)
        if flaw != 0:
            self.cluster.claims.append(
                {
                    "metadata": {
                        "name": name,
                        "namespace": namespace,
                        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                    },
                    "spec": spec | {"volumeName": name, "resources": {"requests": room}},
                }
            )
        if flaw == 2:
            self.cluster.leaving_claims.add(name)
        if flaw == 1:
            return name
        metadata: Object = {"name": name}
        reach: Object = {}
        match self.random.randrange(4):
            case 0:
                term = {"key": ZONE, "operator": "In", "values": self.zones[:1]}
                reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
            case 1:
                nodes = self.random.sample(self.names, 2)
                term = {"key": HOSTNAME, "operator": "In", "values": nodes}
                reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
            case 2:
                metadata["labels"] = {ZONE: self._one(self.zones[0], "__".join(self.zones[:2]))}
        bound_to = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
        self.cluster.volumes.append(
            {
                "metadata": metadata,
                "spec": spec
                | {"capacity": room, "hostPath": {"path": "/data"}, "claimRef": bound_to}
                | ({"nodeAffinity": reach} if reach else {}),
            }
        )
        return name
