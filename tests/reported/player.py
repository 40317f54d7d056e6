"""Plays one case against the whole daemon, on virtual time, and returns what was observed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import TypeAlias, cast

import anyio
import looptime

from reactive_descheduler.kit.clock import LoopClock
from reactive_descheduler.sandbox.documents import JsonObject, mapping, objects, text
from tests.reported.api_server import CaseServer
from tests.reported.events import Event, number
from tests.reported.observing import Observation, warnings_noted
from tests.reported.process import Process
from tests.reported.scene import Scene
from tests.reported.settings import NotPlayedError, read_settings

Case: TypeAlias = JsonObject
Play: TypeAlias = dict[str, object]
Op: TypeAlias = Callable[[Event], Awaitable[None]]

START = "2026-01-01T00:00:00Z"
NO_EVENTS: list[Event] = [{"at": 0, "op": "start"}, {"at": 1, "op": "end"}]


def play(case: Case, under: JsonObject) -> Play:
    """Play a case once, with what `under` changes; return the observation."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        observed = runner.run(_observe(case, under))
    return {"id": case["id"], **({"under": under} if under else {}), **observed}


async def _observe(case: Case, under: JsonObject) -> Play:
    """Return the lists, and what went wrong if something did."""
    events = objects(case, "events") or NO_EVENTS
    loop = asyncio.get_running_loop()
    first = min(0.0, *(number(event, "at", 0) for event in events))
    origin = loop.time() - first
    observation = Observation(lambda: loop.time() - origin)
    try:
        with warnings_noted(observation):
            await _play(case, under, events, observation)
    except Exception as error:
        return {"error": _told(error), **observation.lists}
    return {**observation.lists}


async def _play(
    case: Case, under: JsonObject, events: list[Event], observation: Observation
) -> None:
    setup = read_settings({**mapping(case, "settings"), **under})
    policy = cast(JsonObject | None, under.get("policy", case.get("policy")))
    now = datetime.fromisoformat(text(case, "now") or START)
    clock = LoopClock(now + timedelta(seconds=observation.at()))
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        server = CaseServer(observation, tasks, clock=clock)
        scene = Scene(server, clock, zero=now)
        scene.load(objects(case, "objects"))
        port = await stack.enter_async_context(server.serve())
        url = f"http://127.0.0.1:{port}"
        process = Process(observation, setup, clock, tasks, url=url, policy=policy)
        tasks.start_soon(process.watch_readiness)
        await _play_events(events, _ops(process, scene), observation)
        tasks.cancel_scope.cancel()


async def _play_events(
    events: list[Event], ops: Mapping[str, Op], observation: Observation
) -> None:
    for event in events:
        if event["op"] not in ops:
            raise NotPlayedError(f"unknown op {event['op']}")
    for event in events:
        wait = number(event, "at", 0) - observation.at()
        if wait > 0:
            await anyio.sleep(wait)
        await ops[str(event["op"])](event)
    if not observation.ended:
        raise NotPlayedError("the last event is not `end`")


def _ops(process: Process, scene: Scene) -> Mapping[str, Op]:
    return {
        "start": process.start,
        "end": process.end,
        "restart": process.restart,
        "run": process.run,
        "watch": scene.change,
        "server-delete": scene.change,
        "server-patch": scene.change,
        "replace-evicted": scene.replace_evicted,
        "metrics": scene.measure,
        "policy-file": process.write_policy,
        "evict-answer": scene.answer_evictions,
        "list-answer": scene.answer_lists,
        "watch-answer": scene.answer_watches,
        "stream": scene.disturb_streams,
        "line": scene.send_line,
        "replay": scene.replay,
        "connect": scene.reset_connections,
        "forbid": scene.forbid,
        "token-file": process.write_token,
        "accept-only": scene.accept_only,
        "session-replaced": process.replace_session,
        "lease-answers": _elect,
        "lease-won": _elect,
        "cpu-burn": _elect,  # what it is for: a renewal must not wait for an evaluation
    }


async def _elect(event: Event) -> None:
    raise NotPlayedError(f"op {event['op']}: leader election not built yet")


def _told(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) if isinstance(error, NotPlayedError) else f"{type(error).__name__}: {error}"
