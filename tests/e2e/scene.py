"""What an end-to-end scenario is made of: a namespace of its own, workloads in it, the program."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.api import Api, Pod, eventually
from tests.e2e.descheduler import Descheduler, running_descheduler
from tests.e2e.objects import on_our_nodes
from tests.e2e.policies import limited
from tests.e2e.probes import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from tests.controlplane.cluster import ControlPlane
    from tests.e2e.api import Json
    from tests.e2e.witness import Witness

COLLECTIONS = {
    "ConfigMap": "api/v1/namespaces/{}/configmaps",
    "DaemonSet": "apis/apps/v1/namespaces/{}/daemonsets",
    "Deployment": "apis/apps/v1/namespaces/{}/deployments",
    "Job": "apis/batch/v1/namespaces/{}/jobs",
    "PersistentVolumeClaim": "api/v1/namespaces/{}/persistentvolumeclaims",
    "PodDisruptionBudget": "apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "ReplicaSet": "apis/apps/v1/namespaces/{}/replicasets",
    "Secret": "api/v1/namespaces/{}/secrets",
    "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts",
}
QUIET = 2.0
"""Seconds in which nothing happens: with no settle time an eviction is seen after less than one."""
MUST_STAY_ZERO = (
    "reactive_descheduler_resync_findings_total",
    "reactive_descheduler_task_crashes_total",
    "reactive_descheduler_hook_errors_total",
    "reactive_descheduler_evaluate_errors_total",
    "reactive_descheduler_narrow_errors_total",
)


def uids(pods: Iterable[Pod], *, on: str = "", not_on: str = "") -> set[str]:
    """The UIDs of those Pods that are (or are not) on a node."""
    return {pod.metadata.uid for pod in pods if on in ("", pod.node) and pod.node != not_on}


@dataclass(frozen=True, slots=True)
class Scene:
    """One namespace, with all that a scenario does in it."""

    plane: ControlPlane
    api: Api
    witness: Witness
    namespace: str
    directory: Path
    """For files of the test."""

    def path(self, kind: str, name: str = "") -> str:
        """Where the objects of a kind are, or one of them."""
        return "/" + COLLECTIONS[kind].format(self.namespace) + (f"/{name}" if name else "")

    async def create(self, document: Json) -> None:
        """Create an object in the namespace; in a given cluster its Pods keep to our nodes."""
        placed = document if self.plane.is_ours else on_our_nodes(document)
        await self.api.create(self.path(str(document["kind"])), placed)

    async def deploy(self, workload: Json, *, pods: int) -> list[Pod]:
        """Create a workload and give its Pods, once there are so many and all are available."""
        await self.create(workload)
        return await self.available(_name(workload), pods=pods)

    async def available(self, app: str, *, pods: int, not_on: str = "") -> list[Pod]:
        """The Pods of an app, once there are so many, all available, and none on one node."""

        async def settled() -> bool:
            found = await self.api.pods(self.namespace, app)
            return len(found) == pods and all(pod.available and pod.node != not_on for pod in found)

        await eventually(settled, what=f"{pods} of {app} available, not on {not_on!r}", within=45)
        return await self.api.pods(self.namespace, app)

    async def pods(self, app: str, *, count: int, phase: str) -> list[Pod]:
        """The Pods of an app, once there are so many in a phase."""

        async def there() -> bool:
            found = await self.api.pods(self.namespace, app)
            return [pod.status.phase for pod in found] == [phase] * count

        await eventually(there, what=f"{count} of {app} {phase}", within=30)
        return await self.api.pods(self.namespace, app)

    def evicted(self, app: str = "") -> set[str]:
        """The UIDs of the namespace's Pods that have been evicted, of one app or of all."""
        return {each.pod.metadata.uid for each in self.witness.evicted(self.namespace, app)}

    async def sees_evicted(self, wanted: set[str], *, within: float = 20) -> None:
        """Return once all of these Pods have been evicted."""

        async def all_of_them() -> bool:
            return wanted <= self.evicted()

        await eventually(all_of_them, what=f"{len(wanted)} Pods evicted", within=within)

    async def sees_evictions(self, count: int, *, within: float = 20) -> None:
        """Return once so many Pods have been evicted, whichever."""

        async def so_many() -> bool:
            return len(self.evicted()) >= count

        await eventually(so_many, what=f"{count} Pods evicted", within=within)

    async def restart_containers(self, pods: Iterable[Pod], times: int) -> None:
        """Let the kubelet say of each Pod's container that it has restarted so often."""
        status = {"name": "main", "image": "", "imageID": "", "ready": True, "restartCount": times}
        for pod in pods:
            path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.metadata.name}/status"
            await self.api.patch(path, {"status": {"containerStatuses": [status]}})

    @asynccontextmanager
    async def running(
        self, policy: Mapping[str, object], *arguments: str, kubeconfig: Path | None = None
    ) -> AsyncIterator[Descheduler]:
        """The program with a policy, ready; whatever the test, it then ends well.

        Well: no crash, no error in a strategy, no candidate that only a full pass found, exit 0.
        """
        path = self.directory / "policy.json"
        path.write_text(json.dumps(limited(policy, self.plane), indent=2))  # JSON is YAML too
        async with running_descheduler(
            "--v=4",
            *arguments,
            policy=path,
            kubeconfig=kubeconfig or self.plane.kubeconfig(),
            log=self.directory / "run.log",
            port=free_port(),
        ) as descheduler:
            await descheduler.becomes_ready()
            yield descheduler
            for name, value in (await descheduler.metrics(*MUST_STAY_ZERO)).items():
                assert value == 0, name
            assert await descheduler.stop() == 0
            assert "Traceback" not in await descheduler.output()

    async def quiet(self, seconds: float = QUIET) -> None:
        """Give the program time to do what it should not."""
        await asyncio.sleep(seconds)


def _name(workload: Json) -> str:
    match workload:
        case {"metadata": {"name": str(name)}}:
            return name
    raise ValueError("no object with a name")
