"""The filter of jobs: to an address and back, ages and instants, and what cannot be meant."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from livewell.errors import InvalidOption
from livewell.queue.job_filter import JobFilter

WHOLE = {
    "queue": "mail",
    "task": "shop.tasks:send",
    "state": "ready",
    "group": "g&=%",
    "key": "k/1",
    "since": "2h",
    "until": "2026-11-16 03:00",
    "batch": "7",
    "reason": "attempts",
}


def test_an_address_holds_the_whole_filter() -> None:
    """What is empty is not set."""
    assert JobFilter.from_query(WHOLE).to_query() == WHOLE
    assert JobFilter.from_query({**dict.fromkeys(WHOLE, " "), "after": "x"}) == JobFilter()


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("90s", {"since_seconds": 90.0}),
        ("1.5h", {"since_seconds": 5400.0}),
        ("30 min ago", {"since_seconds": 1800.0}),
        ("7d", {"since_seconds": 604800.0}),
        ("2026-11-16", {"since": "2026-11-16T00:00:00+00:00"}),
        ("2026-11-16T03:00", {"since": "2026-11-16T03:00:00+00:00"}),
        ("2026-11-16T03:00+01:00", {"since": "2026-11-16T02:00:00+00:00"}),
    ],
)
def test_an_age_stays_one_and_an_instant_is_utc(text: str, document: dict[str, object]) -> None:
    """The database's clock decides when an age ago was."""
    assert JobFilter(since=text).document() == document


@pytest.mark.parametrize(
    "query",
    [
        {"state": "dead"},
        {"since": "yesterday"},
        {"until": "9999999999h"},
        {"since": "99999d"},
        {"since": "0001-01-01T00:00+10:00"},
        {"state": "succeeded", "key": "k"},
        {"state": "cancelled", "batch": "1"},
        {"batch": "x"},
        {"batch": "9223372036854775808"},
        {"queue": "a\x00b"},
        {"key": "k" * 513},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(query: dict[str, str]) -> None:
    """By one error, which says what is allowed."""
    with pytest.raises(InvalidOption):
        JobFilter.from_query(query)


def test_a_filter_at_rest_means_the_same_at_any_time() -> None:
    """Ages become instants, and instants are in UTC: an act on many is asked for later than counted."""
    now = datetime(2026, 11, 18, 3, tzinfo=UTC)
    aged = JobFilter(queue="mail", since="2h", until="2026-11-18T02:00+01:00", batch=7)
    rest = JobFilter(queue="mail", since="2026-11-18T01:00:00+00:00", until="2026-11-18T01:00:00+00:00", batch=7)

    assert aged.has_age
    assert aged.at_rest(now) == rest
    assert not rest.has_age
    assert rest.at_rest(None) == rest
