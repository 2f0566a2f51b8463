"""Read an HTTP/1.1 request out of a buffer: bounded, and no more of it than the simulator needs.

Not livewell.testing's reader: that one checks every header by regular expression and waits for a task's turn, which is
right for a judge of single requests and costs half of what the whole answer may cost here.
"""

import hashlib
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus

__all__ = ["HEAD_BYTES_MAX", "Request", "RequestRefused", "credential_name", "parse"]

HEAD_BYTES_MAX = 16_384
BODY_BYTES_MAX = 4_000_000  # of an order: a list of locked symbols may be long


class RequestRefused(Exception):
    """What came is no request we read; it is answered with 400 and the connection ends."""


class Request(NamedTuple):
    """What was asked, without the secret it was asked with."""

    method: str
    path: str
    query: dict[str, str]
    credential: str
    gzip: bool
    keep_alive: bool
    call_id: str
    if_none_match: str
    body: bytes


@lru_cache(maxsize=1_000)
def credential_name(secret: str) -> str:
    """Name a credential by a short hash; of none, by nothing."""
    return "#" + hashlib.sha256(secret.encode()).hexdigest()[:12] if secret else ""


def parse(buffer: bytearray) -> Request | None:
    """Take one request off the front of the buffer; None while it is not all there."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0 or end > HEAD_BYTES_MAX:
        if len(buffer) > HEAD_BYTES_MAX:
            msg = f"a head of more than {HEAD_BYTES_MAX} bytes"
            raise RequestRefused(msg)
        return None
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        msg = f"not a request: {first[:80]!r}"
        raise RequestRefused(msg)
    headers = _headers(lines)
    length = int(headers.get("content-length", "0")) if headers.get("content-length", "0").isdecimal() else -1
    if "transfer-encoding" in headers or not 0 <= length <= BODY_BYTES_MAX:
        msg = f"a body must state its length, of at most {BODY_BYTES_MAX} bytes"
        raise RequestRefused(msg)
    if len(buffer) < end + 4 + length:
        return None
    body = bytes(buffer[end + 4 : end + 4 + length])
    del buffer[: end + 4 + length]
    path, _, rest = words[1].partition("?")
    query = _query(rest)
    secret = headers.get("apikey") or query.pop("apikey", "")
    query.pop("apikey", None)
    return Request(
        method=words[0],
        path=unquote_plus(path) if "%" in path else path,
        query=query,
        credential=credential_name(secret),
        gzip="gzip" in headers.get("accept-encoding", ""),
        keep_alive=words[2] == "HTTP/1.1" and headers.get("connection", "").lower() != "close",
        call_id=headers.get("x-livewell-call", "")[:2_000],
        if_none_match=headers.get("if-none-match", ""),
        body=body,
    )


def _headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            msg = f"not a header: {line[:80]!r}"
            raise RequestRefused(msg)
        headers[name.lower()] = value.strip()
    return headers


def _query(text: str) -> dict[str, str]:
    query: dict[str, str] = {}
    for part in text.split("&") if text else ():
        name, _, value = part.partition("=")
        query[unquote_plus(name)] = unquote_plus(value) if "%" in value or "+" in value else value
    return query
