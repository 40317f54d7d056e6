"""Host ports as the scheduler reads them: an address, a protocol and a number, taken once a node.

The address 0.0.0.0 stands for all of them; any other, `::` too, only for itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.occupancy import Occupancy

_EVERY_ADDRESS = "0.0.0.0"


def host_port_misfit(pod: Pod, node: Node, occupancy: Occupancy) -> str | None:
    """Return which host port of the Pod another Pod has taken on the node."""
    if not pod.template.host_ports:
        return None
    for other in (*occupancy.pods_on(node.name), *occupancy.promised_on(node.name)):
        if other.active and other.uid != pod.uid:
            port = _clash(pod.template.host_ports, other.template.host_ports)
            if port:
                return f"host port {port} is taken by Pod {other.namespace}/{other.name}"
    return None


def _clash(wanted: Iterable[str], taken: Iterable[str]) -> str | None:
    for port in wanted:
        address, _, number = port.rpartition(":")
        for other in taken:
            other_address, _, other_number = other.rpartition(":")
            if number == other_number and (
                address == other_address or _EVERY_ADDRESS in (address, other_address)
            ):
                return number
    return None
