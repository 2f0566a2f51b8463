"""A client of server-sent events for tests and measurements.

It is one socket, nothing is hidden, and it can be told not to read.

connecting ──headers──▶ open ──event──▶ open ──end of the answer, or of the connection──▶ ended
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

import orjson

OnEvent = Callable[[str, bytes], None]


class EventStream(asyncio.Protocol):
    """One stream. Events are kept until they are asked for, or handed to on_event as they come."""

    def __init__(self, on_event: OnEvent | None = None) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""  # of an answer that is not a stream
        self.retry_ms: int | None = None
        self.received_bytes = 0
        self._on_event = on_event
        self._transport: asyncio.Transport | None = None
        self._raw = b""
        self._text = b""
        self._events: deque[tuple[str, bytes]] = deque()
        self._news = asyncio.Event()
        self.started = asyncio.Event()
        self.ended = asyncio.Event()

    @classmethod
    async def open(
        cls,
        base: str,
        path: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        on_event: OnEvent | None = None,
        receive_bytes: int | None = None,
        reads: bool = True,
    ) -> Self:
        """Connect and send the request; with reads, wait for the answer to begin. receive_bytes:
        what the kernel may keep for us.
        """
        parts = urlsplit(base)
        host, port = parts.hostname or "", parts.port or 80
        end = socket.socket()
        end.setblocking(False)  # noqa: FBT003 - the socket's own way
        if receive_bytes is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(end, (host, port))
        transport, stream = await loop.create_connection(lambda: cls(on_event), sock=end)
        lines = [f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", "Accept: text/event-stream"]
        lines += [f"Authorization: Bearer {key}"] if key else []
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if not reads:
            transport.pause_reading()
        transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if reads:
            await stream.started.wait()
        return stream

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Go, without a word."""
        if self._transport is not None:
            self._transport.abort()

    def read(self, *, on: bool) -> None:
        """Take what comes, or take nothing."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.resume_reading if on else self._transport.pause_reading)()

    @property
    def established(self) -> bool:
        """Whether the other side still holds the connection, as our kernel knows it, read or not."""
        if self._transport is None or self._transport.is_closing():
            return False
        # On a duplicate: uvloop's sockets have no options.
        with socket.socket(fileno=os.dup(self._transport.get_extra_info("socket").fileno())) as end:
            return end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1

    async def next(self, *names: str, seconds: float = 10) -> tuple[str, Any]:
        """The next event (of these names); EOFError when the stream ends first."""
        async with asyncio.timeout(seconds):
            while True:
                while self._events:
                    name, data = self._events.popleft()
                    if not names or name in names:
                        return name, orjson.loads(data)
                if self.ended.is_set():
                    raise EOFError("the stream has ended")
                self._news.clear()
                await self._news.wait()

    async def until(self, name: str, *, seconds: float = 10) -> list[tuple[str, Any]]:
        """Everything up to and with the next event of this name."""
        seen: list[tuple[str, Any]] = []
        async with asyncio.timeout(seconds):
            while not seen or seen[-1][0] != name:
                seen.append(await self.next(seconds=seconds))
        return seen

    async def __aiter__(self) -> AsyncIterator[tuple[str, Any]]:
        while True:
            try:
                yield await self.next(seconds=3600)
            except EOFError:
                return

    # ── the connection ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by name

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """It is gone."""
        self._end()

    def data_received(self, data: bytes) -> None:
        """Some bytes came."""
        self.received_bytes += len(data)
        self._raw += data
        if not self.status and not self._head():
            return
        if self.headers.get("transfer-encoding") == "chunked":
            self._chunks()
        else:
            self.body, self._raw = self.body + self._raw, b""
            if len(self.body) >= int(self.headers.get("content-length", "0")):
                self._end()

    def _head(self) -> bool:
        head, found, rest = self._raw.partition(b"\r\n\r\n")
        if not found:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ")[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._raw = rest
        self.started.set()
        return True

    def _chunks(self) -> None:
        while True:
            size_text, found, rest = self._raw.partition(b"\r\n")
            if not found:
                return
            size = int(size_text, 16)
            if size == 0:
                self._end()
                return
            if len(rest) < size + 2:
                return
            self._text += rest[:size]
            self._raw = rest[size + 2 :]
            self._split()

    def _split(self) -> None:
        *whole, self._text = self._text.split(b"\n\n")
        for text in whole:
            if text.startswith(b"retry: "):
                self.retry_ms = int(text[7:])
            elif text.startswith(b"event: "):
                head, _, data = text.partition(b"\ndata: ")
                self._event(head[7:].decode(), data)

    def _event(self, name: str, data: bytes) -> None:
        if self._on_event is not None:
            self._on_event(name, data)
        else:
            self._events.append((name, data))
            self._news.set()

    def _end(self) -> None:
        self.ended.set()
        self.started.set()
        self._news.set()
