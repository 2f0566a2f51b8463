"""One value of an answer as its column wants it.

It has the exact type, is within the bounds, and is in a form that Postgres reads without rounding.

numeric → all digits as they came, trailing zeros included     bigint, integer → int     double → float     date → YYYY-MM-DD     timestamptz → ISO in UTC
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any, Self

import orjson

from livewell.refresh.definition.columns import JSON_BYTES_MAX
from livewell.refresh.definition.model import JSON, Column
from livewell.refresh.definition.times import TimeError, parse_date, parse_instant
from livewell.refresh.reasons import Reason
from livewell.refresh.validate.refusal import Refusal, show
from livewell.refresh.validate.strict_json import check_text

Convert = Callable[[object], JSON]

_EXACT = Context(prec=1000)  # more digits than any number that got here
_INTEGER = {"bigint": 2**63, "integer": 2**31}


def converter(column: Column) -> Convert:
    """The function for one column."""
    convert = _BY_TYPE[column.type](column)

    def cell(value: object) -> JSON:
        if value is None or (value == "" and column.empty_is_null):
            if column.nullable:
                return None
            raise _wrong(column, value, f"but the column says {column.type} and not nullable")
        return convert(value)

    return cell


def plain_number(number: int | Decimal) -> str:
    """The number as text, equal numbers equally."""
    if isinstance(number, int):
        return str(number)
    text = format(number.normalize(_EXACT), "f")
    return "0" if text == "-0" else text


class Digits(str):
    """A number as it came, digit by digit.

    Equal to whatever is the same number: 1.5 and 1.50 are one row, and one content.
    """

    __slots__ = ("canonical",)
    canonical: str

    def __new__(cls, number: int | Decimal) -> Self:
        """With the text that equal numbers share."""
        made = super().__new__(cls, format(number, "f") if isinstance(number, Decimal) else str(number))
        made.canonical = plain_number(number)
        return made

    def __eq__(self, other: object) -> bool:
        return self.canonical == other.canonical if isinstance(other, Digits) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: str) -> bool:
        return self.canonical < other.canonical if isinstance(other, Digits) else str.__lt__(self, other)

    def __hash__(self) -> int:
        return hash(self.canonical)


def canonical(value: object) -> str:
    """For the hash of a content, which is the same for equal numbers."""
    if isinstance(value, Digits):
        return value.canonical
    raise TypeError(f"{type(value).__name__} in a checked row")


def _wrong(column: Column, value: object, but: str, reason: Reason = Reason.WRONG_TYPE) -> Refusal:
    return Refusal(reason, f'"{".".join(column.path)}": {show(value)}, {but}', field=column.name)


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is Decimal


def _check_bounds(column: Column, value: Any, given: object) -> None:
    low, high = column.minimum, column.maximum
    if low is not None and (value <= low if column.above_min else value < low):
        raise _beyond(column, given, f"but the column allows {'more than' if column.above_min else 'from'} {low}")
    if high is not None and (value >= high if column.below_max else value > high):
        raise _beyond(column, given, f"but the column allows {'less than' if column.below_max else 'up to'} {high}")


def _beyond(column: Column, value: object, but: str) -> Refusal:
    return _wrong(column, value, but, Reason.OUT_OF_BOUNDS)


def _text(column: Column) -> Convert:
    length, one_of = column.max_length, frozenset(column.one_of)

    def convert(value: object) -> JSON:
        if type(value) is not str:
            raise _wrong(column, value, "but the column says text")
        if length is not None and len(value) > length:
            raise _beyond(column, value, f"but the column allows {length:,} characters, not {len(value):,}")
        if one_of and value not in one_of:
            raise _beyond(column, value, f"but the column allows only {', '.join(sorted(one_of))[:120]}")
        return value

    return convert


def _numeric(column: Column) -> Convert:
    def convert(value: object) -> JSON:
        if not _is_number(value):
            raise _wrong(column, value, "but the column says numeric")
        _check_bounds(column, value, value)
        return Digits(value)  # type: ignore[arg-type] # _is_number has looked

    return convert


def _integer(column: Column) -> Convert:
    limit = _INTEGER[column.type]

    def convert(value: object) -> JSON:
        if not _is_number(value) or (type(value) is Decimal and value.to_integral_value() != value):
            raise _wrong(column, value, f"but the column says {column.type}")
        number = int(value)  # type: ignore[call-overload] # _is_number has looked
        if not -limit <= number < limit:
            raise _beyond(column, value, f"but {column.type} cannot hold it")
        _check_bounds(column, number, value)
        return int(number)

    return convert


def _double(column: Column) -> Convert:
    def convert(value: object) -> JSON:
        if not _is_number(value):
            raise _wrong(column, value, "but the column says double")
        _check_bounds(column, value, value)
        try:
            number = float(value)  # type: ignore[arg-type] # _is_number has looked
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise _wrong(column, value, "but double cannot hold it", Reason.BAD_NUMBER)
        return number + 0.0  # not -0.0

    return convert


def _boolean(column: Column) -> Convert:
    def convert(value: object) -> JSON:
        if type(value) is not bool:
            raise _wrong(column, value, "but the column says boolean")
        return value

    return convert


def _date(column: Column) -> Convert:
    def convert(value: object) -> JSON:
        try:
            found: date = parse_date(value)
        except TimeError as error:
            raise _wrong(column, value, f"but the column wants {error}") from None
        _check_bounds(column, found, value)
        return found.isoformat()

    return convert


def _timestamptz(column: Column) -> Convert:
    def convert(value: object) -> JSON:
        try:
            found: datetime = parse_instant(value, column.format or "datetime", column.zone)
        except TimeError as error:
            raise _wrong(column, value, f"but the column wants {error}") from None
        _check_bounds(column, found, value)
        return found.isoformat()

    return convert


def _jsonb(column: Column) -> Convert:
    def convert(value: object) -> JSON:
        found = _storable(column, value)
        if len(orjson.dumps(found)) > (column.max_length or JSON_BYTES_MAX):
            raise _beyond(column, value, f"but the column allows {column.max_length or JSON_BYTES_MAX:,} bytes")
        return found

    return convert


def _storable(column: Column, value: Any) -> JSON:
    """Numbers as what any JSON writer writes exactly; the depth is bounded by strict_json."""
    if isinstance(value, dict):
        return {name: _storable(column, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_storable(column, inner) for inner in value]
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise _wrong(column, value, "but a jsonb column takes whole numbers of 64 bits", Reason.BAD_NUMBER)
    if type(value) is Decimal:
        number = float(value)
        if not math.isfinite(number) or Decimal(repr(number)) != value:
            raise _wrong(column, value, "but a jsonb column takes numbers of 17 digits", Reason.BAD_NUMBER)
        return number
    if isinstance(value, str):
        check_text(value)
    return value  # type: ignore[no-any-return] # null, true, false, a text or a small int


_BY_TYPE: dict[str, Callable[[Column], Convert]] = {
    "text": _text,
    "numeric": _numeric,
    "bigint": _integer,
    "integer": _integer,
    "double": _double,
    "boolean": _boolean,
    "date": _date,
    "timestamptz": _timestamptz,
    "jsonb": _jsonb,
}
