"""Where node fit says that a Pod fits, the real scheduler places it.

Random clusters, one after the other. Of each, some Pods are taken away in turn, and the scheduler
is asked for a replacement: anywhere but on the old node, and then on each single node that node fit
(all corrections) has said yes to. What comes out differently is told by cause; to say yes where the
scheduler says no is a fault, since an eviction would leave that Pod Pending.

The variable E2E_SCHEDULER_SEEDS chooses other clusters than the 200, such as `17` or `0-19`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from reactive_descheduler.api.selectors import Requirements
from reactive_descheduler.app.snapshot import snapshot_of
from reactive_descheduler.config.corrections import ALL
from reactive_descheduler.framework.fitting import Fitting, fit_rules
from reactive_descheduler.framework.rooms import Targets
from tests.controlplane.cluster import running
from tests.controlplane.given import NEEDS_ITS_OWN, given
from tests.e2e.api import connect, read_kubeconfig
from tests.e2e.random_clusters import make_cluster, name_of, part
from tests.e2e.real_scheduler import PATIENCE, RealScheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from reactive_descheduler.api.pod import Pod
    from reactive_descheduler.cache.lister import Lister
    from tests.e2e.random_clusters import Cluster, Object

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.real_time,
    pytest.mark.timeout(3600),
]

SEEDS = os.environ.get("E2E_SCHEDULER_SEEDS", "0-199")
VICTIMS = 6
"""At most so many Pods of each cluster are asked about."""


@dataclass(slots=True)
class Tally:
    """How node fit and the scheduler agreed."""

    fits: int = 0
    """Pods that fit elsewhere, as both say."""
    fits_nowhere: int = 0
    """Likewise nowhere."""
    too_careful: list[str] = field(default_factory=list)
    """Pods that the scheduler placed on a node that node fit refuses, and why it does."""
    too_hopeful: list[str] = field(default_factory=list)
    """Pods that it takes to fit where the scheduler refuses them."""

    def __str__(self) -> str:
        lists = {
            "too careful": self.too_careful,
            "TOO HOPEFUL": self.too_hopeful,
        }
        told = [f"  {what}: {each}" for what, found in lists.items() for each in found]
        agreed = f"{self.fits} Pods fit elsewhere and were placed, {self.fits_nowhere} fit nowhere"
        return "\n".join([agreed, *told])


class Verdict(NamedTuple):
    """What node fit says of a Pod."""

    fits: list[str]
    """Nodes other than its own that it fits."""
    misfits: dict[str, str]
    """Why it does not fit the others."""


@pytest.fixture
async def scheduler(binaries: None, tmp_path: Path) -> AsyncIterator[RealScheduler]:
    if given():
        pytest.skip(NEEDS_ITS_OWN)
    with running(tmp_path, components=("etcd", "apiserver", "scheduler")) as plane:
        async with connect(read_kubeconfig(plane.kubeconfig())) as api:
            scheduler = RealScheduler(api)
            await scheduler.prepare()
            yield scheduler


async def test_pods_that_fit_elsewhere_are_placed_elsewhere(
    scheduler: RealScheduler, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = Tally()
    for seed in seeds():
        cluster = make_cluster(seed)
        await scheduler.put(cluster)
        await compare(scheduler, cluster, tally)
        await scheduler.clear(cluster)

    with capsys.disabled():
        sys.stdout.write(f"\nclusters {SEEDS}: {tally}\n")
    assert tally.too_hopeful == []


def seeds() -> Iterator[int]:
    """The clusters that are asked for."""
    first, _, last = SEEDS.partition("-")
    yield from range(int(first), int(last or first) + 1)


async def compare(scheduler: RealScheduler, cluster: Cluster, tally: Tally) -> None:
    """Ask both about some Pods of a cluster."""
    lister = snapshot_of(await scheduler.manifests(), source="the API server").lister
    standing, fitting = cluster.standing(), Fitting(fit_rules(ALL))
    victims = Random(cluster.seed).sample(standing, min(VICTIMS, len(standing)))
    for victim in victims:
        pod = lister.pod_named(str(part(victim, "metadata")["namespace"]), name_of(victim))
        assert pod is not None
        said = verdict(pod, lister, fitting)
        await scheduler.remove(victim)
        await ask(scheduler, cluster, victim, said, tally)
        await scheduler.restore(victim)


def verdict(pod: Pod, lister: Lister, fitting: Fitting) -> Verdict:
    """What node fit with all corrections says of it."""
    others = [node for node in lister.nodes() if node.name != pod.node_name]
    reasons = {node.name: fitting.misfit(pod, node, lister) for node in others}
    found = Targets(Requirements(())).room(pod, fitting, lister)
    fits = [name for name, why in reasons.items() if why is None]
    assert (found.name if found else "") in (fits or [""])
    return Verdict(fits, {name: why for name, why in reasons.items() if why is not None})


async def ask(
    scheduler: RealScheduler, cluster: Cluster, victim: Object, said: Verdict, tally: Tally
) -> None:
    """Let the scheduler place what comes in place of a Pod that is gone."""
    own = str(part(victim, "spec")["nodeName"])
    placed = await scheduler.place(victim, not_on=[own], patience=PATIENCE if said.fits else 0)
    name = f"cluster {cluster.seed}, {name_of(victim)}"
    if why := said.misfits.get(placed.node):
        tally.too_careful.append(f"{name} on {placed.node}: {why}")
    refused: dict[str, str] = {}
    for node in said.fits:
        if node != placed.node:
            rest = [name for name in cluster.node_names() if name != node]
            alone = await scheduler.place(victim, not_on=rest, patience=PATIENCE)
            if not alone.node:
                refused[node] = alone.why
    if not refused:
        tally.fits += bool(said.fits)
        tally.fits_nowhere += not (said.fits or placed.node)
    else:
        tally.too_hopeful += [f"{name} on {node}: {why}" for node, why in refused.items()]
