"""Which characters can be printed: read from the fonts themselves, before anything is rendered.

    file ──▶ table `cmap` ──▶ ranges of characters ──▶ a text has a character that no font has: its name

A missing glyph is never printed as an empty box (tofu): the render is refused, naming the field and
the character. Noto Sans with Latin, Greek and Cyrillic comes with the package; folders of further
fonts (Chinese, Japanese, Korean, Arabic, emoji) are a setting.

The parser is ours because the child needs one table of each file and nothing else, in 2 ms.
"""

from __future__ import annotations

import os
import struct
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

FONTS: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fonts")  # noqa: PTH100, PTH118, PTH120
_SUFFIXES = (".ttf", ".otf", ".ttc", ".otc")
_FILES_MAX = 500
_IGNORED = frozenset("\n")  # it is a break, and draws nothing

# What `livewell exports fonts` tells of: a script, and characters that stand for it.
SCRIPTS: Final[dict[str, str]] = {
    "Latin": "AZazÀÿĀž",
    "Vietnamese": "ơưạệ",
    "Greek": "ΑΩαωάώ",
    "Cyrillic": "АЯаяЁЄЇҐ",
    "Hebrew": "אבתם",
    "Arabic": "ابيه",
    "Devanagari": "अकह",
    "Thai": "กขฮ",
    "Chinese": "中国汉语",
    "Japanese": "日本かな",
    "Korean": "한국어",
    "Emoji": "😀🚀",
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """One font file, and the characters it has: first and last of each range."""

    file: str
    ranges: tuple[tuple[int, int], ...]

    @property
    def characters(self) -> int:
        """How many there are."""
        return sum(last - first + 1 for first, last in self.ranges)


class Characters:
    """All characters of all fonts."""

    def __init__(self, fonts: Iterable[Coverage]) -> None:
        self._known = frozenset(
            character for font in fonts for first, last in font.ranges for character in range(first, last + 1)
        )

    def __contains__(self, character: str) -> bool:
        return character in _IGNORED or ord(character) in self._known

    def missing(self, text: str) -> str | None:
        """The first character of a text that no font has."""
        return next((character for character in text if character not in self), None)


def coverage(folders: Iterable[str] = ()) -> list[Coverage]:
    """Every font file of the package and of these folders, with its characters."""
    return [Coverage(file, _ranges(file)) for file in _files((FONTS, *folders))]


def scripts(fonts: Iterable[Coverage]) -> dict[str, bool]:
    """Which scripts can be printed with these fonts."""
    known = Characters(fonts)
    return {script: known.missing(sample) is None for script, sample in SCRIPTS.items()}


def character_name(character: str) -> str:
    """U+1F600 GRINNING FACE: our words for a character, never the character itself."""
    return f"U+{ord(character):04X} {unicodedata.name(character, 'without a name')}"


def _files(folders: Iterable[str]) -> list[str]:
    found = []
    for folder in folders:
        for path, _, names in sorted(os.walk(folder)):
            found += [os.path.join(path, name) for name in sorted(names) if name.lower().endswith(_SUFFIXES)]  # noqa: PTH118
    return found[:_FILES_MAX]


def _ranges(file: str) -> tuple[tuple[int, int], ...]:
    """The ranges of every face of a file; none if it is no font."""
    with open(file, "rb") as opened:  # noqa: PTH123 - pathlib is not needed in the child
        data = opened.read()
    found: set[tuple[int, int]] = set()
    try:
        # The faces of a collection share a table.
        for kind, at in {table for face in _faces(data) for table in _tables(data, face)}:
            found.update(_groups(data, at) if kind == 12 else _segments(data, at))
    except (struct.error, IndexError):
        return ()
    return tuple(_joined(sorted(found)))


def _joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges that touch become one."""
    begin, end = -2, -2
    for first, last in ranges:
        if first > end + 1:
            if end >= 0:
                yield begin, end
            begin = first
        end = max(end, last)
    if end >= 0:
        yield begin, end


def _faces(data: bytes) -> Iterator[int]:
    """Where each face begins; a collection has several."""
    if data[:4] == b"ttcf":
        (count,) = struct.unpack_from(">I", data, 8)
        yield from struct.unpack_from(f">{min(count, 100)}I", data, 12)
    elif data[:4] in {b"\0\1\0\0", b"OTTO", b"true"}:
        yield 0


def _tables(data: bytes, face: int) -> Iterator[tuple[int, int]]:
    """The best table for Unicode, format 12 before format 4, and where it is."""
    (tables,) = struct.unpack_from(">H", data, face + 4)
    for at in range(face + 12, face + 12 + 16 * tables, 16):
        tag, _, start, _ = struct.unpack_from(">4sIII", data, at)
        if tag == b"cmap":
            break
    else:
        return
    (count,) = struct.unpack_from(">H", data, start + 2)
    formats = {}
    for at in range(start + 4, start + 4 + 8 * count, 8):
        platform, encoding, offset = struct.unpack_from(">HHI", data, at)
        if platform == 0 or (platform == 3 and encoding in {1, 10}):
            (kind,) = struct.unpack_from(">H", data, start + offset)
            formats[kind] = start + offset
    for kind in (12, 4):
        if kind in formats:
            yield kind, formats[kind]
            return


def _groups(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    (count,) = struct.unpack_from(">I", data, at + 12)
    for first, last, _ in struct.iter_unpack(">III", data[at + 16 : at + 16 + 12 * count]):
        yield first, min(last, 0x10FFFF)


def _segments(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """A segment may map characters to glyph 0, which is the empty box: those do not count."""
    (double,) = struct.unpack_from(">H", data, at + 6)
    count = double // 2
    ends = struct.unpack_from(f">{count}H", data, at + 14)
    starts = struct.unpack_from(f">{count}H", data, at + 16 + double)
    deltas = struct.unpack_from(f">{count}H", data, at + 16 + 2 * double)
    offsets = struct.unpack_from(f">{count}H", data, at + 16 + 3 * double)
    for number, (first, last, delta, offset) in enumerate(zip(starts, ends, deltas, offsets, strict=True)):
        if offset == 0:
            yield from _without_zero(first, min(last, 0xFFFE), delta)
            continue
        base = at + 16 + 3 * double + 2 * number + offset
        for character in range(first, min(last, 0xFFFE) + 1):
            if struct.unpack_from(">H", data, base + 2 * (character - first)) != (0,):
                yield character, character


def _without_zero(first: int, last: int, delta: int) -> Iterator[tuple[int, int]]:
    zero = -delta % 0x10000
    if not first <= zero <= last:
        if first <= last:
            yield first, last
        return
    if first < zero:
        yield first, zero - 1
    if zero < last:
        yield zero + 1, last
