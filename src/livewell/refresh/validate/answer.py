"""Is this answer what the type says, about the keys that were asked? Bytes in, values out: no database, no clock, no network (R14).

    body ──content type, first byte──▶ JSON (strict_json) ──transform──▶ rows ──by key──▶ fields ──▶ types and bounds (cell) ──▶ times ──▶ Valid
      └────────────── anything else, at any step ──────────────▶ Rejected(reason), for all keys (whole) or for one

Poison in a row that says whose it is (NaN, 1e400, NUL, a name twice) is that key's alone; anywhere else nobody can say whose it is, and the answer is refused as a whole.

Nothing reaches the store but a Valid (contract 5). Whatever the bytes are, this answers; it never raises. "Older than what is stored" is for the store, which knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any

import orjson
from jmespath.exceptions import JMESPathError

from livewell.model import Blame
from livewell.refresh.definition import rows_path
from livewell.refresh.definition.model import JSON, ROWS_MAX, Moment, Path, TypeDefinition
from livewell.refresh.definition.times import TimeError, end_of_day, parse_instant
from livewell.refresh.reasons import BLAME, Reason
from livewell.refresh.validate import strict_json
from livewell.refresh.validate.column_value import Convert, canonical, converter
from livewell.refresh.validate.refusal import Refusal, clean, cut, hiding, show
from livewell.refresh.validate.tail import Tail, days_of, settled_hash, tail_hash
from livewell.telemetry.secret_forms import Secrets, secrets_of

_ERROR_FIELDS = ("Error Message", "error", "errors", "Error", "error_message", "errorMessage", "fault")
_ADDED_MAX = 20
_PAGE_BYTES = 2048  # as much as is searched for a secret before 80 characters are shown
_ABSENT = object()

Row = Mapping[str, Any]
Transform = Callable[[Any, Sequence[str]], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Valid:
    """What may be stored for a key: rows with a value for every column, as livewell.write_values takes them (without the key)."""

    key: str
    rows: list[dict[str, JSON]]
    source_at: datetime | None
    event_at: datetime | None
    content_hash: bytes  # of the content alone: equal for equal rows, in whatever order fields and rows came
    added_fields: tuple[str, ...]  # the upstream has added these: accepted, not stored, counted


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why nothing may be stored; detail is bounded, and without secrets."""

    reason: Reason
    detail: str
    blame: Blame
    field: str | None = None  # the column, where it is about one
    whole: bool = False  # the answer as a whole: of several keys, nobody knows whose fault it is


@dataclass(frozen=True, slots=True)
class Missing:
    """The upstream answered that there is no such key. For a key that had data this is the upstream's fault (R13): the caller knows whether it had."""


@dataclass(frozen=True, slots=True)
class Contradicted:
    """Days that were settled are not what they were: the whole history is needed."""


Verdict = Valid | Rejected | Missing | Contradicted


def validate(
    definition: TypeDefinition,
    keys: Sequence[str],
    body: bytes,
    *,
    content_type: str | None,
    now: datetime,
    transforms: Mapping[str, Transform] | None = None,
    tail: Tail | None = None,
    secrets: Secrets | None = None,
) -> dict[str, Verdict]:
    """What became of each key. now is the database's clock: only to judge what is absurdly in the future, and which event is the next.

    tail: what is stored of the history of which only the tail was asked for. secrets: what no detail repeats, and no value may hold (M3).
    """
    secrets = secrets or secrets_of()
    with hiding(secrets):
        try:
            found, suspect = _rows(definition, keys, body, content_type, transforms or {})
            by_key, strangers = _split(definition, keys, found)
            poisoned = _poisoned(definition, by_key) if suspect else {}
        except Refusal as refusal:
            return dict.fromkeys(keys, _rejected(refusal, whole=True))
        judge = partial(_judge, definition, now=now, strangers=strangers, asked=len(keys), tail=tail)
        return {
            key: _rejected(poisoned[key], blame=Blame.DATA)
            if key in poisoned
            else _without(secrets, definition, judge(key, by_key[key]))
            for key in keys
        }


def _rejected(refusal: Refusal, *, blame: Blame | None = None, whole: bool = False) -> Rejected:
    return Rejected(refusal.reason, refusal.detail, blame or BLAME[refusal.reason], refusal.field, whole)


