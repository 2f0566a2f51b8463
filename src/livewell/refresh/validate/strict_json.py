"""Parse an answer strictly, and give each refusal its own reason.

Refused is what Postgres could not hold, or what two parsers would read differently.

Numbers keep their digits (int or Decimal, never float). The whole document is refused where nobody
can say what it is: not JSON, cut off, more than 32 levels. Poison is bad in one place and leaves
the rest readable: NaN and Infinity, numbers beyond 10^±308 or of more than 400 digits, an object
with one name twice, NUL and half surrogate pairs. It stays where it stands, as a Poison or a Twice,
so that the caller can refuse one row and not its neighbours (R14); find_poison() finds it. The time
is linear in the length of the body, which the caller has bounded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from livewell.refresh.reasons import Reason
from livewell.refresh.validate.refusal import Refusal, cut

DEPTH_MAX = 32
_DIGITS_MAX = 400
_EXPONENT_MAX = 308


@dataclass(frozen=True, slots=True)
class Poison:
    """Stands for a number that is none."""

    reason: Reason
    detail: str


class Twice(dict[str, Any]):
    """An object with a name twice: what it says under that name is anybody's guess."""

    __slots__ = ("names",)

    def __init__(self, pairs: list[tuple[str, Any]], names: list[str]) -> None:
        super().__init__(pairs)
        self.names = names


@dataclass(frozen=True, slots=True)
class Document:
    """What was parsed, and whether there may be poison in it."""

    value: Any
    suspect: bool


def parse(body: bytes) -> Document:
    """The document, or a Refusal."""
    if not body.strip():
        raise Refusal(Reason.EMPTY, "the answer has no body")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(Reason.NOT_UTF8, f"byte {error.start} is not UTF-8") from None
    if "\x00" in text[:4]:
        raise Refusal(Reason.NOT_JSON, "every other byte is NUL, as in UTF-16; JSON is UTF-8")
    decoder = _Decoder()
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Refusal(*_unreadable(text, error)) from None
    except RecursionError:
        raise Refusal(Reason.TOO_DEEP, f"nested more than {DEPTH_MAX} levels") from None
    _check_depth(value, body)
    return Document(value, decoder.poisoned or b"\\u0000" in body or b"\\ud" in body.lower())


def find_poison(value: object, *, outside: Collection[int] = ()) -> Refusal | None:
    """The first poison in it, if there is any.

    Objects whose id() is in `outside` are not looked into.
    """
    level = [value]
    while level:
        inner: list[object] = []
        for outer in level:
            if id(outer) in outside:
                continue
            found = _poison(outer)
            if found is not None:
                return found
            if isinstance(outer, dict):
                inner += [*outer.keys(), *outer.values()]
            elif isinstance(outer, list):
                inner += outer
        level = inner
    return None


def check_text(text: str) -> None:
    """Refuse what a Postgres text cannot hold."""
    if "\x00" in text:
        raise Refusal(Reason.BAD_TEXT, "a text contains NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal(Reason.BAD_TEXT, "a text contains half a surrogate pair") from None


def _unreadable(text: str, error: json.JSONDecodeError) -> tuple[Reason, str]:
    """Cut off or never JSON: nothing that begins with a bracket and was cut ends with the bracket that closes it."""
    body = text.strip()
    closing = {"[": "]", "{": "}"}.get(body[:1])
    cut_off = closing is not None and (error.pos >= len(text.rstrip()) or not body.endswith(closing))
    what = f"{error.msg} at character {error.pos} of {len(text)}"
    return (Reason.TRUNCATED, f"it ends too early: {what}") if cut_off else (Reason.NOT_JSON, what)


def _poison(value: object) -> Refusal | None:
    if isinstance(value, Poison):
        return Refusal(value.reason, value.detail)
    if isinstance(value, Twice):
        return Refusal(Reason.NOT_JSON, f'an object has "{cut(value.names[0])}" twice')
    if isinstance(value, str):
        try:
            check_text(value)
        except Refusal as refusal:
            return refusal
    return None


def _zero(number: Decimal) -> Decimal:
    """0.00 has its digits, too; there is no -0, and no zero with a thousand of them."""
    return number.copy_abs() if -_DIGITS_MAX <= int(number.as_tuple().exponent) <= 0 else Decimal(0)


class _Decoder:
    """One parse, and whether it met poison."""

    def __init__(self) -> None:
        self.poisoned = False
        self.decode = json.JSONDecoder(
            parse_float=self._float,
            parse_int=self._int,
            parse_constant=lambda text: self._bad(f"{text} is not a JSON number"),
            object_pairs_hook=self._object,
        ).decode

    def _bad(self, detail: str) -> Poison:
        self.poisoned = True
        return Poison(Reason.BAD_NUMBER, detail)

    def _float(self, text: str) -> Decimal | Poison:
        if len(text) > _DIGITS_MAX:
            return self._bad(f"a number of {len(text)} characters")
        try:
            number = Decimal(text)
        except InvalidOperation:
            return self._bad(f"{cut(text, 40)} is beyond any number")
        if number and abs(number.adjusted()) > _EXPONENT_MAX:
            return self._bad(f"{cut(text, 40)} is too large or too small")
        return number if number else _zero(number)

    def _int(self, text: str) -> int | Poison:
        return int(text) if len(text) <= _DIGITS_MAX else self._bad(f"a number of {len(text)} digits")

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self.poisoned = True
        counted = Counter(name for name, _ in pairs)
        return Twice(pairs, [name for name, times in counted.items() if times > 1])


def _check_depth(value: object, body: bytes) -> None:
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX:
        return
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if type(outer) is list else ())
            if isinstance(inner, dict) or type(inner) is list
        ]
        if not level:
            return
    raise Refusal(Reason.TOO_DEEP, f"nested more than {DEPTH_MAX} levels")
