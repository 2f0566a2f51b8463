"""When a scheduled type is due: cron expressions, right at daylight-saving changes (cronsim). Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

CRON_CHARS_MAX = 100
_SILENCE_MAX = timedelta(days=400)


class CronError(ValueError):
    """It is not a cron expression, or one that never comes."""


def next_due(cron: str, zone: str, after: datetime) -> datetime:
    """The first instant after this one, in UTC."""
    try:
        return next(CronSim(cron, after.astimezone(ZoneInfo(zone)))).astimezone(UTC)
    except (CronSimError, StopIteration, ValueError, OverflowError) as error:
        raise CronError(str(error) or "it never comes") from None


def check(cron: str, zone: str) -> None:
    """Refuse what cronsim cannot read, and what comes less than once in 400 days."""
    if not 9 <= len(cron) <= CRON_CHARS_MAX or len(cron.split()) != 5:
        raise CronError(f"five fields in at most {CRON_CHARS_MAX} characters are allowed")
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    if next_due(cron, zone, begin) - begin > _SILENCE_MAX:
        raise CronError("it comes less than once in 400 days")
