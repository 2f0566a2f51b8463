"""Take one HTTP/1.1 request off the front of a buffer: strict, bounded, and cheap.

The simulator answers thousands of requests a second, so a head is checked by one regular
expression, not by one for each line, and a request is a tuple.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

__all__ = ["BODY_BYTES_MAX", "HEAD_BYTES_MAX", "BadRequest", "Request", "parse"]

HEAD_BYTES_MAX = 8_192  # what common servers take
BODY_BYTES_MAX = 4_000_000

_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_VALUE = r"[^\x00-\x08\x0a-\x1f\x7f]*"
_HEAD = re.compile(rf"([A-Z]{{1,16}}) (/[!-~]*) HTTP/1\.([01])\r\n((?:{_NAME}:{_VALUE}\r\n)*)")
_HEADER = re.compile(r"([^:]+):[ \t]*([^\r]*)\r\n")  # of a head that is valid


class BadRequest(Exception):
    """The bytes are no request that we read. at_ns: when they came."""

    def __init__(self, message: str, at_ns: int) -> None:
        super().__init__(message)
        self.at_ns = at_ns


class Request(NamedTuple):
    """What was asked. Header names are in lower case; head is the text of the head as it came, in
    Latin-1.
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
    head = buffer[: end + 2].decode("latin-1")
    found = _HEAD.fullmatch(head)
    if found is None:
        raise BadRequest(f"not a request: {head.partition(chr(13))[0][:80]!r}", at_ns)
    method, target, minor, lines = found.groups()
    headers = {name.lower(): value.rstrip(" \t") for name, value in _HEADER.findall(lines)}
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not length.isdecimal() or int(length) > body_bytes_max:
        raise BadRequest(f"a request body must state its length, of at most {body_bytes_max} bytes", at_ns)
    start = end + 4
    stop = start + int(length)
    if len(buffer) < stop:
        return None
    body = bytes(buffer[start:stop])
    del buffer[:stop]
    path, _, query = target.partition("?")
    return Request(
        at_ns,
        method,
        unquote(path) if "%" in path else path,
        _query(query),
        headers,
        body,
        minor == "1" and headers.get("connection", "").lower() != "close",
        target,
        head + "\r\n",
    )


def _query(text: str) -> dict[str, str]:
    """Of a name that comes twice the last value stands."""
    query: dict[str, str] = {}
    for part in text.split("&") if text else ():
        if part:
            name, _, value = part.partition("=")
            query[unquote_plus(name)] = unquote_plus(value) if "%" in value or "+" in value else value
    return query
