"""What every long-running loop stands on.

A rest that a wake-up ends, turns that survive an outage, warnings that wait for the database.

    resting ──wake-up, or the time is over──▶ a turn ──done──▶ resting
       ▲                                        └──the database is away──▶ counted, warned of
       └───────────────── a pause with jitter ◀─────────────────────────────┘

Nothing here knows the database: a caller that needs it hands in a callable.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Never

from livewell.errors import DatabaseError, LivewellError

WARNINGS_MAX = 100  # kinds of warnings that wait; a longer outage adds nothing that these do not say
_BACKOFF_SECONDS = 0.05
_BACKOFF_SECONDS_MAX = 5.0
_DOUBLINGS_MAX = 10

Failed = Callable[[str, LivewellError], None]  # the kind of error (SQLSTATE, or its class), and the error


class Waker:
    """Ends a loop's rest. Any number of wake-ups before the loop looks are one.

    `set`, `clear` and `is_set` are those of an asyncio.Event, without a call in between: a worker
    sets its waker for every job that ends, up to 50,000 times a second.
    """

    __slots__ = ("_wait", "clear", "is_set", "set")

    def __init__(self) -> None:
        event = asyncio.Event()
        self.set: Callable[[], None] = event.set
        self.clear: Callable[[], None] = event.clear
        self.is_set: Callable[[], bool] = event.is_set
        self._wait = event.wait

    async def wait(self, seconds: float) -> None:
        """Until somebody wakes us, or so long. The wake-up stays: clear() before the next look."""
        timer = asyncio.get_running_loop().call_later(seconds, self.set)
        try:
            await self._wait()
        finally:
            timer.cancel()

    async def rest(self, seconds: float) -> None:
        """Wait, and take the wake-up. One that came before the rest ends it at once."""
        if seconds > 0 and not self.is_set():
            await self.wait(seconds)
        self.clear()


class WarningBuffer:
    """Warnings of one loop until the database takes them.

    Each kind is kept once, with its newest sample.
    """

    def __init__(self, call: Callable[[str, Sequence[Any]], Awaitable[object]]) -> None:
        self._call = call
        self._waiting: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, where: str, what: str, sample: str = "") -> None:
        """Something was tolerated; it becomes a counted row with the next flush."""
        if (where, what) in self._waiting or len(self._waiting) < WARNINGS_MAX:
            self._waiting[where, what] = sample

    async def flush(self) -> None:
        """Write them.

        What cannot be written now waits for the next flush, and the error is the caller's.
        """
        for kind, sample in list(self._waiting.items()):
            await self._call("SELECT livewell.warn(%s, %s, %s)", (*kind, sample))
            self._waiting.pop(kind, None)


def jittered(seconds: float, low: float = 0.5, high: float = 1.0) -> float:
    """A random part of this time: processes that failed together must not come back together."""
    return seconds * random.uniform(low, high)  # noqa: S311 - jitter


def backoff_seconds(failures: int) -> float:
    """The pause after so many failures in a row.

    50 ms, doubled each time up to 5 s, with jitter.
    """
    doubled: float = _BACKOFF_SECONDS * 2 ** min(failures, _DOUBLINGS_MAX)
    return jittered(min(_BACKOFF_SECONDS_MAX, doubled))


async def surviving(turn: Callable[[], Awaitable[float]], failed: Failed, *, pause_seconds: float) -> float:
    """Take one turn; answers for how many seconds to rest.

    After an error that is the pause, with jitter.
    """
    try:
        return await turn()
    except LivewellError as error:
        failed(kind_of(error), error)
        return jittered(pause_seconds)


async def every(seconds: float, turn: Callable[[], Awaitable[None]], failed: Failed) -> Never:
    """Take a turn every so many seconds, give or take a tenth, through any outage."""
    while True:
        try:
            await turn()
        except LivewellError as error:
            failed(kind_of(error), error)
        await asyncio.sleep(jittered(seconds, 0.9, 1.1))


def kind_of(error: LivewellError) -> str:
    """What a warning groups errors by: the SQLSTATE, or the name of the class."""
    return error.sqlstate if isinstance(error, DatabaseError) and error.sqlstate else type(error).__name__
