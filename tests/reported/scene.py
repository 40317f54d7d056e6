"""The cluster of a reported case: what happens in it, and to the streams that tell of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime
from typing import cast

from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.sandbox.apiserver.patches import merge
from reactive_descheduler.sandbox.apiserver.resources import PODS, Resource
from reactive_descheduler.sandbox.apiserver.store import Stored
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    mapping,
    name_of,
    namespace_of,
    text,
    timestamp,
    uid_of,
)
from tests.reported.api_server import (
    BY_KIND,
    CaseServer,
    EvictionAnswer,
    OpenWatch,
    WatchAnswer,
    line_of,
    listed,
)
from tests.reported.events import Event, number
from tests.reported.settings import NotPlayedError

POD_AGE = 3600.0
"""Seconds that a Pod has been there at the start if nothing else is said."""


class Scene:
    """Changes the state of a server, and its behaviour."""

    def __init__(self, server: CaseServer, clock: Clock, *, zero: datetime) -> None:
        """`zero`: when the case's own clock is at 0."""
        self._server = server
        self._clock = clock
        self._zero = zero.timestamp()
        self._replacements = 0

    def load(self, documents: list[JsonObject]) -> None:
        """Put the cluster there."""
        documents = deepcopy(documents)
        for document in documents:
            if document["kind"] == "Pod":
                created = timestamp(self._zero - POD_AGE)
                attach(document, "metadata").setdefault("creationTimestamp", created)
        self._server.load(documents)

    async def change(self, event: Event) -> None:
        """Change the server's state; a stream that works shows it."""
        if "object" in event:
            self._put(deepcopy(mapping(event, "object")), gone=event.get("type") == "DELETED")
            return
        resource, stored = self._found(event)
        if stored is None:
            return
        if event.get("type") == "DELETED" or event["op"] == "server-delete":
            self._server.registry.store.remove(resource, stored.key)
        else:
            patched = merge(stored.copy(), event["patch"])
            self._server.registry.store.put(resource, cast(JsonObject, patched))

    async def replace_evicted(self, event: Event) -> None:
        for uid, accepted in self._server.accepted.items():
            if accepted.is_back:
                continue
            accepted.is_back = True
            key = namespace_of(accepted.pod), name_of(accepted.pod)
            if self._server.pod(key, uid) is not None:
                self._server.registry.store.remove(PODS, key)
            self._replacements += 1
            pod = self._replacement(accepted.pod, node=text(event, "bind_to"))
            self._server.registry.store.put(PODS, pod)

    async def measure(self, event: Event) -> None:
        at = number(event, "sampled_at", self._clock.now().timestamp() - self._zero)
        self._server.measurements.set(
            cast(Mapping[str, float | None], mapping(event, "cpu_percent")),
            cast(Mapping[str, float | None], mapping(event, "pod_cpu_m")),
            sampled_at=self._zero + at,
        )

    async def answer_evictions(self, event: Event) -> None:
        until = event.get("until")
        # Without a number or a time it is for good.
        self._server.evictions.append(
            EvictionAnswer(
                text(event, "pod"),
                cast(int, event["status"]),
                cast(Mapping[str, str], mapping(event, "headers")),
                mapping(event, "body"),
                latency=number(event, "latency_s", 0.0),
                times=number(event, "times", math.inf),
                until=math.inf if until is None else cast(float, until),
            )
        )

    async def answer_lists(self, event: Event) -> None:
        kind = text(event, "kind")
        self._server.list_answers[kind] = listed(
            self._server,
            BY_KIND[kind],
            cast(list[tuple[str, object]], event["items"]),
            str(event["resourceVersion"]),
        )

    async def answer_watches(self, event: Event) -> None:
        for kind in self._kinds(event):
            self._server.watch_answers[kind] = WatchAnswer(
                cast(int, event["status"]),
                event.get("body"),
                bool(event.get("chunked")),
                times=number(event, "times", 1),
            )

    async def disturb_streams(self, event: Event) -> None:
        for watch in self._open(event):
            match event["fault"]:
                case "cut":
                    watch.end()
                case "silent" | "timeout-always":
                    watch.silent = True
                case "half-line":
                    watch.break_off()
                case unknown:
                    raise NotPlayedError(f"unknown fault of a stream: {unknown}")
        if event["fault"] == "timeout-always":
            self._server.mute.update(self._kinds(event))

    async def send_line(self, event: Event) -> None:
        if "json" in event:
            given = event["json"]
            line = (given if isinstance(given, str) else json.dumps(given)).encode() + b"\n"
        else:
            _, stored = self._found(event)
            document: JsonObject = stored.copy() if stored is not None else {}
            size = int(number(event, "size_bytes", 0))
            bare = len(line_of(text(event, "type"), document))
            annotations = attach(document, "metadata", "annotations")
            annotations["padding"] = "x" * max(0, size - bare)
            line = line_of(text(event, "type"), document)
        self._server.say(text(event, "kind"), [line])

    async def replay(self, event: Event) -> None:
        resource = BY_KIND[text(event, "kind")]
        store = self._server.registry.store.of(resource)
        last = {each.stored.key: each.line for each in store.history}
        for key, stored in store.objects.items():
            last.setdefault(key, line_of("ADDED", stored.document))
        self._server.say(resource.kind, last.values())

    async def reset_connections(self, event: Event) -> None:
        if event["fault"] != "reset":
            raise NotPlayedError(f"unknown fault of connections: {event['fault']}")
        if "until" in event:
            self._server.resets_until = number(event, "until", 0)
        else:
            self._server.resets_left += number(event, "times", 1)

    async def forbid(self, event: Event) -> None:
        self._server.forbidden.add((text(event, "verb"), text(event, "resource")))

    async def accept_only(self, event: Event) -> None:
        self._server.authorize_only(text(event, "token"))

    def _put(self, document: JsonObject, *, gone: bool) -> None:
        resource = BY_KIND[text(document, "kind")]
        key = (namespace_of(document) if resource.namespaced else "", name_of(document))
        store = self._server.registry.store
        there = store.of(resource).objects.get(key)
        if gone:
            if there is not None:
                store.remove(resource, key)
            return
        metadata = attach(document, "metadata")
        known = there.document if there is not None else {}
        metadata.setdefault("uid", uid_of(known) or self._server.registry.random_uid())
        created = text(known, "metadata", "creationTimestamp") or self._stamp()
        metadata.setdefault("creationTimestamp", created)
        store.put(resource, document)

    def _found(self, event: Event) -> tuple[Resource, Stored | None]:
        """Return what an event is about; None where it is not there."""
        resource, name = BY_KIND[text(event, "kind")], text(event, "name")
        if name.startswith("called:"):
            number = int(name.removeprefix("called:"))
            called = self._server.called
            if number > len(called):
                return resource, None
            name = called[number - 1][1]
        namespace, _, last = name.rpartition("/")
        return resource, self._server.registry.store.of(resource).objects.get((namespace, last))

    def _kinds(self, event: Event) -> list[str]:
        kind = text(event, "kind")
        return list(BY_KIND) if kind == "*" else [kind]

    def _open(self, event: Event) -> list[OpenWatch]:
        kinds = self._kinds(event)
        return [watch for watch in self._server.open if watch.kind in kinds]

    def _replacement(self, evicted: JsonObject, *, node: str) -> JsonObject:
        pod = deepcopy(evicted)
        metadata, old = attach(pod, "metadata"), mapping(evicted, "metadata")
        kept = ("namespace", "labels", "annotations", "ownerReferences")
        metadata.clear()
        metadata.update({name: old[name] for name in kept if name in old})
        metadata["name"] = f"{name_of(evicted).partition('-again-')[0]}-again-{self._replacements}"
        metadata["uid"] = self._server.registry.random_uid()
        metadata["creationTimestamp"] = self._stamp()
        attach(pod, "spec")["nodeName"] = node
        pod["status"] = {
            "phase": "Running",
            "startTime": self._stamp(),
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        return pod

    def _stamp(self) -> str:
        return timestamp(self._clock.now().timestamp())
