"""When exchanges are open: tables that come with the package.

They are precomputed with exchange-calendars, so nothing here needs pandas.

A calendar ends in a certain year. After that the rule `session` falls back to plain age: it asks
too often, never too seldom.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import datetime
from importlib import resources

from livewell.errors import ConfigurationError

# One statement, for whatever connection or transaction the caller has: execute(LOAD,
# calendar.parameters).
LOAD = "SELECT livewell.load_sessions(%s, %s::timestamptz[], %s::timestamptz[])"

_FILES = {"XNYS": "xnys.csv"}


@dataclass(frozen=True, slots=True)
class Calendar:
    """The sessions of one exchange, oldest first."""

    name: str
    sessions: tuple[tuple[datetime, datetime], ...]

    @property
    def parameters(self) -> tuple[str, list[datetime], list[datetime]]:
        """What LOAD takes."""
        return self.name, [opens for opens, _ in self.sessions], [closes for _, closes in self.sessions]

    @property
    def ends_at(self) -> datetime:
        """The last close that is known."""
        return self.sessions[-1][1]


def known() -> tuple[str, ...]:
    """The calendars that come with the package."""
    return tuple(sorted(_FILES))


def read(name: str) -> Calendar:
    """Read one of them."""
    if name not in _FILES:
        raise ConfigurationError(f'calendar "{name}": {", ".join(known())} come with Livewell')
    text = resources.files("livewell.refresh.registry").joinpath("calendars", _FILES[name]).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return Calendar(
        name,
        tuple((datetime.fromisoformat(row["opens_at"]), datetime.fromisoformat(row["closes_at"])) for row in rows),
    )
