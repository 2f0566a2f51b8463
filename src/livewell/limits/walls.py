"""What this process has heard from upstreams about their limits and has not yet told the database.

    heard ──told──▶ forgotten: the limiter knows it
      └──the database is away──▶ kept ──before the next claim, and before the next renewal of the lease──▶ told

A worker reports what it knows before it claims and before it renews. After a restart the database
grants no limited call until every living worker has renewed (restart_wait.sql), so a wall that was
met during the outage stands for the whole fleet. A wall is kept as a duration from when it was
heard, by the monotonic clock: it shrinks while it waits.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from livewell.errors import DatabaseConflict, DatabaseError, DatabaseUnavailable

Call = Callable[[str, Sequence[Any]], Awaitable[list[tuple[Any, ...]]]]

log = structlog.get_logger("livewell.limits")

_WALLS_MAX = 1000  # limiters and credentials of one process
_NOW = "SELECT extract(epoch FROM livewell.now())::float8"
_OBSERVE = "SELECT livewell.observe_limiter(%s, %s, %s, %s, %s, %s)"
_WALL = "SELECT livewell.report_wall(%s, %s, %s)"


@dataclass(frozen=True, slots=True)
class Heard:
    """What an answer said about the limit of one credential.

    Spans are in seconds from when it was heard, instants in seconds since 1970.
    """

    limiter: str
    credential: str
    limit: int | None = None
    remaining: int | None = None
    reset_seconds: float | None = None
    reset_at: float | None = None
    retry_seconds: float | None = None
    retry_at: float | None = None
    heard: float = field(default_factory=time.monotonic, compare=False)

    @property
    def is_silence(self) -> bool:
        """It asked that nobody calls for a while."""
        return self.retry_seconds is not None or self.retry_at is not None or self.remaining == 0

    async def tell(self, call: Call, *, waited_seconds: float = 0.0) -> bool:
        """Tell the limiter; False when it has no such credential."""
        reset, retry = _left(self.reset_seconds, waited_seconds), _left(self.retry_seconds, waited_seconds)
        if self.reset_at is not None or self.retry_at is not None:
            # Not by our own clock: it may be wrong, and the limiter lives by the database's.
            now = float((await call(_NOW, ()))[0][0])
            reset = reset if self.reset_at is None else max(0.0, self.reset_at - now)
            retry = retry if self.retry_at is None else max(0.0, self.retry_at - now)
        said = (self.limiter, self.credential, self.limit, self.remaining, reset, retry)
        return bool((await call(_OBSERVE, said))[0][0])


@dataclass(frozen=True, slots=True)
class BandwidthWall:
    """A call of a limited queue was told that the bandwidth is used up."""

    queue: str
    credential: str
    fence: int
    heard: float = field(default_factory=time.monotonic, compare=False)
    is_silence: bool = field(default=True, init=False)

    async def tell(self, call: Call, *, waited_seconds: float = 0.0) -> bool:  # noqa: ARG002 - the wall lasts as long as the limiter says
        """Open the breaker."""
        await call(_WALL, (self.queue, self.credential, self.fence))
        return True


Wall = Heard | BandwidthWall


class Walls:
    """What is still to be told. Lives in the event loop's thread."""

    def __init__(self) -> None:
        self._walls: dict[tuple[str, str, str], Wall] = {}

    def keep(self, wall: Wall) -> Wall:
        """Remember it until it is told; answers what is to be told now.

        A silence that was heard before and is longer stands.
        """
        key = (type(wall).__name__, wall.limiter if isinstance(wall, Heard) else wall.queue, wall.credential)
        before = self._walls.pop(key, None)
        if isinstance(wall, Heard) and isinstance(before, Heard):
            wall = _both(before, wall)
        if len(self._walls) >= _WALLS_MAX:
            self._walls.pop(next(iter(self._walls)))
        self._walls[key] = wall
        return wall

    def pending(self) -> tuple[Wall, ...]:
        """What is not told yet."""
        return tuple(self._walls.values())

    @property
    def silent(self) -> bool:
        """A silence was heard that the database does not know yet.

        What it grants now, it would not grant if it did.
        """
        return any(wall.is_silence for wall in self._walls.values())

    def told(self, walls: Iterable[Wall]) -> None:
        """The database knows these."""
        done = {id(wall) for wall in walls}
        self._walls = {key: wall for key, wall in self._walls.items() if id(wall) not in done}


async def tell_all(call: Call, walls: Iterable[Wall]) -> None:
    """Tell the database what is pending; raises while it is away or busy.

    What it refuses for good is logged: nothing may wait for it for ever.
    """
    for wall in walls:
        try:
            await wall.tell(call, waited_seconds=time.monotonic() - wall.heard)
        except (DatabaseUnavailable, DatabaseConflict):
            raise
        except DatabaseError as error:
            log.warning("cannot tell the limiter", wall=repr(wall), error=str(error))


def _both(before: Heard, now: Heard) -> Heard:
    left = _left(before.retry_seconds, now.heard - before.heard)
    silent = [seconds for seconds in (left, now.retry_seconds) if seconds is not None]
    return replace(
        now,
        limit=before.limit if now.limit is None else now.limit,
        retry_seconds=max(silent, default=None),
        retry_at=max((at for at in (before.retry_at, now.retry_at) if at is not None), default=None),
        heard=now.heard,
    )


def _left(seconds: float | None, waited_seconds: float) -> float | None:
    return None if seconds is None else max(0.0, seconds - waited_seconds)
