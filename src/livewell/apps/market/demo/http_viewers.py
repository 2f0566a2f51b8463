"""Viewers who come over HTTP, with a public key, and read a stream as a browser does.

    session ──▶ subscriptions ──▶ stream ──ended, lost, refused──▶ a pause ──▶ session

They count what is pushed to them, so that the count comes from outside the product. Their HTTP
client is a small one on a bare connection: the counter shall not depend on the code that it counts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from livewell.errors import LivewellError

STREAMS = 10
_PAUSE_SECONDS = 0.5
_CALL_SECONDS = 10.0
_SILENCE_SECONDS = 45.0
_LINE_BYTES_MAX = 1_000_000
_FAILURES = (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, LivewellError, ValueError)


class HttpViewers:
    """Runs until cancelled. pushes: readings that arrived; open: streams that are being read."""

    def __init__(self, host: str, port: int, key: str, pairs: Sequence[tuple[str, str]]) -> None:
        self._host, self._port, self._key = host, port, key
        self._pairs = [{"type": kind, "key": key} for kind, key in pairs]
        self.pushes = 0
        self.open = 0

    async def run(self) -> None:
        """All of them."""
        async with asyncio.TaskGroup() as group:
            for _ in range(STREAMS):
                group.create_task(self._view())

    async def _view(self) -> None:
        while True:
            with suppress(*_FAILURES):  # the server is away, or was; the table shows that nothing is pushed
                await self._visit()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _visit(self) -> None:
        session = (await self._call("POST", "/v1/sessions", {}))["session"]
        await self._call("PUT", f"/v1/sessions/{session}/subscriptions", {"subscriptions": self._pairs})
        reader, writer = await self._send("GET", f"/v1/sessions/{session}/stream", b"")
        self.open += 1
        try:
            async for line in _lines(reader):
                self.pushes += line == b"event: reading"
        finally:
            self.open -= 1
            writer.close()

    async def _call(self, method: str, path: str, body: dict[str, Any]) -> Any:
        async with asyncio.timeout(_CALL_SECONDS):
            reader, writer = await self._send(method, path, json.dumps(body).encode())
            try:
                return json.loads(b"".join([line async for line in _lines(reader)]))
            finally:
                writer.close()

    async def _send(self, method: str, path: str, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The request, and the answer up to its body."""
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=_LINE_BYTES_MAX)
        try:
            head = [
                f"{method} {path} HTTP/1.1",
                f"Host: {self._host}:{self._port}",
                f"Authorization: Bearer {self._key}",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                "Connection: close",
            ]
            writer.write("\r\n".join([*head, "", ""]).encode() + body)
            await writer.drain()
            async with asyncio.timeout(_CALL_SECONDS):
                status = (await reader.readline()).split(b" ")
            if len(status) < 2 or status[1] not in (b"200", b"201"):
                raise LivewellError(f"{method} {path}: {b' '.join(status).decode(errors='replace').strip()}")
        except BaseException:
            writer.close()
            raise
        return reader, writer


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a body, whether it comes in chunks or as a whole; what is left at the end is a
    line, too.
    """
    chunked, length = False, 0
    while header := (await reader.readline()).strip().lower():
        chunked |= header == b"transfer-encoding: chunked"
        if header.startswith(b"content-length:"):
            length = int(header.partition(b":")[2])
    if not chunked:
        yield await reader.readexactly(min(length, _LINE_BYTES_MAX))
        return
    left = b""
    while True:
        async with asyncio.timeout(_SILENCE_SECONDS):
            size = int((await reader.readline()).strip() or b"0", 16)
            chunk = (await reader.readexactly(size + 2))[:-2]
        if not size:
            return
        *lines, left = (left + chunk).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
