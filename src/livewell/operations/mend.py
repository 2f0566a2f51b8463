"""What operators do when the system cannot help itself.

They let an upstream be called again, or free a singleton (R25). audit.py tells what was done by whom.

    upstream ──asked for silence, or was paused──▶ resume
       └──failed: its breaker is open──▶ probe (one call tries now) ──▶ close (all calls go, and may fail again)
    singleton ──its holder is dead──▶ take

Every act and its line in livewell.audit are one transaction.
"""

from __future__ import annotations

from typing import Any, Literal

from livewell.db import Database
from livewell.db.acts import actor, located, origin
from livewell.errors import UnknownLimiter, UnknownSingleton

Record = dict[str, Any]
Resumed = Literal["resumed", "not_stopped"]
Probed = Literal["probing", "silent", "closed"]
Closed = Literal["closed", "was_closed"]
Taken = Literal["taken", "alive", "free"]

_UPSTREAMS = """
SELECT u.name, u.paused_at, t.credential, t.breaker, t.open_until, t.quiet_until, t.calls, t.calls_failed, t.opened_at, t.cause, t.quiet_since, t.quiet_asked_seconds
FROM (SELECT o.name, o.paused_at FROM livewell.upstream o
      UNION ALL SELECT l.name, NULL FROM livewell.limiter l WHERE NOT EXISTS (SELECT FROM livewell.upstream o WHERE o.name = l.name)
      ORDER BY 1 LIMIT 1000) u
LEFT JOIN LATERAL livewell.limiter_trouble(u.name, livewell.now()) t ON true ORDER BY u.name, t.credential
"""
_RESUME = located("livewell.resume_upstream(%s, %s)")
_PROBE = located("livewell.probe_breaker(%s, %s, %s)")
_CLOSE = located("livewell.close_breaker(%s, %s, %s)")
_TAKE = located("livewell.take_singleton(%s, %s, %s)")


class Mender:
    """The operator's hands, for upstreams and singletons."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def upstreams(self) -> list[Record]:
        """Upstreams and limiters by name.

        Paused or not, and a row for each credential whose calls are stopped.
        """
        return await self._database.call_dicts(_UPSTREAMS)

    async def resume(self, name: str) -> Resumed:
        """End the silence that an upstream asked for, and the pause that somebody ordered."""
        answer: Resumed = await self._act(_RESUME, name, actor())
        return answer

    async def probe(self, name: str, *, credential: str | None = None) -> Probed:
        """Let one call try now whether the upstream is back."""
        answer: Probed = await self._act(_PROBE, name, credential, actor())
        return answer

    async def close(self, name: str, *, credential: str | None = None) -> Closed:
        """Close a breaker: all calls are allowed again, and the failures so far are forgotten."""
        answer: Closed = await self._act(_CLOSE, name, credential, actor())
        return answer

    async def singletons(self) -> list[Record]:
        """Every singleton by name: its holder, and whether it is held."""
        [(leases,)] = await self._database.call("SELECT livewell.state_leases()")
        found: list[Record] = leases["singletons"]
        return found

    async def take(self, name: str, *, force: bool = False) -> Taken:
        """End the term of a dead holder.

        With force also of one that lives, whose run is then fenced.
        """
        answer = (await self._database.call(_TAKE, (origin(), name, force, actor())))[0][0]
        if answer == "unknown":
            names = [one["name"] for one in await self.singletons()]
            raise UnknownSingleton(f"singleton {name[:60]!r} is not known; there are: {', '.join(names) or 'none'}")
        taken: Taken = answer
        return taken

    async def _act(self, query: str, name: str, *params: str | None) -> Any:
        answer = (await self._database.call(query, (origin(), name, *params)))[0][0]
        if answer == "unknown":
            names = sorted({str(row["name"]) for row in await self.upstreams()})
            raise UnknownLimiter(
                f"upstream {name[:60]!r}, or that credential of it, is not known; there are: "
                f"{', '.join(names) or 'none'}"
            )
        return answer
