"""Turn a behaviour into the bytes of an answer.

There is a head, and a body made piece by piece (a bomb must not fill us up).
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from livewell.testing.http import Request, head_lines
from livewell.testing.upstream.behaviour import Behaviour
from livewell.testing.upstream.request import keys_of
from livewell.testing.upstream.values import Values

__all__ = ["Answer", "Piece", "compose"]

HTML = "<!doctype html><html><body><h1>We will be back soon</h1><p>Scheduled maintenance.</p></body></html>"
PIECE_BYTES = 65_536
NO_BODY = (204, 304)  # packing nothing would give twenty bytes, which the client takes for its next answer


class Piece(NamedTuple):
    """Body bytes as they go out, and how many bytes of content they stand for."""

    data: bytes
    content_bytes: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a head and a body; versions are those that the rows carry.

    keep_alive False: the head says so.
    """

    status: int
    head: bytes
    body: Iterator[Piece]
    chunked: bool
    keep_alive: bool
    versions: dict[str, int] = field(default_factory=dict)


def compose(request: Request, behaviour: Behaviour, values: Values) -> Answer:
    """Make the answer to a request. The values move on here: call it once per call."""
    if behaviour.fault in ("hang", "close_before_head", "reset_before_head"):
        return Answer(0, b"", iter(()), chunked=False, keep_alive=False)
    accepted = "gzip" in request.headers.get("accept-encoding", "")
    layers = behaviour.gzip if behaviour.gzip is not None else int(accepted and behaviour.status not in NO_BODY)
    versions: dict[str, int] = {}
    body: Iterator[Piece]
    if behaviour.body == "huge" and behaviour.content is None:
        kind, body = "application/json", _huge(behaviour.size_bytes, layers)
        length = None if layers else behaviour.size_bytes
    else:
        kind, content, versions = _content(request, behaviour, values)
        data = content
        for _ in range(layers):
            data = gzip.compress(data, 6, mtime=0)
        body, length = iter([Piece(data, len(content))]), len(data)
    chunked = behaviour.length == "chunked" or (behaviour.length == "stated" and length is None)
    keep_alive = request.keep_alive and behaviour.length != "until_close"
    headers = {
        "Content-Type": kind,
        **({"Content-Encoding": ", ".join(["gzip"] * layers)} if layers else {}),
        **({"Transfer-Encoding": "chunked"} if chunked else {}),
        **({"Content-Length": str(length)} if behaviour.length == "stated" and length is not None else {}),
        "Connection": "keep-alive" if keep_alive else "close",
        **behaviour.headers,
    }
    return Answer(
        behaviour.status, head_lines(behaviour.status, headers.items()) + b"\r\n", body, chunked, keep_alive, versions
    )


def _content(request: Request, behaviour: Behaviour, values: Values) -> tuple[str, bytes, dict[str, int]]:
    kind = "application/json"
    versions: dict[str, int] = {}
    answer: Any = None
    if behaviour.content is not None:
        content = behaviour.content
    elif behaviour.status in NO_BODY:
        content = b""  # HTTP allows these no body
    elif behaviour.body == "html":
        kind, content = "text/html; charset=utf-8", HTML.encode()
    else:
        if behaviour.body == "error" or behaviour.status >= 400:
            answer = {"Error Message": behaviour.message}
        elif behaviour.body == "empty":
            answer = []
        else:
            answer, versions = values.rows(keys_of(request), behaviour)
        content = json.dumps(answer, separators=(",", ":")).encode()
    return kind, content[: behaviour.truncate_at_bytes], versions


def _huge(size_bytes: int, layers: int) -> Iterator[Piece]:
    """Valid JSON of so many bytes: a list with one long string."""
    packers = [zlib.compressobj(6, zlib.DEFLATED, 31) for _ in range(layers)]
    for data in _long_list(max(size_bytes, 4)):
        packed = data
        for packer in packers:
            packed = packer.compress(packed)
        yield Piece(packed, len(data))
    packed = b""
    for packer in packers:
        packed = packer.compress(packed) + packer.flush()
    if packed:
        yield Piece(packed, 0)


def _long_list(size_bytes: int) -> Iterator[bytes]:
    yield b'["'
    for start in range(0, size_bytes - 4, PIECE_BYTES):
        yield b"0" * min(PIECE_BYTES, size_bytes - 4 - start)
    yield b'"]'
