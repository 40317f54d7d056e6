"""Asks a process on loopback how it is, as a kubelet does."""

from __future__ import annotations

import socket

import aiohttp


def free_port() -> int:
    """A port that nothing listened on a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def probe(url: str) -> tuple[int, str]:
    """Status and text of the answer, whoever signed its certificate; (0, "") if none serves."""
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(connector=connector) as session:
        try:
            async with session.get(url) as response:
                return response.status, await response.text()
        except aiohttp.ClientConnectionError:
            return 0, ""
