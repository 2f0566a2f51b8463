"""Parse an answer strictly: what Postgres could not hold, or what two parsers would read differently, is refused with its own reason.

Numbers keep their digits (int or Decimal, never float). Refused: NaN and Infinity, numbers beyond 10^±308 or of more than 400 digits, an object with one name twice, NUL and
half surrogate pairs, more than 32 levels. The time is linear in the length of the body, which the caller has bounded.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from livewell.refresh.reasons import Reason
from livewell.refresh.refusal import Refusal

DEPTH_MAX = 32
_DIGITS_MAX = 400
_EXPONENT_MAX = 308


def parse(body: bytes) -> Any:
    """The value, or a Refusal."""
    if not body.strip():
        raise Refusal(Reason.EMPTY, "the answer has no body")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(Reason.NOT_UTF8, f"byte {error.start} is not UTF-8") from None
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Refusal(*_unreadable(text, error)) from None
    except RecursionError:
        raise Refusal(Reason.TOO_DEEP, f"nested more than {DEPTH_MAX} levels") from None
    _check_depth(value, body)
    if b"\\u0000" in body or b"\\ud" in body.lower():
        _check_texts(value)
    return value


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
    cut = closing is not None and (error.pos >= len(text.rstrip()) or not body.endswith(closing))
    what = f"{error.msg} at character {error.pos} of {len(text)}"
    return (Reason.TRUNCATED, f"it ends too early: {what}") if cut else (Reason.NOT_JSON, what)


def _float(text: str) -> Decimal:
    if len(text) > _DIGITS_MAX:
        raise Refusal(Reason.BAD_NUMBER, f"a number of {len(text)} characters")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise Refusal(Reason.BAD_NUMBER, f"{text[:40]} is beyond any number") from None
    if number and abs(number.adjusted()) > _EXPONENT_MAX:
        raise Refusal(Reason.BAD_NUMBER, f"{text[:40]} is too large or too small")
    return number if number else Decimal(0)


def _int(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise Refusal(Reason.BAD_NUMBER, f"a number of {len(text)} digits")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise Refusal(Reason.BAD_NUMBER, f"{text} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1) if len(names) < 1000 else names[0]
        raise Refusal(Reason.NOT_JSON, f'an object has "{twice[:60]}" twice')
    return found


_DECODER = json.JSONDecoder(parse_float=_float, parse_int=_int, parse_constant=_constant, object_pairs_hook=_object)


def _check_depth(value: object, body: bytes) -> None:
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX:
        return
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer if type(outer) is list else ())
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return
    raise Refusal(Reason.TOO_DEEP, f"nested more than {DEPTH_MAX} levels")


def _check_texts(value: object) -> None:
    level = [value]
    while level:
        inner: list[object] = []
        for outer in level:
            if isinstance(outer, str):
                check_text(outer)
            elif isinstance(outer, dict):
                inner += [*outer.keys(), *outer.values()]
            elif isinstance(outer, list):
                inner += outer
        level = inner
