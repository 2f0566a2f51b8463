"""One client's connection: requests in, bytes out, one answer after the other.

    reading ──request──▶ answered inside data_received ──▶ reading
       └──request──▶ a task answers (slowly, or never) ──▶ reading | closed

A protocol and no streams: an ordinary answer is made and written inside data_received, without a
task. Requests that come meanwhile wait in the buffer. Instants are taken when the event loop hands
us the bytes, or the client's end, not when a task gets round to them: with fifty busy connections a
task may run milliseconds later.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from livewell.testing.http.request import BadRequest, Request, parse
from livewell.testing.sockets import reset_on_close

if TYPE_CHECKING:
    from livewell.testing.http.server import HttpServer

__all__ = ["ClientLeft", "Connection"]

T = TypeVar("T")
Ended = Callable[[asyncio.Task[T]], None]


class ClientLeft(ConnectionError):
    """The client has gone: there is nobody to answer any more."""


class Connection(asyncio.Protocol):
    """One client, from its first byte to its last."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._task: asyncio.Task[Any] | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._waiting_for = ""
        self._full = False  # the transport holds more than it may: wait before the next piece
        self._closing = False  # we close, or have closed
        self._lost = False
        self.number = 0  # from 1, in the order in which clients came
        self.at_ns = 0  # when bytes came last
        self.left_ns = 0  # when the client left; 0: it is here
        self.wrote_ns = 0  # just before bytes were handed over last
        self.written_bytes = 0

    # ── what asyncio tells us ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the client in, or close at once when there are too many."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by shape, not by class
        if self._server.unsent_bytes_max is not None:
            self._transport.set_write_buffer_limits(high=self._server.unsent_bytes_max)
        self._server.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it left does not matter
        """Let the task know that nobody is there."""
        self._closing = self._lost = True
        self._leave()
        self._server.forget(self)

    def eof_received(self) -> None:
        """Take the end of the client's stream for its leave.

        The transport then closes by itself.
        """
        self._leave()
        if self._buffer and self._task is None and not self._closing:
            self._buffer.clear()
            self._server.refuse(self, BadRequest("the client left inside a request", self.at_ns))

    def pause_writing(self) -> None:
        """Wait with the next piece: the client reads slowly."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on."""
        self._full = False
        self._wake("room")

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self.at_ns = time.monotonic_ns()
        self._buffer += data
        if len(self._buffer) > self._server.buffer_bytes_max:
            self.close()
        elif self._task is None:
            self._advance()
        else:
            self._wake("bytes")

    # ── requests ──

    def _advance(self) -> None:
        while self._buffer and self._task is None and not self._closing:
            try:
                request = self._parse()
            except BadRequest as error:
                self._buffer.clear()  # nobody can say where the next request would begin
                self._server.refuse(self, error)
                continue
            if request is None:
                return
            self._server.answer(self, request)

    def _parse(self) -> Request | None:
        return parse(self._buffer, self.at_ns, self._server.head_bytes_max, self._server.body_bytes_max)

    async def next_request(self) -> Request | None:
        """Read the next request, for a task that serves a whole connection; None when the client
        has left.
        """
        while (request := self._parse()) is None:
            try:
                await self._wait("bytes")
            except ClientLeft:
                return None
        return request

    def run(self, work: Coroutine[Any, Any, T], ended: Ended[T] | None = None) -> None:
        """Answer in a task; the next request waits for its end.

        ended is called with the task, also when it was cancelled before its first step. Without it
        a failure closes the connection, and is told to the event loop unless the client caused it.
        """
        task = self._task = asyncio.get_running_loop().create_task(work)
        self._server.tasks.add(task)
        task.add_done_callback(partial(self._over, ended or self._settle))

    def _over(self, ended: Ended[T], task: asyncio.Task[T]) -> None:
        self._server.tasks.discard(task)
        self._task = None
        ended(task)
        self._advance()

    def _settle(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self.close()
        elif (error := task.exception()) is not None:
            self.close()
            if not isinstance(error, OSError):
                told = {"message": "a fake server's answer failed", "exception": error, "task": task}
                asyncio.get_running_loop().call_exception_handler(told)

    # ── answers ──

    def write(self, data: bytes) -> None:
        """Hand bytes over and wait for nothing."""
        self.wrote_ns = time.monotonic_ns()
        self.written_bytes += len(data)
        self._transport.write(data)

    async def send(self, data: bytes) -> None:
        """Hand bytes over, and wait until there is room for more. Raises ClientLeft."""
        # is_closing is known before connection_lost is called: without it a body of 200 MB would be
        # written to nobody.
        if self.left_ns or self._transport.is_closing():
            raise ClientLeft
        self.write(data)
        if self._full:
            await self._wait("room")

    async def pause(self, seconds: float) -> None:
        """Wait so long. Raises ClientLeft when the client does not."""
        timer = asyncio.get_running_loop().call_later(seconds, self._wake, "time")
        try:
            await self._wait("time")
        finally:
            timer.cancel()

    async def gone(self) -> None:
        """Wait until the client has left."""
        try:
            await self._wait("leave")
        except ClientLeft:
            return

    def close(self) -> None:
        """End with FIN, once what was written has gone."""
        if not self._closing:
            self._closing = True
            self._transport.close()

    def reset(self) -> None:
        """End with RST, now."""
        if not self._lost:
            self._closing = True
            connection: socket.socket = self._transport.get_extra_info("socket")
            reset_on_close(connection)
            self._transport.abort()

    @property
    def unsent_bytes(self) -> int:
        """Bytes that were written and that the kernel has not taken yet."""
        return 0 if self._lost else self._transport.get_write_buffer_size()

    @property
    def peer(self) -> str:
        """The client's address."""
        return str((self._transport.get_extra_info("peername") or ("",))[0])

    # ── waiting: one task, so at most one reason ──

    async def _wait(self, reason: Literal["bytes", "room", "time", "leave"]) -> None:
        if self.left_ns:
            raise ClientLeft
        self._waiting = asyncio.get_running_loop().create_future()
        self._waiting_for = reason
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _wake(self, reason: str) -> None:
        if self._waiting is not None and self._waiting_for == reason and not self._waiting.done():
            self._waiting.set_result(None)

    def _leave(self) -> None:
        self.left_ns = self.left_ns or time.monotonic_ns()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ClientLeft())
