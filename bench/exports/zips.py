"""A ZIP of ten files: how soon its last byte is here, and what ten files of 100 MB cost the server.

The large files take the places of ten that were exported: their rows get their size, SHA-256 and
CRC-32, so the server serves them as it serves any. Its memory is what the kernel says was its
highest since the mark was reset, above what it had before.
"""

from __future__ import annotations

import hashlib
import http.client
import statistics
import time
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from bench.children import ChildFailed
from bench.exports.documents import ONE_PAGE, options, resume
from bench.exports.lab import Lab, Stage, User
from bench.line import Check, Contender, Line
from bench.measure import Figures

_MEMBERS = 10
_PIECE = 1_000_000
_ENLARGE = """
UPDATE livewell.export SET bytes = %(bytes)s, stored_bytes = %(bytes)s, sha256 = %(sha256)s, crc32 = %(crc32)s;
UPDATE livewell.export_file SET bytes = %(bytes)s
"""


def _batch(user: User) -> str:
    """Ten files of a batch."""
    keys = [user.write(resume(ONE_PAGE)) for _ in range(_MEMBERS)]
    body = {"documents": [{"document": key} for key in keys], "options": options()}
    batch: str = user.client.ask("POST", "/v1/exports/batch", body).json["id"]
    user.wait(f"/v1/exports/batch/{batch}")
    return batch


def _small(lab: Lab) -> Figures:
    with lab.stage() as stage:
        user = stage.user(ONE_PAGE)
        path = f"/v1/exports/batch/{_batch(user)}/zip"
        took = []
        for _ in range(max(2, lab.sizes.zips)):
            begun = time.perf_counter()
            answer = user.client.ask("GET", path)
            took.append(1000 * (time.perf_counter() - begun))
            if answer.status != 200 or len(answer.body) != int(answer.headers["content-length"]):
                raise ChildFailed(f"bench: exports: the ZIP was answered {answer.status}")
    return {"p50_ms": statistics.median(took), "p95_ms": statistics.quantiles(took, n=20, method="inclusive")[18]}


def _large(lab: Lab) -> Figures:
    with lab.stage() as stage:
        user = stage.user(ONE_PAGE)
        batch = _batch(user)
        user.client.ask("GET", f"/v1/exports/batch/{batch}/zip")  # what any ZIP needs is there: modules, threads
        size = lab.sizes.member_kb * 1000
        _enlarge(stage, size)
        before = stage.server.rss_bytes()
        Path(f"/proc/{stage.server.pid}/clear_refs").write_text("5", encoding="ascii")
        begun = time.perf_counter()
        got = _drink(stage, user, f"/v1/exports/batch/{batch}/zip")
        seconds = time.perf_counter() - begun
        if got < size * _MEMBERS:
            raise ChildFailed(f"bench: exports: the ZIP had {got:,} bytes")
        text = Path(f"/proc/{stage.server.pid}/status").read_text(encoding="ascii")
    [line] = [line for line in text.splitlines() if line.startswith("VmHWM:")]
    return {"added_mb": (int(line.split()[1]) * 1024 - before) / 1e6, "mb_per_second": got / 1e6 / seconds}


def _enlarge(stage: Stage, size: int) -> None:
    """Files of zeros, which the disk need not keep, and rows that tell the truth about them."""
    sha, crc, left = hashlib.sha256(), 0, size
    while left:
        piece = bytes(min(left, _PIECE))
        sha.update(piece)
        crc, left = zlib.crc32(piece, crc), left - len(piece)
    for path in stage.store.rglob("*.pdf"):
        with path.open("r+b") as file:
            file.truncate(0)
            file.truncate(size)
    values = {"bytes": size, "sha256": sha.digest(), "crc32": crc}
    with psycopg.connect(stage.database.dsn, autocommit=True) as connection:
        for statement in _ENLARGE.split(";\n"):
            connection.execute(statement.encode(), values)


def _drink(stage: Stage, user: User, path: str) -> int:
    """Read it all and keep nothing."""
    connection = http.client.HTTPConnection(urlsplit(stage.address).netloc, timeout=120)
    connection.request("GET", path, headers=user.client.headers)
    answer, got = connection.getresponse(), 0
    if answer.status != 200:
        raise ChildFailed(f"bench: exports: the large ZIP was answered {answer.status}: {answer.read(300)!r}")
    while piece := answer.read(_PIECE):
        got += len(piece)
    connection.close()
    return got


LINES: tuple[Line[Lab], ...] = (
    Line(
        "zip",
        "a ZIP of ten, to its last byte",
        (Check("zip/p95", "p95_ms", 500.0, at_most=True), Check("zip/p50", "p50_ms", None)),
        lambda lab: [Contender("livewell", lambda: _small(lab))],
    ),
    Line(
        "large-zip",
        "what a ZIP of 10 × 100 MB adds to the server's memory",
        (Check("large-zip/memory", "added_mb", 8.0, at_most=True), Check("large-zip/pace", "mb_per_second", None)),
        lambda lab: [Contender("livewell", lambda: _large(lab))],
    ),
)
