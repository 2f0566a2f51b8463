"""Read a type from a file, or from the same content as JSON in a registry row.

Its tables are [type], [fetch], [answer], [columns] and [sample].
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Literal, cast

from livewell.refresh.definition import key_pattern as patterns
from livewell.refresh.definition import rows_path
from livewell.refresh.definition.columns import COLUMN_NAME, read_columns, read_moment
from livewell.refresh.definition.model import Batch, Call, Column, Fetch, RowsKind, Rule, Sample, Shape, TypeDefinition
from livewell.refresh.definition.table import Table
from livewell.refresh.definition.times import TimeError, parse_date
from livewell.schedule.cron import CRON_CHARS_MAX, CronError, check_cron

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_POOL = re.compile(r"[a-z][a-z0-9_]{0,20}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
_CALENDAR = re.compile(r"[A-Z][A-Z0-9_]{1,15}")
_PATH = re.compile(r"(?:/(?:[A-Za-z0-9._~-]|\{keys?\})+)+")
_PARAMETER = re.compile(r"[A-Za-z0-9_.~-]{1,64}")
_LITERAL = re.compile(r"[A-Za-z0-9 _.~,:;@/+*=!$'()|-]*")  # what a query value may hold besides {key} and {keys}
_PLACE = re.compile(r"\{keys?\}")
_FROM = "{from}"
_INDEXED_CHARS_MAX = 600  # 2,400 bytes at most, and the key: what a btree entry holds is 2,704

BODY_BYTES_MAX = 50_000_000
_FUTURE_SECONDS = 300.0


def read_type(document: Mapping[str, Any], where: str) -> TypeDefinition:
    """Check everything that can be checked without the database and without the sample (see sample.py)."""
    file = Table(document, where)
    table, fetch_table, answer_table, sample_table = (
        _part(file, name, where) for name in ("type", "fetch", "answer", "sample")
    )
    columns = read_columns(file.need("columns"), where)
    file.done()
    fetch = _fetch(fetch_table)
    answer = _answer(answer_table, columns, batched=fetch.batch is not None)
    if fetch.revision_days is not None and (
        answer.kind != "series" or answer.source_time is None or answer.source_time.format != "date"
    ):
        fetch_table.refuse('revision_window: it belongs to kind = "series" with a source_time of format = "date"')
    sample = _sample(sample_table, fetch)
    return _type(table, document, fetch=fetch, answer=answer, columns=columns, sample=sample)


def _part(file: Table, name: str, where: str) -> Table:
    return Table(file.need(name), f"{where}: [{name}]")


def _type(
    table: Table,
    document: Mapping[str, Any],
    *,
    fetch: Fetch,
    answer: Shape,
    columns: tuple[Column, ...],
    sample: Sample,
) -> TypeDefinition:
    form = "a letter, then a-z 0-9 _, is allowed"
    name = table.text("name", required=True, chars_max=48, form=_NAME, allowed=f"{form}, at most 48")
    upstream = table.text("upstream", required=True, chars_max=31, form=re.compile(r"[a-z][a-z0-9_]*"), allowed=form)
    title = table.text("title", chars_max=100) or name
    ttl, negative_ttl = table.span("ttl", required=True), table.span("negative_ttl", required=True)
    strategy = table.word("strategy", ("on_demand", "scheduled"))
    cron, zone = _cron(table, scheduled=strategy == "scheduled")
    size = table.whole("size_estimate", 1, 1_000_000_000, required=True)
    pool = table.text("pool", chars_max=21, form=_POOL, allowed=form)
    prefetch = table.flag("prefetch")
    table.done()
    assert name is not None and upstream is not None  # noqa: S101, PT018 - required
    assert ttl is not None and negative_ttl is not None and title is not None  # noqa: S101, PT018 - required
    return TypeDefinition(
        name=name,
        title=title,
        upstream=upstream,
        ttl_seconds=ttl,
        negative_ttl_seconds=negative_ttl,
        strategy=cast("Literal['on_demand', 'scheduled']", strategy),
        cron=cron,
        zone=zone,
        size_estimate=size,
        pool=pool,
        prefetch=prefetch,
        fetch=fetch,
        answer=answer,
        columns=columns,
        sample=sample,
        document=dict(document),
    )


def _cron(table: Table, *, scheduled: bool) -> tuple[str | None, str | None]:
    if not scheduled:
        for name in ("cron", "zone"):
            value = table.take(name)
            if value is not None:
                table.wrong(name, value, 'it belongs to strategy = "scheduled"')
        return None, None
    cron = table.text("cron", required=True, chars_max=CRON_CHARS_MAX)
    zone = table.zone("zone", required=True)
    assert cron is not None  # noqa: S101 - required
    try:
        check_cron(cron, zone)
    except CronError as error:
        table.wrong("cron", cron, error.problem)
    return cron, zone


# ── fetch ──


def _fetch(table: Table) -> Fetch:
    call = _call(table, "{key}")
    pattern = table.text("key_pattern", required=True, chars_max=patterns.PATTERN_CHARS_MAX)
    assert pattern is not None  # noqa: S101 - required
    try:
        parsed = patterns.parse(pattern)
    except patterns.PatternError as error:
        table.wrong("key_pattern", pattern, str(error))
    if len(pattern) < 3:
        table.wrong("key_pattern", pattern, "at least 3 characters are needed, as in [A-Z]{1,5}")
    body_bytes_max = table.whole("body_bytes_max", 100, BODY_BYTES_MAX, required=True)
    inner = table.table("batch")
    batch = None if inner is None else _batch(inner, parsed)
    window = table.span("revision_window")
    if (window is not None) != any(_FROM in text for _, text in call.query):
        table.refuse(f"revision_window and a query parameter with {_FROM} belong together")
    if window is not None and batch is not None:
        table.refuse("revision_window and a batch endpoint: the keys of one call would need one day to begin with")
    table.done()
    return Fetch(call, parsed, body_bytes_max, batch, None if window is None else math.ceil(window / 86400))


def _batch(table: Table, pattern: patterns.KeyPattern) -> Batch:
    call = _call(table, "{keys}")
    keys_max = table.whole("keys_max", 2, 1000, required=True)
    separator = table.text("separator", chars_max=1, form=re.compile(r"[,;|+ ]"), allowed="one of , ; | + is allowed")
    separator = separator or ","
    if any(separator in item.characters for item in pattern.items):
        table.wrong("separator", separator, "keys of this pattern may contain it")
    table.done()
    return Batch(call, keys_max, separator)


def _call(table: Table, place: str) -> Call:
    path = table.text("path", required=True, chars_max=300)
    assert path is not None  # noqa: S101 - required
    if not _PATH.fullmatch(path) or any(part in (".", "..") for part in path.split("/")):
        table.wrong(
            "path",
            path,
            f"/segments of A-Z a-z 0-9 . _ ~ - and {place} are allowed, without //, .. or ?; the query has its "
            "own table",
        )
    given = table.take("query")
    query = (
        dict(given) if isinstance(given, Mapping) else {} if given is None else table.wrong("query", given, "a table")
    )
    if len(query) > 20:
        table.refuse(f"query: {len(query)} parameters, at most 20 are allowed")
    for name, value in query.items():
        if not isinstance(name, str) or not _PARAMETER.fullmatch(name):
            table.wrong("query", name, "names of 1 to 64 of A-Z a-z 0-9 _ . ~ - are allowed")
        if (
            not isinstance(value, str)
            or len(value) > 200
            or not _LITERAL.fullmatch(_PLACE.sub("", value.replace(_FROM, "", 1) if place == "{key}" else value))
        ):
            table.wrong(f'query: "{name}"', value, f"a text of at most 200 plain characters and {place} is allowed")
    found = {match for text in (path, *query.values()) for match in _PLACE.findall(text)}
    if found != {place}:
        table.refuse(f"path and query: {place} must stand in one of them, and no other {{…}}")
    return Call(path, tuple(query.items()))


# ── answer ──


def _answer(table: Table, columns: tuple[Column, ...], *, batched: bool) -> Shape:
    rows = table.text("rows", required=True, chars_max=rows_path.EXPRESSION_CHARS_MAX)
    assert rows is not None  # noqa: S101 - required
    try:
        rows_path.parse(rows)
    except rows_path.RowsPathError as error:
        table.wrong("rows", rows, str(error))
    kind = cast("RowsKind", table.word("kind", ("one", "set", "series")))
    key = _echo(table, batched=batched)
    row_key = _row_key(table, kind, columns)
    inner = table.table("source_time")
    source_time = None if inner is None else read_moment(inner)
    max_age = table.span("max_source_age")
    if max_age is not None and source_time is None:
        table.refuse("max_source_age without source_time: there is nothing to measure")
    future_max = table.span("future_max", most=30 * 86400) or _FUTURE_SECONDS
    rule = cast("Rule", table.word("rule", ("age", "session", "after_event"), default="age"))
    calendar = table.text("calendar", chars_max=16, form=_CALENDAR, allowed='a calendar such as "XNYS" is allowed')
    event_table = table.table("event")
    event = None if event_table is None else read_moment(event_table)
    if (rule == "session") != (calendar is not None):
        table.refuse('rule = "session" and calendar belong together')
    if (rule == "after_event") != (event is not None):
        table.refuse('rule = "after_event" and event belong together')
    empty = cast("Literal['missing', 'rejected']", table.word("empty", ("missing", "rejected"), default="missing"))
    transform = table.text("transform", chars_max=63, form=_WORD, allowed="a name is allowed")
    ignore = frozenset(table.texts("ignore", 300, 100))
    table.done()
    return Shape(
        rows, kind, key, row_key, source_time, max_age, future_max, rule, calendar, event, empty, transform, ignore
    )


def _echo(table: Table, *, batched: bool) -> tuple[str, ...] | None:
    key, silent = table.path("key"), table.flag("no_echo")
    if (key is None) != silent:
        table.refuse('"key" names the field that repeats the key that was asked; no_echo = true if there is none')
    if key is None and batched:
        table.refuse("no_echo and a batch endpoint: nothing would say which row is whose")
    return key


def _row_key(table: Table, kind: str, columns: tuple[Column, ...]) -> tuple[str, ...]:
    row_key = table.texts("row_key", 8, 56)
    if (kind == "one") != (not row_key):
        table.refuse('row_key: kind = "set" and "series" need it, "one" has none')
    known = {column.name: column for column in columns}
    length = 0
    for name in row_key:
        column = known.get(name)
        if not COLUMN_NAME.fullmatch(name) or column is None:
            table.wrong("row_key", name, f"columns are allowed: {', '.join(sorted(known))[:200]}")
        if column.nullable or column.type in ("jsonb", "double"):
            table.wrong("row_key", name, "a column that is not nullable, and not jsonb or double, is allowed")
        length += column.max_length or 0
    if length > _INDEXED_CHARS_MAX:
        table.wrong("row_key", list(row_key), f"texts of together at most {_INDEXED_CHARS_MAX} characters (max_length)")
    return row_key


def _sample(table: Table, fetch: Fetch) -> Sample:
    key, recorded = table.text("key", required=True), table.need("recorded")
    body = table.need("body")
    table.done()
    assert key is not None  # noqa: S101 - required
    if not fetch.pattern.fits(key):
        table.wrong("key", key, f"a key that fits {fetch.pattern.text} is allowed")
    if not isinstance(body, str) or not 2 <= len(body) <= 200_000:
        table.wrong("body", body, "the answer as text, at most 200,000 characters")
    try:
        day = recorded if type(recorded) is date else parse_date(recorded)
    except TimeError:
        table.wrong("recorded", recorded, "the day it was recorded, as YYYY-MM-DD")
    return Sample(key, day, body)
