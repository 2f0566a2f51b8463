"""What store_refreshes is told of each result."""

from __future__ import annotations

import typing
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from livewell.model import Blame
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Failure, Forgotten, Missing, Result, Same, Singly, Unproven, Value
from livewell.refresh.store.entry import Entry

AT = datetime(2026, 7, 22, 20, 0, 1, tzinfo=UTC)
TOLD: list[tuple[Result, dict[str, Any]]] = [
    (
        Value([{"price": "231.40"}], AT, None, b"\x01", ("pe",), '"e"', "Mon"),
        {
            "outcome": "value",
            "rows": [{"price": "231.40"}],
            "source_at": "2026-07-22T20:00:01+00:00",
            "event_at": None,
            "hash": "01",
            "etag": '"e"',
            "last_modified": "Mon",
        },
    ),
    (Same(b"\x01"), {"outcome": "same", "hash": "01"}),
    (Missing(), {"outcome": "missing"}),
    (
        Failure(Reason.RATE_WALL, "status 429", Blame.UPSTREAM, 5.0),
        {
            "outcome": "failed",
            "reason": "rate_wall",
            "error": "status 429",
            "blame": "upstream",
            "delay_seconds": 5.0,
        },
    ),
    (Singly("empty", endpoint=True), {"outcome": "singly", "error": "empty"}),
    (Unproven("status 304"), {"outcome": "unproven", "error": "status 304"}),
    (Forgotten("days have changed"), {"outcome": "forgotten", "error": "days have changed"}),
]


def test_every_kind_of_result_is_looked_at_here() -> None:
    """A new one has to be added above, and to store_refreshes.sql."""
    assert {type(one) for one, _ in TOLD} == set(typing.get_args(Result))


@pytest.mark.parametrize(("result", "told"), TOLD, ids=lambda one: type(one).__name__)
def test_an_entry_as_json(result: Result, told: dict[str, Any]) -> None:
    """Whose it is, what the call cost, how old the answer is, and the result."""
    entry = Entry(
        id=1, fence=2, call=2, queue="refresh.fmp", kind="livewell.refresh", credential="FMP", type="quote",
        key="AAPL", version=3, result=result, sent=100.0, used=700, wire_bytes=700, decoded_bytes=600,
    )  # fmt: skip

    assert orjson.loads(orjson.dumps(entry.document(100.25))) == {
        "id": 1,
        "fence": 2,
        "call": 2,
        "queue": "refresh.fmp",
        "kind": "livewell.refresh",
        "credential": "FMP",
        "type": "quote",
        "key": "AAPL",
        "version": 3,
        "used": 700,
        "wire": 700,
        "decoded": 600,
        "age_seconds": 0.25,
        **told,
    }
