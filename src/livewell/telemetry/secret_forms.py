"""Find a secret whose value we know in somebody else's text, however it is written there.

An upstream that repeats our credential may do so in capitals, percent-encoded, with JSON or HTML
escapes, in base64 or in hex, or in a mixture of these. Pure, and below everything else.

The search follows a text by all its readings at once ("%41" is A, and it is also %, 4, 1) with one
bit for every character of every form of the secret (Shift-And). So its time is linear in the text,
and no context can hide a secret: "%4" before one that begins with 1 is read both ways. About 1 µs
for a character; a text without escapes is only searched with str.find.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import unescape
from html.entities import html5
from urllib.parse import quote, unquote

from livewell.telemetry.redact import MASK

__all__ = ["SECRET_CHARS_MIN", "TEXT_CHARS_MAX", "Secrets", "secrets_of"]

SECRET_CHARS_MIN = 4  # what is shorter is a part of ordinary words
_VALUE_CHARS_MIN = 8  # a good value may hold a short word like "demo" by chance
TEXT_CHARS_MAX = 16_384  # 50 ms where all of it is escapes
_ESCAPE_CHARS_MAX = 64  # of the longest way to write one character
_NAMED = {name.rstrip(";"): text for name, text in html5.items() if len(text) == 1 and " " <= text <= "~"}

# A character that begins an escape may be escaped itself.
_BACKSLASH = r"(?:\\{1,8}|%(?:25){0,2}5[Cc]|&[#]0{0,5}92;|&[#][xX]0{0,5}5[cC];|&bsol;)"
_PERCENT = r"(?:%|\\{1,8}u0025|&(?:amp;)?[#]0{0,5}37;|&(?:amp;)?[#][xX]0{0,5}25;|&(?:amp;)?percnt;)"
_AMPERSAND = r"(?:&|\\{1,8}u0026|%(?:25){0,2}26)(?:amp;){0,3}"
_HASH = r"(?:[#]|%(?:25){0,2}23)"
_NAMES = "|".join(sorted(_NAMED, key=len, reverse=True))
_ESCAPES = (
    re.compile(rf"{_PERCENT}(?P<more>(?:25){{0,3}})(?P<hexadecimal>[0-9A-Fa-f]{{2}})"),
    re.compile(
        rf"""(?x) {_AMPERSAND}
        (?: {_HASH} (?: [xX]0{{0,6}}(?P<hexadecimal>[0-9A-Fa-f]{{2}}) | 0{{0,6}}(?P<decimal>[0-9]{{2,3}}) ) | (?P<name>{_NAMES}) )
        (?P<end>;|%(?:25){{0,2}}3[Bb])?"""
    ),
    re.compile(
        rf"""(?x) {_BACKSLASH}
        (?: [uU](?:0{{6}}|0{{2}})(?P<hexadecimal>[0-9A-Fa-f]{{2}}) | u\{{0{{0,4}}(?P<braced>[0-9A-Fa-f]{{2}})\}} | x(?P<byte>[0-9A-Fa-f]{{2}}) | (?P<itself>["'/\\]) )"""
    ),
)
_BEGINS = frozenset("%&\\")
_BEGIN = re.compile(r"[%&\\]")
_UNICODE = re.compile(r"\\{1,8}u00([0-9A-Fa-f]{2})")
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_=-]+")


