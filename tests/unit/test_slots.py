"""When schedules are due, by the documented policy where clocks change, and which missed slots run (S1, F-C4)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livewell.errors import ConfigurationError
from livewell.schedule.cron import check_cron, first_slot, next_slot
from livewell.schedule.due_times import CATCH_UP_MAX, Missed, Plan, Rule, plan

BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
ZONES = ("Europe/Paris", "America/New_York")
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def slots(cron: str, zone: str) -> list[datetime]:
    """Every slot of two years, as the scheduler walks: each from the one before."""
    found, at = [], BEGIN
    while (at := next_slot(cron, zone, at)) < END:
        found.append(at)
    return found


def changes(zone: str) -> tuple[list[datetime], list[datetime]]:
    """The instants at which clocks go forwards and back."""
    hours = [BEGIN + timedelta(hours=n) for n in range(2 * 365 * 24)]
    offsets = [(hour, hour.astimezone(ZoneInfo(zone)).utcoffset() or timedelta(0)) for hour in hours]
    turns = [(at, after - before) for (_, before), (at, after) in pairwise(offsets) if after != before]
    return [at for at, by in turns if by > timedelta(0)], [at for at, by in turns if by < timedelta(0)]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("hour", range(24))
def test_a_fixed_local_time_comes_once_a_day_for_two_years(zone: str, hour: int) -> None:
    """At that local time.

    On the day it does not exist at the first moment after the gap, on the day it comes twice the
    first time.
    """
    there = ZoneInfo(zone)
    found = slots(f"30 {hour} * * *", zone)
    local = [at.astimezone(there) for at in found]
    days = Counter(at.date() for at in local)
    first = BEGIN.astimezone(there).date()
    expected = {first + timedelta(days=n) for n in range(1, 730)}
    forwards, _ = changes(zone)
    gaps = {at.astimezone(there).date(): at for at in forwards}

    assert max(days.values()) == 1
    assert expected <= set(days)
    for at, shown in zip(found, local, strict=True):
        exists = shown.replace(hour=hour, minute=30).astimezone(UTC).astimezone(there).hour == hour
        if exists:
            assert (shown.hour, shown.minute, shown.fold) == (hour, 30, 0)
        else:
            assert at == gaps[shown.date()]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("cron", "minutes"), [("*/15 * * * *", 15), ("0 * * * *", 60), ("* * * * *", 1)])
def test_a_text_that_says_every_goes_by_real_time(zone: str, cron: str, minutes: int) -> None:
    """No slot is missing and none is double where clocks change: the gaps are all the same."""
    forwards, back = changes(zone)
    for turn in (*forwards, *back):
        at = turn - timedelta(hours=5)
        for _ in range(10 * 60 // minutes):
            after = next_slot(cron, zone, at)
            assert after - at == timedelta(minutes=minutes)
            at = after


@pytest.mark.parametrize("zone", ZONES)
def test_there_were_clock_changes_to_test(zone: str) -> None:
    """Two in spring and two in autumn."""
    assert [len(found) for found in changes(zone)] == [2, 2]


def test_a_leap_day_comes_when_there_is_one() -> None:
    """The 29th of February (F-C4)."""
    assert next_slot("0 0 29 2 *", "UTC", BEGIN) == datetime(2028, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("61 2 * * *", "the minute field is '61'"),
        ("0 24 * * *", "the hour field is '24'"),
        ("0 2 32 * *", "the day-of-month field is '32'"),
        ("0 2 * 13 *", "the month field is '13'"),
        ("0 2 * * 9", "the day-of-week field is '9'"),
        ("*/0 * * * *", "the minute field is '*/0'"),
        ("5-1 * * * *", "the minute field is '5-1'"),
        ("0 2 * *", "it has 4 fields; five are right: minute hour"),
        ("0 0 2 * * *", "it has 6 fields"),
        ("", "it has 0 fields"),
        ("@daily", "it has 1 fields"),
        ("0 0 31 2 *", "the day-of-month field is '31', and no month of '2' has that day"),
        ("0 0 31 4,6 *", "no month of '4,6' has that day"),
        ("61 2 * * *", "allowed are 0-59, *, lists"),
        ("0 2 * * FUN", "allowed are 0-7 or SUN-SAT"),
        (5, "a text is needed"),
        ("0 0 29 2 *", "less than once in 400 days"),
        ("1," * 60 + "1 * * * *", "fields"),
    ],
)
def test_a_cron_text_that_cannot_be_read_names_its_field(cron: Any, said: str) -> None:
    """And what it was."""
    with pytest.raises(ConfigurationError) as refused:
        check_cron(cron, "UTC")
    assert said in str(refused.value)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "Europe", "a\x00b", 5, None])
def test_an_unknown_zone_is_refused_with_examples(zone: Any) -> None:
    """Whatever is wrong with it."""
    with pytest.raises(ConfigurationError, match="write it like Europe/Paris"):
        check_cron("0 2 * * *", zone)


EVERY_MINUTE = Rule("interval", every=MINUTE)


@pytest.mark.parametrize(
    ("missed", "late", "expected"),
    [
        ("skip", 0, Plan(NOON, NOON + MINUTE, MINUTE)),
        ("skip", 59, Plan(NOON, NOON + MINUTE, MINUTE)),
        ("skip", 61, Plan(NOON + MINUTE, NOON + 2 * MINUTE, MINUTE, 1, NOON)),
        ("once", 61, Plan(NOON + MINUTE, NOON + 2 * MINUTE, MINUTE, 1, NOON)),
        ("once", 3600, Plan(NOON + 60 * MINUTE, NOON + 61 * MINUTE, MINUTE, 60, NOON + 59 * MINUTE)),
        ("all", 61, Plan(NOON, NOON + MINUTE, MINUTE)),
    ],
)
def test_missed_slots_of_an_interval(missed: Missed, late: float, expected: Plan) -> None:
    """By the policy."""
    assert plan(EVERY_MINUTE, missed, NOON, NOON + timedelta(seconds=late)) == expected


def test_a_nightly_run_after_a_morning_without_a_scheduler() -> None:
    """skip lets it go, once and all run it late."""
    rule = Rule("cron", "0 2 * * *", "Europe/Paris")
    due, gap = first_slot("0 2 * * *", "Europe/Paris", NOON)
    now = due + timedelta(hours=8)

    assert gap == timedelta(days=1)
    assert plan(rule, "skip", due, now) == Plan(None, due + gap, gap, 1, due)
    assert plan(rule, "once", due, now) == plan(rule, "all", due, now) == Plan(due, due + gap, gap)


@pytest.mark.parametrize("rule", [EVERY_MINUTE, Rule("cron", "* * * * *", "UTC")], ids=["interval", "cron"])
def test_catching_up_is_bounded(rule: Rule) -> None:
    """After a day away the latest hundred run, one after another.

    The others are counted as missed.
    """
    now, due = NOON + timedelta(days=1), NOON
    ran = []
    first = plan(rule, "all", due, now)
    while due <= now:
        planned = plan(rule, "all", due, now)
        assert planned.slot is not None
        assert planned.after is not None
        ran.append(planned.slot)
        due = planned.after

    assert first.skipped == 1441 - CATCH_UP_MAX
    assert ran == [now - n * MINUTE for n in reversed(range(CATCH_UP_MAX))]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("rule", [Rule("interval", every=timedelta(hours=1)), Rule("cron", "0 * * * *", "UTC")])
def test_the_zone_of_the_databases_session_changes_nothing(zone: str, rule: Rule) -> None:
    """Where its clocks change, instants that it writes as local times are still instants (F-C4)."""
    forwards, back = changes(zone)
    for turn in (*forwards, *back):
        due, now = turn - timedelta(hours=3), turn + timedelta(hours=3, seconds=1)
        local = plan(rule, "once", due.astimezone(ZoneInfo(zone)), now.astimezone(ZoneInfo(zone)))
        assert local == plan(rule, "once", due, now)
        assert (local.slot, local.skipped) == (turn + timedelta(hours=3), 6)


def test_a_month_away_costs_no_month_of_steps() -> None:
    """The count of a minute's cron stops at two thousand; the latest slot is right all the same."""
    now = NOON + timedelta(days=31, seconds=30)
    planned = plan(Rule("cron", "* * * * *", "Europe/Paris"), "once", NOON, now)

    assert planned.slot == now - timedelta(seconds=30)
    assert planned.after == now + timedelta(seconds=30)
    assert planned.skipped >= 1_999