def _without(secrets: Secrets, definition: TypeDefinition, verdict: Verdict) -> Verdict:
    """The verdict, unless what would be stored holds a secret: viewers would see it."""
    if isinstance(verdict, Valid) and secrets and secrets.is_in(_packed(definition, verdict.rows)):
        return _rejected(Refusal(Reason.BAD_TEXT, "a value repeats our credential"), blame=Blame.DATA)
    return verdict


# ── the answer as a whole ──


def _rows(
    definition: TypeDefinition,
    keys: Sequence[str],
    body: bytes,
    content_type: str | None,
    transforms: Mapping[str, Transform],
) -> tuple[list[Any], bool]:
    """The rows, and whether there may be poison in them; there is none around them."""
    if len(body) > definition.fetch.body_bytes_max:
        raise Refusal(Reason.TOO_LARGE, f"{len(body):,} bytes; the type allows {definition.fetch.body_bytes_max:,}")
    _check_kind(body, content_type)
    parsed = strict_json.parse(body)
    document = parsed.value
    if definition.answer.transform is not None:
        _refuse_poison(document if parsed.suspect else None)
        _refuse_errors(document, document)
        document = _transformed(definition.answer.transform, transforms, document, keys)
    try:
        rows = rows_path.compiled(definition.answer.rows).search(document)
    except (JMESPathError, TypeError, ValueError, RecursionError) as error:
        raise Refusal(Reason.WRONG_SHAPE, f"{definition.answer.rows} cannot be applied: {error}") from None
    _refuse_errors(document, rows)
    if document == {}:
        raise Refusal(Reason.EMPTY, "the answer is {}")
    if not isinstance(rows, list):
        raise Refusal(Reason.WRONG_SHAPE, f"{definition.answer.rows} is {show(rows)}, not a list of rows")
    if len(rows) > ROWS_MAX:
        raise Refusal(Reason.TOO_LARGE, f"{len(rows):,} rows; at most {ROWS_MAX:,} are taken")
    if not rows and len(keys) > 1:
        raise Refusal(Reason.EMPTY, f"no row for any of {len(keys)} keys: the batch endpoint did not work")
    if parsed.suspect:
        _refuse_poison(document, outside=rows)
    return rows, parsed.suspect


def _refuse_poison(document: object, outside: Sequence[object] = ()) -> None:
    found = strict_json.find_poison(document, outside=frozenset(map(id, outside)))
    if found is not None:
        raise found


def _poisoned(definition: TypeDefinition, by_key: Mapping[str, list[Row]]) -> dict[str, Refusal]:
    """Keys with poison in a row of theirs. A row that says its key twice says nothing."""
    poisoned: dict[str, Refusal] = {}
    for key, rows in by_key.items():
        for row in rows:
            found = strict_json.find_poison(row)
            if found is not None:
                if not _says_once(row, definition.answer.key):
                    raise found
                poisoned.setdefault(key, found)
    return poisoned


def _says_once(row: Row, path: Path | None) -> bool:
    """Whether a row says whose it is, and says it once."""
    value: Any = row
    for name in path or ():
        if isinstance(value, strict_json.Twice) and name in value.names:
            return False
        value = value.get(name)
    return path is not None


def _check_kind(body: bytes, content_type: str | None) -> None:
    kind = (content_type or "").partition(";")[0].strip().lower()
    if "html" in kind or body.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] == b"<":
        raise Refusal(Reason.HTML, f"a page, not data: {cut(body[:_PAGE_BYTES].decode('utf-8', 'replace'), 80)}")
    if kind and kind not in ("application/json", "text/json") and not kind.endswith("+json"):
        raise Refusal(Reason.CONTENT_TYPE, f"{cut(content_type or kind, 80)} is not JSON")


def _refuse_errors(document: object, rows: object) -> None:
    """An object that names an error, where rows were expected."""
    if isinstance(document, dict) and not (isinstance(rows, list) and rows):
        for name in _ERROR_FIELDS:
            if document.get(name):
                raise Refusal(Reason.ERROR_OBJECT, f'"{name}": {show(document[name])}')


def _transformed(name: str, transforms: Mapping[str, Transform], document: Any, keys: Sequence[str]) -> Any:
    if name not in transforms:
        raise Refusal(Reason.WRONG_SHAPE, f"transform {name} is not registered in this process")
    try:
        return transforms[name](document, keys)
    except (
        Exception
    ) as error:  # somebody else's code on untrusted input: whatever it raises, this answer is refused and counted
        raise Refusal(Reason.WRONG_SHAPE, f"transform {name}: {type(error).__name__}: {error}") from error


