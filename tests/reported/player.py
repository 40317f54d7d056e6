"""Plays one case against the whole daemon, on virtual time, and returns what was observed."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from copy import deepcopy
from datetime import datetime, timedelta
from random import Random
from typing import TypeAlias, cast

import anyio
import looptime
from anyio.abc import TaskGroup

from reactive_descheduler.api.errors import DeschedulerError
from reactive_descheduler.app.core import Core, Enduring
from reactive_descheduler.app.daemon import Daemon, priority_classes_for
from reactive_descheduler.app.policy_file import PolicyFile
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.client.credentials import Credentials, Target
from reactive_descheduler.client.kube import KubeConnection
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.kit.clock import Clock, LoopClock
from reactive_descheduler.sandbox.apiserver.patches import merge
from reactive_descheduler.sandbox.apiserver.resources import PODS, Resource
from reactive_descheduler.sandbox.apiserver.store import Stored
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    name_of,
    namespace_of,
    objects,
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
from tests.reported.observing import Observation, Runs, warnings_noted
from tests.reported.settings import NotPlayedError, Setup, read_settings

Case: TypeAlias = JsonObject
Event: TypeAlias = JsonObject
Play: TypeAlias = dict[str, object]
Op: TypeAlias = Callable[["Player", Event], Awaitable[None]]

START = "2026-01-01T00:00:00Z"
POD_AGE = 3600.0
"""Seconds that a Pod has been there at the start if nothing else is said."""
READY_LOOK_EVERY = 0.25
"""Seconds between two looks at readiness."""
END_WITHIN = 60.0
"""Seconds that the daemon may take to stop."""
NO_EVENTS: list[Event] = [{"at": 0, "op": "start"}, {"at": 1, "op": "end"}]


def play(case: Case, under: JsonObject) -> Play:
    """Play a case once, with what `under` changes; return the observation."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        observed = runner.run(_play(case, under))
    return {"id": case["id"], **({"under": under} if under else {}), **observed}


async def _play(case: Case, under: JsonObject) -> Play:
    events = objects(case, "events") or NO_EVENTS
    loop = asyncio.get_running_loop()
    first = min(0.0, *(cast(float, event["at"]) for event in events))
    origin = loop.time() - first
    observation = Observation(lambda: loop.time() - origin)
    error = ""
    try:
        setup = read_settings({**_object(case, "settings"), **under})
        _check_ops(events)
        now = datetime.fromisoformat(text(case, "now") or START)
        clock = LoopClock(now + timedelta(seconds=first))
        policy = cast(JsonObject | None, under.get("policy", case.get("policy")))
        with warnings_noted(observation):
            async with AsyncExitStack() as stack:
                tasks = await stack.enter_async_context(anyio.create_task_group())
                player = Player(observation, setup, clock, tasks)
                await player.play(stack, policy, objects(case, "objects"), events, now=now)
                tasks.cancel_scope.cancel()
    except Exception as crash:
        error = _told(crash)
    return {**({"error": error} if error else {}), **observation.lists}


def _check_ops(events: list[Event]) -> None:
    for event in events:
        if event["op"] not in OPS:
            raise NotPlayedError(f"unknown op {event['op']}")


