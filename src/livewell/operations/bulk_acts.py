"""The loop of a worker that does acts on all that match, one page after the other.

    resting (a nudge, or some seconds) ──▶ a step ──a page was done──▶ the next step at once
       ▲                                     ├──nothing to do──┐
       │                                     ├──a deadlock, or the database is away: tried again──┤
       │                                     └──it cannot be done──▶ the act is ended as failed ──┤
       └────────────────────────────────────────────────────────────────────────────────────────┘

Every worker has one. The act's row is locked while a page is done, so workers neither wait for each
other nor do a page twice; a worker that dies leaves the act to the next one.
"""

from __future__ import annotations

import structlog

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseConflict, DatabaseError, DatabaseUnavailable, LivewellError
from livewell.loops import Waker, WarningBuffer, surviving
from livewell.queue.nudges import ACTS, CANCEL, EVERY
from livewell.schedule.work import Work, WorkerContext

log = structlog.get_logger("livewell.acts")

PAGE_ROWS = 200  # of one transaction: some tens of milliseconds
POLL_SECONDS = 5.0
_STEP = "SELECT act_id, action, did, is_ended FROM livewell.step_bulk_act(%s)"
# The act that would have been stepped, unless another worker is at it.
_FAIL = """
SELECT livewell.end_bulk_act(b.id, %s, %s) FROM (
    SELECT o.id FROM livewell.bulk_act o WHERE o.state = 'running' ORDER BY o.stepped_at, o.id LIMIT 1
) b
"""
_TRIES_MAX = 5


def work(context: WorkerContext) -> Work:
    """For one worker."""
    loop = BulkActLoop(context.database, context.nudger, holder=context.holder)
    return Work(beside=[loop.run], hear=[loop.wake])


class BulkActLoop:
    """The loop. Call `wake` for every nudge that the process hears from others."""

    def __init__(self, database: Database, nudger: Nudger, *, holder: str, poll_seconds: float = POLL_SECONDS) -> None:
        self._database = database
        self._nudger = nudger
        self._holder = holder
        self._poll_seconds = poll_seconds
        self._waker = Waker()
        self._warnings = WarningBuffer(database.call)
        self._failures = 0  # in a row, that were not the database's absence

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
        try:
            rows = await self._database.call(_STEP, (PAGE_ROWS,))
        except (DatabaseUnavailable, DatabaseConflict):
            raise  # the same page again, later
        except DatabaseError as error:
            self._failures += 1
            if self._failures >= _TRIES_MAX:
                self._failures = 0
                await self._database.call(_FAIL, (str(error), self._holder))
            raise
        self._failures = 0
        await self._warnings.flush()
        if not rows:
            return self._poll_seconds
        _, action, did, _ = rows[0]
        if did and action != "discard":
            # A nudge to every worker wakes this loop too: what is behind this page comes at once.
            self._nudger.nudge(CANCEL if action == "cancel" else EVERY)
        return 0.0

    def _failed(self, kind: str, error: LivewellError) -> None:
        self._warnings.add("acts", f"a page of an act was not done: {kind}", str(error))
        log.warning("a page of an act was not done", kind=kind, error=str(error))
