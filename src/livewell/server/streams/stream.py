"""Streams: server-sent events to many clients, none of which can hold up another.

    admitted ──headers──▶ sending ──source has news, or a beat is due──▶ sending
                             ├──database away, back──▶ said, sending
                             ├──client gone──────────────────────▶ ended
                             ├──source over, rights gone, stopping──▶ bye, ended
                             └──nothing taken for push_send_seconds──▶ connection cut, ended

A stream is one task and one pending set: its source gives the next bytes when the connection has
taken the ones before, so a slow client is given the latest state and not a backlog. Data and beats
have the same send timeout. Nothing is kept for a client that has gone: a client that comes back
gets everything anew.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Collection
from typing import Protocol

import orjson
import structlog
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from livewell.db import Presence
from livewell.errors import LivewellError
from livewell.server.answers.problems import Problem, busy, too_many
from livewell.server.auth.caller import Auth, Caller
from livewell.server.auth.share_owner import client_of
from livewell.server.connection.protocol import cut, narrow
from livewell.server.streams.loop_turns import LoopTurns
from livewell.settings import Settings
from livewell.shares import Client, share
from livewell.telemetry.measures import PUSHES

log = structlog.get_logger("livewell.streams")

CHUNK_BYTES = 16_384
_RETRY_MS = (1000, 5000)  # a herd that comes back is spread over this
_ANONYMOUS_TIMES = 10  # many people may share one public key and one address
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_BEAT = b"event: beat\ndata: {}\n\n"
_BACK = b"event: back\ndata: {}\n\n"


class Source(Protocol):
    """What a stream sends."""

    wake: asyncio.Event  # set when there may be something to send
    name: str  # two streams of one name cannot be: the newer replaces the older

    @property
    def much(self) -> bool:
        """More waits than a few changes."""
        ...

    def next(self) -> bytes | None:
        """The next events, about CHUNK_BYTES of them; None when there is nothing."""

    def over(self) -> str | None:
        """Why it has ended, if it has."""

    def allow(self, caller: Caller) -> None:
        """From now on only what this caller may see."""

    def close(self) -> None:
        """Nobody listens any more."""


def event(name: str, document: bytes) -> bytes:
    """One server-sent event; documents have no line breaks."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), document)


class Streams:
    """All streams of one process, and their bounds."""

    def __init__(self, settings: Settings, auth: Auth, stopping: asyncio.Event, presence: Presence) -> None:
        self.settings = settings
        self.auth = auth
        self._stopping = stopping
        self.presence = presence
        presence.on_change(self._wake)
        self._open: dict[str, Stream] = {}
        self._clients: Counter[Client] = Counter()
        self.turns = LoopTurns()
        self._watching: asyncio.Task[None] | None = None
        self.opened = 0
        self.dropped = 0  # that took nothing
        self.events = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._open)

    def admit(self, caller: Caller, name: str | None = None) -> None:
        """Raise if the client may not open another stream.

        Replacing its own stream does not count as one more. Replacing somebody else's does: the
        answer at the bound must not tell who else is here.
        """
        if self._stopping.is_set():
            raise busy("The server is stopping; connect again.")
        older = self._open.get(name) if name is not None else None
        if older is not None and (older.caller.user, older.caller.key_id) == (caller.user, caller.key_id):
            return
        client = client_of(caller)
        has = self._clients[client]
        most = self.settings.user_streams_max * (_ANONYMOUS_TIMES if client.stranger else 1)
        if has >= most:
            raise too_many(
                f"You have {most} streams; close one.", seconds=self.settings.push_beat_seconds, word="streams"
            )
        allowed = share(most, len(self._open), self.settings.streams_max, stranger=client.stranger)
        if not allowed:
            raise busy("The server has as many streams as it may have.")
        if has >= allowed:
            raise too_many(
                f"You have {has} streams, and the server is nearly full; close one.",
                seconds=self.settings.push_beat_seconds,
                word="streams",
            )

    def start(self, caller: Caller, source: Source, scopes: Collection[str]) -> Stream:
        """The answer that streams; an older stream of the same name is told to go.

        Asked again: others came while its source was made.

        scopes: what the route asked for. Who loses one of them while it is open is sent away.
        """
        try:
            self.admit(caller, source.name)
        except Problem:
            source.close()
            raise
        older = self._open.get(source.name)
        if older is not None:
            older.bye("replaced")
            self.ended(older)
        stream = Stream(self, caller, source, scopes)
        self._open[source.name] = stream
        self._clients[client_of(caller)] += 1
        self.opened += 1
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="streams")
        return stream

    def ended(self, stream: Stream) -> None:
        """Forget it; called once for each."""
        if stream.counted:
            stream.counted = False
            if self._open.get(stream.source.name) is stream:
                del self._open[stream.source.name]
            client = client_of(stream.caller)
            self._clients[client] -= 1
            if self._clients[client] <= 0:
                del self._clients[client]

    async def close(self) -> None:
        """Say goodbye to all."""
        self._goodbye()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching], timeout=1)

    async def _watch(self) -> None:
        await self._stopping.wait()
        self._goodbye()

    def _wake(self) -> None:
        for stream in self._open.values():
            stream.source.wake.set()

    def _goodbye(self) -> None:
        for stream in list(self._open.values()):
            stream.bye("stopping")


