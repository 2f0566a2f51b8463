"""Follow keys: one reader per process tells everybody here what has changed.

    not started ──somebody follows a key──▶ listening ──nudge, poll interval, a new follower──▶ reading ──▶ followers told ──▶ listening

From the first follower on it listens until the app is closed (a reader that ended with its last follower would be deaf to one that comes while it ends); with nobody to tell it reads nothing.

A follower is registered before anything is read, and everything is compared by version: what is stored between the two is in the next read. One query per wake-up for all keys of the
process, and only what differs comes back; verdicts also change by the mere passing of time, so it reads every poll interval at the latest. Nobody holds a connection while waiting; a
follower keeps the latest reading per key, never a backlog.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from itertools import islice

import structlog

from livewell.db import Database, Listener
from livewell.errors import DatabaseError, InvalidOption
from livewell.queue.nudge import Nudger
from livewell.refresh.reading import Reading, reading_of

log = structlog.get_logger("livewell.changes")

CHANGED = "refresh.changed"
Key = tuple[str, str]

READ = "SELECT data_type, key, verdict, source_at, fetched_at, checked_at, version, status_version, reason, error, value FROM livewell.read_changes(%s::text[], %s::text[], %s::bigint[], %s::text[], %s::bigint[])"
_PAGE = 1000
_GAP_SECONDS = 0.005  # between two reads, at least
_FAILED_SECONDS = 1.0


class Follower:
    """Whoever waits for changes of some keys: the latest reading of each, until it is taken."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self.keys = tuple(keys)
        self._latest: dict[Key, Reading] = {}
        self._wake = asyncio.Event()

    def tell(self, reading: Reading) -> None:
        """A newer reading takes the place of one that was not taken yet."""
        self._latest[reading.type, reading.key] = reading
        self._wake.set()

    async def take(self) -> list[Reading]:
        """Wait for something new, and take all of it."""
        await self._wake.wait()
        self._wake.clear()
        taken, self._latest = self._latest, {}
        return list(taken.values())


class Changes:
    """The reader of one process."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger
        self._settings = database.settings
        self._followers: dict[Key, set[Follower]] = {}
        self._known: dict[Key, Reading] = {}
        self._wake = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self.reads = 0

    @property
    def full(self) -> bool:
        """No more keys can be followed in this process."""
        return len(self._followers) >= self._settings.watched_keys_max

    def follow(self, keys: Iterable[Key], *, read: bool = True) -> Follower:
        """Begin to follow. With read the current state of each key comes first; without, whoever asks for it otherwise does so after this, and misses nothing."""
        follower = Follower(keys)
        if len(self._followers) + len(follower.keys) > self._settings.watched_keys_max:
            raise InvalidOption(
                f"{len(follower.keys)} more keys: this process follows {len(self._followers)} and may follow {self._settings.watched_keys_max} (LIVEWELL_WATCHED_KEYS_MAX)"
            )
        for key in follower.keys:
            self._followers.setdefault(key, set()).add(follower)
            if read and key in self._known:
                follower.tell(self._known[key])  # what others have been told; anything newer comes with the next read
        self._start()
        if read:
            self._wake.set()
        return follower

    def unfollow(self, follower: Follower) -> None:
        """Stop following."""
        for key in follower.keys:
            followers = self._followers.get(key, set())
            followers.discard(follower)
            if not followers:
                self._followers.pop(key, None)
                self._known.pop(key, None)

    async def close(self) -> None:
        """End the reader."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading], timeout=2)
            self._reading = None

    def _start(self) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._run(), name="changes")

    def _on_nudge(self, name: str) -> None:
        if name == CHANGED:
            self._wake.set()

    def _poll(self) -> None:
        if self._followers:
            self._wake.set()

    async def _run(self) -> None:
        listener = Listener(
            self._database.listen_conninfo,
            on_nudge=self._on_nudge,
            on_reconnect=self._wake.set,
            check_seconds=self._settings.listen_check_seconds,
            connect_seconds=self._settings.connect_timeout_seconds,
        )
        listening = asyncio.create_task(listener.run(), name="changes-listener")
        self._nudger.attach(self._on_nudge)
        try:
            while True:
                began = time.monotonic()
                pause = 0.0
                try:
                    await self._read()
                except DatabaseError as error:
                    log.warning("cannot read changes", error=str(error))
                    pause = _FAILED_SECONDS
                # A slow read must not be all that the database does.
                await asyncio.sleep(max(pause, _GAP_SECONDS, min(1.0, time.monotonic() - began)))
                timer = asyncio.get_running_loop().call_later(self._settings.poll_seconds, self._poll)
                await self._wake.wait()
                timer.cancel()
        finally:
            self._nudger.detach(self._on_nudge)
            listening.cancel()
            await asyncio.wait([listening], timeout=2)

    async def _read(self) -> None:
        self._wake.clear()
        if not self._followers:
            return
        self.reads += 1
        waiting = iter(list(self._followers))
        while page := list(islice(waiting, _PAGE)):
            known = [self._known.get(key) for key in page]
            rows = await self._database.call(
                READ,
                (
                    [kind for kind, _ in page],
                    [key for _, key in page],
                    [-1 if one is None else one.status_version for one in known],
                    [None if one is None else one.verdict for one in known],
                    [-1 if one is None else one.version for one in known],
                ),
            )
            for kind, key, *row in rows:
                self._tell(kind, key, row)

    def _tell(self, kind: str, key: str, row: list[object]) -> None:
        place = (kind, key)
        if place not in self._followers:
            return
        before = self._known.get(place)
        reading = reading_of(kind, key, row, before=before)
        if before is not None and reading.status_version < before.status_version:
            return  # a read that began before somebody told us more
        self._known[place] = reading
        for follower in self._followers[place]:
            follower.tell(reading)
