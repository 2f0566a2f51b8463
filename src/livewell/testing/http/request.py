"""Take one HTTP/1.1 request off the front of a buffer: strict, bounded, and cheap.

The simulator answers ten thousand requests a second, and most lines of a head come again and again.
So each line is checked by a regular expression once, and then remembered.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

__all__ = ["BODY_BYTES_MAX", "HEAD_BYTES_MAX", "BadRequest", "Request", "parse"]

HEAD_BYTES_MAX = 8_192  # what common servers take
BODY_BYTES_MAX = 4_000_000

_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_VALUE = r"[^\x00-\x08\x0a-\x1f\x7f]*"
_FIRST_LINE = re.compile(r"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.([01])")
_HEADER_LINE = re.compile(rf"({_NAME}):[ \t]*({_VALUE}?)[ \t]*")
_LINES_REMEMBERED = 4_096


class _Malformed(Exception):
    """A line that no head may have."""


class BadRequest(Exception):
    """The bytes are no request that we read. at_ns: when they came."""

    def __init__(self, message: str, at_ns: int) -> None:
        super().__init__(message)
        self.at_ns = at_ns


class Request(NamedTuple):
    """What was asked.

    Header names are in lower case; head is the text of the head as it came, in Latin-1, without the
    empty line that ends it.
    """

    at_ns: int  # CLOCK_MONOTONIC, when its last bytes came
    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    keep_alive: bool = True
    target: str = ""
    head: str = ""


def parse(
    buffer: bytearray, at_ns: int, head_bytes_max: int = HEAD_BYTES_MAX, body_bytes_max: int = BODY_BYTES_MAX
) -> Request | None:
    """Take one request off the buffer; None while it is not all there. Raises BadRequest."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0 or end > head_bytes_max:
        if len(buffer) > head_bytes_max:
            raise BadRequest(f"a head of more than {head_bytes_max} bytes", at_ns)
        return None
    head = buffer[:end].decode("latin-1")
    lines = head.split("\r\n")
    try:
        method, target, path, query, keeps = _first_line(lines[0])
        headers = dict(map(_header, lines[1:]))
    except _Malformed:
        raise BadRequest(f"not a request: {lines[0][:80]!r}", at_ns) from None
    stop = end + 4 + _body_bytes(headers, at_ns, body_bytes_max)
    if len(buffer) < stop:
        return None
    body = bytes(buffer[end + 4 : stop])
    del buffer[:stop]
    keep_alive = keeps and headers.get("connection", "").lower() != "close"
    return Request(at_ns, method, path, dict(query), headers, body, keep_alive, target, head)


def _body_bytes(headers: dict[str, str], at_ns: int, body_bytes_max: int) -> int:
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return 0
    length = headers.get("content-length", "")
    if "transfer-encoding" in headers or not length.isdecimal() or int(length) > body_bytes_max:
        msg = f"a request body must state its length, of at most {body_bytes_max} bytes"
        raise BadRequest(msg, at_ns)
    return int(length)


@lru_cache(maxsize=_LINES_REMEMBERED)
def _first_line(line: str) -> tuple[str, str, str, tuple[tuple[str, str], ...], bool]:
    """Give method, target, path, query, and whether this version of HTTP keeps connections."""
    found = _FIRST_LINE.fullmatch(line)
    if found is None:
        raise _Malformed
    method, target, minor = found.groups()
    path, _, query = target.partition("?")
    pairs = (part.partition("=") for part in query.split("&") if part)
    named = tuple((unquote_plus(name), unquote_plus(value)) for name, _, value in pairs)
    return method, target, unquote(path), named, minor == "1"


@lru_cache(maxsize=_LINES_REMEMBERED)
def _header(line: str) -> tuple[str, str]:
    found = _HEADER_LINE.fullmatch(line)
    if found is None:
        raise _Malformed
    return found[1].lower(), found[2]
