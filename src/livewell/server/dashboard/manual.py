"""A page of the documentation as HTML: headings, paragraphs, lists and code. Pure.

Our own pages are written with few means (Markdown), so few lines read them. Whatever is not known is
shown as the text that it is; everything is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape

_ITEM = re.compile(r"(?:\d+\.|-) +(.*)")
_HEADING = re.compile(r"#{1,4} +(.*)")
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Block:
    """kind: heading, text, steps (numbered), points or code."""

    kind: str
    lines: tuple[Markup, ...]


def blocks(text: str) -> list[Block]:
    """The parts of a page below its title, without the way back to its index."""
    return [_block(part) for part in _parts(text) if not part.startswith("All rules: [")]


def _parts(text: str) -> Iterator[str]:
    """Separated by empty lines, but for those in code."""
    within, part = False, list[str]()
    for line in text.splitlines():
        if line.startswith("```"):
            within = not within
        if (line.strip() or within) and not line.startswith("# "):
            part.append(line)
        elif part:
            yield "\n".join(part)
            part = []
    if part:
        yield "\n".join(part)


def _block(part: str) -> Block:
    heading = _HEADING.fullmatch(part)
    if heading is not None:
        return Block("heading", (_inline(heading[1]),))
    if part.startswith("```"):
        return Block("code", (escape("\n".join(part.splitlines()[1:]).removesuffix("```").rstrip()),))
    if _ITEM.match(part):
        kind = "points" if part.startswith("-") else "steps"
        return Block(kind, tuple(_inline(item) for item in _items(part)))
    return Block("text", (_inline(" ".join(part.split())),))


def _items(part: str) -> Iterator[str]:
    """One for each number or dash; lines that go on belong to the item before."""
    item = ""
    for line in part.splitlines():
        begun = _ITEM.match(line)
        if begun is not None:
            if item:
                yield item
            item = begun[1]
        else:
            item = f"{item} {line.strip()}"
    if item:
        yield item


def _inline(text: str) -> Markup:
    made, end = Markup(), 0
    for found in _INLINE.finditer(text):
        made += escape(text[end : found.start()])
        code, strong, words = found.groups()
        if code is not None:
            made += Markup("<code>{}</code>").format(code)
        elif strong is not None:
            made += Markup("<strong>{}</strong>").format(strong)
        else:
            made += _inline(words)  # pages refer to each other; here there is only this one
        end = found.end()
    return made + escape(text[end:])
