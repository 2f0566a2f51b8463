"""Send an answer the way its behaviour wants: late, by drops, half, or with a reset; and count what really left.

    waiting ──▶ head ──▶ body ──▶ answered
       └──────────┴────────┴──▶ cut (we broke it) | client_left

The transport buffers nothing (its high-water mark is 0), so a byte that was counted is a byte that the kernel has. An answer's end is
stamped just before its last bytes are handed over: after that the client may have it all and call again, and the two
calls would seem to overlap.
"""

import asyncio
import socket
import struct
import time
from typing import Literal

from livewell.testing.upstream.answer import Answer
from livewell.testing.upstream.behaviour import Behaviour
from livewell.testing.upstream.call import Ending
from livewell.testing.upstream.request import StampedReader

__all__ = ["Delivery"]

WAIT_SECONDS_MAX = 3_600.0  # a hang is bounded by the client's leave, and by this
DRIPS_PER_SECOND_MAX = 20
LINGER_ZERO = struct.pack("ii", 1, 0)  # close() then sends RST instead of FIN


class _ClientLeft(Exception):
    """Nobody is there to answer any more."""


class Delivery:
    """One answer on its way."""

    def __init__(self, reader: StampedReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.wire_bytes = 0
        self.body_bytes = 0
        self.content_bytes = 0
        self.ended_ns = 0

    async def send(self, answer: Answer, behaviour: Behaviour, delay_seconds: float) -> Ending:
        """Send it, and say how it ended."""
        try:
            if delay_seconds > 0:
                await self._pause(delay_seconds)
            ending = await self._send(answer, behaviour)
        except (_ClientLeft, OSError):
            ending = "client_left"
            self.ended_ns = self._reader.left_ns or time.monotonic_ns()
        return ending

    async def _send(self, answer: Answer, behaviour: Behaviour) -> Ending:
        fault = behaviour.fault
        if fault == "hang":
            await self._pause(WAIT_SECONDS_MAX)
        if not answer.head:
            return self._break("reset" if fault == "reset_before_head" else "close")
        await self._write(answer.head)
        whole = await self._send_body(answer, behaviour)
        if fault == "hang_in_body":
            await self._pause(WAIT_SECONDS_MAX)
        if not whole:
            return self._break("reset" if fault == "reset_in_body" else "close")
        return "answered"

    async def _send_body(self, answer: Answer, behaviour: Behaviour) -> bool:
        """Send the body, or the part before the cut; say whether it was all."""
        cut = behaviour.cut_at_bytes if behaviour.fault.endswith("_in_body") else None
        for piece in answer.body:
            room = len(piece.data) if cut is None else cut - self.body_bytes
            await self._send_piece(piece.data[:room], behaviour.drip_bytes_per_second, chunked=answer.chunked)
            self.content_bytes += piece.content_bytes
            if cut is not None and self.body_bytes >= cut:
                return False
        if cut is not None:
            return False
        if answer.chunked:
            await self._write(b"0\r\n\r\n")
        return True

    async def _send_piece(self, data: bytes, rate: float | None, *, chunked: bool) -> None:
        step = len(data) if rate is None else max(1, int(rate / DRIPS_PER_SECOND_MAX))
        for start in range(0, len(data), max(step, 1)):
            drop = data[start : start + step]
            if rate is not None:
                await self._pause(len(drop) / rate)
            await self._write(b"%x\r\n%s\r\n" % (len(drop), drop) if chunked else drop)
            self.body_bytes += len(drop)
        await asyncio.sleep(0)  # a bomb packs to nothing and never waits for the socket: others want their turn

    async def _write(self, data: bytes) -> None:
        if self._reader.left.is_set():
            raise _ClientLeft
        self.ended_ns = time.monotonic_ns()
        self._writer.write(data)
        try:
            await self._writer.drain()
        finally:
            self.wire_bytes += len(data) - self._transport.get_write_buffer_size()

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the client leaves first."""
        try:
            async with asyncio.timeout(seconds):
                await self._reader.left.wait()
        except TimeoutError:
            return
        raise _ClientLeft

    def _break(self, how: Literal["close", "reset"]) -> Ending:
        self.ended_ns = time.monotonic_ns()
        if how == "reset":
            connection: socket.socket = self._writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
            self._transport.abort()
        else:
            self._writer.close()
        return "cut"

    @property
    def _transport(self) -> asyncio.WriteTransport:
        return self._writer.transport
