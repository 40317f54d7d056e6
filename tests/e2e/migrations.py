"""What KubeVirt does with evictions: a webhook refuses each, and moves the machine by itself.

Here a machine is a Pod of a Deployment. It is shown in progress at once, another one starts beside
it, and once the test says so, the first one ends.
"""

from __future__ import annotations

import base64
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.controlplane.cluster import ControlPlane
    from tests.e2e.api import Api

ASKED_ONLY = {"descheduler.alpha.kubernetes.io/request-evict-only": ""}
"""The annotation of Pods whose evictions are taken over."""
IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@dataclass(slots=True)
class Migrations:
    """The evictions that the webhook has taken over in one namespace."""

    api: Api
    namespace: str
    asked: list[str] = field(default_factory=list)
    """Names of Pods, one for each request, in their order."""

    def path(self, pod: str) -> str:
        """Where a Pod is."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{pod}"

    async def show(self, pod: str) -> None:
        """Say of a Pod that its migration goes on."""
        await self.api.patch(self.path(pod), {"metadata": {"annotations": {IN_PROGRESS: ""}}})

    async def finish(self, pod: str) -> None:
        """End a Pod: its machine runs elsewhere now."""
        await self.api.delete(self.path(pod))

    async def answer(self, request: web.Request) -> web.Response:
        """Refuse an eviction as KubeVirt does."""
        review = (await request.json())["request"]
        self.asked.append(review["name"])
        message = f"Eviction triggered evacuation of the machine of {review['name']}"
        refusal = {
            "uid": review["uid"],
            "allowed": False,
            "status": {"code": 429, "reason": "TooManyRequests", "message": message},
        }
        return web.json_response(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": refusal}
        )


@asynccontextmanager
async def taking_over(api: Api, plane: ControlPlane, namespace: str) -> AsyncIterator[Migrations]:
    """Serve the webhook for the evictions in a namespace, for the length of a block."""
    migrations = Migrations(api, namespace)
    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trust.load_cert_chain(plane.directory / "server.crt", plane.directory / "server.key")
    served = web.Application()
    served.router.add_post("/", migrations.answer)
    runner = web.AppRunner(served)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=trust)
    await site.start()
    port = runner.addresses[0][1]
    authority = base64.b64encode((plane.directory / "ca.crt").read_bytes()).decode()
    evictions = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/eviction"],
    }
    hook = {
        "name": "migrate.e2e.test",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": authority},
        "rules": [evictions],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    await api.create(_HOOKS, {"metadata": {"name": namespace}, "webhooks": [hook]})
    try:
        yield migrations
    finally:
        await api.delete(f"{_HOOKS}/{namespace}")
        await runner.cleanup()
