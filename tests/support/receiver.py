"""A receiver of notifications: a real HTTP server on this machine, with a log of its own, that
answers as a test says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self

from livewell.testing.http import Connection, HttpServer, Request, head_lines


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


Reply = bytes | None
Answering = Callable[[Received], Awaitable[Reply]]


def reply(status: int, **headers: str) -> bytes:
    """An answer with an empty body; names of headers have _ for -."""
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return head_lines(status, [("Content-Length", "0"), *named]) + b"\r\n"


def always(status: int, **headers: str) -> Answering:
    """The same answer to everybody."""

    async def answer(_: Received) -> Reply:
        return reply(status, **headers)

    return answer


async def silence(_: Received) -> Reply:
    """Take it, and never answer."""
    await asyncio.Event().wait()
    return None


async def hang_up(_: Received) -> Reply:
    """Take it, and close the connection without a word."""
    return None


class Receiver:
    """`async with Receiver() as receiver:` ... receiver.url, receiver.received; change
    receiver.answer at will.
    """

    def __init__(self, answer: Answering | None = None) -> None:
        self.received: list[Received] = []
        self.answer = answer or always(204)
        self.port = 0  # any; it stays the same when the receiver comes back
        self._http = HttpServer(self._receive)

    async def __aenter__(self) -> Self:
        self.port = await self._http.listen(self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.stop()

    @property
    def connections(self) -> int:
        """How many there were."""
        return self._http.accepted

    @property
    def url(self) -> str:
        """Its address, with something secret in it."""
        return f"http://127.0.0.1:{self.port}/hooks/SECRET-TOKEN"

    @property
    def documents(self) -> list[Any]:
        """Every body it was sent."""
        return [one.document for one in self.received]

    def _receive(self, connection: Connection, request: Request) -> None:
        received = Received(request.target, dict(request.headers), request.body)
        self.received.append(received)
        connection.run(self._reply(connection, received))

    async def _reply(self, connection: Connection, received: Received) -> None:
        answer = await self.answer(received)
        if answer is None:
            connection.close()
        else:
            await connection.send(answer)
