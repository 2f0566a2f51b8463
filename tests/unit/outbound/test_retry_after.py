"""Retry-After in all the ways it is written (F-D6)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.outbound.retry_after import RETRY_AFTER_SECONDS_MAX, retry_after

NOW = datetime(2026, 11, 16, 7, 0, 0, tzinfo=UTC)
DATE = "Mon, 16 Nov 2026 07:00:00 GMT"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3),
        (" 120 ", 120),
        ("0", 0),
        ("1.2", 2),
        ("86401", RETRY_AFTER_SECONDS_MAX),
        ("9" * 5000, RETRY_AFTER_SECONDS_MAX),
        ("Mon, 16 Nov 2026 07:00:30 GMT", 30),
        ("Monday, 16-Nov-26 07:00:30 GMT", 30),
        ("Mon, 16 Nov 2026 06:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_SECONDS_MAX),
        ("-5", None),
        ("soon", None),
        ("1e3", None),
        ("0x10", None),
        ("٣", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("3, 5", None),
        ("Mon, 99 Nov 2026 07:00:30 GMT", None),
        ("Mon, 16 Nov 2026 07:00:30", None),
        ("Mon, 16 Nov 99999999999999 07:00:30 GMT", None),
        ("x" * 9000, None),
    ],
)
def test_it_is_read_capped_or_ignored(text: str, seconds: float | None) -> None:
    """Seconds, dates, the past, the huge and the senseless."""
    assert retry_after({"retry-after": text, "date": DATE}) == seconds


def test_nothing_said_is_nothing_known() -> None:
    """Absent is not zero."""
    assert retry_after({}, now=NOW) is None


def test_a_date_is_measured_by_the_clock_of_whoever_wrote_it() -> None:
    """A server an hour ahead asks for thirty seconds, not for an hour and thirty seconds."""
    headers = {"retry-after": "Mon, 16 Nov 2026 08:00:30 GMT", "date": "Mon, 16 Nov 2026 08:00:00 GMT"}

    assert retry_after(headers, now=NOW) == 30


def test_without_its_clock_ours_is_taken_and_without_both_a_date_says_nothing() -> None:
    """No clock of this process is read."""
    headers = {"retry-after": "Mon, 16 Nov 2026 07:00:30 GMT", "date": "garbage"}

    assert (retry_after(headers, now=NOW), retry_after(headers)) == (30, None)


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_header_makes_it_fail_or_leave_its_range(text: str, date: str) -> None:
    """Whatever is sent, the answer is None or within the cap."""
    seconds = retry_after({"retry-after": text, "date": date}, now=NOW)

    assert seconds is None or 0 <= seconds <= RETRY_AFTER_SECONDS_MAX
