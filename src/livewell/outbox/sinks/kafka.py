"""Kafka and Redpanda, by an idempotent producer: every replica has it before it counts.

    closed ──open──▶ producer ──send──▶ acknowledged: delivered
                        │          ├──▶ too large, or malformed: refused
                        │          ├──▶ no such topic, no right to it: failed
                        │          └──▶ not acknowledged in time: unknown
                        └──late, fenced, cancelled──▶ away: the producer is given up with all it holds

As long as a producer lives it repeats by itself what a broken connection left open, and the broker
drops those repeats and keeps the order. A new producer (after a restart, or after one was given up)
is a stranger to the broker, so what the old one left unknown may be stored twice: receivers drop
repeats by ce_id. A producer that is given up sends nothing later: it would overtake its successor.

The record's key is the event's key, so events of a key share a partition, as long as the number of
partitions stays.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from livewell.errors import ConfigurationError
from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict, send_by_lane
from livewell.outbox.sinks.cloud_events import kafka_headers
from livewell.outbox.sinks.kind import SinkKind, SinkParts
from livewell.outbox.sinks.library import library
from livewell.outbox.sinks.options import Bytes, Place, Prefix, Variable, Windowed
from livewell.outbox.sinks.oversize import oversize

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

_CLOSE_SECONDS = 2.0
_HEADER_BYTES_MAX = 48_576  # of a record, beside its payload

# By name: older versions of the library do not have all of them.
_REFUSED = ("MessageSizeTooLargeError", "RecordListTooLargeError", "InvalidMessageError", "CorruptRecordException")
_FAILED = (
    "UnknownTopicOrPartitionError",
    "TopicAuthorizationFailedError",
    "InvalidTopicError",
    "NotEnoughReplicasError",
    "PolicyViolationError",
)


class KafkaOptions(Windowed):
    """Where events go: to `topic`, or to `prefix` and their own topic.

    login   a variable that holds user:password
    """

    topic: Place | None = None
    prefix: Prefix = ""
    login: Variable | None = None
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    tls: bool = False
    compression: Literal["gzip", "none"] = "none"
    event_bytes_max: Bytes = 1_000_000


@dataclass(slots=True)
class _Session:
    """One producer: calls that overlap share it, and lose it together."""

    producer: AIOKafkaProducer
    away: SinkAway | None = None
    given_up: bool = False

    def gone(self, words: str) -> SinkAway:
        """Remember that it is over: nothing more is handed to it."""
        if self.away is None:
            self.away = SinkAway(words)
        return self.away


class KafkaSink:
    """One producer for one cluster; its address is host:port, with commas between several."""

    dedupes = False

    def __init__(self, parts: SinkParts) -> None:
        self._kafka = library("aiokafka", "kafka")
        self._errors = library("aiokafka.errors", "kafka")
        self._address = parts.where()
        self._options: KafkaOptions = parts.options
        self.event_bytes_max: int | None = self._options.event_bytes_max
        self._login = None if self._options.login is None else parts.secret("login", self._options.login)
        if self._login is not None and ":" not in self._login.reveal():
            raise ConfigurationError(
                f"sink of kind kafka: option login: the variable {self._login.variable} must hold user:password"
            )
        self._session: _Session | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Find the cluster, and get a number for this producer."""
        await self._open()

    async def _open(self) -> _Session:
        async with self._opening:  # calls overlap, and one producer serves them
            if self._session is None:
                self._session = await self._start()
            return self._session

    async def _start(self) -> _Session:
        session: _Session | None = None
        try:
            session = _Session(self._kafka.AIOKafkaProducer(**self._settings()))
            async with asyncio.timeout(self._options.connect_seconds):
                await session.producer.start()
        except asyncio.CancelledError:
            await self._give_up(session)
            raise
        except (self._errors.KafkaError, OSError, ValueError, AssertionError) as error:
            await self._give_up(session)
            raise SinkAway(f"no connection to Kafka: {self._said(error)}") from None
        return session

    async def close(self) -> None:
        """End the producer; what it still holds is not sent."""
        await self._give_up(self._session)

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Hand lanes over beside each other; of a lane one waits for its acknowledgement at a time."""
        session = await self._open()
        try:
            await send_by_lane(events, settle, partial(self._send_one, session), at_once=self._options.at_once)
        except (asyncio.CancelledError, SinkAway):
            await self._give_up(session)
            raise
        if session.away is not None:
            await self._give_up(session)
            raise session.away

    async def _send_one(self, session: _Session, event: Event) -> Outcome:
        body = event.payload.encode()
        refusal = oversize(body, self.event_bytes_max, "kafka")
        if refusal is not None:
            return refusal
        if session.away is not None:
            raise session.away
        topic = self._options.topic or self._options.prefix + event.topic
        key = None if event.key is None else event.key.encode()
        deadline = asyncio.get_running_loop().time() + self._options.answer_seconds
        try:
            async with asyncio.timeout_at(deadline):
                future = await session.producer.send(topic, body, key=key, headers=kafka_headers(event))
        except TimeoutError:
            raise session.gone(f"Kafka did not take events within {self._options.answer_seconds:g} s") from None
        except (self._errors.KafkaError, ValueError, AssertionError) as error:
            return self._judged(session, error, topic, is_sent=False)
        left = deadline - asyncio.get_running_loop().time()
        await asyncio.wait([future], timeout=max(0.0, left))
        if not future.done():
            future.cancel()
            session.gone(f"Kafka did not acknowledge within {self._options.answer_seconds:g} s")
            return Outcome(Verdict.UNKNOWN, "handed over, and not acknowledged in time")
        failure = future.exception()
        return DELIVERED if failure is None else self._judged(session, failure, topic, is_sent=True)

    def _judged(self, session: _Session, error: BaseException, topic: str, *, is_sent: bool) -> Outcome:
        if isinstance(error, self._named(_REFUSED)):
            return Outcome(Verdict.REFUSED, f"the broker does not take it: {self._said(error)}")
        if isinstance(error, self._named(_FAILED)):
            return Outcome(Verdict.FAILED, f"topic {topic[:100]}: {self._said(error)}")
        gone = session.gone(f"the Kafka producer is over: {self._said(error)}")
        if not is_sent:
            raise gone
        return Outcome(Verdict.UNKNOWN, f"handed over, and not acknowledged: {self._said(error)}")

    def _named(self, names: Sequence[str]) -> tuple[type[BaseException], ...]:
        return tuple(getattr(self._errors, name) for name in names if hasattr(self._errors, name))

    async def _give_up(self, session: _Session | None) -> None:
        """End a producer at once: nothing that it holds may be sent later.

        The library can only flush or wait, so this takes its parts down in order: the connections,
        the task that sends, the records that wait; then its own stop() finds nothing to do.
        """
        if session is None or session.given_up:
            return
        session.given_up = True
        session.gone("the Kafka producer was given up")
        if self._session is session:
            self._session = None
        parts: Any = session.producer
        sender, accumulator = parts._sender, parts._message_accumulator  # noqa: SLF001 - giving up has no public way
        with suppress(self._errors.KafkaError, OSError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await parts.client.close()
                if sender.sender_task is not None:
                    sender.sender_task.cancel()
                    await asyncio.wait([sender.sender_task])
                accumulator.fail_all(self._errors.ProducerClosed())
                await parts.stop()

    def _settings(self) -> dict[str, Any]:
        options = self._options
        milliseconds = int(options.answer_seconds * 1000)
        settings: dict[str, Any] = {
            "bootstrap_servers": [one.strip() for one in self._address.reveal().split(",")],
            "client_id": "livewell-outbox",
            "enable_idempotence": True,
            "acks": "all",
            "max_request_size": options.event_bytes_max + _HEADER_BYTES_MAX,
            "request_timeout_ms": milliseconds,
            "compression_type": None if options.compression == "none" else options.compression,
            "security_protocol": ("SASL_" if self._login else "") + ("SSL" if options.tls else "PLAINTEXT"),
        }
        if options.tls:
            settings["ssl_context"] = ssl.create_default_context()
        if self._login is not None:
            user, _, password = self._login.reveal().partition(":")
            settings |= {"sasl_mechanism": options.mechanism}
            settings |= {"sasl_plain_username": user, "sasl_plain_password": password}
        return settings

    def _said(self, error: BaseException) -> str:
        text = self._address.hide(str(error) or type(error).__name__)
        return text if self._login is None else self._login.hide(text)


KIND = SinkKind(options=KafkaOptions, make=KafkaSink)
