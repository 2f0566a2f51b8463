"""Members in memory, for tests of archives."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

from livewell.exports.artifacts.paths import artifact_path
from livewell.exports.artifacts.store import ArtifactError
from livewell.exports.zip.archive import Archive, Member

MOMENT = datetime(2026, 11, 19, 21, 45, 31, tzinfo=UTC)


class MemoryStore:
    """As much of a store as an archive needs; it counts what was read."""

    def __init__(self, files: dict[str, bytes], *, piece_bytes: int = 7) -> None:
        self.files = files
        self.read_bytes = 0
        self.read_paths: list[str] = []
        self._piece_bytes = piece_bytes

    async def size(self, path: str) -> int:
        if path not in self.files:
            raise ArtifactError("not_there")
        return len(self.files[path])

    async def read(self, path: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        await self.size(path)
        self.read_paths.append(path)
        return self._pieces(path, start, len(self.files[path]) if end is None else end)

    async def _pieces(self, path: str, start: int, end: int) -> AsyncIterator[bytes]:
        for place in range(start, end, self._piece_bytes):
            if path not in self.files:
                raise ArtifactError("not_there")
            piece = self.files[path][place : min(end, place + self._piece_bytes)]
            self.read_bytes += len(piece)
            yield piece


def member(number: int, data: bytes, name: str | None = None) -> Member:
    """A finished export with these bytes."""
    path = artifact_path("u1", UUID(int=number + 1), 7, "pdf")
    digest = hashlib.sha256(data).digest()
    return Member(name or f"cv {number}.pdf", path, len(data), zlib.crc32(data), digest, "finished", MOMENT)


def failed(name: str) -> Member:
    """An export without a file."""
    return Member(name, None, 0, 0, b"", "failed", None)


def stored(members: Sequence[Member], contents: Sequence[bytes], *, piece_bytes: int = 7) -> MemoryStore:
    """The files of these members."""
    files = {one.path: data for one, data in zip(members, contents, strict=True) if one.path is not None}
    return MemoryStore(files, piece_bytes=piece_bytes)


async def bytes_of(archive: Archive, store: object, start: int = 0, end: int | None = None) -> bytes:
    """A range of an archive."""
    return b"".join([piece async for piece in archive.stream(store, start, end)])  # type: ignore[arg-type]
