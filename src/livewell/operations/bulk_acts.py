"""The loop of a worker that does acts on all that match, one page after the other.

    resting (a nudge, or some seconds) ──▶ next act ──▶ its page ──was done──▶ the next at once
       ▲                                     │            ├──it failed: counted; five in a row end it──┐
       │                                     │            └──broken off: postponed, twenty end it──────┤
       │                                     └──nothing to do──────────────────────────────────────────┤
       └───────────────────────────────────────────────────────────────────────────────────────────────┘

Every worker has one. The act's row is locked while a page is done, so workers neither wait for each
other nor do a page twice; a worker that dies leaves the act to the next one.

A page that a deadlock, a timeout or the end of the connection broke off has left no trace in the
database. So the act is postponed in a transaction of its own, and the others go first. While the
server has not noticed yet that the page is over, or cannot be reached, the worker owes that.
"""

from __future__ import annotations

import structlog

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import LivewellError
from livewell.loops import Waker, WarningBuffer, jittered, kind_of, surviving
from livewell.queue.nudges import ACTS, CANCEL, EVERY
from livewell.schedule.work import Work, WorkerContext

log = structlog.get_logger("livewell.acts")

PAGE_ROWS = 200  # of one transaction: 10 ms
POLL_SECONDS = 5.0
OWED_MAX = 100  # acts to be postponed as soon as that is possible
_NEXT = "SELECT livewell.next_bulk_act()"
_STEP = "SELECT action, did, error FROM livewell.step_bulk_act(%s, %s)"
_POSTPONE = "SELECT livewell.postpone_bulk_act(%s, %s)"
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
        self._owed: dict[int, str] = {}
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
        await self._warnings.flush()
        await self._pay()
        [(act_id,)] = await self._database.call(_NEXT)
        if act_id is None:
            return min(self._poll_seconds, _AGAIN_SECONDS) if self._owed else self._poll_seconds
        try:
            rows = await self._database.call(_STEP, (PAGE_ROWS, act_id))
        except LivewellError as broken_off:
            self._failed(kind_of(broken_off), broken_off)
            if len(self._owed) < OWED_MAX:
                self._owed[act_id] = str(broken_off)
            await self._pay()
            return 0.0
        if not rows:
            return 0.0  # it was cancelled, or another worker was faster
        action, did, error = rows[0]
        if error is not None:
            self._tell("failed", error)
            return jittered(_AGAIN_SECONDS)
        if did and action != "discard":
            # A nudge to every worker wakes this loop too: what is behind this page comes at once.
            self._nudger.nudge(CANCEL if action == "cancel" else EVERY)
        return 0.0

    async def _pay(self) -> None:
        """Postpone acts whose page was broken off; what the server still works at stays owed."""
        for act_id, error in list(self._owed.items()):
            [(answer,)] = await self._database.call(_POSTPONE, (act_id, error))
            if answer != "locked":
                del self._owed[act_id]

    def _failed(self, kind: str, error: LivewellError) -> None:
        self._tell(kind, str(error))

    def _tell(self, kind: str, error: str) -> None:
        self._warnings.add("acts", f"a page of an act was not done: {kind}", error)
        log.warning("a page of an act was not done", kind=kind, error=error)
