"""Answers of the database as values, and its refusals as exceptions with the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from livewell.errors import ExportDailyLimit, ExportQuotaFull, InvalidOption, LivewellError
from livewell.exports.model import BatchFiles, Document, Requested
from livewell.exports.zip.archive import Member
from livewell.exports.zip.names import safe_name


def requested(one: Document) -> Requested:
    """One export of an answer."""
    return Requested(UUID(one["id"]), one["answer"], one["state"], one["seq"])


def check_made(answer: Document) -> None:
    """Refusals of request_exports as exceptions, with the numbers."""
    match answer["answer"]:
        case "full":
            raise ExportQuotaFull(
                used=answer["stored"], reserved=answer["reserved"], allowed=answer["allowed"], needed=answer["needs"]
            )
        case "daily":
            raise ExportDailyLimit(
                used=answer["used"], allowed=answer["allowed"], resets_at=datetime.fromisoformat(answer["resets_at"])
            )
        case "kind":
            raise InvalidOption(f"kind {answer['kind']!r}: there are {', '.join(answer['allowed']) or 'none'}")
        case "template":
            raise InvalidOption(f"options: template {answer['template']!r}: there are {', '.join(answer['allowed'])}")
        case "made":
            return
    raise LivewellError(f"request_exports answered {answer['answer']}")


def check_text(what: str, text: str, bytes_max: int) -> None:
    """Refuse what the table would refuse, by its name and not by its value."""
    if not text or "\0" in text or len(text.encode()) > bytes_max:
        raise InvalidOption(f"{what}: 1 to {bytes_max} bytes are allowed, without NUL")


def file_name(name: str, suffix: str) -> str:
    """A name that every file system takes, with its suffix once."""
    found = safe_name(name.removesuffix(f".{suffix}"))
    return f"{found.encode()[: 250 - len(suffix)].decode(errors='ignore')}.{suffix}"


def batch_files(batch: UUID, rows: Sequence[Document]) -> BatchFiles:
    """What the ZIP of a batch is made of."""
    members = tuple(
        Member(
            name=row["file_name"],
            path=row["path"] if row["status"] == "finished" else None,
            bytes=row["bytes"] or 0,
            crc32=row["crc32"] or 0,
            sha256=bytes.fromhex(row["sha256"] or ""),
            status=row["status"],
            written_at=datetime.fromisoformat(row["finished_at"]) if row["finished_at"] else None,
        )
        for row in rows
    )
    ready = tuple(UUID(row["export"]) for row, member in zip(rows, members, strict=True) if member.path is not None)
    return BatchFiles(batch, members, ready, Counter(row["status"] for row in rows))
