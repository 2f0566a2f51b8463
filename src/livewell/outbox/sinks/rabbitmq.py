"""RabbitMQ: a message is delivered when the broker has confirmed it.

    closed ──open──▶ channel with confirms ──publish──▶ ack: delivered
                          │                     ├─────▶ returned (no queue is bound), nack: failed
                          │                     └─────▶ no confirm in time, or cut: unknown
                          └──cut, late──▶ away: closed, and opened again by the next call

The broker does not drop repeats; message_id is the id of the event, for receivers that do. Messages
are persistent and mandatory: one that no queue would take comes back instead of vanishing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from livewell.outbox.event import CONTENT_TYPE, Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict, send_by_lane
from livewell.outbox.sinks.cloud_events import amqp_headers
from livewell.outbox.sinks.kind import SinkKind, SinkParts
from livewell.outbox.sinks.library import library
from livewell.outbox.sinks.options import Bytes, Prefix, Windowed
from livewell.outbox.sinks.oversize import oversize

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange

_CLOSE_SECONDS = 2.0
_ROUTING_KEY_BYTES_MAX = 255


class RabbitOptions(Windowed):
    """Where events go: to `exchange`, with `routing_key`, or with `prefix` and their topic as the key.

    The exchange is there already; "" is the default one, where the routing key names a queue.
    """

    exchange: str = Field(default="amq.topic", max_length=127)
    routing_key: str | None = Field(default=None, max_length=_ROUTING_KEY_BYTES_MAX)
    prefix: Prefix = ""
    event_bytes_max: Bytes = 1_000_000


@dataclass(slots=True)
class _Session:
    """One connection with its channel: calls that overlap share it, and lose it together."""

    connection: AbstractConnection
    channel: AbstractChannel
    exchange: AbstractExchange
    away: SinkAway | None = None

    @property
    def is_over(self) -> bool:
        """True if nothing more may be begun on it."""
        return self.away is not None or self.channel.is_closed

    def gone(self, away: SinkAway) -> SinkAway:
        """Remember that it is over, and why."""
        if self.away is None:
            self.away = away
        return self.away


class RabbitSink:
    """One channel of one connection."""

    dedupes = False

    def __init__(self, parts: SinkParts) -> None:
        self._pika = library("aio_pika", "rabbitmq")
        self._amqp = library("aiormq.exceptions", "rabbitmq")
        self._address = parts.where()
        self._options: RabbitOptions = parts.options
        self.event_bytes_max: int | None = self._options.event_bytes_max
        self._session: _Session | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Connect, open a channel, and look whether the exchange is there."""
        await self._open()

    async def _open(self) -> _Session:
        async with self._opening:  # calls overlap, and one channel serves them
            session = self._session
            if session is None or session.is_over:
                await self.close()
                session = self._session = await self._connect()
            return session

    async def _connect(self) -> _Session:
        connection: AbstractConnection | None = None
        try:
            async with asyncio.timeout(self._options.connect_seconds):
                connection = await self._pika.connect(self._address.reveal())
                channel = await connection.channel(on_return_raises=True)
                name = self._options.exchange
                exchange = await channel.get_exchange(name) if name else channel.default_exchange
                return _Session(connection, channel, exchange)
        except asyncio.CancelledError as error:
            await self._end(connection)
            raise self._broken(error) from None
        except (self._amqp.AMQPError, OSError, RuntimeError, ValueError) as error:
            await self._end(connection)
            raise SinkAway(f"no connection to RabbitMQ: {self._said(error)}") from None

    async def close(self) -> None:
        """Give the connection back, also if the broker no longer answers."""
        session, self._session = self._session, None
        if session is not None:
            session.gone(SinkAway("the connection to RabbitMQ was closed"))
            await self._end(session.connection)

    async def _end(self, connection: AbstractConnection | None) -> None:
        if connection is not None:
            with suppress(self._amqp.AMQPError, OSError, RuntimeError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await connection.close()

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Publish lanes beside each other; of a lane one waits for its confirm at a time."""
        session = await self._open()
        await send_by_lane(events, settle, partial(self._send_one, session), at_once=self._options.at_once)
        if session.away is not None:
            raise session.away

    async def _send_one(self, session: _Session, event: Event) -> Outcome:
        body = event.payload.encode()
        key = self._options.routing_key
        key = self._options.prefix + event.topic if key is None else key
        refusal = oversize(body, self.event_bytes_max, "rabbitmq")
        if refusal is None and len(key.encode()) > _ROUTING_KEY_BYTES_MAX:
            refusal = Outcome(Verdict.REFUSED, f"a routing key of {len(key.encode())} bytes: 255 are allowed")
        if refusal is not None:
            return refusal
        if session.is_over:
            raise session.gone(SinkAway("the connection to RabbitMQ was cut"))
        message = self._pika.Message(
            body,
            message_id=event.id,
            type=event.topic,
            content_type=CONTENT_TYPE,
            timestamp=event.created_at,
            delivery_mode=self._pika.DeliveryMode.PERSISTENT,
            headers=dict(amqp_headers(event)),
        )
        return await self._publish(session, message, key)

    async def _publish(self, session: _Session, message: Any, key: str) -> Outcome:
        try:
            async with asyncio.timeout(self._options.answer_seconds):
                await session.exchange.publish(message, key, mandatory=True)
        except asyncio.CancelledError as error:
            return _lost(session, self._broken(error))
        except TimeoutError:
            return _lost(session, SinkAway(f"RabbitMQ did not confirm within {self._options.answer_seconds:g} s"))
        except self._amqp.PublishError:
            return Outcome(Verdict.FAILED, f"no queue takes the routing key {key[:100]!r}; bind one to the exchange")
        except self._amqp.DeliveryError:
            return Outcome(Verdict.FAILED, "the broker did not take it (nack): is the queue full?")
        except (self._amqp.AMQPError, self._amqp.ChannelInvalidStateError, OSError) as error:
            return _lost(session, SinkAway(f"the connection to RabbitMQ was cut: {self._said(error)}"))
        return DELIVERED

    def _broken(self, error: asyncio.CancelledError) -> SinkAway:
        """The library ends what waits by CancelledError when a connection breaks.

        Raises the error again if it is we who are cancelled.
        """
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise error
        return SinkAway("the connection to RabbitMQ was cut")

    def _said(self, error: BaseException) -> str:
        return self._address.hide(str(error) or type(error).__name__)


def _lost(session: _Session, away: SinkAway) -> Outcome:
    session.gone(away)
    return Outcome(Verdict.UNKNOWN, f"published, and not confirmed: {away}")


KIND = SinkKind(options=RabbitOptions, make=RabbitSink)
