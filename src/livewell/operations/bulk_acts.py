"""The loop of a worker that does acts on all that match, one page after the other.

    resting (a nudge, or some seconds) ──▶ a step ──a page was done──▶ the next step at once
       ▲                                     ├──nothing to do──┐
       │                                     ├──a deadlock, or the database is away: tried again──┤
       │                                     └──it failed: counted; five in a row end the act ──┤
       └────────────────────────────────────────────────────────────────────────────────────────┘

Every worker has one. The act's row is locked while a page is done, so workers neither wait for each
other nor do a page twice; a worker that dies leaves the act to the next one.
"""

from __future__ import annotations

import structlog

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import LivewellError
from livewell.loops import Waker, WarningBuffer, jittered, surviving
from livewell.queue.nudges import ACTS, CANCEL, EVERY
from livewell.schedule.work import Work, WorkerContext

log = structlog.get_logger("livewell.acts")

PAGE_ROWS = 200  # of one transaction: 10 ms
POLL_SECONDS = 5.0
_STEP = "SELECT action, did, error FROM livewell.step_bulk_act(%s)"
_AGAIN_SECONDS = 1.0  # after a page that failed


def work(context: WorkerContext) -> Work:
    """For one worker."""
    loop = BulkActLoop(context.database, context.nudger)
    return Work(beside=[loop.run], hear=[loop.wake])


class BulkActLoop:
    """The loop. Call `wake` for every nudge that the process hears from others."""

    def __init__(self, database: Database, nudger: Nudger, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._database = database
        self._nudger = nudger
        self._poll_seconds = poll_seconds
        self._waker = Waker()
        self._warnings = WarningBuffer(database.call)

    def wake(self, name: str) -> None:
        """Somebody asked for an act: look now."""
        if name in (ACTS, EVERY):
            self._waker.set()

    async def run(self) -> None:
        """Until cancelled, through any outage of the database."""
        self._nudger.attach(self.wake)
        try:
            while True:
                rest = await surviving(self.turn, self._failed, pause_seconds=self._poll_seconds)
                await self._waker.rest(rest)
        finally:
            self._nudger.detach(self.wake)

    async def turn(self) -> float:
        """One page; answers for how many seconds there is nothing to do."""
        rows = await self._database.call(_STEP, (PAGE_ROWS,))
        await self._warnings.flush()
        if not rows:
            return self._poll_seconds
        action, did, error = rows[0]
        if error is not None:
            self._tell("failed", error)
            return jittered(_AGAIN_SECONDS)
        if did and action != "discard":
            # A nudge to every worker wakes this loop too: what is behind this page comes at once.
            self._nudger.nudge(CANCEL if action == "cancel" else EVERY)
        return 0.0

    def _failed(self, kind: str, error: LivewellError) -> None:
        self._tell(kind, str(error))

    def _tell(self, kind: str, error: str) -> None:
        self._warnings.add("acts", f"a page of an act was not done: {kind}", error)
        log.warning("a page of an act was not done", kind=kind, error=error)
