"""The faces of the engine for Python: get one key, watch many.

get reads value and verdict in one round trip. If they are not fresh enough, it demands a refresh
and waits for its end, without holding a connection.

watch subscribes as a viewer of its own. It gives the current state of each key, then every change,
and sends heartbeats while it is followed.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

import structlog

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.db.open_app import OpenApp
from livewell.duration import Duration, seconds
from livewell.errors import DatabaseError, InvalidOption, LivewellError, UnknownType
from livewell.refresh.nudges import DUE
from livewell.refresh.push.follower import Follower
from livewell.refresh.push.hub import READ as _READ
from livewell.refresh.push.hub import Hub
from livewell.refresh.push.key_state import KeyState
from livewell.refresh.read.decode import decode
from livewell.refresh.reading import Reading
from livewell.refresh.registry.registry import Registry
from livewell.refresh.subscribe.subscriptions import Subscriptions, UnknownSession
from livewell.refresh.verdict_clock import clock
from livewell.shares import Client

log = structlog.get_logger("livewell.watch")

_GET = (
    "SELECT demand, queue, verdict, source_at, fetched_at, checked_at, version, status_version, reason, error, "
    "value::text, turns_at, turns_seconds, age_seconds, throttled, retry_at, retry_seconds FROM "
    "livewell.read_key(%s, %s, %s, %s, %s)"
)
_DISK_FULL = "53100"
_WARN_SECONDS = 60.0
_DEMANDS = ("queued", "waiting", "due")
_WAIT_SECONDS_MAX = 300.0
_KEY_BYTES_MAX = 200
_SUBSCRIBE_KEYS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Read:
    """A state as it may be shown now, and what became of the demand for a better one.

    See livewell.read_through.
    """

    state: KeyState
    demand: str
    throttled: str | None = None  # why it cannot be refreshed now, and from when on it is worth asking again
    retry_at: datetime | None = None
    retry_seconds: float | None = None  # until then, as the database had it when it was asked


@dataclass(slots=True)
class _Viewer:
    """One watch as the database knows it; opened again if it was swept while this process slept."""

    user: str | None
    pairs: Sequence[tuple[str, str]]
    session: uuid.UUID = field(default_factory=uuid.uuid4)


class Reads:
    """get and watch of one open app."""

    def __init__(self, database: Database, nudger: Nudger, *, follow: Database | None = None) -> None:
        """follow: where changes are read, if that is another login."""
        self._database = database
        self._follow = follow or database
        self._nudger = nudger
        self._settings = database.settings
        self._registry = Registry(database.call)
        self._viewers = Subscriptions(database, nudger)
        self.hub = Hub(self._follow, nudger)
        self._warn_at = 0.0
        self._columns: dict[str, Mapping[str, str]] = {}  # of each type: the types of its columns

    @classmethod
    def of(cls, app: OpenApp) -> Self:
        """For an open app."""
        return cls(app.database, app.nudger)

    async def close(self) -> None:
        """End what follows changes."""
        await self.hub.close()

    # -- get --------------------------------------------------------------------------------------

    async def get(
        self,
        data_type: str,
        key: str,
        *,
        max_age: Duration | None = None,
        wait: Duration | None = None,
        user: str | None = None,
    ) -> Reading:
        """The reading.

        If it is not fresh enough, the one after the refresh that this demands, or what there is
        when the wait is over.
        """
        read = await self.read(data_type, key, max_age=max_age, wait=wait, user=user)
        return replace(await self._reading(read.state), throttled=read.throttled, retry_at=read.retry_at)

    async def read(
        self,
        data_type: str,
        key: str,
        *,
        max_age: Duration | None = None,
        wait: Duration | None = None,
        user: str | None = None,
        client: Client | None = None,
    ) -> Read:
        """The same, with what became of the demand.

        client: whose share of the hub it waits in; a key that does not fit is not waited for.
        """
        age = None if max_age is None else seconds(max_age, "max_age")
        limit = 0.0 if wait is None else seconds(wait, "wait")
        if limit > _WAIT_SECONDS_MAX:
            raise InvalidOption(f"wait {wait!r}: at most {_WAIT_SECONDS_MAX:g} s are allowed")
        give_up = time.monotonic() + limit
        _check_key(key)
        if limit <= 0:
            return await self.read_through(data_type, key, age, user)
        follower = Follower(client)
        if self.hub.extend(follower, [(data_type, key)], read=False):  # before it is read: so no change is missed
            return await self.read_through(data_type, key, age, user)
        try:
            read = await self.read_through(data_type, key, age, user)
            if read.demand not in _DEMANDS:
                return read
            return Read(await _changed(follower, read.state, give_up), read.demand)
        finally:
            self.hub.unfollow(follower)

    async def read_through(self, data_type: str, key: str, age: float | None = None, user: str | None = None) -> Read:
        """One round trip: what there is, and a demand if that is not fresh enough."""
        _check_key(key)
        asked_at = clock()
        try:
            rows = await self._database.call(_GET, (data_type, key, age, user, self._settings.cold_reads_max))
        except DatabaseError as error:
            if error.sqlstate != _DISK_FULL:
                raise
            return await self._read_alone(data_type, key)
        demand, queue, *row, throttled, retry_at, retry_seconds = rows[0]
        if demand == "unknown_type":
            raise UnknownType(f'type "{data_type[:60]}" is not in the registry; see: livewell types list')
        if demand == "bad_key":
            raise InvalidOption(
                f"key {key[:40]!r} does not fit the pattern of type {data_type}: livewell types show {data_type}"
            )
        if demand == "queued":
            self._nudger.nudge(queue)
        elif demand == "due":
            self._nudger.nudge(DUE)
        return Read(KeyState((data_type, key), row, asked_at=asked_at), demand, throttled, retry_at, retry_seconds)

    async def _read_alone(self, data_type: str, key: str) -> Read:
        """What there is, with its true verdict, where a demand cannot be written down.

        A full disk is no reason to show nothing.
        """
        if time.monotonic() >= self._warn_at:
            self._warn_at = time.monotonic() + _WARN_SECONDS
            log.warning("the disk of the database is full: what is stale cannot be asked for", type=data_type)
        asked_at = clock()
        rows = await self._follow.call(_READ, ([data_type], [key], [-1], [None], [-1]))
        if not rows:
            raise UnknownType(f'type "{data_type[:60]}" is not in the registry; see: livewell types list')
        return Read(KeyState((data_type, key), rows[0][2:], asked_at=asked_at), "unwritable")

    async def _reading(self, state: KeyState) -> Reading:
        """As Python has it: the types of the columns say which numbers are Decimal.

        The registry is asked again only when a value has a column that is not known here.
        """
        if state.text is None:
            return state.reading(None)
        known = self._columns.get(state.type) or await self._look(state.type)
        value = decode(state.text, known)
        first = value[-1] if isinstance(value, list) else value
        if not first.keys() <= known.keys() and (known := await self._look(state.type)):
            value = decode(state.text, known)
        return state.reading(value)

    async def _look(self, data_type: str) -> Mapping[str, str]:
        try:
            definition = (await self._registry.type(data_type)).definition
        except UnknownType:
            return {}  # gone meanwhile, or made by a newer release: its fractions are Decimal, all of them
        columns = self._columns[data_type] = {column.name: column.type for column in definition.columns}
        return columns

    # -- watch ------------------------------------------------------------------------------------

    async def watch(
        self, data_type: str, keys: Sequence[str], *, user: str | None = None
    ) -> AsyncGenerator[Reading, None]:
        """First the current state of each key, then every change, until the caller stops."""
        distinct = [] if isinstance(keys, str) else list(dict.fromkeys(keys))
        if not 1 <= len(distinct) <= self._settings.watch_keys_max:
            raise InvalidOption(
                f"keys: a list of 1 to {self._settings.watch_keys_max} keys is allowed (LIVEWELL_WATCH_KEYS_MAX)"
            )
        pattern = (await self._registry.type(data_type)).definition.fetch.pattern
        for key in distinct:
            if not pattern.fits(key):
                raise InvalidOption(f"key {key[:40]!r} does not fit {pattern.text}, the pattern of type {data_type}")
        viewer = _Viewer(user, [(data_type, key) for key in distinct])
        follower = self.hub.follow(viewer.pairs)
        beating: asyncio.Task[None] | None = None
        try:
            await self._subscribe(viewer)
            beating = asyncio.create_task(self._beat(viewer), name="viewer-heartbeat")
            latest: dict[str, KeyState] = {}
            while True:
                for state in await follower.take():
                    latest[state.key] = state.now().with_value(latest.get(state.key))
                    yield await self._reading(latest[state.key])
        finally:
            self.hub.unfollow(follower)
            if beating is not None:
                beating.cancel()
            await self._leave(viewer)

    async def _subscribe(self, viewer: _Viewer) -> None:
        opened = await self._viewers.open(viewer.user, session=viewer.session)
        if opened != viewer.session:
            raise LivewellError(f"user {viewer.user!r} has too many sessions: close some, or wait five minutes")
        for start in range(0, len(viewer.pairs), _SUBSCRIBE_KEYS_MAX):
            page = viewer.pairs[start : start + _SUBSCRIBE_KEYS_MAX]
            watched = await self._viewers.subscribe(viewer.session, viewer.user, page)
            if isinstance(watched, UnknownSession):
                raise LivewellError("the session was closed while it was opened; watch again")
            refused = [one for one in watched if one.answer != "subscribed"]
            if refused:
                raise LivewellError(
                    f"cannot watch {refused[0].key}: {refused[0].answer} ({len(refused)} of {len(page)} keys)"
                )

    async def _beat(self, viewer: _Viewer) -> None:
        """Say that we are still here; only this moves last-seen.

        A session that was swept meanwhile is opened again.
        """
        while True:
            await asyncio.sleep(self._settings.viewer_heartbeat_seconds * random.uniform(0.9, 1.0))  # noqa: S311 - jitter
            try:
                if not await self._viewers.heartbeat(viewer.session, viewer.user):
                    await self._subscribe(viewer)
            except LivewellError as error:
                log.warning("heartbeat failed", error=str(error))  # five minutes may pass before it matters

    async def _leave(self, viewer: _Viewer) -> None:
        try:
            await self._viewers.close(viewer.session, viewer.user)
        except DatabaseError as error:
            log.warning("could not say goodbye; the session counts for five more minutes", error=str(error))


async def _changed(follower: Follower, state: KeyState, give_up: float) -> KeyState:
    """The first state after this one, or the latest when the time is over, with the verdict that it has by then."""
    asked = state.status_version
    try:
        async with asyncio.timeout(max(0.0, give_up - time.monotonic())):
            while state.status_version <= asked:  # a verdict that merely aged is no answer
                [latest] = await follower.take()
                state = latest.with_value(state) if latest.status_version >= asked else state
    except TimeoutError:
        pass
    return state.now()


def _check_key(key: str) -> None:
    if not key or len(key.encode(errors="replace")) > _KEY_BYTES_MAX or "\x00" in key:
        raise InvalidOption(f"key {key[:40]!r}: 1 to {_KEY_BYTES_MAX} bytes are allowed, without NUL")
