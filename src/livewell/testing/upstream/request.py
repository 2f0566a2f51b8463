"""Read one HTTP/1.1 request from a kept-alive connection: strict, bounded, and stamped when its bytes arrived.

The stamp is taken when the event loop hands us the bytes, not when a task gets round to them, and so is the instant at
which the client left: with fifty busy connections a task may run milliseconds later.
"""

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import SupportsIndex
from urllib.parse import parse_qsl, unquote, urlsplit

from livewell.testing.upstream.call import credential_name

__all__ = ["BadRequest", "Request", "StampedReader", "read_request"]

HEAD_BYTES_MAX = 8_192  # what common servers take; also keeps a log line below its own bound
BODY_BYTES_MAX = 1_048_576
REQUEST_LINE = re.compile(r"([A-Z]{1,16}) ([!-~]+) HTTP/1\.([01])")
HEADER_LINE = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")


class BadRequest(Exception):
    """What came is no request; it is logged as a call with status 400, and the connection closed."""


class StampedReader(asyncio.StreamReader):
    """A stream reader that knows when bytes came last, and when the client left."""

    def __init__(self) -> None:
        super().__init__(limit=HEAD_BYTES_MAX)
        self.fed_ns = 0
        self.left_ns = 0
        self.left = asyncio.Event()

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        """Stamp, then take the bytes."""
        self.fed_ns = time.monotonic_ns()
        super().feed_data(data)

    def feed_eof(self) -> None:
        """Stamp the client's leave; a lost connection ends here too."""
        self._leave()
        super().feed_eof()

    def set_exception(self, exc: BaseException | type[BaseException]) -> None:
        """Stamp a leave by reset."""
        self._leave()
        super().set_exception(exc)  # type: ignore[arg-type]  # typeshed differs between versions

    def _leave(self) -> None:
        self.left_ns = self.left_ns or time.monotonic_ns()
        self.left.set()


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked."""

    at_ns: int
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    keep_alive: bool = True

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys asked: symbol=A or key=A is one, symbols=A,B or keys=A,B are many."""
        for name in ("symbols", "keys"):
            if name in self.query:
                return tuple(key for key in self.query[name].split(",") if key)
        return tuple(self.query[name] for name in ("symbol", "key") if name in self.query)

    @property
    def credential(self) -> str:
        """The name of the credential shown: Authorization, an apikey header, or apikey in the query; "" for none."""
        shown = self.headers.get("authorization", "").removeprefix("Bearer ")
        shown = shown or self.headers.get("apikey", "") or self.headers.get("x-api-key", "")
        return credential_name(shown or self.query.get("apikey", ""))


async def read_request(reader: StampedReader) -> Request | None:
    """Read the next request; None when the client has left between two."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        msg = f"a head of more than {HEAD_BYTES_MAX} bytes"
        raise BadRequest(msg) from None
    except asyncio.IncompleteReadError as end:
        if not end.partial:
            return None
        msg = "the client left inside the head"
        raise BadRequest(msg) from None
    except OSError:
        return None  # reset between two requests
    return await _with_body(_parse(head, reader.fed_ns), reader)


def _parse(head: bytes, at_ns: int) -> Request:
    first, *rest = head.decode("latin-1")[:-4].split("\r\n")
    asked = REQUEST_LINE.fullmatch(first)
    lines = [HEADER_LINE.fullmatch(line) for line in rest]
    if asked is None or None in lines:
        msg = f"not a request: {first[:80]!r}"
        raise BadRequest(msg)
    headers = {line[1].lower(): line[2] for line in lines if line}
    url = urlsplit(asked[2])
    return Request(
        at_ns=at_ns,
        method=asked[1],
        path=unquote(url.path),
        query=dict(parse_qsl(url.query, keep_blank_values=True)),
        headers=headers,
        keep_alive=asked[3] == "1" and headers.get("connection", "").lower() != "close",
    )


async def _with_body(request: Request, reader: StampedReader) -> Request:
    length = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers or not length.isdecimal() or int(length) > BODY_BYTES_MAX:
        msg = f"a request body must state its length, of at most {BODY_BYTES_MAX} bytes"
        raise BadRequest(msg)
    if length == "0":
        return request
    try:
        body = await reader.readexactly(int(length))
    except (asyncio.IncompleteReadError, OSError):
        msg = "the client left inside the body"
        raise BadRequest(msg) from None
    return Request(
        request.at_ns, request.method, request.path, request.query, request.headers, body, request.keep_alive
    )
