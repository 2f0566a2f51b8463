"""Many artifacts as one ZIP: its length, its ETag, and any range of it, without keeping it anywhere.

    manifest.json    name, size, SHA-256 and status of every member, also of those that failed
    members          as they are, in their order
    directory        what an unpacker looks for

Everything but the members' bytes is known from the rows of the exports, so the whole layout is made
before the first byte is sent. A range reads only the members that it touches, and the same members
give the same bytes on every server: a download that was cut goes on anywhere.

stream-zip, the library for this, was tried: it makes a ZIP from its beginning only, so that a range
would read every member before it, and it does not say how long the ZIP will be. Members are stored
and not packed, which PDFs are already, and that is a hundred lines (layout.py).

Before the last piece of a member is given away, its CRC is compared: a file that is not what was
written ends the stream with an error, and the client sees a connection that broke, never a ZIP that
ends well and is wrong. Of a range that begins inside a member only the size is compared.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from livewell.exports.artifacts.store import ArtifactError, ArtifactStore
from livewell.exports.zip.layout import ENTRIES_MAX, Entry, directory, local_header
from livewell.exports.zip.names import safe_names

MANIFEST = "manifest.json"
Digest = bytes  # a field of Member is called bytes, too
_EPOCH = datetime(1980, 1, 1, tzinfo=UTC)  # the first moment that a ZIP knows


@dataclass(frozen=True, slots=True)
class Member:
    """One export of the batch. path None: it has no file, and stands in the manifest only."""

    name: str
    path: str | None
    bytes: int
    crc32: int
    sha256: Digest
    status: str
    written_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Data:
    """The bytes of one member."""

    path: str
    bytes: int
    crc32: int


class Archive:
    """A ZIP of these members; length and etag are known at once.

    manifest_extra   what else the manifest says of the batch
    """

    def __init__(self, members: Sequence[Member], manifest_extra: Mapping[str, object] | None = None) -> None:
        if len(members) >= ENTRIES_MAX:
            raise ValueError(f"{len(members)} members; at most {ENTRIES_MAX - 1} fit into one ZIP")
        self.is_complete = all(member.path is not None for member in members)
        names = safe_names([member.name for member in members], taken=[MANIFEST])
        moments = [member.written_at for member in members if member.written_at is not None]
        manifest = _manifest(members, names, {"complete": self.is_complete, **(manifest_extra or {})})
        crc32 = zlib.crc32(manifest)
        latest = max(moments, default=_EPOCH)
        self._parts: list[bytes | _Data] = [local_header(MANIFEST, len(manifest), crc32, latest) + manifest]
        entries = [Entry(MANIFEST, len(manifest), crc32, latest, 0)]
        place = _size(self._parts[0])
        for member, name in zip(members, names, strict=True):
            if member.path is None:
                continue
            entry = Entry(name, member.bytes, member.crc32, member.written_at or _EPOCH, place)
            head = local_header(name, member.bytes, member.crc32, entry.written_at)
            self._parts += [head, _Data(member.path, member.bytes, member.crc32)]
            entries.append(entry)
            place += len(head) + member.bytes
        self._parts.append(directory(entries, place))
        self.length = sum(map(_size, self._parts))
        self.etag = _digest(self._parts)

    async def check(self, store: ArtifactStore) -> None:
        """Ask for the size of every member, before a first byte is sent.

        Raises ArtifactError: not_there, or broken where a file has another size.
        """
        await asyncio.gather(*(_check_size(store, part) for part in self._parts if isinstance(part, _Data)))

    async def stream(self, store: ArtifactStore, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from start up to end. Raises ArtifactError, and then the connection must break."""
        last = self.length if end is None else min(end, self.length)
        begins = 0
        for part in self._parts:
            ends = begins + _size(part)
            low, high = max(start, begins) - begins, min(last, ends) - begins
            begins = ends
            if low >= high:
                continue
            if isinstance(part, bytes):
                yield part[low:high]
            else:
                async for piece in _read(store, part, low, high):
                    yield piece


async def _read(store: ArtifactStore, data: _Data, low: int, high: int) -> AsyncIterator[bytes]:
    await _check_size(store, data)
    crc32, place, whole = 0, low, (low, high) == (0, data.bytes)
    async for piece in await store.read(data.path, low, high):
        place += len(piece)
        if whole:
            crc32 = zlib.crc32(piece, crc32)
        if place > high or (place == high and whole and crc32 != data.crc32):
            raise ArtifactError("broken")
        yield piece
    if place != high:
        raise ArtifactError("broken")


async def _check_size(store: ArtifactStore, data: _Data) -> None:
    if await store.size(data.path) != data.bytes:
        raise ArtifactError("broken")


def _size(part: bytes | _Data) -> int:
    return len(part) if isinstance(part, bytes) else part.bytes


def _digest(parts: Sequence[bytes | _Data]) -> str:
    """Of all that is no member's: the manifest, a part of it, has the members' SHA-256."""
    made = hashlib.sha256()
    for part in parts:
        made.update(part if isinstance(part, bytes) else part.bytes.to_bytes(8, "big"))
    return made.hexdigest()


def _manifest(members: Sequence[Member], names: Sequence[str], extra: Mapping[str, object]) -> bytes:
    files = [
        {"name": name, "status": member.status}
        if member.path is None
        else {"name": name, "status": member.status, "bytes": member.bytes, "sha256": member.sha256.hex()}
        for member, name in zip(members, names, strict=True)
    ]
    text = json.dumps({**extra, "files": files}, ensure_ascii=False, indent=2)
    return text.encode() + b"\n"