def test_a_one_off_runs_or_is_missed() -> None:
    """And ends either way."""
    rule = Rule("once")
    assert plan(rule, "once", NOON, NOON + timedelta(days=9)) == Plan(NOON, None, timedelta(0))
    assert plan(rule, "skip", NOON, NOON + timedelta(days=9)) == Plan(None, None, timedelta(0), 1, NOON)


@settings(deadline=None)
@given(
    st.sampled_from(["skip", "once", "all"]),
    st.sampled_from(["*/7 * * * *", "0 2 * * *", "30 2 * * *", "15 9 * * 1-5"]),
    st.sampled_from(ZONES),
    st.integers(0, 5 * 86400),
    st.integers(0, 400 * 1440),
)
def test_every_plan_moves_on_and_loses_no_slot(
    missed: Missed, cron: str, zone: str, late_seconds: int, begin_minutes: int
) -> None:
    """The slots that were skipped, the one that runs and those still due are all slots there are, each once."""
    due, _ = first_slot(cron, zone, BEGIN + begin_minutes * MINUTE)
    now = due + timedelta(seconds=late_seconds)
    planned = plan(Rule("cron", cron, zone), missed, due, now)
    come, at = [due], due
    while (at := next_slot(cron, zone, at)) <= now:
        come.append(at)
    assert planned.after is not None
    run = [] if planned.slot is None else [planned.slot]

    assert run == [one for one in run if one in come]
    assert planned.skipped + len(run) + len([one for one in come if one >= planned.after]) == len(come)
    assert planned.after > (planned.slot or planned.skipped_last or due - MINUTE)
    assert planned.after == next_slot(cron, zone, planned.slot or come[-1])
