"""One connection of an attacker.

A bare socket from an address of its own, so that every byte sent, not sent, read and not read is
the attacker's choice.

dialled ──send, read──▶ open ──the other side ends it──▶ Cut
"""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

ESTABLISHED = 1  # of TCP_INFO's states


class Cut(Exception):
    """The server ended the connection, or did not take it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: never a stream."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


@dataclass(slots=True)
class Line:
    """`async with Line(host, port, "127.0.0.2") as line:`.

    receive_bytes: what our kernel may keep unread.
    """

    host: str
    port: int
    address: str
    receive_bytes: int | None = None
    _socket: socket.socket = field(default_factory=lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    _kept: bytes = b""

    async def __aenter__(self) -> Self:
        end = self._socket
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)  # what is "sent" was nearly taken
        if self.receive_bytes is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_bytes)
        try:
            end.bind((self.address, 0))
            async with asyncio.timeout(10):
                await asyncio.get_running_loop().sock_connect(end, (self.host, self.port))
        except (OSError, TimeoutError) as error:
            end.close()
            raise Cut(f"not taken: {error}") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    @property
    def place(self) -> tuple[str, int]:
        """Our end's address and port."""
        address, port = self._socket.getsockname()
        return address, port

    @property
    def alive(self) -> bool:
        """Whether the server still holds its end, as our kernel knows it.

        Of one that is never read, see peers.py.
        """
        return self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED

    async def send(self, data: bytes) -> None:
        """All of it; waits while the server takes nothing."""
        if not self.alive:
            raise Cut("ended")
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, data)
        except OSError as error:
            raise Cut(str(error)) from None

    async def read(self) -> bytes:
        """Whatever is there, at least a byte."""
        try:
            data = await asyncio.get_running_loop().sock_recv(self._socket, 65_536)
        except OSError as error:
            raise Cut(str(error)) from None
        if not data:
            raise Cut("ended")
        return data

    async def answer(self) -> Answer:
        """The next answer with its body."""
        while b"\r\n\r\n" not in self._kept:
            self._kept += await self.read()
        head, _, rest = self._kept.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
        length = int(headers.get("content-length", "0"))
        while len(rest) < length:
            rest += await self.read()
        self._kept = rest[length:]
        return Answer(int(first.split(" ")[1]), headers, rest[:length])

    async def ended(self, seconds: float) -> bool:
        """Wait until the server ends it, or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self.read()
        except TimeoutError:
            return False
        except Cut:
            return True
