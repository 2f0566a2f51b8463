"""The rule of a schedule in words never says anything else than what will run.

The words are read back by a reader of their own, here, and compared with the slots of cron.py.
"""

from __future__ import annotations

import calendar
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from livewell.schedule.cron import CronError, slots
from livewell.schedule.cron_words import cron_words, interval_words, rule_words

WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = tuple(calendar.month_name)
Fits = Callable[[datetime], bool]
EXAMPLES = int(os.environ.get("LIVEWELL_MODEL_EXAMPLES", "100"))


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 2 * * *", "every day at 02:00 Europe/Paris"),
        ("*/5 * * * *", "every 5 minutes"),
        ("30 9,16 * * MON", "Mondays at 09:30 and 16:30 Europe/Paris"),
        ("*/5 9-17 * * 1-5", "every 5 minutes from 09:00 to 17:59, Monday to Friday (Europe/Paris)"),
        ("0 9 1 * MON", "the 1st of the month and also Mondays at 09:00 Europe/Paris"),
        ("0 9 */16 * MON", "the 1st and 17th of the month if that is a Monday at 09:00 Europe/Paris"),
        ("0 9 1-31 * MON", "every day at 09:00 Europe/Paris"),
        ("0 0 L * *", "the last day of the month at 00:00 Europe/Paris"),
        ("5 4 * * SUN#2", "the 2nd Sunday of the month at 04:05 Europe/Paris"),
        ("0 * * * *", "every hour (Europe/Paris)"),
        ("0 */2 * * *", "every 2 hours (Europe/Paris)"),
        ("0 6 * JAN-MAR *", "every day in January to March at 06:00 Europe/Paris"),
        ("@daily", "@daily"),
        ("1--100000000 * * * *", "1--100000000 * * * *"),
    ],
)
def test_rules_as_people_say_them(cron: str, words: str) -> None:
    """A text that cannot be read is its own words."""
    assert cron_words(cron, "Europe/Paris") == words


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ("00:05:00", "every 5 minutes"),
        ("1 day", "every day"),
        ("01:30:00", "every 1 hour 30 minutes"),
        ("00:00:00.25", "every 0.25 seconds"),
        ("2 days 01:00:00", "every 2 days 1 hour"),
        ("1 mon", "every 1 mon"),
    ],
)
def test_intervals_as_people_say_them(interval: str, words: str) -> None:
    """As Postgres writes them."""
    assert interval_words(interval) == words


def test_one_instant() -> None:
    """And a zone that is not there."""
    assert rule_words("once", "2027-01-01 00:00:00+00", None) == "once, at 2027-01-01 00:00:00+00"
    assert rule_words("cron", "0 2 * * *", None) == "every day at 02:00 UTC"


@given(st.text(max_size=200) | st.from_regex(r"[0-9*/,L#-]{1,30}( [0-9*/,L#-]{1,18}){4}", fullmatch=True))
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_is_answered_at_once(text: str) -> None:
    """In bounded time and length; a range of a hundred million took gigabytes elsewhere."""
    began = time.thread_time()
    assert len(cron_words(text, "UTC")) < 2000
    assert time.thread_time() - began < 0.5


