"""Take psycopg's steps on the event loop, as the socket becomes ready.

    resting ──steps──▶ watched ──readable──▶ the next step ──▶ … ──▶ done: resting

psycopg's own way of waiting tells the loop about the socket before every wait and again after it, and looks around every tenth of a second. Here the loop is told once for all steps of a call. Not for longer: a socket that stayed
watched between calls left workers that waited for ever after their connections were cut (F-B2, F-B6). Whoever uses it cuts the connection at a deadline, which makes the socket readable: no wait is without an end.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar, cast

from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

T = TypeVar("T")

_WRITABLE = int(Wait.W)


class LoopSocket:
    """One connection's socket, as its event loop sees it. For one caller at a time."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._watched = False
        self._ready: asyncio.Future[Ready] | None = None

    async def steps(self, generator: PQGen[T]) -> T:
        """All of them; what the last one answers."""
        try:
            wanted = next(generator)
            while True:
                wanted = generator.send(await self._wait(wanted))
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            self.leave()  # at once: libpq may have closed it, and somebody else may get the number

    def leave(self) -> None:
        """Tell the loop to forget it; before it is closed."""
        if self._watched:
            self._watched = False
            self._loop.remove_reader(self._number)

    async def _wait(self, wanted: int) -> Ready:
        ready: asyncio.Future[Ready] = self._loop.create_future()
        self._ready = ready
        if not self._watched:
            self._watched = True
            self._loop.add_reader(self._number, self._readable)
        if wanted & _WRITABLE:
            self._loop.add_writer(self._number, _wake, ready, Ready.W)
        try:
            return await ready
        finally:
            self._ready = None
            if wanted & _WRITABLE:
                self._loop.remove_writer(self._number)

    def _readable(self) -> None:
        if self._ready is None:
            self.leave()  # nobody waits: the loop would tell us again and again
        else:
            _wake(self._ready, Ready.R)


def _wake(ready: asyncio.Future[Ready], which: Ready) -> None:
    if not ready.done():
        ready.set_result(which)
