"""Wrap the prose of Markdown files: `python -m tools.wrap_markdown README.md docs/index.md`.

Only paragraphs, list items and footnotes with a line that is too long are written anew. Code
blocks, tables, headings, HTML and drawings stay as they are. Code spans are never broken, so a
search for a command or a test finds it on one line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WIDTH = 100

_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"(\s*)([-*+]|\d+[.)]|\[\^[\w-]+\]:)(\s+)")
_FIXED = re.compile(r"\s*(\||#|<|>|---)|\s*$")  # table, heading, HTML, quotation, rule, nothing
_MARKUP = re.compile(r"([-*+#>|=]|\d+[.)]$)")  # what would mean something else at the start of a line
_PIECE = re.compile(r"(?:`+[^`\n]+`+|\S)+")


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together, and whether they may be broken anew."""

    lines: list[str]
    prose: bool = True


def wrapped(text: str, width: int = WIDTH) -> str:
    """The same page, with no line of prose longer than `width` where it can be broken."""
    lines: list[str] = []
    for block in _blocks(text.split("\n")):
        broken_by_hand = any(line.endswith(("  ", "\\")) for line in block.lines)
        too_long = any(len(line) > width for line in block.lines)
        anew = block.prose and too_long and not broken_by_hand
        lines += _fill(block.lines, width) if anew else block.lines
    return "\n".join(lines)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines that `wrapped` may break, with their numbers."""
    number = 1
    for block in _blocks(text.split("\n")):
        if block.prose:
            yield from enumerate(block.lines, number)
        number += len(block.lines)


def can_be_broken(line: str, width: int = WIDTH) -> bool:
    """True if wrapping would make the line shorter: it is not one long link or one code span."""
    return len(_fill([line], width)) > 1


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Paragraphs, list items and footnotes; every other line alone."""
    block: list[str] = []
    fenced = False
    after_blank = True
    for line in lines:
        fence = _FENCE.match(line) is not None
        drawing = line.startswith("    ") and after_blank and not _ITEM.match(line)
        fixed = fenced or fence or drawing or _FIXED.match(line) is not None
        if block and (fixed or _ITEM.match(line)):
            yield _Block(block)
            block = []
        if fixed:
            yield _Block([line], prose=False)
            after_blank = drawing or not line.strip()
        else:
            block.append(line)
            after_blank = False
        fenced ^= fence
    if block:
        yield _Block(block)


def _fill(block: list[str], width: int) -> list[str]:
    """The words of a block on lines of at most `width`; the lines after the first are indented."""
    item = _ITEM.match(block[0])
    head = item.group() if item else block[0][: len(block[0]) - len(block[0].lstrip())]
    indent = " " * (4 if "[^" in head else len(head))
    lines: list[str] = []
    current = head
    empty = True
    for word in _words(" ".join([block[0][len(head) :], *block[1:]])):
        if not empty and len(current) + 1 + len(word) > width:
            lines.append(current)
            current, empty = indent, True
        current += word if empty else f" {word}"
        empty = False
    return [*lines, current]


def _words(text: str) -> list[str]:
    """Words; what would be markup at the start of a line is kept together with the word before."""
    words: list[str] = []
    for piece in _PIECE.findall(text):
        if words and _MARKUP.match(piece):
            words[-1] += f" {piece}"
        else:
            words.append(piece)
    return words


def main() -> None:
    """Wrap the files that are named."""
    for name in sys.argv[1:]:
        path = Path(name)
        before = path.read_text(encoding="utf-8")
        after = wrapped(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{name}: wrapped\n")


if __name__ == "__main__":
    main()
