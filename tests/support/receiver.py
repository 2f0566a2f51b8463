"""A receiver of notifications: a real HTTP server on this machine, with a log of its own, that answers as a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self


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
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n{lines}\r\n".encode()


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
    """`async with Receiver() as receiver:` ... receiver.url, receiver.received; change receiver.answer at will."""

    def __init__(self, answer: Answering | None = None) -> None:
        self.received: list[Received] = []
        self.connections = 0
        self.answer = answer or always(204)
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self._tasks: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """Its address, with something secret in it."""
        return f"http://127.0.0.1:{self.port}/hooks/SECRET-TOKEN"

    @property
    def documents(self) -> list[Any]:
        """Every body it was sent."""
        return [one.document for one in self.received]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            while (received := await _read(reader)) is not None:
                self.received.append(received)
                answer = await self.answer(received)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
            return  # the client has left, or the test is over: what came is in the log
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(first.split(" ")[1], headers, body)
