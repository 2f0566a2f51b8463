"""Walks: the keys of a scheduled type become jobs, a page at a time.

    waiting ──its slot has come: the scheduler begins a run──▶ open ──a page──▶ open ──the last page──▶ succeeded
                                                                 └──1,000 wait, a limit, a pause──▶ open, with its cursor

Each scheduled type has a schedule `walk.<type>`. It is open-ended: its slot begins a run as any
slot does, but the run has no handler and no lease. It belongs to the database, and this loop goes
on with it, in whichever worker holds the due check (docs/adr/0016-walks-are-schedules.md).
"""

from __future__ import annotations

from collections.abc import MutableMapping

from livewell.db.link import Link
from livewell.db.nudge import Nudger
from livewell.refresh.nudges import DUE
from livewell.schedule.singleton import Singleton

_SYNC = "SELECT livewell.sync_walks()"
_OPEN = (
    "SELECT substr(r.schedule, 6) FROM livewell.run r "
    "WHERE r.state = 'running' AND starts_with(r.schedule, 'walk.') ORDER BY r.schedule LIMIT 1000"
)
_PAGE = "SELECT answer, inserted, merged, queues FROM livewell.dispatch_scheduled(%s, %s, %s, NULL)"


class Walk:
    """One turn of all walks, for the holder of the singleton."""

    def __init__(self, link: Link, nudger: Nudger, singleton: Singleton, counts: MutableMapping[str, int]) -> None:
        self._link = link
        self._nudger = nudger
        self._singleton = singleton
        self._counts = counts

    async def turn(self) -> None:
        """Bring the schedules in line with the registry, then take a page of every open walk."""
        await self._link.call(_SYNC)
        for (name,) in await self._link.call(_OPEN):
            fence = self._singleton.fence
            if fence is None or not await self._page(name, fence):
                return

    async def _page(self, name: str, fence: int) -> bool:
        """False when the term is over."""
        answer, inserted, merged, queues = (await self._link.call(_PAGE, (DUE, fence, name)))[0]
        if answer == "not_holder":
            self._singleton.lose()
            return False
        self._counts["inserted"] += inserted
        self._counts["merged"] += merged
        for queue in queues or ():
            self._nudger.nudge(queue)
        return True
