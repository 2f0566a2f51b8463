"""What operators see of the keys of a type, and what they do to one key.

Every look is bounded by the database function that it calls. Viewers are counted, never named (L4).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from livewell.db import Database
from livewell.db.acts import actor, origin
from livewell.errors import InvalidOption, UnknownType

Record = dict[str, Any]

VERDICTS = ("stale", "failing", "missing", "lagging", "unverifiable", "fresh", "parked")
WANTED = (*VERDICTS, "own_ttl")  # what list_type_keys() can be asked for

# The origin is an argument of the call, so it is set before the call.
_REFRESH = (
    "SELECT r.demand, r.queue, r.throttled, r.retry_at "
    "FROM (SELECT set_config('livewell.origin', %s, true) AS origin) p "
    "CROSS JOIN LATERAL livewell.refresh_key(%s, %s, coalesce(%s, p.origin)) r"
)


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Some keys of a type by key.

    looked: how many were looked at to find them. next: the key after which the next page begins.
    """

    keys: list[Record]
    looked: int
    next: str | None


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What became of the wish to refresh a key; see refresh_key.sql."""

    demand: str
    queue: str | None
    throttled: str | None
    retry_at: datetime | None


class KeyAdmin:
    """The keys of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keys(self, name: str, *, wanted: str | None = None, after: str = "", limit: int = 50) -> KeyPage:
        """A page of keys, all or those of one verdict."""
        [(found,)] = await self._database.call(
            "SELECT livewell.list_type_keys(%s, %s, %s, %s)", (name, wanted, after, limit)
        )
        return KeyPage(found["keys"], found["looked"], found["next"])

    async def watched(self, name: str, *, limit: int = 20) -> list[Record]:
        """The keys that most people look at."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_watched_keys(%s, %s)", (name, limit))

    async def failing(self, name: str) -> list[Record]:
        """Failing keys by reason, the most frequent first."""
        return await self._database.call_dicts("SELECT * FROM livewell.count_failing(%s)", (name,))

    async def hours(self, name: str) -> list[Record]:
        """Refreshes and bytes of each hour of the last day, the oldest first."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_refresh_hours(%s)", (name,))

    async def show(self, name: str, key: str) -> Record | None:
        """What the ledger knows of a key; None if nobody ever asked for it."""
        rows = await self._database.call_dicts("SELECT * FROM livewell.show_key(%s, %s)", (name, key))
        return rows[0] if rows else None

    async def answers(self, name: str, key: str) -> list[Record]:
        """The last sixteen answers for a key, the newest first."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_answers(%s, %s)", (name, key))

    async def value(self, name: str, key: str, *, rows_max: int) -> str | None:
        """The stored value as JSON text, every digit as it is stored; of many rows the last ones."""
        query = "SELECT v.value::text FROM livewell.read_values(%s, ARRAY[%s], %s) AS v"
        rows = await self._database.call(query, (name, key, rows_max))
        return str(rows[0][0]) if rows else None

    async def refresh(self, name: str, key: str) -> Refreshed:
        """Demand a refresh now, whatever the age; audited."""
        found = Refreshed(*(await self._database.call(_REFRESH, (origin(), name, key, actor())))[0])
        if found.demand == "unknown_type":
            raise UnknownType(f'type "{name[:60]}" is not in the registry; see: livewell types list')
        if found.demand == "bad_key":
            raise InvalidOption(f"key {key[:40]!r} does not fit the pattern of type {name}: livewell types show {name}")
        return found