class Secrets:
    """Values that must not be seen. Without one (or with short ones only) nothing is hidden."""

    def __init__(self, values: Iterable[str]) -> None:
        known = sorted({value for value in values if len(value) >= SECRET_CHARS_MIN})
        self._values = [value for value in known if len(value) >= _VALUE_CHARS_MIN]
        plain = [form for value in known for form in _plain_forms(value)]
        packed = [form for value in known for form in _base64_cores(value)]
        self._forms = [form.lower() for form in (*plain, *packed)]
        self._bits: dict[str, int] = {}
        self._first = self._last = self._packed = 0
        place = 0
        for number, form in enumerate(self._forms):
            self._add(form, place, packed=number >= len(plain))
            place += len(form)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def hide(self, text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
        """The text with every secret masked, and cut only then.

        Half a secret would not be found any more.

        So much of a long text is searched as the cut needs; at the end of that, what might be the
        beginning of a secret is masked too.
        """
        if self._forms:
            window = text[: min(TEXT_CHARS_MAX, 2 * chars_max + 256)]
            cut = len(text) > len(window)
            text = _masked(window, self._marks(window, cut=cut)) if cut or self._may_hold(window) else window
        return text[:chars_max]

    def is_in(self, data: bytes) -> bool:
        """True if data (JSON of any size) holds a secret of 8 characters or more.

        Quicker than hide, and does not see every mixture of escapes.
        """
        if not self._values:
            return False
        forms, low = _byte_forms(tuple(self._values)), data.lower()
        if any(form in low for form in forms):
            return True
        if not any(begin in data for begin in (b"%", b"&", b"\\")):
            return False
        low = _decoded(_decoded(data.decode(errors="replace"))).lower().encode(errors="replace")
        return any(form in low for form in forms)

    def _add(self, form: str, place: int, *, packed: bool) -> None:
        for offset, character in enumerate(form):
            bit = 1 << (place + offset)
            alike = {character, character.upper()}
            if packed:  # the alphabet for addresses
                alike |= {"+": {"-"}, "/": {"_"}}.get(character, set())
                self._packed |= bit
            for one in alike:
                self._bits[one] = self._bits.get(one, 0) | bit
        self._first |= 1 << place
        self._last |= 1 << (place + len(form) - 1)

    def _may_hold(self, text: str) -> bool:
        if any(escape.match(text, begin.start()) for begin in _BEGIN.finditer(text) for escape in _ESCAPES):
            return True
        low = text.lower().translate(_STANDARD)
        return any(form.translate(_STANDARD) in low for form in self._forms)

    def _bits_of(self, character: str) -> int:
        """The places in the forms where it fits.

        Unicode has a few more capitals: the Kelvin sign is a K.
        """
        bits = self._bits.get(character)
        if bits is None:
            bits = 0 if character.isascii() else self._bits.get(character.lower(), 0)
        return bits

    def _marks(self, text: str, *, cut: bool) -> bytearray:
        """For each character whether it belongs to a secret.

        Of a text that was cut, also to the beginning of one.
        """
        readings: list[tuple[int, int, int]] = []  # from, to, the bits that this character of the text leads to
        reached = [0] * (len(text) + 1)  # by place in the text: the bits of the forms that may have come so far
        for place, character in enumerate(text):
            before = reached[place] << 1 | self._first
            met = before & self._bits_of(character)
            if met:
                reached[place + 1] |= met
                readings.append((place, place + 1, met))
            if character in _BEGINS:
                for end, one in _escapes(text, place):
                    met = before & self._bits_of(one)
                    reached[end] |= met
                    readings.append((place, end, met))
        marks = bytearray(len(text))
        ends = len(text) - _ESCAPE_CHARS_MAX if cut else len(reached)  # an escape may have been cut, too
        whole = [bits & self._last if place < ends else bits for place, bits in enumerate(reached)]
        for place, end, met in reversed(readings):
            led = whole[end] & met
            if led:
                whole[place] |= led >> 1 & reached[place]
                mark = 2 if led & self._packed else 1
                marks[place:end] = bytes([mark]) * (end - place)
        if cut:
            marks[max(0, ends) :] = b"\x01" * (len(text) - max(0, ends))
        return _spread(text, marks)


_STANDARD = str.maketrans("-_", "+/")  # both alphabets of base64 as one, only to see whether to look closer


def _escapes(text: str, place: int) -> Iterator[tuple[int, str]]:
    """Where an escape that begins here ends, and which character it is; by all ways to read it."""
    for escape in _ESCAPES:
        found = escape.match(text, place)
        if found is not None:
            yield from _escaped(found.groupdict(), found)
    if text.startswith("&amp;", place):  # of &amp;lt; the first reading is <
        yield place + 5, "&"


def _escaped(parts: dict[str, str | None], found: re.Match[str]) -> Iterator[tuple[int, str]]:
    number, decimal = parts["hexadecimal"] or parts.get("braced") or parts.get("byte"), parts.get("decimal")
    if number:
        one = chr(int(number, 16))
    elif decimal:
        one = chr(int(decimal))
        if len(decimal) == 3:  # &#991 may be c and a 1
            yield found.start("decimal") + 2, chr(int(decimal[:2]))
    else:
        one = parts.get("itself") or _NAMED[parts["name"] or "amp"]
    yield found.end(), one
    if parts.get("end"):
        yield found.start("end"), one
    for more in range(len(parts.get("more") or "") // 2):  # %2541 is A encoded twice, but it begins with %25
        yield found.start("more") + 2 * more + 2, "%"


def _spread(text: str, marks: bytearray) -> bytearray:
    """Of base64 hide the whole word.

    What is around a secret in it (a name, the rest of an address) cannot be told apart.
    """
    if 2 in marks:
        for run in _BASE64_RUN.finditer(text):
            if 2 in marks[run.start() : run.end()]:
                marks[run.start() : run.end()] = b"\x02" * (run.end() - run.start())
    return marks


def _masked(text: str, marks: bytearray) -> str:
    if not any(marks):
        return text
    runs = re.finditer(rb"\x00+|[^\x00]+", bytes(marks))
    return "".join(MASK if run[0][0] else text[run.start() : run.end()] for run in runs)


@lru_cache(maxsize=256)  # a search is built in 0.5 ms
def secrets_of(*values: str) -> Secrets:
    """The same Secrets for the same values."""
    return Secrets(values)


def _plain_forms(value: str) -> list[str]:
    data = _data(value)
    return [value, data.hex(), *([] if value.isascii() else [quote(data, safe="")])]


def _base64_cores(value: str) -> list[str]:
    """What base64 makes of it, by where it stands in a group of three bytes.

    The characters that depend on it alone.
    """
    data = _data(value)
    cores = []
    for offset, skip in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(b"\x00" * offset + data).decode()
        cores.append(text[skip : (offset + len(data)) * 8 // 6])
    return cores


def _data(value: str) -> bytes:
    return value.encode(errors="surrogateescape")  # as the environment has it


def _decoded(text: str) -> str:
    return unescape(unquote(_UNICODE.sub(lambda found: chr(int(found[1], 16)), text)))


@lru_cache(maxsize=64)
def _byte_forms(values: tuple[str, ...]) -> tuple[bytes, ...]:
    forms = set()
    for value in values:
        plain = [value, quote(_data(value), safe=""), value.replace("\\", "\\\\").replace('"', '\\"')]
        packed = _base64_cores(value)
        forms |= {*plain, *packed, *(core.replace("+", "-").replace("/", "_") for core in packed), _data(value).hex()}
    return tuple(sorted(form.lower().encode() for form in forms))