def _split(definition: TypeDefinition, keys: Sequence[str], rows: list[Any]) -> tuple[dict[str, list[Row]], list[str]]:
    """Rows by the key they say they are of, and what they said that nobody asked for."""
    by_key: dict[str, list[Row]] = {key: [] for key in keys}
    strangers: list[str] = []
    path = definition.answer.key
    for row in rows:
        if not isinstance(row, dict):
            raise Refusal(Reason.WRONG_SHAPE, f"a row is {show(row)}, not an object")
        said = keys[0] if path is None else _at(row, path)
        if type(said) is int:
            said = str(said)
        if isinstance(said, str) and said in by_key:
            by_key[said].append(row)
        elif said is _ABSENT:
            raise Refusal(
                Reason.MISSING_FIELD, f'a row has no "{".".join(path or ())}", the field that repeats the key'
            )
        else:
            strangers.append(show(said))
    return by_key, strangers


def _at(row: Row, path: Path) -> Any:
    value: Any = row
    for name in path:
        value = value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


# ── the rows of one key ──


def _judge(
    definition: TypeDefinition,
    key: str,
    rows: list[Row],
    *,
    strangers: list[str],
    asked: int,
    now: datetime,
    tail: Tail | None,
) -> Verdict:
    try:
        if strangers and (not rows or asked == 1):
            raise Refusal(Reason.WRONG_KEY, f"asked for {show(key)}, answered with {', '.join(strangers[:3])}")
        if not rows:
            if definition.answer.empty == "rejected":
                raise Refusal(Reason.EMPTY, "the answer has no rows")
            return Missing()
        return _valid(definition, key, rows, now, tail)
    except Refusal as refusal:
        return _rejected(refusal)


def _valid(
    definition: TypeDefinition, key: str, rows: list[Row], now: datetime, tail: Tail | None
) -> Valid | Contradicted:
    fields = _plan(definition).fields
    stored = [{name: convert(_field(row, name, path)) for name, path, convert in fields} for row in rows]
    _check_unique(definition, stored)
    source_at = _source(definition, rows, now)
    event_at = None if definition.answer.event is None else _next_event(definition.answer.event, rows, now)
    window, moment = definition.fetch.revision_days, definition.answer.source_time
    hashed = partial(_hash, definition)
    if window is None or moment is None:
        return Valid(key, stored, source_at, event_at, hashed(stored), _added(definition, rows))
    days = days_of(rows, partial(_instant, moment), moment.zone)
    if tail is not None and settled_hash(window, tail.newest, days, stored, hashed) != tail.settled:
        return Contradicted()
    content_hash = tail_hash(window, days, stored, hashed)
    return Valid(key, stored, source_at, event_at, content_hash, _added(definition, rows))


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
    value = row.get(path[0], _ABSENT) if len(path) == 1 else _at(row, path)
    if value is _ABSENT:
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
    value = _at(row, moment.path)
    try:
        return parse_instant(value, moment.format, moment.zone)
    except TimeError as error:
        found = "nothing" if value is _ABSENT else show(value)
        raise Refusal(
            Reason.NO_SOURCE_TIME, f'"{".".join(moment.path)}" has {found}, but the type wants {error}'
        ) from None


def _next_event(moment: Moment, rows: list[Row], now: datetime) -> datetime | None:
    """The first event that is still to come; a date has come when it is over."""
    coming: list[datetime] = []
    for row in rows:
        value = _at(row, moment.path)
        if value is None or value == "":
            continue
        try:
            over = (
                end_of_day(value, moment.zone)
                if moment.format == "date"
                else parse_instant(value, moment.format, moment.zone)
            )
        except TimeError as error:
            found = "nothing" if value is _ABSENT else show(value)
            raise Refusal(
                Reason.WRONG_TYPE, f'"{".".join(moment.path)}" has {found}, but the event wants {error}'
            ) from None
        if over > now:
            coming.append(over)
    return min(coming, default=None)


def _hash(definition: TypeDefinition, rows: list[dict[str, JSON]]) -> bytes:
    return hashlib.sha256(_packed(definition, rows)).digest()


def _packed(definition: TypeDefinition, rows: list[dict[str, JSON]]) -> bytes:
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
