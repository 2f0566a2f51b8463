"""A file as an answer: in pieces, as fast as its client takes them, complete or visibly broken.

    headers ──▶ piece ──taken──▶ piece … ──▶ all of Content-Length: complete
                  ├──not taken for push_send_seconds──▶ connection cut
                  ├──the store fails──────────────────▶ connection cut, a warning
                  └──client gone──────────────────────▶ ended

A broken file must not look like a whole one: the connection is cut, so every client sees that fewer
bytes came than were announced, and asks for the rest (Range). One piece is in memory at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, aclosing

import structlog
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from livewell.errors import LivewellError
from livewell.server.connection.protocol import cut, unhurried

log = structlog.get_logger("livewell.downloads")

_SLICE_BYTES = 65_536  # push_send_seconds is for each: 7 kB/s are fast enough by default


class FileAnswer(Response):
    """Pieces of a file. `held` is a place that is kept until the last piece."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncIterator[bytes] | None,
        *,
        held: AbstractContextManager[object, bool | None],
        send_seconds: float,
    ) -> None:
        super().__init__(status_code=status)
        # As they are given: no Content-Length of an empty body, no charset.
        self.raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]
        self._pieces = pieces
        self._held = held
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a failure after the headers ends the connection."""
        try:
            with self._held:
                await self._send(scope, receive, send)
        except TimeoutError:
            log.info("a download was taken too slowly and cut")
            cut(scope)
        except LivewellError as error:
            log.warning("a download broke off", why=str(error))  # words of ours: no path is in them (E15)
            cut(scope)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        unhurried(scope)
        begin = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await self._give(send, begin)
        if self._pieces is not None:
            gone = asyncio.create_task(_disconnect(receive), name="download-leave")
            try:
                if not await self._send_pieces(self._pieces, gone, send):
                    return
            finally:
                gone.cancel()
        await self._give(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_pieces(self, pieces: AsyncIterator[bytes], gone: asyncio.Task[None], send: Send) -> bool:
        """True if the client took all of them."""
        async with aclosing(pieces) as open_pieces:  # type: ignore[type-var] # every store gives a generator
            async for piece in open_pieces:
                if gone.done():
                    return False
                for at in range(0, len(piece), _SLICE_BYTES):
                    part = piece[at : at + _SLICE_BYTES]
                    await self._give(send, {"type": "http.response.body", "body": part, "more_body": True})
        return True

    async def _give(self, send: Send, message: Message) -> None:
        """Send one message. The server waits in it until the client has taken most of what came before."""
        async with asyncio.timeout(self._send_seconds):
            await send(message)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
