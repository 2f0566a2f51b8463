"""One connection: HTTP/1.1 as uvicorn and httptools speak it, with bounds on what it may cost.

    head ──complete──▶ working ──first byte of the answer──▶ answering ──complete──▶ idle ──first byte──▶ head
     │                    │                                      │
     │                    └──a stream: no deadline here, it has its own──▶ …
     └──too long, too slow, chunked, pipelined──▶ refused: nothing more is parsed      └──not taken in time──▶ cut

A request whose body is not wanted gets its answer, then nothing more of it is parsed: the
connection lingers for a moment, so that the client can read why, and ends. httptools parses in C:
one connection with chunks of one byte at 1 MB/s cost h11 80 % of a core.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Any, Literal, cast

import httptools
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from livewell.server.answers.problems import Problem
from livewell.server.connection.limits import Connections, Standing
from livewell.server.connection.refusals import Kind

_KERNEL_BYTES = 65_536  # the kernel doubles it; without a bound it keeps megabytes for a client that never reads
_NAME = "connection"
_REFUSED: dict[Kind, Problem] = {
    "long_head": Problem(431, "The head of the request is too long.", word="long-head"),
    "chunked_body": Problem(411, "State the length of the body: Content-Length.", word="length-required"),
    "not_http": Problem(400, "This is not HTTP/1.1.", word="invalid"),
}

Phase = Literal["head", "working", "answering", "idle", "lingering"]


class RefusedError(Exception):
    """Raised into the parser, so that it stops."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.kind: Kind = kind


