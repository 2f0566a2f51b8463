"""What the database's clock says, without asking it each time.

It is the last instant that the database told, plus the local time that has passed since.

It serves only to judge what is absurdly in the future. Everything that is stored or compared is
decided by the database itself.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta


class DatabaseClock:
    """Set by every answer that carries the database's time.

    Local durations are monotonic, so a wrong local clock does not matter.
    """

    def __init__(self) -> None:
        self._told: datetime | None = None
        self._heard = 0.0

    @property
    def known(self) -> bool:
        """Whether it was ever set."""
        return self._told is not None

    def set(self, told: datetime) -> None:
        """The database said this just now."""
        self._told, self._heard = told, time.monotonic()

    def now(self) -> datetime:
        """About what it would say now."""
        assert self._told is not None, "set before the first call"  # noqa: S101 - RefreshTask.run begins by asking for it
        return self._told + timedelta(seconds=time.monotonic() - self._heard)
