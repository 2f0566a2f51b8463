"""A relay's lease: one row, renewed until it is given back or lost.

    none ──register──▶ held ──renewed──▶ held
                         ├──the row is gone: buried──▶ none, and what was in flight is others'
                         └──give_back──▶ none

A late renewal is valid while the row exists: an outage of the database robs nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from livewell.db import Database
from livewell.version import VERSION

_REGISTER = "SELECT livewell.register_relay(%s, %s, %s, %s)"
_RENEW = "SELECT * FROM livewell.renew_relay(%s, %s, %s, %s)"
_RELEASE = "SELECT livewell.release_relay(%s)"


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a renewal answered."""

    shards: int
    paused: bool
    batch_max: int


class Lease:
    """Of one relay. `id` is None while it has none."""

    def __init__(self, database: Database, sink: str, holder: str, on_lost: Callable[[], None]) -> None:
        self._link = database.link()
        self._seconds = database.settings.lease_seconds
        self._sink = sink
        self._holder = holder
        self._on_lost = on_lost
        self.id: int | None = None

    async def register(self, *, away: str | None) -> Renewed | None:
        """Get a lease and a share of the shards; None if the database has no such sink for relays."""
        rows = await self._link.call(_REGISTER, (self._sink, self._holder, VERSION, self._seconds))
        self.id = rows[0][0]
        return None if self.id is None else await self.renew(batch_seconds=None, away=away)

    async def renew(self, *, batch_seconds: float | None, away: str | None) -> Renewed | None:
        """Renew it; None if it is lost."""
        if self.id is None:
            return None
        asked = self.id
        rows = await self._link.call(_RENEW, (asked, self._seconds, batch_seconds, away))
        alive, shards, paused, batch_max = rows[0]
        if alive:
            return Renewed(shards, paused, batch_max)
        self.lost(asked)
        return None

    def lost(self, lease: int) -> None:
        """This one was buried, as somebody was told."""
        if self.id == lease:
            self.id = None
            self._on_lost()

    async def give_back(self) -> None:
        """At the end of a graceful stop."""
        lease, self.id = self.id, None
        try:
            if lease is not None:
                await self._link.call(_RELEASE, (lease,))
        finally:
            await self._link.close()
