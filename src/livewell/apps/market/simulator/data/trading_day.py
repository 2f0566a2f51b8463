"""Days and hours of the exchange in New York: Monday to Friday, 9:30 to 16:00, without holidays.

Holidays are left out on purpose: the product's calendar has them, and a source that says nothing
new on an open day, or something new on a closed one, is what the product must take calmly anyway.
"""

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

__all__ = ["ZONE", "Session", "last_close", "newest_session", "previous_day", "session", "wall_text"]

ZONE = ZoneInfo("America/New_York")
HALF_HOUR = 1_800  # opening and closing fall on half hours, in UTC too

Session = tuple[date, int, int]  # the day, its opening and its closing in Unix seconds


@lru_cache(maxsize=8_192)
def session(day: date) -> Session:
    """Give a day's opening and closing."""
    opens = datetime.combine(day, time(9, 30), ZONE)
    closes = datetime.combine(day, time(16, 0), ZONE)
    return day, int(opens.timestamp()), int(closes.timestamp())


def previous_day(day: date) -> date:
    """Give the trading day before."""
    back = {0: 3, 6: 2}.get(day.weekday(), 1)
    return day - timedelta(days=back)


def newest_session(at: int) -> Session:
    """Give the session that runs at this instant, or the last one before it."""
    return _newest_session(at // HALF_HOUR)


@lru_cache(maxsize=8_192)
def _newest_session(half_hour: int) -> Session:
    at = half_hour * HALF_HOUR
    day = datetime.fromtimestamp(at, ZONE).date()
    if day.weekday() > 4:
        day = previous_day(day)
    found = session(day)
    return found if found[1] <= at else session(previous_day(day))


def last_close(at: int) -> int:
    """Give the last instant up to this one at which the exchange was open.

    This one, while it is.
    """
    return min(at, newest_session(at)[2])


def wall_text(at: int) -> str:
    """Write an instant as FMP does: New York's wall clock, without saying so."""
    return datetime.fromtimestamp(at, UTC).astimezone(ZONE).strftime("%Y-%m-%d %H:%M:%S")
