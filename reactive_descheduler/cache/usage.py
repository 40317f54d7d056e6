"""Measured usage: the latest samples of nodes and Pods, and what has moved since they were taken.

Whoever polls puts samples in. A sample knows only what ran while it was taken, so the usage of a
Pod that has begun to go since then is taken off its node, and put on the node of the replacement,
until a sample shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod, controller

METRICS_SERVER = "KubernetesMetrics"
PROMETHEUS = "Prometheus"
"""Names of the sources, as in policies."""

Amounts = Mapping[str, int]
"""By resource name, in nanos."""
PodName = tuple[str, str]
"""Namespace and name."""

_NOTHING: Amounts = {}


class Sample(NamedTuple):
    """What metrics-server says of one node or Pod.

    A Pod's usage is that of its containers together, and names only what every one of them
    reports; see `summed`.
    """

    usage: Amounts
    sampled: datetime
    """When it was taken: the end of its window."""
    received: datetime
    window: timedelta = timedelta()
    """The time over which it was measured."""

    @property
    def began(self) -> datetime:
        return self.sampled - self.window


class Vector(NamedTuple):
    """What a Prometheus query says of each instance; shares, so 1 is all of a node."""

    values: Mapping[str, float]
    sampled: datetime
    received: datetime
    error: str = ""
    """Why the answer as a whole cannot be used: no vector, a sample without an instance."""


class _Move(NamedTuple):
    """A Pod that goes, or has gone, and where its replacement is."""

    pod: Pod
    usage: Amounts
    gone: datetime | None = None
    to: str = ""
    arrived: datetime | None = None


class Usage:
    """Samples by node, Pod and query. Not thread-safe: it lives on the event loop.

    `sources`: the providers that the policy configures. `samples`: how many of a node, and of a
    query, are kept.
    """

    def __init__(
        self,
        sources: Collection[str] = (),
        *,
        samples: int = 1,
        max_age: timedelta = timedelta(minutes=2),
    ) -> None:
        self.version = 0
        """Moves with every sample and every move."""
        self._nodes: dict[str, deque[Sample]] = {}
        self._pods: Mapping[PodName, Sample] = {}
        self._vectors: dict[str, deque[Vector]] = {}
        self._moves: dict[str, _Move] = {}
        self._moved_by_node: dict[str, set[str]] = {}
        self._unreplaced: dict[str, dict[str, None]] = {}
        """Moves without a replacement, by the UID of the owner; the first to go stands first."""
        self.configure(sources, samples=samples, max_age=max_age)

    def configure(self, sources: Collection[str], *, samples: int, max_age: timedelta) -> None:
        """Work by these settings from now on; a reload of the policy brings others."""
        self.sources = frozenset(sources)
        self.samples = samples
        self.max_age = max_age
        """From when on a sample decides nothing."""
        self._nodes = {name: deque(kept, samples) for name, kept in self._nodes.items()}
        self._vectors = {query: deque(kept, samples) for query, kept in self._vectors.items()}
        self.version += 1

    def put_nodes(self, samples: Mapping[str, Sample], now: datetime) -> None:
        """Take in one list of node metrics.

        A node that is not in it keeps what is known, and grows old; what is no newer than what is
        known changes nothing.
        """
        for name, sample in samples.items():
            kept = self._nodes.setdefault(name, deque(maxlen=self.samples))
            if not kept or kept[-1].sampled < sample.sampled:
                kept.append(sample)
        for name in [name for name, kept in self._nodes.items() if self._is_past(kept[-1], now)]:
            if name not in samples:
                del self._nodes[name]
        self._forget_moves(now)
        self.version += 1

    def put_pods(self, samples: Mapping[PodName, Sample]) -> None:
        """Take in one list of Pod metrics. A Pod that is not in it is not measured any more."""
        self._pods = samples
        self.version += 1

    def put_vector(self, query: str, vector: Vector, now: datetime) -> None:
        """Take in the answer to one query; one that is no newer changes nothing."""
        kept = self._vectors.setdefault(query, deque(maxlen=self.samples))
        if not kept or kept[-1].sampled < vector.sampled:
            kept.append(vector)
        self._forget_moves(now)
        self.version += 1

    def on_change(self, change: Change, now: datetime) -> None:
        """Take note of a Pod that begins to go, is gone, or comes as a replacement."""
        old, new = change.old, change.new
        if isinstance(old, Node) and new is None:
            self._nodes.pop(old.name, None)
        if not self.sources:
            return
        if isinstance(new, Pod) and new.active and new.deleted is None:
            if new.node_name and not (isinstance(old, Pod) and old.node_name):
                self._came(new, now)
        elif isinstance(new, Pod):
            self._goes(new, None if new.active else now)
        elif isinstance(old, Pod):
            self._goes(old, now)

    def node(self, name: str) -> Sequence[Sample]:
        """Return the last samples of a node, the latest last; none if it was never measured."""
        return tuple(self._nodes.get(name, ()))

    def pod(self, pod: Pod) -> Sample | None:
        return self._pods.get((pod.namespace, pod.name))

    def vectors(self, query: str) -> Sequence[Vector]:
        """Return the last answers to a query, the latest last."""
        return tuple(self._vectors.get(query, ()))

    def amounts(self, name: str, sample: Sample, gone: Iterable[Pod] = ()) -> Amounts:
        """Return what a sample of a node comes to now: less what goes, and what came instead.

        `gone`: Pods of the node that count as gone, and of which no change tells yet.
        """
        uids = self._moved_by_node.get(name, ())
        going = [pod for pod in gone if pod.uid not in self._moves]
        if not uids and not going:
            return sample.usage
        amounts = dict(sample.usage)
        for uid in uids:
            move = self._moves[uid]
            if move.pod.node_name == name and _unseen(move.gone, sample.began):
                _add(amounts, self._usage_of(move), -1)
            if move.to == name and _unseen(move.arrived, sample.began):
                _add(amounts, self._usage_of(move), 1)
        for pod in going:
            if (measured := self.pod(pod)) is not None:
                _add(amounts, measured.usage, -1)
        return {resource: max(0, amount) for resource, amount in amounts.items()}

    def leaving(self, name: str, since: datetime, gone: Iterable[Pod] = ()) -> int:
        """Return how many Pods of a node go, or have gone since a sample that began then.

        `gone`: as for `amounts`.
        """
        moves = (self._moves[uid] for uid in self._moved_by_node.get(name, ()))
        known = sum(move.pod.node_name == name and _unseen(move.gone, since) for move in moves)
        return known + sum(pod.uid not in self._moves for pod in gone)

    def _came(self, pod: Pod, now: datetime) -> None:
        """Take the Pod for the replacement of what went first of its owner's."""
        waiting = self._unreplaced.get(_owner(pod), ())
        for uid in waiting:
            if uid != pod.uid:
                self._put_move(self._moves[uid]._replace(to=pod.node_name, arrived=now))
                return

    def _goes(self, pod: Pod, gone: datetime | None) -> None:
        known = self._moves.get(pod.uid)
        if known is not None:
            if known.gone is None and gone is not None:
                self._put_move(known._replace(gone=gone, usage=self._usage_of(known)))
        elif pod.node_name:
            going = _Move(pod, _NOTHING)
            self._put_move(going._replace(gone=gone, usage=self._usage_of(going)))

    def _usage_of(self, move: _Move) -> Amounts:
        """Return what the Pod uses, or used last; its name may be another's once it is gone."""
        measured = self.pod(move.pod) if move.gone is None else None
        return measured.usage if measured is not None else move.usage

    def _put_move(self, move: _Move) -> None:
        uid, owner = move.pod.uid, _owner(move.pod)
        self._moves[uid] = move
        if owner and not move.to:
            self._unreplaced.setdefault(owner, {})[uid] = None
        else:
            self._no_longer_unreplaced(owner, uid)
        for name in {move.pod.node_name, move.to} - {""}:
            self._moved_by_node.setdefault(name, set()).add(uid)
        self.version += 1

    def _forget_moves(self, now: datetime) -> None:
        """Forget the moves that every sample still in use has seen."""
        for uid, move in tuple(self._moves.items()):
            ended = max(filter(None, (move.gone, move.arrived)), default=None)
            if move.gone is None or ended is None or now - ended <= 2 * self.max_age:
                continue
            del self._moves[uid]
            self._no_longer_unreplaced(_owner(move.pod), uid)
            for name in {move.pod.node_name, move.to} - {""}:
                moved = self._moved_by_node[name]
                moved.discard(uid)
                if not moved:
                    del self._moved_by_node[name]

    def _no_longer_unreplaced(self, owner: str, uid: str) -> None:
        waiting = self._unreplaced.get(owner, {})
        waiting.pop(uid, None)
        if not waiting:
            self._unreplaced.pop(owner, None)

    def _is_past(self, sample: Sample, now: datetime) -> bool:
        return now - sample.sampled > 2 * self.max_age


def summed(containers: Iterable[Amounts]) -> Amounts:
    """Return what the containers of a Pod use together: of each resource that all of them
    report."""
    known = list(containers)
    names = set(known[0]).intersection(*known) if known else set()
    return {name: sum(each[name] for each in known) for name in sorted(names)}


def _owner(pod: Pod) -> str:
    owner = controller(pod)
    return owner.uid if owner is not None else ""


def _unseen(happened: datetime | None, began: datetime) -> bool:
    """Say whether a sample that began then has not seen what happened, or is to happen yet."""
    return happened is None or began < happened


def _add(amounts: dict[str, int], usage: Amounts, sign: int) -> None:
    for resource, amount in usage.items():
        amounts[resource] = amounts.get(resource, 0) + sign * amount
