"""The process of a reported case: the whole daemon, started and stopped as the case says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import cast

import anyio
from anyio.abc import TaskGroup

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.errors import DeschedulerError
from reactive_descheduler.app.core import Core
from reactive_descheduler.app.daemon import Daemon
from reactive_descheduler.app.enduring import Enduring
from reactive_descheduler.app.policy_file import PolicyFile
from reactive_descheduler.app.policy_reload import priority_classes_for
from reactive_descheduler.app.settings import RunSettings
from reactive_descheduler.client.credentials import Credentials, Target
from reactive_descheduler.client.kube import KubeConnection
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.kit.clock import Clock
from reactive_descheduler.sandbox.documents import JsonObject, text
from tests.reported.events import Event
from tests.reported.observing import Observation, Runs
from tests.reported.settings import NotPlayedError, Setup

READY_LOOK_EVERY = 0.25
"""Seconds between two looks at readiness."""
END_WITHIN = 60.0
"""Seconds that the daemon may take to stop."""


class Tokens:
    """Credentials from a token file."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.token = "first"

    async def load(self) -> Target:
        return Target(self._url, None)

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

        def on_change(change: Change) -> None:
            self._observation.change(change)
            take_in(change)

        core.bus.on_change = on_change  # type: ignore[method-assign]
        return core


class Process:
    """What runs, and the files that it reads."""

    def __init__(
        self,
        observation: Observation,
        setup: Setup,
        clock: Clock,
        tasks: TaskGroup,
        *,
        url: str,
        policy: JsonObject | None,
    ) -> None:
        """`tasks`: where it runs. `url`: of the API server."""
        self._observation = observation
        self._setup = setup
        self._clock = clock
        self._tasks = tasks
        self._tokens = Tokens(url)
        self._file = json.dumps(setup.document(policy))
        self._daemon: ObservedDaemon | None = None
        self._connection: KubeConnection | None = None
        self._life = anyio.CancelScope()
        self._ended = anyio.Event()

    async def start(self, event: Event) -> None:
        if event.get("leader") is False:
            raise NotPlayedError("a start as standby: leader election not built yet")
        file = PolicyFile(self._read, source="policy.yaml", corrections=None, clock=self._clock)
        settings = RunSettings(
            policy_config_file="policy.yaml",
            dry_run=self._setup.dry_run,
            feature_gates=self._setup.feature_gates,
        )
        connection = await self._connect()
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

    async def write_policy(self, event: Event) -> None:
        content = event["content"]
        if isinstance(content, dict):
            content = json.dumps(self._setup.document(cast(JsonObject, content)))
        self._file = str(content)

    async def write_token(self, event: Event) -> None:
        self._tokens.token = text(event, "value")

    async def replace_session(self, _: Event) -> None:
        """Nothing in the program does that: give its connection another's session."""
        if self._connection is not None:
            other = await self._connect()
            mine = self._connection
            mine._session, other._session = other._session, mine._session
            await other.aclose()

    async def _connect(self) -> KubeConnection:
        return KubeConnection(await self._tokens.load(), Credentials(self._tokens, self._clock))

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

    async def watch_readiness(self) -> None:
        """Look at it again and again. Never returns."""
        while True:
            self._observation.ready(self._daemon is not None and not self._daemon.not_ready())
            await anyio.sleep(READY_LOOK_EVERY)
