"""Upstream's end-to-end scenarios of RemovePodsHavingTooManyRestarts, as events make them.

The program runs first; then the kubelet reports one restart after another. docs/e2e.md has the
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.given import OURS
from tests.e2e.objects import make_deployment
from tests.e2e.policies import make_policy
from tests.e2e.scene import uids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.e2e.api import Api
    from tests.e2e.scene import Scene

pytestmark = [pytest.mark.e2e, pytest.mark.real_time, pytest.mark.timeout(120)]

STRATEGY = "RemovePodsHavingTooManyRestarts"
CLASSES = {"e2e-default": True, "e2e-other": False}
"""Storage classes, and whether claims that name none get it."""


def make_volume(name: str, *, storage_class: str, namespace: str) -> dict[str, object]:
    """A volume kept for the claim `data` of a namespace; there is nobody who would make one."""
    return {
        "metadata": {"name": name, "labels": OURS},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/none"},
            "claimRef": {"namespace": namespace, "name": "data"},
        },
    }


def make_claim(storage_class: str | None) -> dict[str, object]:
    """The claim `data`, of a class or of the default one."""
    spec: dict[str, object] = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}


WITH_CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.fixture
async def _storage_classes(api: Api) -> AsyncIterator[None]:
    path = "/apis/storage.k8s.io/v1/storageclasses"
    for name, is_default in CLASSES.items():
        mark = {"storageclass.kubernetes.io/is-default-class": str(is_default).lower()}
        metadata = {"name": name, "annotations": mark}
        await api.create(
            path, {"metadata": metadata, "provisioner": "kubernetes.io/no-provisioner"}
        )
    yield
    for name in CLASSES:
        await api.delete(f"{path}/{name}")


@pytest.mark.parametrize(
    ("threshold", "goes"), [(10_000, False), (3, True)], ids=["far from it", "reached"]
)
async def test_pods_go_with_the_restart_that_reaches_the_threshold(
    scene: Scene, threshold: int, goes: bool
) -> None:
    policy = make_policy(STRATEGY, {"podRestartThreshold": threshold}, gracePeriodSeconds=0)
    async with scene.running(policy):
        web = await scene.deploy(make_deployment("web", replicas=4), pods=4)
        await scene.restart_containers(web, 2)
        await scene.quiet()
        assert not scene.evicted()
        await scene.restart_containers(web, 3)
        if goes:
            await scene.sees_evicted(uids(web))
        await scene.quiet()
        assert scene.evicted() == (uids(web) if goes else set())


@pytest.mark.usefixtures("_storage_classes")
@pytest.mark.parametrize(
    ("storage_class", "goes"),
    [("e2e-other", True), (None, False)],
    ids=["another class", "the default class"],
)
async def test_only_claims_of_the_protected_class_keep_a_pod(
    scene: Scene, storage_class: str | None, goes: bool
) -> None:
    protections = {
        "extraEnabled": ["PodsWithPVC"],
        "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "e2e-default"}]}},
    }
    policy = make_policy(
        STRATEGY, {"podRestartThreshold": 3}, evictor={"podProtections": protections}
    )
    volume = make_volume(
        scene.namespace, storage_class=storage_class or "e2e-default", namespace=scene.namespace
    )
    await scene.api.create("/api/v1/persistentvolumes", volume)
    async with scene.running(policy):
        await scene.create(make_claim(storage_class))
        web = await scene.deploy(make_deployment("web", replicas=4, extra=WITH_CLAIM), pods=4)
        await scene.restart_containers(web, 3)
        if goes:
            await scene.sees_evicted(uids(web))
        await scene.quiet()
        assert scene.evicted() == (uids(web) if goes else set())
    await scene.api.delete(f"/api/v1/persistentvolumes/{scene.namespace}")
