"""NATS JetStream: a publish is done when the stream has acknowledged it.

    closed ──open──▶ connected ──publish──▶ acknowledged: delivered (also as a duplicate)
                         │           ├──────▶ refused by the stream: failed, or refused for its size
                         │           └──────▶ no acknowledgement in time, or cut: unknown
                         └──cut, late──▶ away: closed, and opened again by the next call

Nats-Msg-Id is the id of the event, so the stream drops a repeat within its duplicate window (two
minutes, if it was not set otherwise). The client's own reconnecting is off: it would keep messages
in a buffer and send them behind the relay's back. Acknowledgements are read here: the future of its
publish_async (2.16) never ends where the stream answers with an error.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict, send_by_lane
from livewell.outbox.sinks.cloud_events import nats_headers, percent_encoded
from livewell.outbox.sinks.kind import SinkKind, SinkParts
from livewell.outbox.sinks.library import library
from livewell.outbox.sinks.options import Bytes, Place, Prefix, Variable, Windowed
from livewell.outbox.sinks.oversize import oversize

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

log = structlog.get_logger("livewell.outbox")

_CLOSE_SECONDS = 2.0
_LOOK_SECONDS = 0.05
_SUBJECT = re.compile(r"[^\s.*>\x00-\x20]+(\.[^\s.*>\x00-\x20]+)*")
_DENIED = re.compile(r"(?i)permissions violation for publish to \"?([^\"\s]+)\"?")
_TOO_LARGE = 10054  # the stream's own bound (max_msg_size)


class NatsOptions(Windowed):
    """Where events go: to `subject`, or to `prefix` and their topic.

    credentials   a variable that holds the text of a .creds file
    """

    subject: Place | None = None
    prefix: Prefix = ""
    credentials: Variable | None = None
    event_bytes_max: Bytes = 1_000_000


@dataclass(slots=True)
class _Session:
    """One connection, and what waits on it: calls that overlap share it, and lose it together."""

    client: Client
    inbox: str = ""
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    waiting: dict[str, tuple[asyncio.Future[Outcome], str]] = field(default_factory=dict)  # by reply subject
    away: SinkAway | None = None

    def gone(self, words: str) -> SinkAway:
        """Remember that it is over: what was not begun is not begun on it."""
        if self.away is None:
            self.away = SinkAway(words)
        return self.away

    async def cut(self) -> None:
        """Nobody will answer what waits."""
        for future, _ in list(self.waiting.values()):
            if not future.done():
                self.gone("the connection to NATS was cut")
                future.set_result(Outcome(Verdict.UNKNOWN, "published, and the connection was cut"))

    async def watch(self) -> None:
        """Notice a cut of which the client tells nobody: where its last write fails, it calls no callback."""
        while not self.client.is_closed:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(_LOOK_SECONDS)
        await self.cut()


class NatsSink:
    """One connection to one cluster."""

    dedupes = True

    def __init__(self, parts: SinkParts) -> None:
        self._nats = library("nats", "nats")
        self._errors = library("nats.errors", "nats")
        self._address = parts.where()
        self._options: NatsOptions = parts.options
        self.event_bytes_max: int | None = self._options.event_bytes_max
        named = self._options.credentials
        self._credentials = None if named is None else parts.secret("credentials", named)
        self._session: _Session | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Connect to the first server that answers."""
        await self._open()

    async def _open(self) -> _Session:
        async with self._opening:  # calls overlap, and one connection serves them
            session = self._session
            if session is None or session.away is not None or not session.client.is_connected:
                await self.close()
                session = self._session = await self._connect()
            return session

    async def _connect(self) -> _Session:
        client: Client = self._nats.NATS()
        session = _Session(client)
        options: dict[str, Any] = {}
        if self._credentials is not None:
            options["user_credentials"] = self._nats.aio.client.RawCredentials(self._credentials.reveal())
        try:
            async with asyncio.timeout(self._options.connect_seconds):
                await client.connect(
                    servers=[one.strip() for one in self._address.reveal().split(",")],
                    name="livewell outbox",
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    error_cb=partial(self._heard, session),
                    disconnected_cb=session.cut,
                    **options,
                )
                session.inbox = client.new_inbox()
                await client.subscribe(f"{session.inbox}.*", cb=partial(self._answered, session))
        except (self._errors.Error, OSError, ValueError) as error:
            await self._end(session)
            raise SinkAway(f"no connection to NATS: {self._said(error)}") from None
        except asyncio.CancelledError:
            await self._end(session)
            raise
        return session

    async def close(self) -> None:
        """Give the connection back, also if the server no longer answers."""
        session, self._session = self._session, None
        if session is not None:
            await self._end(session)

    async def _end(self, session: _Session) -> None:
        with suppress(self._errors.Error, OSError, asyncio.InvalidStateError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await session.client.close()
        session.gone("the connection to NATS was closed")
        await session.cut()

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Publish lanes beside each other; of a lane one waits for its acknowledgement at a time."""
        session = await self._open()
        watch = asyncio.create_task(session.watch())
        try:
            await send_by_lane(events, settle, partial(self._send_one, session), at_once=self._options.at_once)
        finally:
            watch.cancel()
        if session.away is not None:
            raise session.away

    async def _send_one(self, session: _Session, event: Event) -> Outcome:
        subject = self._options.subject or self._options.prefix + event.topic
        body, headers = event.payload.encode(), {"Nats-Msg-Id": percent_encoded(event.id), **nats_headers(event)}
        refusal = self._refusal(session, subject, body, headers)
        if refusal is not None:
            return refusal
        if session.away is not None:
            raise session.away
        reply = f"{session.inbox}.{next(session.numbers)}"
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        session.waiting[reply] = future, subject
        try:
            async with asyncio.timeout(self._options.answer_seconds):
                await session.client.publish(subject, body, reply=reply, headers=headers)
                return await future
        except TimeoutError:
            session.gone(f"NATS did not acknowledge within {self._options.answer_seconds:g} s")
            return Outcome(Verdict.UNKNOWN, "published, and not acknowledged in time")
        except (self._errors.Error, OSError) as error:  # before it was published
            raise session.gone(f"no connection to NATS: {self._said(error)}") from None
        finally:
            del session.waiting[reply]

    def _refusal(self, session: _Session, subject: str, body: bytes, headers: dict[str, str]) -> Outcome | None:
        """What the server would not take, and would close the connection over."""
        if not _SUBJECT.fullmatch(subject):
            return Outcome(Verdict.REFUSED, f"{subject[:100]!r} is no subject of NATS: words with dots between")
        refusal = oversize(body, self.event_bytes_max, "nats")
        if refusal is not None:
            return refusal
        size = len(body) + sum(len(name) + len(value) + 4 for name, value in headers.items()) + 12
        if size > session.client.max_payload:
            return Outcome(
                Verdict.REFUSED,
                f"{size} bytes with headers ({len(body)} of payload): the server takes {session.client.max_payload}",
            )
        return None

    async def _answered(self, session: _Session, message: Msg) -> None:
        """An acknowledgement, an error of the stream, or the server: nobody listens there."""
        future, subject = session.waiting.get(message.subject, (None, ""))
        if future is None or future.done():
            return
        if (message.headers or {}).get("Status") == "503":
            words = f"no stream takes the subject {subject[:100]}; make one with: nats stream add"
            future.set_result(Outcome(Verdict.FAILED, words))
            return
        try:
            error = orjson.loads(message.data).get("error")
        except (ValueError, AttributeError):
            future.set_result(Outcome(Verdict.UNKNOWN, "what answered on this subject is no stream"))
            return
        future.set_result(DELIVERED if error is None else self._judged(error))

    def _judged(self, error: dict[str, Any]) -> Outcome:
        verdict = Verdict.REFUSED if error.get("err_code") == _TOO_LARGE else Verdict.FAILED
        return Outcome(verdict, f"the stream did not take it: {self._address.hide(str(error.get('description')))}")

    def _said(self, error: BaseException) -> str:
        return self._address.hide(str(error) or type(error).__name__)

    async def _heard(self, session: _Session, error: Exception) -> None:
        """The client complains. A missing right has no other answer."""
        denied = _DENIED.search(str(error))
        if denied is None:
            log.debug("NATS complains", error=self._said(error))
            return
        for future, subject in list(session.waiting.values()):
            if subject == denied[1] and not future.done():
                future.set_result(Outcome(Verdict.FAILED, f"no right to publish to {subject[:100]}"))


KIND = SinkKind(options=NatsOptions, make=NatsSink)
