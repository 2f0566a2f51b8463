"""Read the [columns] table: types from a closed list, bounds of the column's own type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast, get_args

from livewell.refresh.definition.model import COLUMNS_MAX, Bound, Column, ColumnType, Moment, TimeFormat
from livewell.refresh.definition.table import Table
from livewell.refresh.definition.times import TimeError, parse_date, parse_instant

# Always quoted, so a word of SQL is as good as any other; <name>_bounds must fit into 63 bytes.
COLUMN_NAME = re.compile(r"[A-Za-z0-9_]{1,56}")
_RESERVED = {"key", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}  # ours, and those every table has
_NUMBERS = ("numeric", "bigint", "integer", "double")
_BOUNDED = (*_NUMBERS, "date", "timestamptz")
TEXT_CHARS_MAX = 10_000  # unless the column says otherwise
JSON_BYTES_MAX = 100_000
_LENGTH_MAX = 1_000_000


def read_columns(value: object, where: str) -> tuple[Column, ...]:
    """In the order of the file."""
    table = Table(value, f"{where}: [columns]")
    assert isinstance(value, Mapping)  # noqa: S101 - Table insists
    if not 1 <= len(value) <= COLUMNS_MAX:
        table.refuse(f"{len(value)} columns: 1 to {COLUMNS_MAX} are allowed")
    for name in value:
        if not isinstance(name, str) or not COLUMN_NAME.fullmatch(name) or name.lower() in _RESERVED:
            table.wrong("name", name, f"1 to 56 of A-Z a-z 0-9 _ are allowed, but not {', '.join(sorted(_RESERVED))}")
    return tuple(_column(name, Table(inner, f'{where}: column "{name}"')) for name, inner in value.items())


def read_moment(table: Table) -> Moment:
    """A field with a time in it."""
    path = table.path("field")
    if path is None:
        table.refuse('"field" is missing')
    form = cast("TimeFormat", table.word("format", get_args(TimeFormat)))
    zone = table.zone("zone", default="UTC")
    table.done()
    return Moment(path, form, zone)


def _column(name: str, table: Table) -> Column:
    kind = cast("ColumnType", table.word("type", get_args(ColumnType)))
    path = table.path("from", default=name)
    nullable = table.flag("nullable")
    form, zone = _time(table, kind)
    bounds = {option: table.take(option) for option in ("min", "max")}
    above_min, below_max = table.flag("above_min"), table.flag("below_max")
    minimum, maximum = (_bound(table, option, value, kind) for option, value in bounds.items())
    if (above_min and minimum is None) or (below_max and maximum is None):
        table.refuse("above_min needs min, below_max needs max")
    if minimum is not None and maximum is not None and _crossed(minimum, maximum, strict=above_min or below_max):
        table.refuse(f"min {bounds['min']} and max {bounds['max']} leave nothing between them")
    max_length = _length(table, kind)
    one_of = table.texts("one_of", 100, 200)
    empty_is_null = table.flag("empty_is_null")
    if (one_of or empty_is_null) and kind != "text" and not (empty_is_null and kind in ("date", "timestamptz")):
        table.refuse(f"one_of and empty_is_null are for text (empty_is_null also for dates), not for {kind}")
    if empty_is_null and not nullable:
        table.refuse("empty_is_null needs nullable = true")
    table.done()
    assert path is not None  # noqa: S101 - has a default
    return Column(
        name,
        path,
        kind,
        nullable,
        minimum,
        maximum,
        above_min,
        below_max,
        max_length,
        one_of,
        empty_is_null,
        form,
        zone,
    )


def _time(table: Table, kind: str) -> tuple[TimeFormat | None, str]:
    if kind != "timestamptz":
        for option in ("format", "zone"):
            value = table.take(option)
            if value is not None:
                table.wrong(option, value, "it belongs to type timestamptz")
        return None, "UTC"
    form = table.word("format", ("unix_seconds", "unix_millis", "datetime"), default="datetime")
    return cast("TimeFormat", form), table.zone("zone", default="UTC")


def _length(table: Table, kind: str) -> int | None:
    if kind not in ("text", "jsonb"):
        value = table.take("max_length")
        if value is not None:
            table.wrong("max_length", value, "it belongs to types text and jsonb")
        return None
    return table.whole("max_length", 1, _LENGTH_MAX, default=TEXT_CHARS_MAX if kind == "text" else JSON_BYTES_MAX)


def _bound(table: Table, option: str, value: Any, kind: str) -> Bound | None:
    if value is None:
        return None
    if kind not in _BOUNDED:
        table.wrong(option, value, f"{kind} has no {option}; it belongs to {', '.join(_BOUNDED)}")
    if kind in _NUMBERS:
        return _number(table, option, value, whole=kind in ("bigint", "integer"))
    try:
        if kind == "date":
            return value if type(value) is date else parse_date(value)
        if isinstance(value, datetime):
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        return parse_instant(value, "datetime", "UTC")
    except (TimeError, OverflowError):
        table.wrong(option, value, f"a {kind} is allowed, as YYYY-MM-DD{'' if kind == 'date' else ' HH:MM:SS'}")


def _number(table: Table, option: str, value: object, *, whole: bool) -> Decimal:
    number = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    digits = (
        0 if number is None or not number.is_finite() else max(abs(number.adjusted()), len(number.as_tuple().digits))
    )
    if number is None or not number.is_finite() or digits > 300 or (whole and (digits > 18 or number % 1)):
        table.wrong(option, value, f"a {'whole ' if whole else ''}number is allowed")
    return number


def _crossed(minimum: Bound, maximum: Bound, *, strict: bool) -> bool:
    low, high = cast("Any", minimum), cast("Any", maximum)
    return bool(low >= high if strict else low > high)
