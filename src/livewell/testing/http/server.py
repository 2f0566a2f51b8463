"""The listening port of a fake, and all that its connections share.

async with HttpServer(answer) as server:
    get(server.url)
"""

import asyncio
import random
import ssl
from collections.abc import Callable
from typing import Any, Self

from livewell.testing.http.connection import Connection
from livewell.testing.http.delivery import head_lines
from livewell.testing.http.request import BODY_BYTES_MAX, HEAD_BYTES_MAX, BadRequest, Request

__all__ = ["HOST", "HttpServer"]

HOST = "127.0.0.1"
BACKLOG = 1_024
CONNECTIONS_MAX = 5_000
PORT_ATTEMPTS_MAX = 50
# Below the kernel's ephemeral ports (32768 and up): a client that dials a dead server again and
# again could otherwise be given the very port it dials, connect to itself, and keep it from us when
# we restart.
PORTS = range(20_000, 32_000)
STOP_SECONDS_MAX = 2.0


def _bad_request(connection: Connection, _: BadRequest) -> None:
    connection.write(head_lines(400, [("Content-Length", "0"), ("Connection", "close")]) + b"\r\n")
    connection.close()


class HttpServer:
    """A fake's front: answer gets each request, refuse what is none, and greet each new connection.

    Each of them must not block; what takes time belongs into connection.run(). unsent_bytes_max 0:
    send() returns when the kernel has the bytes, so a byte that was counted has left us.
    """

    def __init__(
        self,
        answer: Callable[[Connection, Request], None],
        *,
        refuse: Callable[[Connection, BadRequest], None] = _bad_request,
        greet: Callable[[Connection], None] | None = None,
        tls: ssl.SSLContext | None = None,
        head_bytes_max: int = HEAD_BYTES_MAX,
        body_bytes_max: int = BODY_BYTES_MAX,
        connections_max: int = CONNECTIONS_MAX,
        unsent_bytes_max: int | None = None,
    ) -> None:
        self.answer = answer
        self.refuse = refuse
        self.head_bytes_max = head_bytes_max
        self.body_bytes_max = body_bytes_max
        self.buffer_bytes_max = 2 * (head_bytes_max + body_bytes_max)
        self.unsent_bytes_max = unsent_bytes_max
        self.tasks: set[asyncio.Task[Any]] = set()
        self.accepted = 0  # connections so far
        self.port = 0
        self._greet = greet
        self._tls = tls
        self._connections_max = connections_max
        self._connections: set[Connection] = set()
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.listen(self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http{'s' if self._tls else ''}://{HOST}:{self.port}"

    async def listen(self, port: int = 0) -> int:
        """Listen on this port, or on any free one; answers which."""
        choices = [port] if port else random.SystemRandom().sample(PORTS, PORT_ATTEMPTS_MAX)
        for choice in choices:
            try:
                self._listener = await self._create(choice)
            except OSError:
                if choice == choices[-1]:
                    raise
            else:
                self.port = choice
                break
        return self.port

    async def _create(self, port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: Connection(self), HOST, port, backlog=BACKLOG, ssl=self._tls)

    async def stop(self) -> None:
        """Take no more clients, cancel what is being answered, wait until each task's end is known,
        and close.
        """
        if self._listener is not None:
            self._listener.close()
        for task in (running := list(self.tasks)):
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=STOP_SECONDS_MAX)
            await asyncio.sleep(0)  # their ends are told by callbacks, which come after
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)  # so that the transports let go of their sockets

    # ── called by connections ──

    def admit(self, connection: Connection) -> None:
        """Number a connection, or close it when there are too many."""
        self.accepted += 1
        connection.number = self.accepted
        self._connections.add(connection)
        if len(self._connections) > self._connections_max:
            connection.close()
        elif self._greet is not None:
            self._greet(connection)

    def forget(self, connection: Connection) -> None:
        """Let go of a connection that is lost."""
        self._connections.discard(connection)