def _field(least: int, most: int, *more: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    number = st.integers(least, most)
    ranges = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    steps = st.integers(1, most).flatmap(lambda n: st.sampled_from([f"*/{n}"]) | ranges.map(lambda r: f"{r}/{n}"))
    terms = st.one_of(number.map(str), number.map(str), ranges, steps, *more)
    return st.just("*") | st.lists(terms, min_size=1, max_size=3).map(",".join)


NTH = st.tuples(st.integers(0, 7), st.integers(1, 5)).map(lambda two: f"{two[0]}#{two[1]}")
LAST = st.integers(0, 7).map(lambda day: f"{day}L")
CRON = st.tuples(
    _field(0, 59), _field(0, 23), _field(1, 31, st.sampled_from(["L", "LW"])), _field(1, 12), _field(0, 7, NTH, LAST)
).map(" ".join)


@given(CRON, st.integers(0, 1000))
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_words_say_the_slots_of_the_reader(cron: str, day: int) -> None:
    """Every slot of the reader fits the words, and no minute between two of them does."""
    begin = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    try:
        found = list(islice(slots(cron, "UTC", begin), 12))
    except CronError:
        assume(False)
    fits = _read(cron_words(cron, "UTC"))
    assert [slot for slot in found if not fits(slot)] == []
    for before, after in zip([begin, *found], found, strict=False):
        hole = [before + timedelta(minutes=n) for n in range(1, 3000)]
        assert [minute for minute in hole if minute < after and fits(minute)] == []


def _read(words: str) -> Fits:
    """The minutes that these words mean."""
    words = words.removesuffix(" UTC").removesuffix(" (UTC)")
    if clock := re.fullmatch(r"(.*) at (\d\d:\d\d(?:, \d\d:\d\d)*(?: and \d\d:\d\d)?)", words):
        days, times = _days(clock[1]), set(_list(clock[2]))
        return lambda at: f"{at:%H:%M}" in times and days(at)
    often, found = _often(words)
    rest = words[found:]
    assert not rest or rest.startswith(", "), words
    days = _days(rest.removeprefix(", ") or "every day")
    return lambda at: often(at) and days(at)


def _often(words: str) -> tuple[Fits, int]:
    numbers = r"\d+(?: to \d+)?(?:, \d+(?: to \d+)?)*(?: and \d+(?: to \d+)?)?"
    marks = r":\d\d(?:, :\d\d)*(?: and :\d\d)?"
    match = re.match(
        rf"(?:every (?:(?P<step>\d+) )?minutes?|every (?P<hours>\d+) hours|(?P<hourly>every hour)(?= at| from|,|$))?"
        rf"(?: ?at the minutes (?P<minutes>{numbers})| ?at (?P<marks>{marks}))?"
        rf"(?: from (?P<from>\d\d:\d\d) to (?P<to>\d\d:\d\d)| in the hours (?P<in>{numbers}))?",
        words,
    )
    assert match is not None
    assert match.end(), words
    minutes = set(range(0, 60, int(match["step"] or 1)))
    if match["hours"] or match["hourly"]:
        minutes = {int((match["from"] or "00:00")[3:])}
    if match["minutes"]:
        minutes = _numbers(match["minutes"])
    if match["marks"]:
        minutes = {int(mark[1:]) for mark in _list(match["marks"])}
    hours = set(range(0, 24, int(match["hours"] or 1)))
    if match["from"]:
        hours = set(range(int(match["from"][:2]), int(match["to"][:2]) + 1))
    if match["in"]:
        hours = _numbers(match["in"])
    return lambda at: at.minute in minutes and at.hour in hours, match.end()


def _days(words: str) -> Fits:
    month = re.search(
        r",? in ((?:January|February|March|April|May|June|July|August|September|October|Nov|Dec).*)$", words
    )
    months = {MONTHS.index(name) for name in _expand(month[1], MONTHS)} if month else set(range(1, 13))
    words = words[: month.start()] if month else words
    day: Fits
    if " if that is " in words:
        one, other = (_either(part) for part in words.split(" if that is "))
        day = lambda at: one(at) and other(at)  # noqa: E731 - a condition
    elif " and also " in words:
        one, other = (_either(part) for part in words.split(" and also "))
        day = lambda at: one(at) or other(at)  # noqa: E731 - a condition
    else:
        day = _either(words)
    return lambda at: at.month in months and day(at)


def _either(words: str) -> Fits:
    """One way to choose days: by the week, or by the month."""
    if words == "every day":
        return lambda _: True
    fits: list[Fits] = []

    def take(pattern: str, make: Callable[[re.Match[str]], Fits]) -> None:
        nonlocal words
        fits.extend(make(found) for found in re.finditer(pattern, words))
        words = re.sub(pattern, "", words)

    take(r"the last day of the month that is Monday to Friday", lambda _: _is_last_weekday)
    take(r"the last day of the month", lambda _: _is_last)
    take(
        r"the (last|\d)(?:st|nd|rd|th)? ([A-Z][a-z]+day) of the month",
        lambda found: (
            lambda at: (
                at.weekday() == WEEK.index(found[2])
                and (
                    (at + timedelta(days=7)).month != at.month
                    if found[1] == "last"
                    else (at.day + 6) // 7 == int(found[1])
                )
            )
        ),
    )
    take(r"the (\d[^M]*) of the month", lambda found: _in_month(_numbers(re.sub(r"(?<=\d)[a-z]{2}", "", found[1]))))
    take(r"(\w+day) to (\w+day)", lambda found: _in_week(_expand(found[0], WEEK)))
    take(r"\ba (\w+day)|(\w+day)s", lambda found: _in_week([found[1] or found[2]]))
    assert not re.sub(r"\b(and|or)\b", "", words).strip(" ,"), f"not understood: {words}"
    assert fits
    return lambda at: any(fit(at) for fit in fits)


def _in_month(days: set[int]) -> Fits:
    return lambda at: at.day in days


def _in_week(names: list[str]) -> Fits:
    return lambda at: WEEK[at.weekday()] in names


def _is_last(at: datetime) -> bool:
    return (at + timedelta(days=1)).month != at.month


def _is_last_weekday(at: datetime) -> bool:
    rest = [at + timedelta(days=n) for n in range(1, 8)]
    return at.weekday() < 5 and not any(one.month == at.month and one.weekday() < 5 for one in rest)


def _list(words: str) -> list[str]:
    return re.split(r", | and ", words)


def _numbers(words: str) -> set[int]:
    ends = [[int(n) for n in part.split(" to ")] for part in _list(words)]
    return {n for one in ends for n in range(one[0], one[-1] + 1)}


def _expand(words: str, names: tuple[str, ...]) -> list[str]:
    places = [[names.index(name) for name in part.split(" to ")] for part in _list(words)]
    return [names[n] for one in places for n in range(one[0], one[-1] + 1)]
