"""Staleness and verdicts are computed from stored times and the clock.

Rules age, session and after_event (R5, X1, X7).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg
import pytest

from tests.support.refresh_sql import RefreshSession
from tests.support.variants import source

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
NEW_YORK = ZoneInfo("America/New_York")
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def ny(day: int, hour: int, minute: int = 0, *, month: int = 3, year: int = 2026) -> datetime:
    """An instant by the clock of the exchange.

    6 March 2026 is a Friday, and the clocks change on the Sunday after.
    """
    return datetime(year, month, day, hour, minute, tzinfo=NEW_YORK)


FRIDAY, SATURDAY, SUNDAY, MONDAY = 6, 7, 8, 9
SESSION = {"rule": "session", "calendar": "XNYS", "max_source_age": "15 minutes"}


def value(checked: datetime, source: datetime | None = None, **columns: object) -> dict[str, object]:
    """A value that was checked then."""
    return {"fetched_at": checked, "checked_at": checked, "source_at": source or checked, **columns}


@pytest.mark.parametrize(
    ("ledger", "at", "expected"),
    [
        ({}, NOON, "missing"),
        ({"missing": True, "checked_at": NOON}, NOON + 59 * MINUTE, "missing"),
        ({"missing": True, "checked_at": NOON, "failures": 1}, NOON + 59 * MINUTE, "missing"),
        ({"missing": True, "checked_at": NOON, "failures": 1}, NOON + HOUR, "failing"),
        ({"failures": 1}, NOON, "failing"),
        ({"failing_since": NOON}, NOON, "failing"),
        (value(NOON), NOON + 59.9 * timedelta(seconds=1), "fresh"),
        (value(NOON), NOON + MINUTE, "stale"),
        (value(NOON, failures=2), NOON + MINUTE, "failing"),
        (value(NOON, failures=2), NOON, "fresh"),
        (value(NOON, failing_since=NOON), NOON, "fresh"),
        (value(NOON, ttl_override="1 hour"), NOON + 59 * MINUTE, "fresh"),
        (value(NOON, ttl_override="1 second"), NOON + timedelta(seconds=1), "stale"),
    ],
)
def test_the_verdict_by_age(refresh: RefreshSession, ledger: dict[str, object], at: datetime, expected: str) -> None:
    """A failure shows only when the value is stale by its rule, or there is none."""
    assert refresh.judge("verdict", ledger, at) == expected


def test_no_ledger_row_is_missing_and_stale(refresh: RefreshSession) -> None:
    """A left join that found nothing may be judged as it is."""
    row = "SELECT livewell.{}(t, NULL::livewell.ledger, livewell.now()) FROM livewell.data_type t"

    assert refresh.value(row.format("verdict")) == "missing"
    assert refresh.value(row.format("is_stale")) is True


def test_a_value_that_was_only_confirmed_counts_from_its_check(refresh: RefreshSession) -> None:
    """Fetched an hour ago, confirmed just now."""
    ledger = {"fetched_at": NOON - HOUR, "checked_at": NOON, "source_at": NOON}

    assert refresh.judge("verdict", ledger, NOON + MINUTE / 2) == "fresh"


@pytest.mark.parametrize(("source", "expected"), [(NOON - 15 * MINUTE, "fresh"), (NOON - 15.01 * MINUTE, "lagging")])
def test_an_old_source_time_is_lagging(refresh: RefreshSession, source: datetime, expected: str) -> None:
    """However recently it was fetched: freshness cannot be laundered by asking again."""
    assert refresh.judge("verdict", value(NOON, source), NOON, max_source_age="15 minutes") == expected


def test_without_a_source_time_it_is_unverifiable(refresh: RefreshSession) -> None:
    """At best, that is: stale and failing go first."""
    ledger = {"fetched_at": NOON, "checked_at": NOON}

    assert refresh.judge("verdict", ledger, NOON, has_source_time=False) == "unverifiable"
    assert refresh.judge("verdict", ledger, NOON + HOUR, has_source_time=False) == "stale"


# -- sessions ------------------------------------------------------------------------------------

FRIDAYS_CLOSE = value(ny(FRIDAY, 16, 1), ny(FRIDAY, 16, 0))


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (ny(FRIDAY, 20), "fresh"),
        (ny(SATURDAY, 12), "fresh"),
        (ny(SUNDAY, 23), "fresh"),
        (ny(MONDAY, 9, 29), "fresh"),
        (ny(MONDAY, 9, 30), "stale"),
        (ny(MONDAY, 10, 30), "stale"),
    ],
)
def test_a_friday_close_is_fresh_on_saturday_and_stale_on_monday(
    refresh: RefreshSession, at: datetime, expected: str
) -> None:
    """X7, over a weekend on which the clocks change."""
    refresh.sessions()

    assert refresh.judge("verdict", FRIDAYS_CLOSE, at, **SESSION) == expected
    assert refresh.judge("next_due", FRIDAYS_CLOSE, ny(FRIDAY, 17), **SESSION) == ny(MONDAY, 9, 30)


@pytest.mark.parametrize(
    ("ledger", "due"),
    [
        (value(ny(FRIDAY, 12)), ny(FRIDAY, 12, 1)),  # while it is open: age
        (value(ny(FRIDAY, 15, 59)), ny(FRIDAY, 16, 0)),  # from before the close
        (value(ny(FRIDAY, 16, 5), ny(FRIDAY, 15, 50)), ny(FRIDAY, 16, 6)),  # a late source has not got the close yet
        (value(ny(FRIDAY, 16, 15), ny(FRIDAY, 15, 50)), ny(MONDAY, 9, 30)),  # no later price will come
        (value(ny(MONDAY, 9, 29, month=3) + timedelta(seconds=30), ny(FRIDAY, 16)), ny(MONDAY, 9, 30) + MINUTE / 2),
        (value(ny(25, 13, 5, month=11), ny(25, 13, month=11)), ny(25, 13, 6, month=11)),  # an ordinary Wednesday
        (
            value(ny(27, 13, 1, month=11), ny(27, 13, month=11)),
            ny(30, 9, 30, month=11),
        ),  # the half day after Thanksgiving
    ],
)
def test_when_a_quote_is_due_again(refresh: RefreshSession, ledger: dict[str, object], due: datetime) -> None:
    """Half days and holidays are in the calendar."""
    refresh.sessions()

    assert refresh.judge("next_due", ledger, ledger["checked_at"], **SESSION) == due


@pytest.mark.parametrize(
    ("checked", "at", "expected"),
    [
        (ny(MONDAY, 10, 29), ny(MONDAY, 10, 29), "lagging"),  # HTTP 200 with Friday's price on Monday (failure story 7)
        (ny(MONDAY, 9, 31), ny(MONDAY, 9, 31), "fresh"),  # a minute after the opening there may be no other price yet
        (ny(MONDAY, 9, 46), ny(MONDAY, 9, 46), "lagging"),
        (ny(SATURDAY, 9), ny(SATURDAY, 9), "fresh"),
    ],
)
def test_lagging_is_measured_in_trading_time(
    refresh: RefreshSession, checked: datetime, at: datetime, expected: str
) -> None:
    """The source says Friday 16:00 each time."""
    refresh.sessions()

    assert refresh.judge("verdict", value(checked, ny(FRIDAY, 16)), at, **SESSION) == expected


def test_without_a_calendar_a_session_is_plain_age(refresh: RefreshSession) -> None:
    """Nothing loaded, or beyond its end: it asks too often, never too seldom."""
    refresh.rows("DELETE FROM livewell.exchange_session")
    assert refresh.judge("next_due", FRIDAYS_CLOSE, ny(FRIDAY, 16, 1), **SESSION) == ny(FRIDAY, 16, 2)

    refresh.sessions()
    later = ny(FRIDAY, 16, 1, year=2036)
    assert refresh.judge("next_due", value(later), later, **SESSION) == later + MINUTE
    assert refresh.judge("verdict", value(later, later - HOUR), later, **SESSION) == "lagging"


def test_the_calendar_is_loaded_once(refresh: RefreshSession) -> None:
    """The second time nothing changes; a wrong row is mended, a made-up one removed."""
    refresh.rows("DELETE FROM livewell.exchange_session")

    assert refresh.sessions() == 1757
    assert refresh.sessions() == 0
    refresh.rows(
        "UPDATE livewell.exchange_session SET closes_at = closes_at + interval '1 hour' WHERE opens_at = %s",
        ny(FRIDAY, 9, 30),
    )
    refresh.rows("INSERT INTO livewell.exchange_session VALUES ('XNYS', %s, %s)", ny(SATURDAY, 9), ny(SATURDAY, 10))
    assert refresh.sessions() == 2


# -- events --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("checked", "at", "expected"),
    [
        (NOON - DAY, NOON - MINUTE, False),
        (NOON - DAY, NOON, True),
        (NOON, NOON + MINUTE, False),
        (NOON, NOON + 30 * DAY, True),
    ],
)
def test_after_an_event_the_value_from_before_it_is_stale(
    refresh: RefreshSession, checked: datetime, at: datetime, expected: bool
) -> None:
    """And one that was checked after it lives as long as any other."""
    ledger = value(checked, event_at=NOON)

    assert refresh.judge("is_stale", ledger, at, rule="after_event", ttl="30 days") is expected


# -- due -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ledger", "expected"),
    [
        ({}, NOON),
        (value(NOON), NOON + MINUTE),
        (value(NOON - HOUR), NOON),
        (value(NOON - HOUR, retry_at=NOON + HOUR), NOON + HOUR),
        (value(NOON, retry_at=NOON - HOUR), NOON + MINUTE),
        ({"missing": True, "checked_at": NOON - MINUTE}, NOON + 59 * MINUTE),
        ({"failures": 1, "retry_at": NOON + MINUTE}, NOON + MINUTE),
    ],
)
def test_when_a_key_is_due(refresh: RefreshSession, ledger: dict[str, object], expected: datetime) -> None:
    """When it goes stale, but not before its back-off is over, and never in the past."""
    assert refresh.judge("next_due", ledger, NOON) == expected


def test_a_day_has_24_hours_in_every_time_zone(refresh: RefreshSession) -> None:
    """Whatever zone the session is in, over the change of the clocks."""
    checked = ny(SATURDAY, 12).astimezone(UTC)
    due = []
    for zone in ("UTC", "America/New_York", "Europe/Paris"):
        refresh.rows(f"SET TimeZone = '{zone}'")
        due.append(refresh.judge("next_due", value(checked), checked, ttl="1 day"))

    assert [one.astimezone(UTC) - checked for one in due] == [DAY] * 3


def test_a_check_from_the_future_is_not_believed(refresh: RefreshSession) -> None:
    """The clock was set back a minute.

    What was checked before that is stale, not fresh for a minute longer (F-C3).
    """
    ledger = value(NOON)
    assert refresh.judge("verdict", ledger, NOON - timedelta(seconds=3)) == "fresh"
    assert refresh.judge("verdict", ledger, NOON - timedelta(seconds=60)) == "stale"
    assert refresh.judge("is_stale", ledger, NOON - timedelta(seconds=60)) is True


# -- no default (contract 13) --------------------------------------------------------------------


@pytest.mark.parametrize("function", ["next_due", "is_stale", "verdict"])
@pytest.mark.parametrize("ttl", ["0", "-1 minute", None])
def test_a_time_to_live_that_is_not_positive_raises(refresh: RefreshSession, function: str, ttl: str | None) -> None:
    """Also if the table's own CHECK was got around; nothing stands in for it."""
    with pytest.raises(psycopg.Error, match="time to live"):
        refresh.judge(function, value(NOON), NOON, ttl=ttl)


def test_no_rule_reads_a_clock_or_a_default() -> None:
    """The functions get the instant and the two rows, and nothing else."""
    for name in ("stale_at", "next_due", "is_stale", "verdict"):
        assert not re.search(r"livewell\.now\(\)|\bDEFAULT\b|interval '(?!1 second')", source(name)), name
