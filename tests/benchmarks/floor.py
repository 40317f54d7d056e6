"""The least that any client must do: read the watch lines, decode them, compare, send the request.

The latency bench runs it beside the descheduler, against the same stub: how much longer the
descheduler takes says more than milliseconds, which vary with the machine by a factor of four.
Usage: python -m tests.benchmarks.floor KUBECONFIG
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import aiohttp

from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.api.node import Node
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.scheduling.tolerations import HARD_EFFECTS, untolerated
from reactive_descheduler.client.lines import LineSplitter

_FOR_EVER = aiohttp.ClientTimeout(total=None)


class Floor:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._decoder = Decoder()
        self._pods: dict[str, Pod] = {}

    async def run(self) -> None:
        async with self._session.get("/api/v1/pods") as answer:
            listed = self._decoder.decode_list("Pod", await answer.read())
        for found in listed.items:
            if isinstance(found, Pod):
                self._pods[found.name] = found
        await asyncio.gather(self._watch("Node", "nodes"), self._watch("Pod", "pods"))

    async def _watch(self, kind: str, resource: str) -> None:
        splitter = LineSplitter()
        watch = self._session.get(
            f"/api/v1/{resource}", params={"watch": "true"}, timeout=_FOR_EVER
        )
        async with watch as answer:
            while block := await answer.content.readany():
                for line in splitter.feed(block):
                    await self._take(kind, line)

    async def _take(self, kind: str, line: bytes) -> None:
        event = self._decoder.decode_line(kind, line)
        found = event.object
        if isinstance(found, Pod):
            if event.type == "DELETED":
                self._pods.pop(found.name, None)
            else:
                self._pods[found.name] = found
        elif isinstance(found, Node) and found.taints:
            for pod in tuple(self._pods.values()):
                wrong = untolerated(pod.template.tolerations, found.taints, HARD_EFFECTS)
                if pod.node_name == found.name and wrong is not None:
                    await self._evict(pod)

    async def _evict(self, pod: Pod) -> None:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
        async with self._session.post(path, json=body) as answer:
            await answer.read()


async def main(server: str) -> None:
    async with aiohttp.ClientSession(server, read_bufsize=1 << 19) as session:
        await Floor(session).run()


if __name__ == "__main__":
    document = json.loads(Path(sys.argv[1]).read_text())
    asyncio.run(main(document["clusters"][0]["cluster"]["server"]))
