"""Stream a ZIP of large members from a folder and say how much memory that took; run by a test.

python -m tests.integration.exports.archive_reader FOLDER MEMBERS MEMBER_BYTES
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from livewell.exports.artifacts.folder import FolderStore
from livewell.exports.artifacts.paths import artifact_path
from livewell.exports.zip.archive import Archive, Member


def made(root: Path, count: int, size: int) -> list[Member]:
    """Files of zeros, which take no room on the disk."""
    crc32, left = 0, size
    zeros = bytes(1_000_000)
    while left:
        piece = zeros[: min(left, len(zeros))]
        crc32, left = zlib.crc32(piece, crc32), left - len(piece)
    members = []
    for number in range(count):
        path = artifact_path("u1", UUID(int=number + 1), 1, "pdf")
        (root / path).parent.mkdir(parents=True)
        with (root / path).open("wb") as file:
            file.truncate(size)
        moment = datetime(2026, 11, 19, tzinfo=UTC)
        members.append(Member("cv.pdf", path, size, crc32, bytes(32), "finished", moment))
    return members


def peak_bytes() -> int:
    """The most memory that this process has had since forget_peak()."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1_024


def forget_peak() -> None:
    """From here on the peak is a new one."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


async def main() -> None:
    """Once a small one, so that everything is loaded; then the large one is measured."""
    root, count, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store = FolderStore(root)
    warm = Archive(made(root / "warm", 1, 2_000_000))
    async for _ in warm.stream(FolderStore(root / "warm")):
        pass
    archive = Archive(made(root, count, size))
    forget_peak()
    base, began, length = peak_bytes(), time.perf_counter(), 0
    async for piece in archive.stream(store):
        length += len(piece)
    seconds = time.perf_counter() - began
    said = {"added_bytes": peak_bytes() - base, "length": length, "said": archive.length, "seconds": seconds}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
