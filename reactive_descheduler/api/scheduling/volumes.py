"""From which nodes a Pod's volumes can be reached, as the scheduler reads bound claims.

A claim that is not bound yet restricts nothing: its volume is made, or found, where the Pod goes.
"""

from __future__ import annotations

from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.node_affinity import AffinityError, accepts_node
from reactive_descheduler.api.scheduling.occupancy import Occupancy
from reactive_descheduler.api.surroundings import (
    OLD_PLACE_LABELS,
    PLACE_LABELS,
    PersistentVolume,
)


def volume_misfit(pod: Pod, node: Node, occupancy: Occupancy) -> str | None:
    """Return which volume of the Pod cannot be reached from the node.

    One of which nothing is known counts as out of reach: in doubt nothing is evicted.
    """
    for name in pod.template.claims:
        claim = occupancy.claim(pod.namespace, name)
        if claim is None or claim.opaque:
            return f"claim {name} is not known"
        if claim.deleted:
            return f"claim {name} is being deleted"
        if not claim.volume:
            continue
        volume = occupancy.volume(claim.volume)
        if volume is None or volume.opaque:
            return f"volume {claim.volume} of claim {name} is not known"
        if not _reachable(volume, node):
            return f"volume {claim.volume} of claim {name} cannot be reached"
    return None


def _reachable(volume: PersistentVolume, node: Node) -> bool:
    try:
        if volume.affinity is not None and not accepts_node(volume.affinity, node):
            return False
    except AffinityError:
        return False
    if not any(key in node.labels for key in PLACE_LABELS):
        return True
    return all(
        node.labels.get(key, node.labels.get(OLD_PLACE_LABELS.get(key, key))) in places.split("__")
        for key, places in volume.places.items()
    )
