"""Brings the demo to a terminal, in the event loop of the descheduler but out of its way.

Rendering and writing happen in a thread: a slow terminal must not hold up an eviction.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial

import anyio
from anyio import to_thread
from rich.console import Console, ConsoleDimensions
from rich.control import Control
from rich.screen import Screen as FullScreen

from reactive_descheduler.cli.demo_board import Board, Journal, make_board
from reactive_descheduler.cli.demo_invitation import Invitation
from reactive_descheduler.cli.demo_report import live_lines
from reactive_descheduler.cli.demo_screen import Screen
from reactive_descheduler.cli.demo_timeline import Step, Timeline
from reactive_descheduler.sandbox.mirror import Mirror

_STDIN = 0
PAUSE = 0.125
"""Seconds before each drawing: at most eight a second, and what a change leads to goes first."""


def can_show_screen(console: Console) -> bool:
    """Whether the output is a terminal that can be drawn on, whatever the environment claims."""
    return sys.stdout.isatty() and console.is_terminal and not console.is_dumb_terminal


@asynccontextmanager
async def show_lines(timeline: Timeline, write: Callable[[str], object]) -> AsyncIterator[None]:
    """Write each step as a line during the block."""
    send, receive = anyio.create_memory_object_stream[Step](float("inf"))
    write_step = live_lines(write)

    async def write_all() -> None:
        async for step in receive:
            await to_thread.run_sync(write_step, step)

    listen = send.send_nowait
    async with anyio.create_task_group() as tasks:
        with send, receive:
            timeline.listeners.append(listen)
            tasks.start_soon(write_all)
            try:
                yield
            finally:
                timeline.listeners.remove(listen)
                tasks.cancel_scope.cancel()


class ScreenView:
    """The whole terminal, drawn anew when something has changed.

    It uses the terminal's other screen: what was there before is back when it ends.
    """

    def __init__(
        self, console: Console, invitation: Invitation, *, nodes: Mirror, pods: Mirror
    ) -> None:
        self._console = console
        self._invitation = invitation
        self._nodes, self._pods = nodes, pods
        self._shown: tuple[Board, ConsoleDimensions] | None = None
        self._asked = anyio.Event()

    @asynccontextmanager
    async def shown(self, timeline: Timeline, journal: Journal) -> AsyncIterator[None]:
        """Draw during the block."""
        timeline.listeners.append(self._ask)
        self._nodes.listeners.append(self._ask)
        self._pods.listeners.append(self._ask)
        try:
            with self._console.screen(), _silent_keys():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._on_resize)
                    tasks.start_soon(self._draw_again_and_again, journal)
                    yield
                    tasks.cancel_scope.cancel()
        finally:
            timeline.listeners.remove(self._ask)
            self._nodes.listeners.remove(self._ask)
            self._pods.listeners.remove(self._ask)

    def _ask(self, *_changed: object) -> None:
        self._asked.set()

    async def _on_resize(self) -> None:
        with anyio.open_signal_receiver(signal.SIGWINCH, signal.SIGCONT) as signals:
            async for _ in signals:
                self._shown = None
                self._ask()

    async def _draw_again_and_again(self, journal: Journal) -> None:
        self._ask()
        while True:
            await self._asked.wait()
            await anyio.sleep(PAUSE)
            self._asked = anyio.Event()
            # Copies of what changes meanwhile; the documents in them do not.
            nodes, pods = tuple(self._nodes.objects.values()), tuple(self._pods.objects.values())
            make = partial(make_board, nodes, pods, journal.so_far())
            await to_thread.run_sync(self._draw, make)

    def _draw(self, make: Callable[[], Board]) -> None:
        board, size = make(), self._console.size
        if self._shown == (board, size):
            return
        self._shown = board, size
        with self._console:  # one write
            self._console.control(Control.home())
            self._console.print(FullScreen(Screen(board, *self._invitation)), end="")


@contextmanager
def _silent_keys() -> Iterator[None]:
    """Keep what is typed off the screen, and from the shell afterwards; Ctrl-C works as ever."""
    if not _may_set(_STDIN):
        yield
        return
    before, silent = termios.tcgetattr(_STDIN), termios.tcgetattr(_STDIN)
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(_STDIN, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal was closed
            termios.tcsetattr(_STDIN, termios.TCSAFLUSH, before)


def _may_set(terminal: int) -> bool:
    """Whether it is our terminal and we are in its foreground: others who set it are stopped."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