class Stream(StreamingResponse):
    """One client's stream, as an answer that starlette sends."""

    def __init__(self, streams: Streams, caller: Caller, source: Source, scopes: Collection[str]) -> None:
        super().__init__(content=(), media_type="text/event-stream", headers=HEADERS)
        self._streams = streams
        self._settings = streams.settings
        self.caller = caller
        self.source = source
        self.scopes = frozenset(scopes)
        self.counted = True
        self._bye: str | None = None
        self._gone = False
        self._said_away = False
        self._checking: asyncio.Task[None] | None = None  # of its rights: nothing else waits for it

    def bye(self, reason: str) -> None:
        """End it, and say why."""
        self._bye = self._bye or reason
        self.source.wake.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until one side ends it."""
        leaving = asyncio.create_task(self._leave(receive), name="stream-leave")
        try:
            narrow(scope)
            await self._run(send)
        except TimeoutError:
            self._streams.dropped += 1
            log.info("a client took nothing and was dropped", client=self.caller.client)
            cut(scope)
        finally:
            leaving.cancel()
            if self._checking is not None:
                self._checking.cancel()
            self._streams.ended(self)
            try:
                await self._streams.turns.take()  # many may be cut off at once
            finally:
                self.source.close()

    async def _leave(self, receive: Receive) -> None:
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        except HTTPException:
            pass  # a body was announced that never came, or was too large: such a client is no loss
        self._gone = True
        self.source.wake.set()

    async def _run(self, send: Send) -> None:
        async with asyncio.timeout(self._settings.push_send_seconds):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await self._send(send, b"retry: %d\n\n" % random.randint(*_RETRY_MS))  # noqa: S311 - jitter
        now = time.monotonic()
        beat_at = now + self._settings.push_beat_seconds
        # Not all at once after a restart.
        rights_at = now + self._settings.push_rights_seconds * random.uniform(0.5, 1)  # noqa: S311 - jitter
        while not self._gone:
            self.source.wake.clear()
            await self._say_presence(send)
            while self._bye is None and not self._gone:
                if self.source.much:
                    await self._streams.turns.take()
                if (chunk := self.source.next()) is None:
                    break
                await self._send(send, chunk)
                if time.monotonic() >= beat_at:
                    break
            self._bye = self._bye or self.source.over()
            if self._bye is not None:
                last = event("bye", orjson.dumps({"reason": self._bye}))
                await self._send(send, last, more=False)
                return
            now = time.monotonic()
            if now >= rights_at:
                rights_at = now + self._settings.push_rights_seconds
                self._checking = asyncio.create_task(self._check_rights(), name="stream-rights")
            if now >= beat_at:
                beat_at = now + self._settings.push_beat_seconds
                await self._send(send, _BEAT)
                continue  # there may be more to send
            await self._wait(min(beat_at, rights_at) - now)

    async def _say_presence(self, send: Send) -> None:
        """That the database is away, for how long already, and that it is back.

        Until then nobody can judge what was sent.
        """
        presence = self._streams.presence
        if presence.away != self._said_away:
            self._said_away = presence.away
            told = event("away", b'{"seconds":%.1f}' % presence.silent_seconds)
            await self._send(send, told if presence.away else _BACK)

    async def _wait(self, seconds: float) -> None:
        """For news, or for the time to be over."""
        if self.source.wake.is_set():
            return
        timer = asyncio.get_running_loop().call_later(seconds, self.source.wake.set)
        await self.source.wake.wait()
        timer.cancel()

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        """uvicorn waits here while more than its bound is unsent."""
        self._streams.events += 1
        PUSHES.add()
        async with asyncio.timeout(self._settings.push_send_seconds):
            await send({"type": "http.response.body", "body": body, "more_body": more})

    async def _check_rights(self) -> None:
        """May they still see this?

        A database that does not answer is no reason to send anybody away.
        """
        try:
            caller = await self._streams.auth.renew(self.caller)
        except LivewellError as error:
            log.warning("could not check the rights of a stream", client=self.caller.client, error=str(error))
            return
        if caller is None or not self.scopes <= caller.scopes:
            self.bye("rights")
        elif caller != self.caller:
            self.caller = caller
            self.source.allow(caller)
