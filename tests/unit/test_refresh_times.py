"""Times as upstreams write them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.refresh.definition.model import TimeFormat
from livewell.refresh.definition.times import TimeError, end_of_day, parse_instant

NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("value", "form", "zone", "expected"),
    [
        (1784750401, "unix_seconds", "UTC", "2026-07-22T20:00:01+00:00"),
        (Decimal("1784750401.5"), "unix_seconds", "UTC", "2026-07-22T20:00:01.500000+00:00"),
        (1784750401123, "unix_millis", "UTC", "2026-07-22T20:00:01.123000+00:00"),
        ("2026-07-22", "date", "UTC", "2026-07-22T00:00:00+00:00"),
        ("2026-07-22", "date", NEW_YORK, "2026-07-22T04:00:00+00:00"),
        ("2026-07-22 09:41:12", "datetime", NEW_YORK, "2026-07-22T13:41:12+00:00"),
        ("2026-01-22 09:41:12", "datetime", NEW_YORK, "2026-01-22T14:41:12+00:00"),
        ("2026-07-22T09:41:12Z", "datetime", NEW_YORK, "2026-07-22T09:41:12+00:00"),
        ("2026-07-22T09:41:12.5+0200", "datetime", NEW_YORK, "2026-07-22T07:41:12.500000+00:00"),
        ("2026-07-22 09:41", "datetime", "UTC", "2026-07-22T09:41:00+00:00"),
        # Put forward at 02:00 on 8 March 2026: half past two never was; put back at 02:00 on 1
        # November: half past one was twice.
        ("2026-03-08 02:30:00", "datetime", NEW_YORK, "2026-03-08T07:30:00+00:00"),
        ("2026-11-01 01:30:00", "datetime", NEW_YORK, "2026-11-01T05:30:00+00:00"),
    ],
)
def test_a_time_is_an_instant(value: object, form: TimeFormat, zone: str, expected: str) -> None:
    """In whatever way it is written."""
    assert parse_instant(value, form, zone).isoformat() == expected


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, "unix_seconds"), (True, "unix_seconds"), ("1784750401", "unix_seconds"), (0, "unix_seconds"), (-1, "unix_seconds"), (10**18, "unix_seconds"), (Decimal("1E+300"), "unix_seconds"),
        (10**14, "unix_seconds"), (10**18, "unix_millis"), ("2026-02-30", "date"), ("2026-7-2", "date"), ("20260722", "date"), ("", "date"), (20260722, "date"), ("2026-07-22 25:00:00", "datetime"),
        ("2026-07-22", "datetime"), ("22/07/2026", "datetime"), ("2026-07-22 09:41:12 EST", "datetime"), ("0001-01-01 00:00:00+14:00", "datetime"), ("9999-12-31 23:59:59-14:00", "datetime"),
        ("٢٠٢٦-٠٧-٢٢", "date"), ("2026-07-22 09:41:12+99:99", "datetime"), ("1/1/1970", "date"), (["2026-07-22"], "date"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(value: object, form: TimeFormat) -> None:
    """Never guessed."""
    with pytest.raises(TimeError):
        parse_instant(value, form, NEW_YORK)


def test_a_date_has_passed_when_its_day_is_over() -> None:
    """Also where that day had 25 hours."""
    assert end_of_day("2026-11-01", NEW_YORK) == datetime(2026, 11, 2, 5, tzinfo=UTC)
    with pytest.raises(TimeError):
        end_of_day("9999-12-31", "UTC")


@given(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.text(),
        st.lists(st.text()),
    ),
    st.sampled_from(["unix_seconds", "unix_millis", "date", "datetime"]),
)
def test_whatever_comes_it_is_a_time_or_refused(value: object, form: TimeFormat) -> None:
    """No other exception."""
    with contextlib.suppress(TimeError):
        assert parse_instant(value, form, NEW_YORK).tzinfo is not None
