"""The workloads of the demo: three Deployments, a DaemonSet, and one Deployment behind a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from reactive_descheduler.sandbox.documents import JsonObject, integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reactive_descheduler.sandbox.client import ApiClient

_POLL_EVERY = 0.02  # seconds


async def create_sample_workloads(
    client: ApiClient,
    *,
    namespace: str = "default",
    pod_specs: Mapping[str, JsonObject] | None = None,
) -> None:
    """Create them and return once all their Pods are Ready and the budget is counted.

    `web` (4), `api` (3), `batch` (2), the DaemonSet `agent`, and `store` (3), of which the budget
    `store` wants 2 available. `pod_specs` adds to the Pod specs of the Deployments it names.
    """
    specs = pod_specs or {}
    for name, replicas in (("web", 4), ("api", 3), ("batch", 2), ("store", 3)):
        deployment = make_deployment(
            name, replicas=replicas, namespace=namespace, pod_spec=specs.get(name)
        )
        await client.create(deployment)
    await client.create(make_daemon_set("agent", namespace=namespace))
    await client.create(make_budget("store", minimum=2, namespace=namespace))
    await until_settled(client)


async def until_settled(client: ApiClient) -> None:
    """Return once every Deployment and DaemonSet is whole and every budget up to date."""
    while not await _is_settled(client):  # noqa: ASYNC110 - over HTTP
        await anyio.sleep(_POLL_EVERY)


def make_deployment(
    name: str, *, replicas: int, namespace: str = "default", pod_spec: JsonObject | None = None
) -> JsonObject:
    """A Deployment whose Pods carry `app=NAME` and ask for a tenth of a cpu; `pod_spec` adds to
    their spec."""
    return _workload("Deployment", name, namespace) | {
        "spec": {"replicas": replicas, **_selected(name, pod_spec)}
    }


def make_daemon_set(
    name: str, *, namespace: str = "default", pod_spec: JsonObject | None = None
) -> JsonObject:
    """A DaemonSet whose Pods carry `app=NAME`."""
    return _workload("DaemonSet", name, namespace) | {"spec": _selected(name, pod_spec)}


def make_budget(name: str, *, minimum: int | str, namespace: str = "default") -> JsonObject:
    """A PodDisruptionBudget for the Pods with `app=NAME`."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": name}}},
    }


def _workload(kind: str, name: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
    }


def _selected(name: str, pod_spec: JsonObject | None) -> JsonObject:
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": name, "image": f"example/{name}:1", "resources": {"requests": requests}}
    return {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [container], **(pod_spec or {})},
        },
    }


async def _is_settled(client: ApiClient) -> bool:
    deployments, _ = await client.list("deployments")
    daemon_sets, _ = await client.list("daemonsets")
    budgets, _ = await client.list("poddisruptionbudgets")
    return (
        all(map(_is_observed, [*deployments, *daemon_sets, *budgets]))
        and all(
            integer(d, "status", "readyReplicas") == integer(d, "spec", "replicas")
            for d in deployments
        )
        and all(
            0
            < integer(d, "status", "desiredNumberScheduled")
            == integer(d, "status", "numberReady")
            for d in daemon_sets
        )
        and all(
            integer(b, "status", "currentHealthy") == integer(b, "status", "expectedPods") > 0
            for b in budgets
        )
    )


def _is_observed(document: JsonObject) -> bool:
    generation = integer(document, "metadata", "generation")
    return integer(document, "status", "observedGeneration") == generation
