"""One answer on its way: late, by drops, in chunks, half, or with a reset.

The bytes that really left are counted.

    pause ──▶ head ──▶ body ──▶ answered
      └────────┴────────┴──▶ cut (we broke it) | ClientLeft

An answer's end is stamped just before its last bytes are handed over: after that the client may
have it all and call again, and the two calls would seem to overlap.
"""

import asyncio
import time
from collections.abc import Iterable
from http import HTTPStatus

from livewell.testing.http.connection import Connection

__all__ = ["LAST_CHUNK", "SILENCE_SECONDS_MAX", "Delivery", "head_lines"]

SILENCE_SECONDS_MAX = 3_600.0  # silence is bounded by the client's leave, and by this
DROPS_PER_SECOND_MAX = 20
LAST_CHUNK = b"0\r\n\r\n"


def head_lines(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Write the status line and these headers; the empty line that ends a head is left to the
    caller.
    """
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}".encode("latin-1")


class Delivery:
    """One answer. body_bytes: of the body as sent, without the frames of its chunks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._written_before = connection.written_bytes
        self._cut_ns = 0
        self.body_bytes = 0

    async def send(self, data: bytes) -> None:
        """Send bytes as they are. Raises ClientLeft."""
        await self._connection.send(data)

    async def send_body(self, data: bytes, *, bytes_per_second: float | None = None, chunked: bool = False) -> None:
        """Send a part of the body: by drops if there is a rate, each as a chunk of HTTP if chunked.
        Raises ClientLeft.

        Every wait for the next drop is short; only the whole takes long.
        """
        rate = bytes_per_second
        step = max(1, len(data) if rate is None else int(rate / DROPS_PER_SECOND_MAX))
        for start in range(0, len(data), step):
            drop = data[start : start + step]
            if rate is not None:
                await self.pause(len(drop) / rate)
            await self.send(b"%x\r\n%s\r\n" % (len(drop), drop) if chunked else drop)
            self.body_bytes += len(drop)
        await asyncio.sleep(0)  # a bomb packs to nothing and never waits for the socket: others want their turn

    async def pause(self, seconds: float) -> None:
        """Wait. Raises ClientLeft when the client does not."""
        await self._connection.pause(seconds)

    async def hang(self) -> None:
        """Stay silent until the client leaves, which raises ClientLeft.

        After an hour, no longer.
        """
        await self.pause(SILENCE_SECONDS_MAX)

    def cut(self, *, reset: bool = False) -> None:
        """Break the connection here, with FIN or with RST."""
        self._cut_ns = time.monotonic_ns()
        if reset:
            self._connection.reset()
        else:
            self._connection.close()

    @property
    def sent_bytes(self) -> int:
        """Head and body as far as the kernel has taken them."""
        connection = self._connection
        return max(0, connection.written_bytes - self._written_before - connection.unsent_bytes)

    @property
    def ended_ns(self) -> int:
        """When its last bytes were handed over, or it was cut."""
        return self._cut_ns or self._connection.wrote_ns

    @property
    def left_ns(self) -> int:
        """When its client left; now, if it has not."""
        return self._connection.left_ns or time.monotonic_ns()
