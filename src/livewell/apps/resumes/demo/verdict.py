"""What the users' logs say, beside the rows, the files in the folder, and a second rendering.

accepted ──▶ ended?                      no: lost
finished ──▶ downloaded by its user?     no: lost
SHA-256 of what arrived  =  of the row  =  of the same version and options, rendered once more?   no: wrong
files in the folder  =  files of finished rows?                        more: orphans, fewer: lost
quota of each user  =  sum of their files, nothing reserved?           no: quota
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from livewell.apps.resumes.demo.user import Saw
from livewell.exports.artifacts.paths import is_path

ROWS = """
SELECT e.id, e.user_id, e.kind, livewell.export_verdict(e.state, e.expires_at, livewell.now()) AS state, e.bytes, encode(e.sha256, 'hex') AS sha256, e.document_id, e.document_version, e.options, f.path
FROM livewell.export e LEFT JOIN livewell.export_file f ON f.export_id = e.id AND f.state = 'stored'
ORDER BY e.created_at, e.id
"""
USAGE = "SELECT user_id, stored_bytes, reserved_bytes FROM livewell.export_usage"
Row = Mapping[str, Any]


@dataclass(slots=True)
class Verdict:
    """What was found. Every line of `lies` is a violation."""

    users: int = 0
    accepted: int = 0
    finished: int = 0
    cancelled: int = 0
    failed: int = 0
    deleted: int = 0
    same: int = 0
    downloads: int = 0
    zips: int = 0
    refused: dict[int, int] = field(default_factory=dict)
    rendered_again: int = 0
    wrong: int = 0
    lost: int = 0
    orphans: int = 0
    quota: int = 0
    children_killed: int = 0
    workers_killed: int = 0
    end_seconds_p50: float = 0.0
    end_seconds_p95: float = 0.0
    seconds: float = 0.0
    lies: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Nothing was wrong."""
        return not self.lies

    def as_json(self) -> dict[str, Any]:
        """Figures, the number of violations, and the first of them."""
        return {**asdict(self), "violations": len(self.lies), "lies": self.lies[:20]}


def judge_users(saws: Sequence[Saw], rows: Sequence[Row], verdict: Verdict) -> None:
    """What was promised has ended, and what finished was loaded as the row says."""
    by_id: dict[UUID, Row] = {row["id"]: row for row in rows}
    verdict.users = len(saws)
    for saw in saws:
        verdict.lies += saw.lies
        verdict.same += saw.same
        verdict.zips += saw.zips
        verdict.downloads += len(saw.downloads)
        for status, n in saw.refused.items():
            verdict.refused[status] = verdict.refused.get(status, 0) + n
        for line in saw.downloads:
            row = by_id.get(line.export)
            if row is None or (row["sha256"], row["bytes"]) != (line.sha256, line.bytes):
                verdict.wrong += 1
                verdict.lies.append(f"export {line.export}: {line.sha256} was downloaded, the row says otherwise")
        loaded = {line.export for line in saw.downloads}
        for key, one in saw.accepted.items():
            row = by_id.get(key)
            state = None if row is None else row["state"]
            if state not in ("finished", "failed", "cancelled", "deleted") or (
                state == "finished" and key not in loaded
            ):
                verdict.lost += 1
                verdict.lies.append(
                    f"export {key} was accepted and is {state}; {'' if key in loaded else 'not '}loaded"
                )
            if one.deleted and state != "deleted":
                verdict.lies.append(f"export {key} was deleted and is {state}")
    verdict.accepted = sum(len(saw.accepted) for saw in saws)
    times = sorted(seconds for saw in saws for seconds in saw.end_seconds)
    if times:
        verdict.end_seconds_p50 = round(times[len(times) // 2], 3)
        verdict.end_seconds_p95 = round(times[min(len(times) - 1, int(len(times) * 0.95))], 3)


def judge_rows(rows: Iterable[Row], usage: Iterable[Row], folder: Path, verdict: Verdict) -> None:
    """Rows, files and quotas agree. Called when everything has ended and the cleaner has been."""
    wanted: dict[str, Row] = {}
    sums: dict[str, int] = {}
    for row in rows:
        if row["state"] in ("finished", "cancelled", "failed", "deleted"):
            setattr(verdict, row["state"], getattr(verdict, row["state"]) + 1)
        if row["state"] == "finished":
            wanted[row["path"]] = row
            sums[row["user_id"]] = sums.get(row["user_id"], 0) + row["bytes"]
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    there = {name: path for name, path in files.items() if is_path(name)}  # beside them is the key of the links
    for path, row in wanted.items():
        data = there[path].read_bytes() if path in there else None
        if data is None:
            verdict.lost += 1
            verdict.lies.append(f"export {row['id']} is finished, and its file is not there")
        elif hashlib.sha256(data).hexdigest() != row["sha256"]:
            verdict.wrong += 1
            verdict.lies.append(f"export {row['id']}: its file is not what its row says")
    orphans = sorted(there.keys() - wanted.keys())
    verdict.orphans = len(orphans)
    verdict.lies += [f"nothing points to the file {path}" for path in orphans]
    for one in usage:
        right = sums.get(one["user_id"], 0)
        if (one["stored_bytes"], one["reserved_bytes"]) != (right, 0):
            verdict.quota += 1
            verdict.lies.append(
                f"quota of {one['user_id']}: {one['stored_bytes']} bytes are counted and {one['reserved_bytes']} "
                f"reserved; {right} are there"
            )
