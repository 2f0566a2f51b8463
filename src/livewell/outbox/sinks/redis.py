"""Redis and Valkey: one XADD to a stream for each event, many in one round trip.

    batch ──the first of every lane──▶ one pipeline ──▶ delivered ──the next of every lane──▶ …
                                            ├──▶ an error for one: failed, its lane ends
                                            ├──▶ "I take nothing now" (full, read-only, loading): away
                                            └──▶ cut, or no answer in time: unknown, and away

A stream takes a repeat as a new entry, so an unknown outcome stays a question for people. Entries
hold the attributes of CloudEvents by their names, and `data`. The client's own retrying is off: it
would add a whole pipeline twice. One pipeline for a whole lane would be faster and could leave a
gap: where the second of three fails, Redis goes on with the third.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

from pydantic import Field

from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict, lanes
from livewell.outbox.sinks.kind import SinkKind, SinkParts
from livewell.outbox.sinks.library import library
from livewell.outbox.sinks.options import Bytes, Place, Prefix, Windowed
from livewell.outbox.sinks.oversize import oversize

if TYPE_CHECKING:
    from redis.asyncio import Redis

_CLOSE_SECONDS = 2.0
_IDLE_SECONDS = 1  # a connection that idled longer is asked whether it lives, before an event depends on it
# Of the whole server, not of one entry; nothing was added.
_AWAY = (
    "OOM",
    "MISCONF",
    "READONLY",
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "NOREPLICAS",
    "NOAUTH",
    "BUSY",
    "TRYAGAIN",
)


class RedisOptions(Windowed):
    """Which stream: `stream`, or `prefix` and the topic. stream_max: about so many entries are kept."""

    stream: Place | None = None
    prefix: Prefix = ""
    stream_max: int | None = Field(default=None, ge=1, le=1_000_000_000)
    event_bytes_max: Bytes = 1_000_000


class RedisSink:
    """One server; calls that overlap have a connection each."""

    dedupes = False

    def __init__(self, parts: SinkParts) -> None:
        self._redis = library("redis.asyncio", "redis")
        self._errors = library("redis.exceptions", "redis")
        self._retry = library("redis.asyncio.retry", "redis").Retry(library("redis.backoff", "redis").NoBackoff(), 0)
        self._address = parts.where()
        self._options: RedisOptions = parts.options
        self.event_bytes_max: int | None = self._options.event_bytes_max
        self._client: Redis | None = None

    async def open(self) -> None:
        """See whether the server takes our login."""
        if self._client is not None:
            return
        try:
            self._client = client = self._redis.Redis.from_url(
                self._address.reveal(),
                retry=self._retry,
                health_check_interval=_IDLE_SECONDS,
                protocol=2,
                socket_connect_timeout=self._options.connect_seconds,
                socket_timeout=self._options.answer_seconds,
            )
            async with asyncio.timeout(self._options.connect_seconds):
                await client.ping()
        except (self._errors.RedisError, OSError, ValueError) as error:
            await self.close()
            raise SinkAway(f"no connection to Redis: {self._said(error)}") from None

    async def close(self) -> None:
        """Give the connection back, also if the server no longer answers."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(self._errors.RedisError, OSError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await client.aclose()

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Round after round: the next event of every lane that still goes on."""
        await self.open()
        going = {event.lane for event in events}
        for column in zip_longest(*lanes(events)):
            heads = [event for event in column if event is not None and event.lane in going]
            fit = [event for event in heads if not self._refused(event, settle)]
            going -= {event.lane for event in heads} - {event.lane for event in fit}
            waiting = iter(fit)
            while part := list(islice(waiting, self._options.at_once)):
                going -= await self._add(part, settle)

    def _refused(self, event: Event, settle: Settle) -> bool:
        refusal = oversize(event.payload.encode(), self.event_bytes_max, "redis")
        if refusal is not None:
            settle(event, refusal)
        return refusal is not None

    async def _add(self, events: Sequence[Event], settle: Settle) -> set[int]:
        """Add one event of each lane; answers the lanes that end here."""
        if self._client is None:
            raise SinkAway("the Redis sink was closed")
        pipeline = self._client.pipeline(transaction=False)
        for event in events:
            stream = self._options.stream or self._options.prefix + event.topic
            entry: Any = {**event.attributes(), "data": event.payload}
            pipeline.xadd(stream, entry, maxlen=self._options.stream_max)
        await self._connect(pipeline)
        try:
            answers = await pipeline.execute(raise_on_error=False)
        except (self._errors.RedisError, OSError) as error:
            for event in events:
                settle(event, Outcome(Verdict.UNKNOWN, f"sent, and no answer came: {self._said(error)}"))
            raise SinkAway(f"the connection to Redis was cut, or is late: {self._said(error)}") from None
        return self._judge(events, answers, settle)

    async def _connect(self, pipeline: Any) -> None:
        """Give it a connection that lives: up to here nothing was sent, and no event is unknown."""
        try:
            pipeline.connection = connection = await pipeline.connection_pool.get_connection()
            try:
                await connection.check_health()  # asks, if it has idled
            except (self._errors.RedisError, OSError):
                await connection.disconnect()
                await connection.connect()
        except (self._errors.RedisError, OSError) as error:
            await pipeline.reset()
            raise SinkAway(f"no connection to Redis: {self._said(error)}") from None

    def _judge(self, events: Sequence[Event], answers: Sequence[Any], settle: Settle) -> set[int]:
        ended: set[int] = set()
        away: str | None = None
        for event, answer in zip(events, answers, strict=True):
            if not isinstance(answer, Exception):
                settle(event, DELIVERED)
                continue
            ended.add(event.lane)
            if self._is_away(answer):
                away = self._said(answer)
            else:
                settle(event, Outcome(Verdict.FAILED, f"Redis did not take it: {self._said(answer)}"))
        if away is not None:
            raise SinkAway(f"Redis takes nothing now: {away}")
        return ended

    def _is_away(self, error: Exception) -> bool:
        """True if it is of the server, or of our login, and not of this stream."""
        kinds = (self._errors.AuthenticationError, self._errors.BusyLoadingError, self._errors.ReadOnlyError)
        if isinstance(error, kinds) or "permissions to run" in str(error):
            return True
        return str(error).startswith(_AWAY) or "used memory" in str(error)

    def _said(self, error: BaseException) -> str:
        return self._address.hide(str(error) or type(error).__name__)


KIND = SinkKind(options=RedisOptions, make=RedisSink)
