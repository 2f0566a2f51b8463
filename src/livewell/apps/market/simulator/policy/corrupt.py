"""Make a faulty answer out of a true one. Pure: the true rows in, the answer that goes out.

Numbers and texts that JSON libraries will not write (NaN, 1e400, half a surrogate) are put in by
text, in place of a mark.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from email.utils import formatdate
from typing import Any

import orjson

from livewell.apps.market.simulator.answer import Answer, SendMode, digest_of, refusal
from livewell.apps.market.simulator.data.dataset import Dataset
from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.policy.faults import Fault

__all__ = ["Case", "corrupt", "traits"]

Rows = list[dict[str, Any]]
HTML = b"<!doctype html><html><head><title>Maintenance</title></head><body><h1>We will be back soon</h1></body></html>"
MARK = "\ue000mark\ue000"
MARKED = orjson.dumps(MARK)
TEXTS = ("name", "companyName", "title", "reportedCurrency", "date")
DEPTH = 2_000
DIGITS = 5_000
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Case:
    """All that a fault may need. older and other make rows of another time, of other symbols."""

    dataset: Dataset
    rows: Rows
    source_at: int
    wall: float
    knobs: Knobs
    older: Callable[[], tuple[Rows, int]]
    other: Callable[[], Rows]


def traits(dataset: Dataset) -> tuple[str, ...]:
    """Say what a dataset has that a fault may need."""
    return (*(["time"] if dataset.time_field else []), *(["number"] if dataset.number_field else []))


def corrupt(fault: Fault, case: Case) -> Answer:
    """Make the faulty answer."""
    return _MAKERS[fault.name](fault.name, case)


# ── the body is right, the way is not ──


def _delivered(delivery: SendMode) -> Callable[[str, Case], Answer]:
    return lambda kind, case: _rows(kind, case.rows, case.source_at, delivery)


def _rows(kind: str, rows: Sequence[Any], source_at: int, delivery: SendMode = "whole") -> Answer:
    return _body(kind, orjson.dumps(rows), source_at, delivery)


def _body(kind: str, body: bytes, source_at: int | None, delivery: SendMode = "whole") -> Answer:
    return Answer(kind, 200, body, digest_of(body), source_at, delivery=delivery)


def _truncated(kind: str, case: Case) -> Answer:
    body = orjson.dumps(case.rows)
    return _body(kind, body[: len(body) * 2 // 3], case.source_at)


# ── another body ──


def _literal(body: bytes, content_type: str = "application/json") -> Callable[[str, Case], Answer]:
    return lambda kind, _: Answer(kind, 200, body, digest_of(body), content_type=content_type)


def _refused(words: str) -> Callable[[str, Case], Answer]:
    return lambda kind, _: refusal(kind, words)


def _rate(retry_after: Callable[[Case], str]) -> Callable[[str, Case], Answer]:
    return lambda kind, case: refusal(kind, "rate", ("Retry-After", retry_after(case)))


# ── the rows, with something wrong about them ──


def _renamed(kind: str, case: Case) -> Answer:
    old = case.dataset.number_field or "title"
    new = f"{old}Value"
    rows = [{(new if name == old else name): value for name, value in row.items()} for row in case.rows]
    return _rows(kind, rows, case.source_at)


def _number_as_string(kind: str, case: Case) -> Answer:
    field = case.dataset.number_field
    return _rows(kind, [{**row, field: str(row[field])} for row in case.rows], case.source_at)


def _added(kind: str, case: Case) -> Answer:
    return _rows(kind, [{**row, "sentimentScore": 0.5, "addedIn": "2026.11"} for row in case.rows], case.source_at)


def _stale(kind: str, case: Case) -> Answer:
    rows, source_at = case.older()
    return _rows(kind, rows, source_at)


def _future(kind: str, case: Case) -> Answer:
    """A day ahead for clocks, a year and more for dates, whose unit is the day."""
    field = case.dataset.time_field
    return _rows(kind, [{**row, field: _later(row[field])} for row in case.rows], case.source_at)


def _later(value: Any) -> Any:
    if isinstance(value, int):
        return value + DAY_SECONDS
    return (date.fromisoformat(value[:10]) + timedelta(days=400 * 5)).isoformat() + value[10:]


def _wrong_symbol(kind: str, case: Case) -> Answer:
    return _rows(kind, case.other(), case.source_at)


def _marked(field: Callable[[Case], str], text: bytes) -> Callable[[str, Case], Answer]:
    """Put a text into one field of the first row, where JSON would not let us."""

    def make(kind: str, case: Case) -> Answer:
        first, *rest = case.rows
        marked = orjson.dumps([{**first, field(case): MARK}, *rest])
        return _body(kind, marked.replace(MARKED, text), case.source_at)

    return make


def _number(case: Case) -> str:
    return case.dataset.number_field


def _text(case: Case) -> str:
    return next(name for name in TEXTS if name in case.rows[0])


def _duplicate_key(kind: str, case: Case) -> Answer:
    """The same field twice with two values: whoever takes the last one stores what is not true."""
    field = _number(case)
    first, *rest = case.rows
    true = orjson.dumps(first[field])
    wrong = orjson.dumps((first[field] or 0) + 1)
    marked = orjson.dumps([{**first, field: MARK}, *rest])
    return _body(kind, marked.replace(MARKED, b'%s,"%s":%s' % (true, field.encode(), wrong)), case.source_at)


_MAKERS: dict[str, Callable[[str, Case], Answer]] = {
    "error_500": _refused("error_500"),
    "error_503": _refused("error_503"),
    "reset": _delivered("reset"),
    "reset_in_body": _delivered("reset_in_body"),
    "closed": _delivered("closed"),
    "truncated": _truncated,
    "cut_off": _delivered("cut_off"),
    "never_answers": _delivered("hang"),
    "slow_drip": _delivered("drip"),
    "html": _literal(HTML, "text/html; charset=utf-8"),
    "html_as_json": _literal(HTML),
    "empty_array": _literal(b"[]"),
    "empty_object": _literal(b"{}"),
    "error_message": _literal(b'{"Error Message":"An error occurred while processing your request."}'),
    "error_short": _literal(b'{"error":"Something went wrong, please try again later."}'),
    "renamed_field": _renamed,
    "number_as_string": _number_as_string,
    "added_field": _added,
    "stale_answer": _stale,
    "future_time": _future,
    "wrong_symbol": _wrong_symbol,
    "huge_body": lambda kind, _: Answer(kind, 200, b"", "", delivery="huge"),
    "gzip_bomb": lambda kind, _: Answer(kind, 200, b"", "", delivery="bomb"),
    "nan": _marked(_number, b"NaN"),
    "infinite": _marked(_number, b"1e400"),
    "long_number": _marked(_number, b"9" * DIGITS),
    "deep": _marked(_number, b"[" * DEPTH + b"]" * DEPTH),
    "nul": _marked(_text, b'"A\\u0000B"'),
    "surrogate": _marked(_text, b'"A\\ud800B"'),
    "not_utf8": _marked(_text, b'"A\xff\xfeB"'),
    "duplicate_key": _duplicate_key,
    "rate_seconds": _rate(lambda case: str(case.knobs.retry_after_seconds)),
    "rate_date": _rate(lambda case: formatdate(case.wall + case.knobs.retry_after_seconds, usegmt=True)),
    "rate_past": _rate(lambda case: formatdate(case.wall - 3_600, usegmt=True)),
    "rate_huge": _rate(lambda _: "31536000"),
    "rate_garbage": _rate(lambda _: "soon, -1; Thu 99 Foo"),
    "rate_absent": _refused("rate"),
    "bandwidth": _refused("bandwidth"),
    "entitlement_symbol": _refused("entitlement_symbol"),
    "entitlement_path": _refused("entitlement_path"),
    "exclusive": _refused("exclusive"),
    "limited_symbols": _refused("limited_symbols"),
    "suspended": _refused("suspended"),
    "invalid_key": _refused("invalid_key"),
    "legacy_path": _refused("legacy_path"),
}
