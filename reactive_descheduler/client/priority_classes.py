"""The values of PriorityClasses, read once: a threshold by name is resolved when a policy is
loaded."""

from __future__ import annotations

from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.api.surroundings import PriorityClass
from reactive_descheduler.client.kube import KubeConnection
from reactive_descheduler.client.listwatch import HttpListWatch
from reactive_descheduler.kit.clock import Clock


async def read_priority_classes(connection: KubeConnection, *, clock: Clock) -> dict[str, int]:
    """Return the values by name. Raises ClientError if they cannot be read."""
    values: dict[str, int] = {}
    listing = HttpListWatch(connection, Decoder(), "PriorityClass", clock=clock, streaming=False)
    async for page in listing.pages():
        for found in page.items:
            if isinstance(found, PriorityClass):
                values[found.name] = found.value
    return values
