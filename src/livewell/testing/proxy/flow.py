"""The ways through the proxy: a connection is a link, and each of its directions a flow.

A flow has a bounded buffer.
"""

import asyncio
import socket
from collections import deque
from dataclasses import dataclass
from typing import Literal

from livewell.testing.sockets import reset_on_close

__all__ = ["READ_BYTES_MAX", "Flow", "Link", "Piece", "close", "prepared", "ready"]

READ_BYTES_MAX = 65_536


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes on their way; b"" is the end of the stream, None a reset."""

    arrived: float
    data: bytes | None


class Flow:
    """One direction of one connection: source, bounded buffer, target."""

    def __init__(self, source: socket.socket, target: socket.socket, *, buffer_bytes_max: int) -> None:
        self.source = source
        self.target = target
        self.free_at = 0.0  # when a throttled link has finished sending what it took
        self._pieces: deque[Piece] = deque()
        self._room = buffer_bytes_max
        self._changed = asyncio.Event()

    async def room(self) -> int:
        """Wait until there is room, and say how many bytes."""
        while self._room <= 0:
            self._changed.clear()
            await self._changed.wait()
        return self._room

    async def first(self) -> Piece:
        """Wait for the oldest piece; it keeps its room until dropped."""
        while not self._pieces:
            self._changed.clear()
            await self._changed.wait()
        return self._pieces[0]

    def put(self, piece: Piece) -> None:
        """Add a piece; it takes its room."""
        self._pieces.append(piece)
        self._room -= len(piece.data or b"")
        self._changed.set()

    def drop_first(self) -> None:
        """Let go of the oldest piece, and of its room."""
        self._room += len(self._pieces.popleft().data or b"")
        self._changed.set()


@dataclass(eq=False, slots=True)
class Link:
    """One client's connection and, once dialled, its twin at the target."""

    client: socket.socket
    answer_bytes_left: int | None  # reset_after: the server's bytes that may still pass
    target: socket.socket | None = None
    task: asyncio.Task[None] | None = None
    closed: bool = False

    def close(self, *, how: Literal["fin", "rst"]) -> None:
        """Close both sockets now, and end the task that served them."""
        if self.closed:
            return
        self.closed = True
        loop = asyncio.get_running_loop()
        for sock in (self.client, self.target):
            if sock is not None:
                loop.remove_reader(sock)
                loop.remove_writer(sock)
                close(sock, how=how)
        if self.task is not None:
            self.task.cancel()


def prepared(sock: socket.socket) -> socket.socket:
    """Make a socket ready for the event loop."""
    sock.settimeout(0)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


async def ready(sock: socket.socket, to: Literal["read", "write"]) -> None:
    """Wait until a socket can be read or written."""
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_reader, loop.remove_reader) if to == "read" else (loop.add_writer, loop.remove_writer)

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    add(sock, wake)
    try:
        await woken
    finally:
        if sock.fileno() >= 0:  # a verb that closed it has removed it already
            remove(sock)


def close(sock: socket.socket, *, how: Literal["fin", "rst"]) -> None:
    """Close a socket with FIN, whatever is unread, or with RST."""
    try:
        if how == "rst":
            reset_on_close(sock)
        else:
            sock.shutdown(socket.SHUT_WR)
            # Closing with unread bytes would send RST after all, so read them away; bounded, for a
            # peer may never stop.
            for _ in range(256):
                if not sock.recv(READ_BYTES_MAX):
                    break
    except OSError:  # nothing left to read, or the peer was faster
        pass
    finally:
        sock.close()
