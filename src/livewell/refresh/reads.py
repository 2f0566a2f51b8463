"""The faces of the engine for Python: get one key, watch many.

get:    value and verdict in one round trip; not fresh enough, it demands a refresh and waits for how that ends, without a connection
watch:  subscribes as a viewer of its own, gives the current state of each key, then every change; heartbeats while it is followed
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from livewell.db import Database
from livewell.duration import Duration, seconds
from livewell.errors import DatabaseError, InvalidOption, UnknownType
from livewell.queue.nudge import Nudger
from livewell.refresh.changes import Changes
from livewell.refresh.reading import Reading, reading_of
from livewell.refresh.viewers import Viewers

_GET = "SELECT demand, queue, verdict, source_at, fetched_at, checked_at, version, status_version, reason, error, value FROM livewell.read_through(%s, %s, %s, %s, %s, %s)"
_WAIT_SECONDS_MAX = 300.0
_KEY_BYTES_MAX = 200


@dataclass(frozen=True, slots=True)
class Read:
    """A reading, and what became of the demand for a better one."""

    reading: Reading
    demand: str
    queue: str


class Reads:
    """For one open app."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger
        self._settings = database.settings
        self._changes = Changes(database, nudger)
        self._viewers = Viewers(database, nudger)

    async def close(self) -> None:
        """End what follows changes."""
        await self._changes.close()

    async def get(
        self,
        kind: str,
        key: str,
        *,
        max_age: Duration | None = None,
        wait: Duration | None = None,
        user: str | None = None,
    ) -> Reading:
        """The reading; if it is not fresh enough, the one after the refresh that this demands, or what there is when the wait is over."""
        age = None if max_age is None else seconds(max_age, "max_age")
        limit = 0.0 if wait is None else seconds(wait, "wait")
        if limit > _WAIT_SECONDS_MAX:
            raise InvalidOption(f"wait {wait!r}: at most {_WAIT_SECONDS_MAX:g} s are allowed")
        give_up = time.monotonic() + limit
        read = await self.read_through(kind, key, age, user)
        if limit <= 0 or read.demand not in ("queued", "waiting", "due") or self._changes.full:
            return read.reading
        return await self._await_refresh(read.reading, give_up)

    async def read_through(self, kind: str, key: str, age: float | None, user: str | None) -> Read:
        """One round trip: what there is, and a demand if that is not fresh enough."""
        if not key or len(key.encode(errors="replace")) > _KEY_BYTES_MAX or "\x00" in key:
            raise InvalidOption(f"key {key[:40]!r}: 1 to {_KEY_BYTES_MAX} bytes are allowed, without NUL")
        rows = await self._database.call(_GET, (kind, key, age, user, self._settings.cold_reads_max, True))
        demand, queue, *row = rows[0]
        if demand == "unknown_type":
            raise UnknownType(f"type {kind!r} is not in the registry; see: livewell types list")
        if demand == "bad_key":
            raise InvalidOption(f"key {key[:40]!r} does not fit the pattern of type {kind}; see: livewell types show {kind}")
        if demand == "queued":
            self._nudger.nudge(queue)
        elif demand == "due":
            self._viewers.nudge_due()
        return Read(reading_of(kind, key, row), demand, queue or "")

    async def _await_refresh(self, reading: Reading, give_up: float) -> Reading:
        follower = self._changes.follow([(reading.type, reading.key)], [reading])
        asked = reading.status_version
        try:
            async with asyncio.timeout(max(0.0, give_up - time.monotonic())):
                while reading.status_version <= asked:  # a verdict that merely aged is no answer
                    [reading] = await follower.take()
        except TimeoutError:
            pass  # what there is has its verdict
        finally:
            self._changes.unfollow(follower)
        return reading

    async def watch(self, kind: str, keys: Sequence[str], *, user: str | None = None) -> AsyncIterator[Reading]:
        """First the current state of each key, then every change, until the caller stops."""
        if isinstance(keys, str) or not 1 <= len(set(keys)) <= self._settings.watch_keys_max:
            raise InvalidOption(f"keys: a list of 1 to {self._settings.watch_keys_max} keys is allowed (LIVEWELL_WATCH_KEYS_MAX)")
        pairs = [(kind, key) for key in dict.fromkeys(keys)]
        async with self._viewers.session(user=user) as session:
            await session.subscribe(pairs)
            follower = self._changes.follow(pairs)
            beating = asyncio.create_task(self._beat(session), name="viewer-heartbeat")
            try:
                while True:
                    for reading in await follower.take():
                        yield reading
            finally:
                beating.cancel()
                self._changes.unfollow(follower)
