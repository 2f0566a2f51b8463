"""The records of the ZIP format (APPNOTE 6.3), for members that are stored and not packed.

Sizes and CRC stand in front of the data, where every unpacker finds them, also one that reads a
pipe; no record follows the data. Names are UTF-8 and marked as such. Times are written as UTC,
because a record has no zone. What does not fit into 32 bits goes into the records of ZIP64, and
only then are they written.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

FROM_64 = 0xFFFF_FFFF  # this number, and larger ones, need the records of ZIP64
ENTRIES_MAX = 0xFFFE
_IN_64 = 0xFFFF_FFFF
_UTF8 = 0x0800
_STORED = 0
_UNIX = 3 << 8
_FILE_0600 = 0o100600 << 16
_PLAIN, _ZIP64 = 20, 45


@dataclass(frozen=True, slots=True)
class Entry:
    """One member, and where its record begins."""

    name: str
    bytes: int
    crc32: int
    written_at: datetime
    offset: int


def local_header(name: str, size: int, crc32: int, written_at: datetime) -> bytes:
    """What stands before the data of a member."""
    large = size >= FROM_64
    extra = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
    said = _IN_64 if large else size
    title = name.encode()
    return (
        struct.pack(
            "<4sHHHIIIIHH",
            b"PK\x03\x04",
            _ZIP64 if large else _PLAIN,
            _UTF8,
            _STORED,
            _dos_time(written_at),
            crc32,
            said,
            said,
            len(title),
            len(extra),
        )
        + title
        + extra
    )


def directory(entries: Sequence[Entry], offset: int) -> bytes:
    """What stands at the end: one record for each member, and where the first of them is."""
    records = b"".join(map(_record, entries))
    large = offset >= FROM_64 or len(records) >= FROM_64
    end = b""
    if large:
        end += struct.pack(
            "<4sQHHIIQQQQ",
            b"PK\x06\x06",
            44,
            _UNIX | _ZIP64,
            _ZIP64,
            0,
            0,
            len(entries),
            len(entries),
            len(records),
            offset,
        )
        end += struct.pack("<4sIQI", b"PK\x06\x07", 0, offset + len(records), 1)
    count = len(entries)
    size, start = (_IN_64, _IN_64) if large else (len(records), offset)
    return records + end + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, size, start, 0)


def _record(entry: Entry) -> bytes:
    large, far = entry.bytes >= FROM_64, entry.offset >= FROM_64
    numbers = ([entry.bytes, entry.bytes] if large else []) + ([entry.offset] if far else [])
    extra = struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
    said = _IN_64 if large else entry.bytes
    title = entry.name.encode()
    version = _ZIP64 if numbers else _PLAIN
    return (
        struct.pack(
            "<4sHHHHIIIIHHHHHII",
            b"PK\x01\x02",
            _UNIX | version,
            version,
            _UTF8,
            _STORED,
            _dos_time(entry.written_at),
            entry.crc32,
            said,
            said,
            len(title),
            len(extra),
            0,
            0,
            0,
            _FILE_0600,
            _IN_64 if far else entry.offset,
        )
        + title
        + extra
    )


def _dos_time(moment: datetime) -> int:
    """Date and time in four bytes, in steps of two seconds from 1980 to 2107."""
    at = moment.astimezone(UTC)
    if at.year < 1980:
        at = datetime(1980, 1, 1, tzinfo=UTC)
    elif at.year > 2107:
        at = datetime(2107, 12, 31, 23, 59, 58, tzinfo=UTC)
    date = (at.year - 1980) << 9 | at.month << 5 | at.day
    return date << 16 | at.hour << 11 | at.minute << 5 | at.second // 2