class Tokens:
    """Credentials from a token file."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.token = "first"

    async def load(self) -> Target:
        return Target(self.url, None)

    async def authorization(self) -> str | None:
        return f"Bearer {self.token}"


class ObservedDaemon(Daemon):
    """The daemon, whose evaluations and changes are written down."""

    def __init__(
        self,
        observation: Observation,
        settings: RunSettings,
        policy: LoadedPolicy,
        connection: KubeConnection,
        *,
        clock: Clock,
        priority_classes: Mapping[str, int],
        policy_file: PolicyFile,
    ) -> None:
        self._observation = observation
        super().__init__(
            settings,
            policy,
            connection,
            clock=clock,
            random=Random(1),
            priority_classes=priority_classes,
            hooks=(observation,),
            policy_file=policy_file,
        )

    def _build(
        self,
        policy: LoadedPolicy,
        priority_classes: Mapping[str, int],
        enduring: Enduring | None = None,
    ) -> Core:
        core = super()._build(policy, priority_classes, enduring)
        core.loop.runs = Runs(self._observation.run)
        take_in = core.bus.on_change

        def on_change(change: object) -> None:
            self._observation.change(change)  # type: ignore[arg-type]
            take_in(change)  # type: ignore[arg-type]

        core.bus.on_change = on_change  # type: ignore[method-assign]
        return core


class Player:
    """A case under way: the server, the process, and the file that it reads."""

    def __init__(
        self, observation: Observation, setup: Setup, clock: Clock, tasks: TaskGroup
    ) -> None:
        self._observation = observation
        self._setup = setup
        self._clock = clock
        self._tasks = tasks
        self._server = CaseServer(observation, tasks, clock=clock)
        self._tokens = Tokens("")
        self._file = ""
        self._daemon: ObservedDaemon | None = None
        self._connection: KubeConnection | None = None
        self._life = anyio.CancelScope()
        """Of the process."""
        self._ended = anyio.Event()
        self._replacements = 0

    async def play(
        self,
        stack: AsyncExitStack,
        policy: JsonObject | None,
        documents: list[JsonObject],
        events: list[Event],
        *,
        now: datetime,
    ) -> None:
        """Set the scene and play the events."""
        self._file = json.dumps(self._setup.document(policy))
        self._load(documents, now=now)
        port = await stack.enter_async_context(self._server.serve())
        self._tokens.url = f"http://127.0.0.1:{port}"
        self._tasks.start_soon(self._watch_readiness)
        for event in events:
            wait = cast(float, event["at"]) - self._observation.at()
            if wait > 0:
                await anyio.sleep(wait)
            await OPS[str(event["op"])](self, event)
        if not self._observation.ended:
            raise NotPlayedError("the last event is not `end`")

    def _load(self, documents: list[JsonObject], *, now: datetime) -> None:
        documents = deepcopy(documents)
        for document in documents:
            if document["kind"] == "Pod":
                created = timestamp(now.timestamp() - POD_AGE)
                attach(document, "metadata").setdefault("creationTimestamp", created)
        self._server.load(documents)

    async def start(self, event: Event) -> None:
        if event.get("leader") is False:
            raise NotPlayedError("a start as standby: leader election not built yet")
        file = PolicyFile(self._read, source="policy.yaml", corrections=None, clock=self._clock)
        settings = RunSettings(
            policy_config_file="policy.yaml",
            dry_run=self._setup.dry_run,
            feature_gates=self._setup.feature_gates,
        )
        connection = KubeConnection(
            await self._tokens.load(), Credentials(self._tokens, self._clock)
        )
        try:
            policy = await file.load()
            classes = await priority_classes_for(policy, connection, clock=self._clock)
            daemon = ObservedDaemon(
                self._observation,
                settings,
                policy,
                connection,
                clock=self._clock,
                priority_classes=classes,
                policy_file=file,
            )
        except DeschedulerError as error:
            self._observation.note("starts", result="refused", text=str(error))
            await connection.aclose()
            return
        self._observation.note("starts", result="ok", text="")
        if self._setup.bucket_first is not None:
            wait = self._setup.bucket_first - self._observation.at()
            daemon.core.bucket.pause_until(self._clock.monotonic() + wait)
        self._daemon, self._connection = daemon, connection
        self._life, self._ended = anyio.CancelScope(), anyio.Event()
        self._tasks.start_soon(self._live, daemon, connection, self._life, self._ended)

    async def end(self, _: Event) -> None:
        daemon = self._daemon
        if daemon is not None:
            self._observation.ready(not daemon.not_ready())
        self._observation.end(daemon.core.store if daemon is not None else None)
        if daemon is not None:
            daemon.stop()
            with anyio.move_on_after(END_WITHIN) as waiting:
                await self._ended.wait()
            if waiting.cancelled_caught:
                raise NotPlayedError(f"the daemon did not end within {END_WITHIN:g} s")

    async def restart(self, event: Event) -> None:
        self._life.cancel()
        if self._daemon is not None:
            await self._ended.wait()
        self._daemon = None
        self._observation.ready(False)
        await self.start(event)

    async def run(self, _: Event) -> None:
        if self._daemon is not None:
            self._daemon.core.resync()

    async def change(self, event: Event) -> None:
        """Change the server's state; a stream that works shows it."""
        if "object" in event:
            self._put(deepcopy(_object(event, "object")), gone=event.get("type") == "DELETED")
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
        now = self._clock.now().timestamp()
        sampled = (
            now - self._observation.at() + _number(event, "sampled_at", self._observation.at())
        )
        self._server.measurements.set(
            cast(Mapping[str, float | None], _object(event, "cpu_percent")),
            cast(Mapping[str, float | None], _object(event, "pod_cpu_m")),
            sampled_at=sampled,
        )

    async def write_policy(self, event: Event) -> None:
        content = event["content"]
        if isinstance(content, dict):
            content = json.dumps(self._setup.document(cast(JsonObject, content)))
        self._file = str(content)

    async def answer_evictions(self, event: Event) -> None:
        until = event.get("until")
        # Without a number or a time it is for good.
        self._server.evictions.append(
            EvictionAnswer(
                text(event, "pod"),
                cast(int, event["status"]),
                cast(Mapping[str, str], _object(event, "headers")),
                _object(event, "body"),
                latency=_number(event, "latency_s", 0.0),
                times=_number(event, "times", math.inf),
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
                times=_number(event, "times", 1),
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
            size = int(_number(event, "size_bytes", 0))
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
            self._server.resets_until = _number(event, "until", 0)
        else:
            self._server.resets_left += _number(event, "times", 1)

    async def forbid(self, event: Event) -> None:
        self._server.forbidden.add((text(event, "verb"), text(event, "resource")))

    async def write_token(self, event: Event) -> None:
        self._tokens.token = text(event, "value")

    async def accept_only(self, event: Event) -> None:
        self._server.authorize_only(text(event, "token"))

    async def replace_session(self, _: Event) -> None:
        """Nothing in the program does that: give its connection another's session."""
        if self._connection is not None:
            other = KubeConnection(
                await self._tokens.load(), Credentials(self._tokens, self._clock)
            )
            mine = self._connection
            mine._session, other._session = other._session, mine._session
            await other.aclose()

    async def not_built(self, event: Event) -> None:
        raise NotPlayedError(f"op {event['op']}: leader election not built yet")

    async def _live(
        self,
        daemon: Daemon,
        connection: KubeConnection,
        life: anyio.CancelScope,
        ended: anyio.Event,
    ) -> None:
        with life:
            try:
                async with connection:
                    await daemon.run()
            finally:
                ended.set()

    async def _read(self) -> bytes:
        return self._file.encode()

    async def _watch_readiness(self) -> None:
        while True:
            self._observation.ready(self._daemon is not None and not self._daemon.not_ready())
            await anyio.sleep(READY_LOOK_EVERY)

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
        metadata, old = attach(pod, "metadata"), _object(evicted, "metadata")
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


OPS: Mapping[str, Op] = {
    "start": Player.start,
    "end": Player.end,
    "restart": Player.restart,
    "run": Player.run,
    "watch": Player.change,
    "server-delete": Player.change,
    "server-patch": Player.change,
    "replace-evicted": Player.replace_evicted,
    "metrics": Player.measure,
    "policy-file": Player.write_policy,
    "evict-answer": Player.answer_evictions,
    "list-answer": Player.answer_lists,
    "watch-answer": Player.answer_watches,
    "stream": Player.disturb_streams,
    "line": Player.send_line,
    "replay": Player.replay,
    "connect": Player.reset_connections,
    "forbid": Player.forbid,
    "token-file": Player.write_token,
    "accept-only": Player.accept_only,
    "session-replaced": Player.replace_session,
    "lease-answers": Player.not_built,
    "lease-won": Player.not_built,
    "cpu-burn": Player.not_built,  # what it is for: a renewal must not wait for an evaluation
}


def _object(document: object, name: str) -> JsonObject:
    found = cast(JsonObject, document).get(name)
    return cast(JsonObject, found) if isinstance(found, dict) else {}


def _number(event: Event, name: str, default: float) -> float:
    found = event.get(name)
    return default if found is None else cast(float, found)


def _told(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) if isinstance(error, NotPlayedError) else f"{type(error).__name__}: {error}"
