"""The rows of one key: every column read and checked, the times, the content hash. Pure.

rows ──each column: there, of its type, in its bounds──▶ unique ──▶ source time, next event ──▶ hash ──▶ Value
  └── anything else ──▶ Refusal                                    of a history: settled days differ ──▶ Forgotten
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any

import orjson

from livewell.refresh.definition.model import JSON, Moment, Path, TypeDefinition
from livewell.refresh.definition.times import TimeError, end_of_day, parse_instant
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Forgotten, Value
from livewell.refresh.validate.changed_tail import Tail, days_of, settled_hash, tail_hash
from livewell.refresh.validate.column_value import Convert, canonical, converter
from livewell.refresh.validate.refusal import Refusal, clean, cut, show

ABSENT = object()  # nothing is there; not even null

_ADDED_MAX = 20

Row = Mapping[str, Any]


def at_path(row: Row, path: Path) -> Any:
    """What a row has there; ABSENT where it has nothing."""
    value: Any = row
    for name in path:
        value = value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
    return value


def value_of(definition: TypeDefinition, rows: list[Row], now: datetime, tail: Tail | None) -> Value | Forgotten:
    """What may be stored of these rows of one key.

    Raises Refusal where they are not what the type says.
    """
    fields = _plan(definition).fields
    stored = [{name: convert(_field(row, name, path)) for name, path, convert in fields} for row in rows]
    _check_unique(definition, stored)
    source_at = _source(definition, rows, now)
    event_at = None if definition.answer.event is None else _next_event(definition.answer.event, rows, now)
    window, moment = definition.fetch.revision_days, definition.answer.source_time
    hashed = partial(_hash, definition)
    if window is None or moment is None:
        return Value(stored, source_at, event_at, hashed(stored), _added(definition, rows))
    days = days_of(rows, partial(_instant, moment), moment.zone)
    if tail is not None and settled_hash(window, tail.newest, days, stored, hashed) != tail.settled:
        return Forgotten("days that were settled have changed")
    content_hash = tail_hash(window, days, stored, hashed)
    return Value(stored, source_at, event_at, content_hash, _added(definition, rows))


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is the same for every answer of a type."""

    fields: tuple[tuple[str, Path, Convert], ...]
    known: frozenset[str]


@lru_cache(maxsize=512)
def _plan(definition: TypeDefinition) -> _Plan:
    fields = tuple((column.name, column.path, converter(column)) for column in definition.columns)
    answer = definition.answer
    paths = [column.path for column in definition.columns]
    paths += [moment.path for moment in (answer.source_time, answer.event) if moment is not None]
    paths += [answer.key] if answer.key else []
    return _Plan(fields, answer.ignore | {path[0] for path in paths})


def _field(row: Row, name: str, path: Path) -> Any:
    value = row.get(path[0], ABSENT) if len(path) == 1 else at_path(row, path)
    if value is ABSENT:
        near = cut(", ".join(sorted(map(str, row))), 160)
        raise Refusal(Reason.MISSING_FIELD, f'"{".".join(path)}" is not there; the row has {near}', field=name)
    return value


def _check_unique(definition: TypeDefinition, rows: list[dict[str, JSON]]) -> None:
    if definition.answer.kind == "one":
        if len(rows) > 1:
            raise Refusal(Reason.DUPLICATE_ROW, f"{len(rows)} rows for one key, and the type has one")
        return
    seen: set[tuple[JSON, ...]] = set()
    for row in rows:
        identity = tuple(row[name] for name in definition.row_key)
        if identity in seen:
            raise Refusal(
                Reason.DUPLICATE_ROW, f"two rows have {', '.join(definition.row_key)} = {show(str(identity))}"
            )
        seen.add(identity)


def _source(definition: TypeDefinition, rows: list[Row], now: datetime) -> datetime | None:
    """The newest of what the rows say of their own time."""
    moment = definition.answer.source_time
    if moment is None:
        return None
    newest = max(_instant(moment, row) for row in rows)
    if newest > now + timedelta(seconds=definition.answer.future_max_seconds):
        raise Refusal(Reason.FUTURE_SOURCE, f"{newest.isoformat()} is after {now.isoformat()}")
    return newest


def _instant(moment: Moment, row: Row) -> datetime:
    value = at_path(row, moment.path)
    try:
        return parse_instant(value, moment.format, moment.zone)
    except TimeError as error:
        found = "nothing" if value is ABSENT else show(value)
        raise Refusal(
            Reason.NO_SOURCE_TIME, f'"{".".join(moment.path)}" has {found}, but the type wants {error}'
        ) from None


def _next_event(moment: Moment, rows: list[Row], now: datetime) -> datetime | None:
    """The first event that is still to come; a date has come when it is over."""
    coming: list[datetime] = []
    for row in rows:
        value = at_path(row, moment.path)
        if value is None or value == "":
            continue
        try:
            over = (
                end_of_day(value, moment.zone)
                if moment.format == "date"
                else parse_instant(value, moment.format, moment.zone)
            )
        except TimeError as error:
            found = "nothing" if value is ABSENT else show(value)
            raise Refusal(
                Reason.WRONG_TYPE, f'"{".".join(moment.path)}" has {found}, but the event wants {error}'
            ) from None
        if over > now:
            coming.append(over)
    return min(coming, default=None)


def _hash(definition: TypeDefinition, rows: list[dict[str, JSON]]) -> bytes:
    return hashlib.sha256(packed(definition, rows)).digest()


def packed(definition: TypeDefinition, rows: list[dict[str, JSON]]) -> bytes:
    """The content as bytes: equal for equal rows, in whatever order they came."""
    order = sorted(rows, key=lambda row: [row[name] for name in definition.row_key]) if len(rows) > 1 else rows
    option = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS
    return orjson.dumps(order, canonical, option)


def _added(definition: TypeDefinition, rows: list[Row]) -> tuple[str, ...]:
    known = _plan(definition).known
    added: set[str] = set()
    for row in rows:
        if len(added) < _ADDED_MAX and not known.issuperset(row):
            added |= row.keys() - known
    return tuple(clean(name)[:100] for name in sorted(added)[:_ADDED_MAX])
