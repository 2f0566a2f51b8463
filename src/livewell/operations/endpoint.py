"""A worker's own metrics page: what this process counted, for Prometheus.

    connection ──head within 5 s, at most 8 kB──▶ GET /metrics ──▶ 200 and the page, closed
       │              └──too slow, too long──▶ closed        └──anything else──▶ 404, closed
       └──more than 20 at once──▶ closed

No database is asked, so it answers during an outage too. The page is rendered in a thread, so
neither jobs nor the lease wait for it. Whole-system gauges are on the server's page.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from livewell.errors import ConfigurationError
from livewell.operations.metrics import CONTENT_TYPE, process_text

_HEAD_BYTES_MAX = 8192
_SECONDS_MAX = 5.0
_CONNECTIONS_MAX = 20


@asynccontextmanager
async def metrics_endpoint(address: str | None) -> AsyncIterator[str | None]:
    """Serve the page at host:port within the block, and say where.

    Nothing happens without an address.
    """
    if address is None:
        yield None
        return
    host, _, port = address.rpartition(":")
    page = _Page()
    try:
        server = await asyncio.start_server(page.answer, host.strip("[]"), int(port), limit=_HEAD_BYTES_MAX)
    except (OSError, socket.gaierror) as error:
        raise ConfigurationError(
            f"LIVEWELL_METRICS_ADDRESS or --metrics is {address!r}: nothing can listen there: {error}"
        ) from error
    bound = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{bound[1]}/metrics"
    finally:
        server.close()


class _Page:
    """Answers one request per connection."""

    def __init__(self) -> None:
        self._open = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, bounded in time, size and number."""
        self._open += 1
        try:
            if self._open <= _CONNECTIONS_MAX:
                async with asyncio.timeout(_SECONDS_MAX):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(await _answer_to(head))
                    await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # a client that does not speak, or not ours, gets nothing
        finally:
            self._open -= 1
            writer.close()
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_SECONDS_MAX):
                    await writer.wait_closed()


async def _answer_to(head: bytes) -> bytes:
    if head.split(b" ", 2)[:2] == [b"GET", b"/metrics"]:
        return _response("200 OK", CONTENT_TYPE, await asyncio.to_thread(process_text))
    return _response("404 Not Found", "text/plain; charset=utf-8", b"This is /metrics of a Livewell worker.\n")


def _response(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
