"""What checks of a store are made of: paths, bytes, and looks into the place."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator

from livewell.exports.artifacts.paths import artifact_path
from livewell.exports.artifacts.store import PIECE_BYTES_MAX, ArtifactStore
from livewell.testing.artifacts.errors import demand
from livewell.testing.artifacts.lab import ArtifactLab

PDF = "application/pdf"
CALL_SECONDS_MAX = 30.0


def some_path(user: str = "u1", fence: int = 7) -> str:
    """A path that nothing else uses."""
    return artifact_path(user, uuid.uuid4(), fence, "pdf")


def some_bytes(count: int) -> bytes:
    """Bytes that tell a wrong place from a right one."""
    return random.Random(count).randbytes(count)  # noqa: S311 – not a secret


async def read_all(store: ArtifactStore, path: str, start: int = 0, end: int | None = None) -> bytes:
    """What read() gives, with every piece within its bound."""
    pieces = [piece async for piece in await store.read(path, start, end)]
    demand(all(0 < len(piece) <= PIECE_BYTES_MAX for piece in pieces), "a piece is empty, or larger than it may be")
    return b"".join(pieces)


async def stream(data: bytes, step: int = 100_000) -> AsyncIterator[bytes]:
    """The same bytes by and by."""
    for start in range(0, len(data), step):
        await asyncio.sleep(0)
        yield data[start : start + step]


async def listed(store: ArtifactStore, prefix: str = "") -> list[str]:
    """Every path that the store lists."""
    return [path async for path in store.list(prefix)]


async def is_empty(lab: ArtifactLab) -> None:
    """Raise Broken if anything is left in the place."""
    left = await lab.there()
    demand(not left, f"{len(left)} things were left in the place")
