"""Measured usage in this process: who asks which source what, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import anyio

from reactive_descheduler.app.policy import wanted_usage
from reactive_descheduler.cache.usage import Usage
from reactive_descheduler.client.kube import KubeConnection
from reactive_descheduler.client.prometheus import (
    PrometheusClient,
    own_token,
    token_in_secret,
)
from reactive_descheduler.client.usage import (
    MetricsServer,
    Poller,
    PollStatistics,
    PrometheusQuery,
    Question,
)
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.config.policy import Prometheus
from reactive_descheduler.kit.clock import Clock


def questions(policy: LoadedPolicy, connection: KubeConnection, clock: Clock) -> list[Question]:
    """Return what is to be asked for a policy."""
    wanted, asked = wanted_usage(policy), list[Question]()
    if wanted.metrics_server:
        asked.append(MetricsServer(connection, clock))
    if wanted.prometheus is not None:
        client = _prometheus(wanted.prometheus, connection)
        asked += [PrometheusQuery(client, query, clock) for query in wanted.queries]
    return asked


class Measuring:
    """Polls what the policy in force wants measured; nothing if it wants nothing."""

    def __init__(
        self,
        connection: KubeConnection,
        *,
        clock: Clock,
        random: Random,
        on_sample: Callable[[str], None],
    ) -> None:
        """`on_sample`: told the source whenever one has answered."""
        self._connection = connection
        self._clock = clock
        self._random = random
        self._on_sample = on_sample
        self._pollers: list[Poller] = []
        self._polling: anyio.CancelScope | None = None

    def configure(self, policy: LoadedPolicy, usage: Usage) -> None:
        """Ask from now on what this policy wants; the answers go to `usage`."""
        self._pollers = [
            Poller(
                question,
                usage,
                interval=policy.reactive.usage.poll_interval.total_seconds(),
                clock=self._clock,
                random=self._random,
                on_sample=self._on_sample,
            )
            for question in questions(policy, self._connection, self._clock)
        ]
        if self._polling is not None:
            self._polling.cancel()

    async def run(self) -> None:
        """Poll for ever, each question by itself."""
        while True:
            with anyio.CancelScope() as self._polling:
                async with anyio.create_task_group() as tasks:
                    for poller in self._pollers:
                        tasks.start_soon(poller.run)
                    await anyio.sleep_forever()

    async def once(self) -> None:
        """Ask each question once; one that is not answered shows in the statistics and the log."""
        async with anyio.create_task_group() as tasks:
            for poller in self._pollers:
                tasks.start_soon(poller.poll)

    def statistics(self) -> list[PollStatistics]:
        return [poller.statistics() for poller in self._pollers]


def _prometheus(prometheus: Prometheus, connection: KubeConnection) -> PrometheusClient:
    token = prometheus.auth_token
    if token is None or token.secret_reference is None:
        return PrometheusClient(prometheus.url, own_token())
    secret = token.secret_reference
    return PrometheusClient(
        prometheus.url, token_in_secret(connection, secret.namespace, secret.name)
    )