class Protocol(HttpToolsProtocol):
    """One connection, as uvicorn runs it. Routes find it in the scope's state."""

    def __init__(self, *args: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._gate = connections
        self._bounds = connections.bounds
        self.phase: Phase = "head"
        self.standing = Standing.UNKNOWN
        self.deadline: float | None = None
        self.endless = False  # the answer is a stream
        self.resting = False  # after this answer the connection is not read for a while
        self._head_bytes = 0
        self._deaf = False  # what still comes is thrown away
        self._linger_bytes = 0
        self._shared = False  # it is a proxy's: many people's requests come on it

    # ── the connection ──

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """A client is there, or one too many."""
        super().connection_made(transport)
        address = self.client[0] if self.client else "unknown"
        if not self._gate.admit(self, address):
            self._deaf = True
            self.cut()
            return
        self._shared = self._gate.is_proxy(address)
        self.app_state = {**self.app_state, _NAME: self}
        self._enter("head", self._bounds.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended, whoever ended it."""
        self._gate.leave(self)
        super().connection_lost(exc)
        # Whatever refers to itself is freed only by the collector: 3,757 connections were in memory
        # under attack, where some 550 were open.
        self.app_state = {}
        self.scope = None  # type: ignore[assignment] # as uvicorn begins with it
        self.cycle = None  # type: ignore[assignment] # as uvicorn begins with it

    @property
    def idle(self) -> bool:
        """Nothing is being worked on."""
        return self.phase in ("head", "idle", "lingering")

    @property
    def waits_for_client(self) -> bool:
        """Nothing can be done before the client sends more."""
        return self.idle or (self.phase == "working" and self.unfinished)

    @property
    def unfinished(self) -> bool:
        """A part of the request's body has not come yet."""
        return self.cycle is not None and self.cycle.more_body

    def overdue(self) -> Kind | None:
        """What its client did too slowly."""
        if self.phase == "head":
            return "slow_head" if self._head_bytes else "silent"
        if self.phase == "answering" or self.transport.get_write_buffer_size():
            return "slow_answer"
        self.deadline = None  # the answer was taken: from now on uvicorn's own timer counts
        if self.phase == "lingering":
            self.cut()
        return None

    def cut(self) -> None:
        """End it at once; what was not taken is thrown away, by the kernel too."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = (
                True  # known now, not a moment later: nobody has to log that the answer is incomplete
            )
        _set(self.transport, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def know(self, standing: Standing) -> None:
        """Somebody is known to ask on it."""
        self._gate.know(self, standing)

    def _enter(self, phase: Phase, seconds: float | None) -> None:
        self.phase = phase
        self.deadline = None if seconds is None else self._gate.clock() + seconds

    # ── what comes in ──

    def data_received(self, data: bytes) -> None:
        """Parse it, if anything of it is still wanted."""
        if self._deaf:
            self._linger_bytes += len(data)
            if self._linger_bytes > self._bounds.linger_bytes:
                self.cut()
            return
        if self.phase == "idle":
            self._head_bytes = 0
            self._enter("head", self._bounds.head_seconds)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            self._refuse(error.__context__.kind if isinstance(error.__context__, RefusedError) else "not_http")
        except httptools.HttpParserUpgrade:
            self._deaf = True  # answered as the plain request that it also is; what follows is no HTTP
            self.cycle.keep_alive = False
        except httptools.HttpParserError:
            self._refuse("not_http")
        else:
            self._count_head(len(data))

    def on_url(self, url: bytes) -> None:
        """A part of it."""
        super().on_url(url)
        if len(self.url) > self._bounds.head_bytes:
            raise RefusedError("long_head")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One more."""
        super().on_header(name, value)
        if len(self.headers) > self._bounds.headers:
            raise RefusedError("long_head")

    def on_headers_complete(self) -> None:
        """Begin to work on it."""
        if sum(len(name) + len(value) for name, value in self.headers) > self._bounds.head_bytes:
            raise RefusedError("long_head")
        if any(name == b"transfer-encoding" for name, _ in self.headers):
            raise RefusedError("chunked_body")
        if self.cycle is not None and not self.cycle.response_complete:
            raise RefusedError("pipelined")
        self.endless = self.resting = False
        super().on_headers_complete()
        self.cycle.transport = cast("asyncio.Transport", _Answer(self))
        self._enter("working", self._bounds.answer_seconds if self.transport.get_write_buffer_size() else None)

    def _count_head(self, n: int) -> None:
        if self.phase == "head":
            self._head_bytes += n
            if self._head_bytes > self._bounds.head_bytes:
                self._refuse("long_head")

    def _refuse(self, kind: Kind) -> None:
        """Nothing more of it is parsed. An answer that is being made is finished first."""
        self._gate.refusals.count(kind, self._gate.where(self))
        self._deaf = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            return
        answer = _REFUSED[kind].response()
        head = b"".join(b"%s: %s\r\n" % header for header in answer.raw_headers)
        self.transport.write(STATUS_LINE[answer.status_code] + head + b"connection: close\r\n\r\n" + bytes(answer.body))
        self.end()

    # ── what goes out ──

    def began_answer(self) -> None:
        """Its first bytes are being written; what asks the client to go on (100) is no answer."""
        if self.phase == "working" and self.cycle is not None and self.cycle.response_started:
            self._enter("answering", None if self.endless else self._bounds.answer_seconds)

    def pause_writing(self) -> None:
        """Too much of what was written is not taken.

        That has a deadline, also if it is of the answer before.
        """
        super().pause_writing()
        if self.deadline is None and not self.endless:
            self.deadline = self._gate.clock() + self._bounds.answer_seconds

    def on_response_complete(self) -> None:
        """The answer is written, not necessarily taken: its deadline stays."""
        super().on_response_complete()
        if self.transport.is_closing() or self._deaf:
            return
        if self.unfinished:
            self.end()
            return
        self.phase = "idle"
        if self.resting and not self._shared:
            self.flow.pause_reading()
            self.loop.call_later(self._bounds.rest_seconds, self._wake)

    def end(self) -> None:
        """Close it.

        While a body that is not wanted still comes, let the client read its answer first.
        """
        self._unset_keepalive_if_required()
        if not self.unfinished and not self._deaf:
            if self.deadline is None:
                self.deadline = self._gate.clock() + self._bounds.answer_seconds
            self.transport.close()
            return
        self._deaf = True
        self._enter("lingering", self._bounds.linger_seconds)
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _wake(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()


class _Answer:
    """The transport as uvicorn's answer sees it.

    The first write begins the time in which it has to be taken, and closing lets the client read
    it.
    """

    def __init__(self, connection: Protocol) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        """Bytes of the answer."""
        self._connection.began_answer()
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        """As of the real one."""
        return self._connection.transport.is_closing()

    def close(self) -> None:
        """The answer was the last one of this connection."""
        self._connection.end()


def know(scope: Scope, *, user: bool) -> None:
    """A caller is known on this connection.

    A newcomer does not get its place while others merely sit there.
    """
    connection = connection_of(scope)
    if connection is not None:
        connection.know(Standing.USER if user else Standing.STRANGER)


def narrow(scope: Scope) -> None:
    """This answer is a stream.

    Let little wait in the kernel: what is not taken shall be noticed, and the latest state replaces
    what waits with us.
    """
    connection = connection_of(scope)
    if connection is not None:
        connection.endless = True
        _set(connection.transport, socket.SO_SNDBUF, _KERNEL_BYTES)


def unhurried(scope: Scope) -> None:
    """This answer is a file: it may take long, as long as the client goes on taking it.

    Whoever sends it bounds how long one piece may wait.
    """
    connection = connection_of(scope)
    if connection is not None:
        connection.endless = True


def cut(scope: Scope) -> None:
    """End the connection at once."""
    connection = connection_of(scope)
    if connection is not None:
        connection.cut()


def connection_of(scope: Scope) -> Protocol | None:
    """The connection of a request; None where there is none, in tests without a socket."""
    return cast("Protocol | None", scope.get("state", {}).get(_NAME))


def _set(transport: asyncio.Transport, option: int, value: int | bytes) -> None:
    """On a duplicate: the loop's own socket has no such method everywhere."""
    try:
        duplicate = os.dup(transport.get_extra_info("socket").fileno())
    except (OSError, AttributeError):
        return  # it has just gone
    with socket.socket(fileno=duplicate) as end:
        try:
            end.setsockopt(socket.SOL_SOCKET, option, value)
        except OSError:
            return  # the same
