"""Read Retry-After: seconds, or a date, or nonsense.

A date is measured against the answer's own Date header: if the server's clock is wrong, both are
wrong and their difference is right. Without that header it is measured against `now`, which the
caller takes from the database. With neither, a date says nothing. No clock is read here.
"""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

__all__ = ["RETRY_AFTER_SECONDS_MAX", "retry_after"]

RETRY_AFTER_SECONDS_MAX = 86_400.0  # a day: the longest that a call limit counts; nobody may silence us for longer

_SECONDS = re.compile(r"[0-9]{1,10}(\.[0-9]{1,10})?")
_DIGITS = re.compile(r"[0-9]{11,}")
_DATE_CHARS_MAX = 64


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Whole seconds to wait, from 0 to the cap; None where the header is absent or makes no sense.

    Names in lower case.
    """
    text = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(math.ceil(float(text))), RETRY_AFTER_SECONDS_MAX)
    if _DIGITS.fullmatch(text):
        return RETRY_AFTER_SECONDS_MAX
    until, since = _date(text), _date(headers.get("date", "")) or now
    if until is None or since is None:
        return None
    return min(max(0.0, float(math.ceil((until - since).total_seconds()))), RETRY_AFTER_SECONDS_MAX)


def _date(text: str) -> datetime | None:
    if not 8 <= len(text) <= _DATE_CHARS_MAX:
        return None
    try:
        instant = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return instant if instant.tzinfo is not None else None
