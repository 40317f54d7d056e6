"""The kubelets of all nodes in one: starts bound Pods, ends terminating ones, reports nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import anyio

from reactive_descheduler.sandbox.client import ApiClient, ApiRefused
from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    condition,
    controller_of,
    integer,
    is_terminating,
    mapping,
    name_of,
    namespace_of,
    objects,
    text,
    timestamp,
    uid_of,
)
from reactive_descheduler.sandbox.mirror import Mirrors, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.mirror import ObjectKey

_READY_MESSAGES = {
    "MemoryPressure": "False",
    "DiskPressure": "False",
    "PIDPressure": "False",
    "Ready": "True",
}
_TIMER_SLACK = 0.005  # seconds by which a timer may come early
_CAPACITY = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}


@dataclass(frozen=True)
class Pace:
    """How fast the kubelet works, in seconds.

    Pods become Ready `start` after they are bound. They end after their grace period, but at the
    latest after `stop_cap`. Pods of Jobs succeed `job` after they became Ready. Nodes report every
    `heartbeat`.
    """

    start: float = 0.2
    stop_cap: float = 1.0
    job: float = 1.0
    heartbeat: float = 10.0


class Kubelet(Controller):
    """Waits and acts for each Pod by itself; each Pod's steps are tried until they succeed."""

    def __init__(
        self, client: ApiClient, mirrors: Mirrors, *, now: Callable[[], float], pace: Pace
    ) -> None:
        super().__init__(client)
        self._pods = mirrors.pods
        self._nodes = mirrors.nodes
        self._now = now
        self._pace = pace
        self._addresses = count(1)
        self._due: dict[tuple[str, str], float] = {}
        mirrors.pods.listeners.append(self._on_pod)
        mirrors.nodes.listeners.append(self._on_node)

    async def reconcile(self, key: ObjectKey) -> None:
        namespace, name = key
        if not namespace:
            await self._report_node(name)
            return
        pod = self._pods.objects.get(key)
        if pod is None:
            return
        uid, now = uid_of(pod), anyio.current_time() + _TIMER_SLACK
        if is_terminating(pod):
            if self._due.get((uid, "stop"), math.inf) <= now:
                await self._stop(pod)
        elif self._due.get((uid, "start"), math.inf) <= now and _is_pending(pod):
            await self._start(pod)
        elif self._due.get((uid, "succeed"), math.inf) <= now and _is_running(pod):
            await self._succeed(pod)

    async def run_heartbeats(self) -> None:
        """Let every node report, at the pace's interval, until cancelled."""
        while True:
            await anyio.sleep(self._pace.heartbeat)
            for _, name in list(self._nodes.objects):
                self.add(("", name))

    def _on_pod(self, old: JsonObject | None, pod: JsonObject | None) -> None:
        if old is not None and (pod is None or uid_of(pod) != uid_of(old)):
            for step in ("start", "succeed", "stop"):
                self._due.pop((uid_of(old), step), None)
        if pod is None or not text(pod, "spec", "nodeName"):
            return
        if is_terminating(pod):
            grace = integer(pod, "metadata", "deletionGracePeriodSeconds")
            self._plan(pod, "stop", min(grace, self._pace.stop_cap))
        elif _is_pending(pod):
            self._plan(pod, "start", self._pace.start)
        elif _is_running(pod) and controller_of(pod).get("kind") == "Job":
            self._plan(pod, "succeed", self._pace.job)

    def _on_node(self, _old: JsonObject | None, node: JsonObject | None) -> None:
        if node is not None and not condition(node, "Ready"):
            self.add(("", name_of(node)))

    def _plan(self, pod: JsonObject, step: str, delay: float) -> None:
        """Each step of a Pod is planned once, however often the Pod changes meanwhile."""
        due = (uid_of(pod), step)
        if due not in self._due:
            self._due[due] = anyio.current_time() + delay
            self.add_later(key_of(pod), delay)

    async def _start(self, pod: JsonObject) -> None:
        now = timestamp(self._now())
        number = next(self._addresses)
        since = {"status": "True", "lastProbeTime": None, "lastTransitionTime": now}
        kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
        status: JsonObject = {
            "phase": "Running",
            "startTime": now,
            "podIP": f"10.244.{number // 250 % 250}.{number % 250 + 1}",
            "conditions": [{"type": kind, **since} for kind in kinds],
            "containerStatuses": [_running(c, now) for c in objects(pod, "spec", "containers")],
        }
        await self._patch_status(pod, status)

    async def _succeed(self, pod: JsonObject) -> None:
        now = timestamp(self._now())
        not_ready = {"status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
        statuses = [
            {**running, "ready": False, "started": False, "state": ended}
            for running in objects(pod, "status", "containerStatuses")
        ]
        status: JsonObject = {
            "phase": "Succeeded",
            "conditions": [{"type": kind, **not_ready} for kind in ("Ready", "ContainersReady")],
            "containerStatuses": statuses,
        }
        await self._patch_status(pod, status)

    async def _patch_status(self, pod: JsonObject, status: JsonObject) -> None:
        await self.client.patch(
            "pods",
            name_of(pod),
            {"metadata": {"uid": uid_of(pod)}, "status": status},
            namespace=namespace_of(pod),
            subresource="status",
            kind="strategic",
        )

    async def _stop(self, pod: JsonObject) -> None:
        try:
            await self.client.delete(
                "pods", name_of(pod), namespace=namespace_of(pod), grace=0, uid=uid_of(pod)
            )
        except ApiRefused as error:
            # Gone, or another Pod of the name: both mean that this one is.
            if error.code not in (404, 409):
                raise

    async def _report_node(self, name: str) -> None:
        node = self._nodes.objects.get(("", name))
        if node is None:
            return
        now = timestamp(self._now())
        conditions: list[JsonObject] = []
        for kind, good in _READY_MESSAGES.items():
            entry: JsonObject = {"type": kind, "lastHeartbeatTime": now}
            if not condition(node, kind):
                # Only what is missing: a condition that a test has set stays as it is.
                entry |= {"status": good, "lastTransitionTime": now, "reason": f"Kubelet{kind}"}
            conditions.append(entry)
        status: JsonObject = {"conditions": conditions}
        if not mapping(node, "status", "allocatable"):
            status |= {"capacity": _CAPACITY, "allocatable": _CAPACITY}
        await self.client.patch(
            "nodes", name, {"status": status}, subresource="status", kind="strategic"
        )


def _is_pending(pod: JsonObject) -> bool:
    return text(pod, "status", "phase") == "Pending"


def _is_running(pod: JsonObject) -> bool:
    return text(pod, "status", "phase") == "Running"


def _running(container: JsonObject, now: str) -> JsonObject:
    return {
        "name": text(container, "name"),
        "image": text(container, "image"),
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }


def make_node(name: str, *, zone: str, capacity: dict[str, str] | None = None) -> JsonObject:
    """A Node as a kubelet would register it; the default capacity is 4 cpus and 16 GiB."""
    amounts = _CAPACITY | (capacity or {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": zone,
            },
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "v1.36.0", "operatingSystem": "linux"},
        },
    }
