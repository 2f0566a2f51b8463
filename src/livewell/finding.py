"""What a check of the doctor says: what was seen, what it means, and the command that mends it.

Each package has its own checks (its module `doctor`); operations/doctor runs all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from livewell.db import Database
from livewell.settings import Settings
from livewell.telemetry.system_state import Document


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not well.

    `word` is one of docs/operations/doctor.md; `subject` is what it is about: a queue, a type, a
    worker. `level`: P0 wakes somebody, P1 is for today, P2 for this week, as for alerts.
    """

    word: str
    subject: str
    seen: str
    means: str
    command: str
    level: Literal["P0", "P1", "P2"] = "P1"

    def document(self) -> dict[str, str]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Patient:
    """What checks look at."""

    database: Database
    settings: Settings
    state: Document

    async def rows(self, query: str, *params: Any) -> list[dict[str, Any]]:
        """Ask the database."""
        return await self.database.call_dicts(query, params)


Check = Callable[[Patient], Awaitable[Sequence[Finding]]]


def span(seconds: float | None) -> str:
    """3 s, 12 min, 2 h, 5 d."""
    if seconds is None:
        return "an unknown time"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if round(abs(seconds) / size, 2) >= 1:  # 3,599 s are 1 h, not 60 min
            return f"{seconds / size:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds:.0f} s"


def instant(text: str | None) -> str:
    """An instant of the state, to the second."""
    return "" if text is None else f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S %Z}"
