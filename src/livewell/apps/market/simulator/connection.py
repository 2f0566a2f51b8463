"""One connection: requests in, answers out, one after the other.

    reading ──request──▶ whole answer handed over at once ──▶ reading
       └──request──▶ busy (latency, drip, silence, a body of gigabytes) ──▶ reading | closed

A protocol and no streams: an ordinary answer is made, logged and written inside data_received, without a task.
"""

import asyncio
import socket
import struct
import time
from functools import partial
from typing import cast

import orjson

from livewell.apps.market.simulator.answer import Answer, bomb, head, huge_pieces, refusal
from livewell.apps.market.simulator.request import Request, RequestRefused, parse
from livewell.apps.market.simulator.server import CONNECTIONS_MAX, Server

__all__ = ["Connection"]

BUFFER_BYTES_MAX = 8_000_000
HANG_SECONDS_MAX = 3_600.0  # silence is bounded by the client's leave, and by this
DRIPS_PER_SECOND_MAX = 20
LINGER_ZERO = struct.pack("ii", 1, 0)  # close() then sends RST instead of FIN
MALFORMED = Request("", "", {}, "", gzip=False, keep_alive=False, call_id="", if_none_match="", body=b"")


class _ClientLeft(Exception):
    """Nobody is there to answer any more."""


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = bytearray()
        self._task: asyncio.Task[str] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._at_ns = 0
        self._sent = 0
        self._sent_ns = 0
        self._leaving = False  # we close, or have closed
        self._lost = False  # nobody is there any more

    # ── what asyncio tells us ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the client in, or close at once when there are too many."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by shape, not by class
        self._server.connections += 1
        if self._server.connections > CONNECTIONS_MAX:
            self._close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it left does not matter
        """End what was being sent to it."""
        self._leaving = self._lost = True
        self._server.connections -= 1
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        """Wait with the next piece: the client reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._at_ns = time.monotonic_ns()
        self._buffer += data
        if len(self._buffer) > BUFFER_BYTES_MAX:
            self._close()
        else:
            self._advance()

    # ── requests ──

    def _advance(self) -> None:
        while self._buffer and self._task is None and not self._leaving:
            try:
                request = parse(self._buffer)
            except RequestRefused:
                self._serve(MALFORMED, refusal("malformed", "malformed"), ())  # it says close, so this was the last
                return
            if request is None:
                return
            if request.path.startswith("/_"):
                self._order(request)
                continue
            wall = self._server.wall()
            answer, symbols = self._server.clerk.answer(request, self._at_ns, wall)
            self._serve(request, answer, symbols, wall)

    def _serve(self, request: Request, answer: Answer, symbols: tuple[str, ...], wall: float | None = None) -> None:
        server = self._server
        knobs = server.clerk.knobs
        wall = server.wall() if wall is None else wall
        delay = knobs.latency_seconds
        if knobs.latency_jitter_seconds:
            delay += server.random.random() * knobs.latency_jitter_seconds
        if answer.delivery == "whole" and not delay:
            body, packed = answer.content(accepts_gzip=request.gzip)
            data = head(answer, len(body), packed=packed, keep_alive=request.keep_alive) + body
            server.received(request, symbols, answer, at_ns=self._at_ns, wall=wall, sent_bytes=len(data))
            self._transport.write(data)
            if not request.keep_alive:
                self._close()
            return
        number = server.received(request, symbols, answer, at_ns=self._at_ns, wall=wall, sent_bytes=None)
        self._sent, self._sent_ns = 0, self._at_ns
        task = self._task = asyncio.get_running_loop().create_task(self._deliver(request, answer, delay))
        server.tasks.add(task)
        task.add_done_callback(partial(self._over, number, request))

    def _order(self, request: Request) -> None:
        peer = self._transport.get_extra_info("peername") or ("",)
        status, figures = (403, {"error": "orders come from this machine"})
        if str(peer[0]).startswith(("127.", "::1")):
            status, figures = self._server.order(request)
        body = orjson.dumps(figures)
        answer = Answer("order", status, body, "")
        self._transport.write(head(answer, len(body), packed=False, keep_alive=request.keep_alive) + body)
        if not request.keep_alive:
            self._close()

    # ── slow and broken answers ──

    async def _deliver(self, request: Request, answer: Answer, delay: float) -> str:
        """Send an answer the way its fault wants, and say what became of it."""
        if delay:
            await asyncio.sleep(delay)
        try:
            return await self._send(request, answer)
        except _ClientLeft:
            return "client_left"

    def _over(self, number: int, request: Request, task: asyncio.Task[str]) -> None:
        """Write down how it ended, also when it was cancelled before its first step; then go on reading."""
        self._server.tasks.discard(task)
        self._task = None
        if task.cancelled():
            how = "client_left" if self._lost else "stopped"
        else:
            how = task.result() if task.exception() is None else f"failed: {task.exception()!r}"
        left = 0 if self._lost else self._transport.get_write_buffer_size()
        # An answer's end is the instant before its last bytes were handed over: after it the client may call again,
        # and the two calls would seem to overlap.
        ended_ns = self._sent_ns if how == "sent" else time.monotonic_ns()
        self._server.ended(number, request.credential, how, max(0, self._sent - left), ended_ns)
        if how == "sent" and request.keep_alive:
            self._advance()
        else:
            self._close()

    async def _send(self, request: Request, answer: Answer) -> str:
        match answer.delivery:
            case "hang":
                await asyncio.sleep(HANG_SECONDS_MAX)
                return "cut"
            case "reset" | "closed":
                return self._cut(reset=answer.delivery == "reset")
            case "huge":
                await self._write(head(answer, None, packed=False, keep_alive=request.keep_alive))
                for piece in huge_pieces(self._server.clerk.knobs.huge_bytes):
                    await self._write(piece)
                    await asyncio.sleep(0)  # others want their turn
                return "sent"
        body, packed = answer.content(accepts_gzip=request.gzip)
        if answer.delivery == "bomb":
            body, packed = bomb(self._server.clerk.knobs.bomb_bytes), True
        first = head(answer, len(body), packed=packed, keep_alive=request.keep_alive)
        if answer.delivery in ("cut_off", "reset_in_body"):
            await self._write(first + body[: len(body) // 2])
            return self._cut(reset=answer.delivery == "reset_in_body")
        if answer.delivery == "drip":
            await self._drip(first, body)
        else:
            await self._write(first + body)
        return "sent"

    async def _drip(self, first: bytes, body: bytes) -> None:
        """Send the head at once and the body by drops: every wait for the next byte is short, the whole is not."""
        rate = self._server.clerk.knobs.drip_bytes_per_second
        step = max(1, int(rate / DRIPS_PER_SECOND_MAX))
        await self._write(first)
        for start in range(0, len(body), step):
            await asyncio.sleep(step / rate)
            await self._write(body[start : start + step])

    async def _write(self, data: bytes) -> None:
        await self._writable.wait()
        if self._transport.is_closing():
            # Known before connection_lost is called; without this a body of 200 MB would be written into nothing.
            raise _ClientLeft
        self._sent_ns = time.monotonic_ns()
        self._transport.write(data)
        self._sent += len(data)

    def _cut(self, *, reset: bool) -> str:
        if reset:
            connection: socket.socket = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
            self._leaving = True
            self._transport.abort()
        return "cut"

    def _close(self) -> None:
        if not self._leaving:
            self._leaving = True
            self._transport.close()
