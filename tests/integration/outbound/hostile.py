"""A server that does what no HTTP library would: raw bytes, on time or never, and a log of what it
was asked.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Self

from livewell.testing.http import Connection, HttpServer, Request
from livewell.testing.processes import eventually_async

Serve = Callable[["Visit"], Awaitable[None]]


class Visit:
    """One connection of a client."""

    def __init__(self, server: "HostileServer", connection: Connection) -> None:
        self._server = server
        self._connection = connection

    async def request(self) -> bytes:
        """Read the next request and write it down; empty when the client has left."""
        request = await self._connection.next_request()
        if request is None:
            return b""
        head = request.head.encode("latin-1") + b"\r\n\r\n"
        self._server.requests.append(head)
        return head

    async def send(self, *pieces: bytes, pause_seconds: float = 0.0) -> None:
        """Send bytes as they are."""
        for piece in pieces:
            await self._connection.send(piece)
            if pause_seconds:
                await asyncio.sleep(pause_seconds)

    async def gone(self) -> None:
        """Wait until the client has left."""
        await self._connection.gone()

    def reset(self) -> None:
        """End with RST."""
        self._connection.reset()


class HostileServer:
    """`async with HostileServer(serve) as server:` ... server.url, server.requests,
    server.connections.
    """

    def __init__(self, serve: Serve, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.sent = asyncio.Event()  # for a script to set
        self._closed = 0
        self._serve = serve
        self._http = HttpServer(_never, greet=self._greet, tls=tls, head_bytes_max=65_536)

    async def __aenter__(self) -> Self:
        await self._http.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.stop()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._http.port

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._http.url

    @property
    def connections(self) -> int:
        """How many there were."""
        return self._http.accepted

    async def closed(self, count: int) -> None:
        """Wait until so many connections were closed on our side."""
        await eventually_async(lambda: self._closed >= count, interval=0.0)

    def _greet(self, connection: Connection) -> None:
        connection.run(self._visit(connection))

    async def _visit(self, connection: Connection) -> None:
        try:
            await self._serve(Visit(self, connection))
        finally:  # also when the client has left, or the test is over: what was done is in the log
            connection.close()
            self._closed += 1


def _never(_: Connection, __: Request) -> None:
    """A script runs as long as its connection, and reads the requests itself."""


def answering(*pieces: bytes, pause_seconds: float = 0.0, hold: bool = False) -> Serve:
    """Answer every request of a connection with these bytes, then close it, or hold it open."""

    async def serve(visit: Visit) -> None:
        if await visit.request():
            await visit.send(*pieces, pause_seconds=pause_seconds)
            if hold:
                await visit.gone()

    return serve
