"""The rule of a schedule in words: "every day at 02:00 Europe/Paris", "every 5 minutes". Pure.

    cron text ──cronsim──▶ sets of minutes, hours, days, months ──▶ words

Words are made from the sets that the reader of cron.py goes by, never from the text, so they cannot
say anything else than what will run: "0 9 1-31 * MON" is every day, because a day that fits either
field runs. A text that cannot be read is its own words. At most 100 characters are looked at, and
no set has more than 60 members, whatever a text asks for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from livewell.schedule.cron import CRON_CHARS_MAX

_CLOCK_TIMES_MAX = 6  # that are listed one by one
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_INTERVAL = re.compile(r"(?:(\d+) days? ?)?(?:(\d+):(\d\d):(\d\d(?:\.\d+)?))?")


def rule_words(kind: str, rule: str, zone: str | None) -> str:
    """Of a row of list_schedules()."""
    if kind == "cron":
        return cron_words(rule, zone or "UTC")
    if kind == "once":
        return f"once, at {rule}"
    return interval_words(rule)


def interval_words(interval: str) -> str:
    """An interval as Postgres writes it: 01:30:00 is every 1 hour 30 minutes."""
    match = _INTERVAL.fullmatch(interval)
    if match is None or not interval:
        return f"every {interval}"
    amounts = [float(part or 0) for part in match.groups()]
    named = [(n, unit) for n, unit in zip(amounts, ("day", "hour", "minute", "second"), strict=True) if n]
    if len(named) == 1 and named[0][0] == 1:
        return f"every {named[0][1]}"
    return "every " + " ".join(f"{n:g} {unit}{'' if n == 1 else 's'}" for n, unit in named)


def cron_words(cron: str, zone: str) -> str:
    """A cron text in words, with its zone where that matters; the text itself if it cannot be read."""
    if len(cron) > CRON_CHARS_MAX or len(cron.split()) != 5:
        return cron[:CRON_CHARS_MAX]
    try:
        read = CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError:
        return cron
    times, is_clock = _times(sorted(read.minutes), sorted(read.hours))
    days = _days(read)
    if is_clock:
        return f"{days or 'every day'} {times} {zone}"
    if not days and len(read.hours) == 24 and (step := _step(sorted(read.minutes), 60)):
        return "every minute" if step == 1 else f"every {step} minutes"
    return ", ".join(part for part in (times, days) if part) + f" ({zone})"


def _times(minutes: list[int], hours: list[int]) -> tuple[str, bool]:
    """When in a day; true if these are times of the clock, which stand behind their days."""
    if len(minutes) * len(hours) <= _CLOCK_TIMES_MAX:
        return "at " + _listed([f"{hour:02}:{minute:02}" for hour in hours for minute in minutes]), True
    often = _often(minutes)
    if len(hours) == 24:
        return often, False
    step, is_run = _step(hours, 24), hours[-1] - hours[0] == len(hours) - 1
    if step and len(minutes) == 1:
        return f"every {step} hours" + (f" at :{minutes[0]:02}" if minutes[0] else ""), False
    if is_run and len(minutes) == 1:
        return f"every hour from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[0]:02}", False
    if is_run:
        return f"{often} from {hours[0]:02}:00 to {hours[-1]:02}:59", False
    often = often if len(minutes) > _CLOCK_TIMES_MAX or _step(minutes, 60) else _at(minutes)
    return f"{often} in the hours {_listed(_runs(hours))}", False


def _often(minutes: list[int]) -> str:
    """When in an hour."""
    step = _step(minutes, 60)
    if step:
        return "every minute" if step == 1 else f"every {step} minutes"
    if minutes == [0]:
        return "every hour"
    if len(minutes) <= _CLOCK_TIMES_MAX:
        return f"every hour {_at(minutes)}"
    return f"every hour at the minutes {_listed(_runs(minutes))}"


def _at(minutes: Iterable[int]) -> str:
    return "at " + _listed([f":{minute:02}" for minute in minutes])


def _days(read: CronSim) -> str:
    """Which days; empty for every day of the year."""
    weekdays = {one % 7 for one in read.weekdays if isinstance(one, int)}
    nth = sorted({(one[0] % 7, one[1]) for one in read.weekdays if isinstance(one, tuple)}, key=_of_month)
    by_week = None if len(weekdays) == 7 else _week(weekdays, nth)
    by_month = None if read.days >= set(range(1, 32)) else _month(read.days)
    if by_week is None or by_month is None:
        # Where both must fit, "every" leaves the choice to the other; where either may, it takes all.
        days = (by_week or by_month or "") if read.day_and else ""
    elif read.day_and:
        days = f"{by_month} if that is {_week(weekdays, nth, each='a {}', last=' or ')}"
    else:
        days = f"{by_month} and also {by_week}"
    if len(read.months) == 12:
        return days
    names = {month: _MONTHS[month - 1] for month in sorted(read.months)}
    comma = "," if by_week and by_month and days else ""  # the months are those of both
    return f"{days or 'every day'}{comma} in {_listed(_runs(list(names), names))}"


def _week(weekdays: Collection[int], nth: Iterable[tuple[int, int]], each: str = "{}s", last: str = " and ") -> str:
    """Mondays and Fridays; Monday to Friday; the 2nd Sunday of the month."""
    from_monday = sorted((one - 1) % 7 for one in weekdays)
    names = [_WEEKDAYS[(one + 1) % 7] for one in from_monday]
    if len(names) > 2 and from_monday[-1] - from_monday[0] == len(names) - 1:
        parts = [f"{names[0]} to {names[-1]}"]
    else:
        parts = [each.format(name) for name in names]
    return _listed([*parts, *(f"the {_place(n)} {_WEEKDAYS[day]} of the month" for day, n in nth)], last)


def _month(days: Collection[int]) -> str:
    """The 1st and 15th of the month; the last day of the month."""
    known = sorted(day for day in days if day > 0)
    parts = [f"the {_listed(_runs(known, {day: _ordinal(day) for day in known}))} of the month"] if known else []
    parts += ["the last day of the month"] if CronSim.LAST in days else []
    parts += ["the last day of the month that is Monday to Friday"] if CronSim.LAST_WEEKDAY in days else []
    return _listed(parts)


def _of_month(one: tuple[int, int]) -> tuple[bool, int, int]:
    """The last one comes last."""
    return one[1] < 0, one[1], one[0]


def _place(n: int) -> str:
    return "last" if n == CronSim.LAST else _ordinal(n)


def _ordinal(n: int) -> str:
    if n in (11, 12, 13):
        return f"{n}th"
    return f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th') }"


def _step(values: Sequence[int], size: int) -> int | None:
    """The step if these are every so many of the whole, from 0 on, and it comes out even."""
    step = values[1] - values[0] if len(values) > 1 else size
    return step if size % step == 0 and list(values) == list(range(0, size, step)) and step < size else None


def _runs(values: Sequence[int], names: dict[int, str] | None = None) -> list[str]:
    """1, 2, 3, 7 as 1 to 3 and 7: neighbours together, from three on."""
    parts: list[list[int]] = []
    for value in values:
        if parts and parts[-1][-1] == value - 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    name = str if names is None else names.__getitem__
    found: list[str] = []
    for part in parts:
        found += [f"{name(part[0])} to {name(part[-1])}"] if len(part) > 2 else [name(value) for value in part]
    return found


def _listed(parts: Sequence[str], last: str = " and ") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}{last}{parts[-1]}"
