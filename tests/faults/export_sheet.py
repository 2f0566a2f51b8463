"""What the exports of fault tests render: bytes that anybody can work out from the document alone.

The rendering child imports this module, so it stays light. A document that begins with "slow" takes
a second: somebody wants to kill the child meanwhile.
"""

from __future__ import annotations

import hashlib
import time

from livewell.exports.render.rendered import Rendered

SIZE = 40_000
SLOW_SECONDS = 1.0


def sheet(document: str, version: str) -> bytes:
    """The file that an export of this version has to have."""
    seed = f"{document} {version}".encode()
    block = b"".join(hashlib.sha256(b"%d %s" % (n, seed)).digest() for n in range(SIZE // 32))
    return b"sheet of " + seed + b"\n" + block


def content(document: str, version: str) -> bytes:
    """What the reader gives to the child."""
    return f"{document} {version}".encode()


def render(document: bytes, options: bytes) -> Rendered:
    """Called in the child."""
    del options
    if document.startswith(b"slow"):
        time.sleep(SLOW_SECONDS)
    name, _, version = document.decode().rpartition(" ")
    return Rendered(sheet(name, version), 1)
