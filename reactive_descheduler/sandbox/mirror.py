"""What the sandbox's controllers know of the cluster: objects kept up by list and watch."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

import aiohttp
import anyio

from reactive_descheduler.sandbox.client import ApiClient, ApiRefused
from reactive_descheduler.sandbox.documents import JsonObject, name_of, namespace_of, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Listener: TypeAlias = Callable[[JsonObject | None, JsonObject | None], None]

ObjectKey: TypeAlias = tuple[str, str]

_RETRY_AFTER = 0.2  # seconds; a restarting server must not meet a busy loop


def key_of(document: JsonObject) -> ObjectKey:
    return namespace_of(document), name_of(document)


class Mirror:
    """The objects of one resource, at `version`; listeners are told of each change as (old, new).

    Documents are shared: nobody may change them.
    """

    def __init__(self, client: ApiClient, plural: str) -> None:
        self.plural = plural
        self.objects: dict[ObjectKey, JsonObject] = {}
        self.version = 0
        self.listeners: list[Listener] = []
        self._client = client
        self._moved = anyio.Event()

    async def run(self) -> None:
        """Keep up until cancelled; lists again when the server has forgotten the version."""
        while True:
            try:
                if not self.version:
                    await self._list()
                await self._watch()
            except ApiRefused as error:
                if error.code == 410:
                    self.version = 0
                    continue
                await anyio.sleep(_RETRY_AFTER)
            except (aiohttp.ClientError, OSError):
                await anyio.sleep(_RETRY_AFTER)

    async def caught_up(self, document: JsonObject) -> None:
        """Return once this write, or a later one, has come back on the watch.

        A controller that counts waits for its own writes, else it would do them twice.
        """
        while self.version < version_of(document):
            await self._moved.wait()

    async def next_change(self) -> None:
        """Return after the next watch event."""
        await self._moved.wait()

    def index(self, value_of: Callable[[JsonObject], str]) -> Index:
        """Keep the objects by a value; call this before `run`."""
        index = Index(value_of)
        self.listeners.insert(0, index.on_change)
        return index

    async def _list(self) -> None:
        documents, version = await self._client.list(self.plural)
        found = {key_of(document): document for document in documents}
        for key in [key for key in self.objects if key not in found]:
            self._apply(key, None)
        for key, document in found.items():
            self._apply(key, document)
        self._move(int(version))

    async def _watch(self) -> None:
        version = str(self.version)
        async for kind, document in self._client.watch(self.plural, version):
            self._apply(key_of(document), None if kind == "DELETED" else document)
            self._move(version_of(document))

    def _apply(self, key: ObjectKey, new: JsonObject | None) -> None:
        old = self.objects.pop(key, None)
        if new is not None:
            self.objects[key] = new
        if old is not None and new is not None and version_of(old) == version_of(new):
            return
        for listener in self.listeners:
            listener(old, new)

    def _move(self, version: int) -> None:
        self.version = version
        moved, self._moved = self._moved, anyio.Event()
        moved.set()


class Index:
    """Objects by a value of theirs; an empty value is not kept."""

    def __init__(self, value_of: Callable[[JsonObject], str]) -> None:
        self._value_of = value_of
        self._objects: defaultdict[str, dict[ObjectKey, JsonObject]] = defaultdict(dict)

    def get(self, value: str) -> Mapping[ObjectKey, JsonObject]:
        return self._objects.get(value, {})

    def on_change(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is not None:
            self._objects[self._value_of(old)].pop(key_of(old), None)
        if new is not None and (value := self._value_of(new)):
            self._objects[value][key_of(new)] = new


class Mirrors:
    """One mirror a resource, shared by all controllers."""

    def __init__(self, client: ApiClient) -> None:
        self.nodes = Mirror(client, "nodes")
        self.pods = Mirror(client, "pods")
        self.deployments = Mirror(client, "deployments")
        self.replica_sets = Mirror(client, "replicasets")
        self.daemon_sets = Mirror(client, "daemonsets")
        self.stateful_sets = Mirror(client, "statefulsets")
        self.jobs = Mirror(client, "jobs")
        self.budgets = Mirror(client, "poddisruptionbudgets")

    def all(self) -> tuple[Mirror, ...]:
        return (
            self.nodes,
            self.pods,
            self.deployments,
            self.replica_sets,
            self.daemon_sets,
            self.stateful_sets,
            self.jobs,
            self.budgets,
        )
