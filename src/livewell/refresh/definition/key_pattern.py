r"""Which keys a type has: a small regular language.

It has no groups, alternatives, anchors or unbounded repeats.

    [A-Z0-9.^=-]{1,20}     a class with a count          literals:  A-Z a-z 0-9 _ - : / , @ = ~ # % & ! and \ before . ^ $ + * ? ( ) | [ ] { }
    US[0-9]{10}            literals and classes          classes:   the same characters and . ^ + $ *, ranges within A-Z, a-z, 0-9; no negation
    [A-Z]{3}/[A-Z]{3}      ? is {0,1}                    counts:    {n}, {n,m}

A pattern means the same to Postgres (livewell.key_fits), where strangers' keys are checked before
anything else. Here it is matched by walking all places at once, so the time is the length of the
key times the length of the pattern, whatever the pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PATTERN_CHARS_MAX = 200
KEY_BYTES_MAX = 200
_ITEMS_MAX = 50

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-:/,@=~#%&! ")
_ESCAPED = frozenset(".^$+*?()|[]{}")
_IN_CLASS = _PLAIN | frozenset(".^+$*")
_COUNT = re.compile(r"\{(\d{1,3})(?:,(\d{1,3}))?\}|\?")
_RANGE = re.compile(r"[A-Z]-[A-Z]|[a-z]-[a-z]|[0-9]-[0-9]")


class PatternError(ValueError):
    """The text is not in the language; the message says where and what is allowed."""


@dataclass(frozen=True, slots=True)
class Item:
    """Some characters, and how often one of them comes."""

    characters: frozenset[str]
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class KeyPattern:
    """A parsed pattern."""

    text: str
    items: tuple[Item, ...] = field(repr=False)

    def fits(self, key: str) -> bool:
        """Whether the whole key is in the language."""
        if not key.isascii() or not 1 <= len(key) <= KEY_BYTES_MAX:
            return False
        places = {0}  # how much of the key the items so far may have taken
        for item in self.items:
            places = _advance(item, key, places)
            if not places:
                return False
        return len(key) in places


def _advance(item: Item, key: str, places: set[int]) -> set[int]:
    """Where one item may end, given where it may begin."""
    ends: set[int] = set()
    run = 0  # how many fitting characters stand before this place
    runs = [0]
    for character in key:
        run = run + 1 if character in item.characters else 0
        runs.append(run)
    for end, length in enumerate(runs):
        low, high = end - min(item.most, length), end - item.least
        if any(low <= begin <= high for begin in places):
            ends.add(end)
    return ends


def parse(text: str) -> KeyPattern:
    """Read a pattern, or say what is wrong with it."""
    if not 1 <= len(text) <= PATTERN_CHARS_MAX or not text.isascii():
        raise PatternError(f"1 to {PATTERN_CHARS_MAX} ASCII characters are allowed")
    items: list[Item] = []
    place = 0
    while place < len(text):
        characters, place = _characters(text, place)
        count = _COUNT.match(text, place)
        least, most = _counted(count, place) if count else (1, 1)
        place = count.end() if count else place
        items.append(Item(characters, least, most))
    if len(items) > _ITEMS_MAX:
        raise PatternError(f"{len(items)} parts: at most {_ITEMS_MAX} are allowed")
    if sum(item.most for item in items) > KEY_BYTES_MAX:
        raise PatternError(f"keys could be longer than {KEY_BYTES_MAX} characters; give smaller counts")
    if not any(item.least for item in items):
        raise PatternError("an empty key would fit; one part must come at least once")
    return KeyPattern(text, tuple(items))


def _counted(count: re.Match[str], place: int) -> tuple[int, int]:
    if count[0] == "?":
        return 0, 1
    least = int(count[1])
    most = least if count[2] is None else int(count[2])
    if not 0 <= least <= most or not 1 <= most <= KEY_BYTES_MAX:
        raise PatternError(f"{count[0]} at {place}: counts go from 0 to {KEY_BYTES_MAX}, the smaller first")
    return least, most


def _characters(text: str, place: int) -> tuple[frozenset[str], int]:
    first = text[place]
    if first == "[":
        end = text.find("]", place)
        if end < 0:
            raise PatternError(f"the class that begins at {place} has no ]")
        return _class(text[place + 1 : end], place), end + 1
    if first == "\\":
        if place + 1 == len(text) or text[place + 1] not in _ESCAPED:
            raise PatternError(f"\\ at {place}: it may only stand before one of . ^ $ + * ? ( ) | [ ] {{ }}")
        return frozenset(text[place + 1]), place + 2
    if first not in _PLAIN:
        raise PatternError(
            f"{first!r} at {place}: literals, classes like [A-Z0-9.] and counts like {{1,20}} are allowed; write \\{first} for the character itself"
        )
    return frozenset(first), place + 1


def _class(body: str, place: int) -> frozenset[str]:
    if not body or body.startswith("^"):
        raise PatternError(f"the class at {place} is empty or negated; name the characters that are allowed")
    found: set[str] = set()
    at = 0
    while at < len(body):
        span = _RANGE.match(body, at)
        if span:
            if span[0][0] > span[0][2]:
                raise PatternError(f"the range {span[0]} at {place} runs backwards")
            found |= set(map(chr, range(ord(span[0][0]), ord(span[0][2]) + 1)))
            at += 3
            continue
        if body[at] == "-" and 0 < at < len(body) - 1:
            raise PatternError(f"the class at {place}: - stands first, last, or within A-Z, a-z or 0-9")
        if body[at] not in _IN_CLASS:
            raise PatternError(f"{body[at]!r} in the class at {place} is not allowed there")
        found.add(body[at])
        at += 1
    return frozenset(found)
