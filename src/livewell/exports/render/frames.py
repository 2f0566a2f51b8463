"""How parent and child talk over two pipes: a kind, a length, the bytes.

    parent ──SETUP──▶ child           paths, functions, limits; no document
    child  ──READY──▶ parent          the guards that hold; from here on the child is sandboxed
    parent ──REQUEST, DOCUMENT, OPTIONS──▶ child
    child  ──DONE | REFUSED | FAILED | NO_MEMORY──▶ parent

DONE starts with two numbers: the pages (-1: none) and the bytes of memory that the child has. Every
length is checked by the reader before it reads.
"""

from __future__ import annotations

import struct
from enum import IntEnum

HEAD = struct.Struct("!BI")
DONE = struct.Struct("!iQ")
LENGTH_MAX = 2**32 - 1
TALK_BYTES_MAX = 100_000  # of every frame that is no file: settings, reasons


class Kind(IntEnum):
    """What a frame is."""

    SETUP = 1
    READY = 2
    REQUEST = 3
    DOCUMENT = 4
    OPTIONS = 5
    DONE = 6
    REFUSED = 7
    FAILED = 8
    NO_MEMORY = 9


def head(kind: Kind, length: int) -> bytes:
    """The five bytes before the payload."""
    if length > LENGTH_MAX:
        raise ValueError(f"a frame of {length} bytes is longer than {LENGTH_MAX}")
    return HEAD.pack(kind, length)
