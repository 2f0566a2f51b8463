"""Tell people who read the log about refreshes that failed or were refused.

A few of each type and reason in a minute, then how many more there were.
"""

from __future__ import annotations

import structlog

from livewell.refresh.result import Failure, Result
from livewell.refresh.validate.refusal import clean
from livewell.telemetry.repeats import Repeats

log = structlog.get_logger("livewell.refresh")


class RefusalLog:
    """One per worker."""

    def __init__(self) -> None:
        self._repeats = Repeats()

    def tell(self, data_type: str, key: str, reason: str, seen: Result) -> None:
        """This key of this type brought nothing that could be stored."""
        if self._repeats.passes(f"{data_type}: {reason}"):
            detail = clean(seen.detail) if isinstance(seen, Failure) else ""
            log.warning("refresh refused", type=data_type, key=clean(key), reason=reason, seen=detail)

    def flush(self, *, everything: bool = False) -> None:
        """Say how many were not told one by one, where their minute is over."""
        for cause, n in self._repeats.overdue(everything=everything):
            log.warning("more refreshes were refused", cause=cause, refreshes=n)
