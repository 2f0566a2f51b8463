"""An answer before it is sent: what it says, how it is delivered, and the bytes of its head."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from http import HTTPStatus
from typing import Literal

import orjson

from livewell.apps.market.simulator.policy.refusals import REFUSALS
from livewell.testing.http import head_lines

__all__ = ["Answer", "SendMode", "bomb", "digest_of", "head", "huge_pieces", "refusal"]

SendMode = Literal["whole", "hang", "drip", "reset", "reset_in_body", "closed", "cut_off", "huge", "bomb"]
JSON = "application/json"
PIECE_BYTES = 65_536
BLOCK_BYTES = 1_000_000


def digest_of(body: bytes) -> str:
    """Name a body shortly."""
    return blake2b(body, digest_size=8).hexdigest()


@dataclass(slots=True)
class Answer:
    """What one call gets.

    kind: ok, a fault's name, or why it was refused. packed: the body gzipped, once somebody asked.
    """

    kind: str
    status: int
    body: bytes
    digest: str
    source_at: int | None = None
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    delivery: SendMode = "whole"
    packed: bytes = b""

    def content(self, *, accepts_gzip: bool) -> tuple[bytes, bool]:
        """Give the body as it goes out, and whether it is gzipped.

        Level 1, as a busy server would.
        """
        if not accepts_gzip or not self.body:
            return self.body, False
        if not self.packed:
            self.packed = gzip.compress(self.body, 1, mtime=0)
        return self.packed, True


def refusal(kind: str, words: str, *headers: tuple[str, str]) -> Answer:
    """Refuse in FMP's words."""
    status, message = REFUSALS[words]
    body = orjson.dumps({"Error Message": message})
    return Answer(kind, status, body, digest_of(body), headers=headers)


@lru_cache(maxsize=256)
def _first_lines(status: int, content_type: str, *, packed: bool, keep_alive: bool) -> bytes:
    headers = [
        ("Content-Type", content_type),
        *([("Content-Encoding", "gzip")] if packed else []),
        ("Vary", "Accept-Encoding"),
        ("Connection", "keep-alive" if keep_alive else "close"),
    ]
    return head_lines(status, headers)


def head(answer: Answer, length: int | None, *, packed: bool, keep_alive: bool) -> bytes:
    """Write the head; without a length the body is chunked."""
    lines = _first_lines(answer.status, answer.content_type, packed=packed, keep_alive=keep_alive)
    if answer.headers:
        lines += "".join(f"{name}: {value}\r\n" for name, value in answer.headers).encode("latin-1")
    if answer.status == HTTPStatus.NOT_MODIFIED:
        return lines + b"\r\n"
    if length is None:
        return lines + b"Transfer-Encoding: chunked\r\n\r\n"
    return lines + b"Content-Length: %d\r\n\r\n" % length


def huge_pieces(size_bytes: int) -> Iterator[bytes]:
    """Valid JSON of so many bytes: a list with one long string."""
    yield b'["'
    block = b"0" * PIECE_BYTES
    for _ in range(size_bytes // PIECE_BYTES):
        yield block
    yield b'"]'


@lru_cache(maxsize=2)
def bomb(size_bytes: int) -> bytes:
    """A gzip body of a thousandth of this size that unpacks to all of it: valid JSON, valid
    checksum.

    One block is packed and repeated (a full flush lets deflate blocks be joined), or this would
    stop the server for a second.
    """
    blocks = max(size_bytes // BLOCK_BYTES, 1)
    zeros = b"0" * BLOCK_BYTES
    content = [b'["', *[zeros] * blocks, b'"]']
    check = 0
    for part in content:
        check = zlib.crc32(part, check)
    deflated = _block(b'["') + _block(zeros) * blocks + _block(b'"]', last=True)
    size = blocks * BLOCK_BYTES + 4
    trailer = check.to_bytes(4, "little") + (size & 0xFFFF_FFFF).to_bytes(4, "little")
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + deflated + trailer


def _block(content: bytes, *, last: bool = False) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush(zlib.Z_FINISH if last else zlib.Z_FULL_FLUSH)
