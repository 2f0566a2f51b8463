"""The job as its handler sees it.

It gives its identity, progress, permits, cancellation, and a transaction that ends it.

running ──transaction commits──▶ finished (effects and end together)
   │    ──fenced at commit──▶ rolled back, OwnershipLost: somebody else runs it
   └── cancel asked, timeout, shutdown ──▶ the handler is cancelled; `cancel_requested` says so to threads
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from livewell.errors import LivewellError, OwnershipLost, PermitLate, PermitRefused
from livewell.model import Claimed, Permit, Succeeded
from livewell.queue.outcomes import results

if TYPE_CHECKING:
    from livewell.db import Database, Transaction

_WAIT_SECONDS_MAX = 30.0
_RESTART_SECONDS = 0.5  # what is told then is the longest it can take


class Job:
    """One run of one job.

    Ask for it by annotating a parameter: `async def resize(job: Job, path: str)`.
    """

    __slots__ = (
        "_called",
        "_database",
        "_permit_until",
        "call_ended",
        "cancel_requested",
        "claimed",
        "finished",
        "note",
        "percent",
        "permitted",
        "reported",
        "used_units",
        "worker",
    )

    def __init__(self, claimed: Claimed, worker: int, database: Database, permitted: Permit | None = None) -> None:
        self.claimed = claimed
        self.worker = worker
        self.finished = False  # True once transaction() has committed the job's end
        self.percent = 0
        self.note: str | None = None
        self.reported = True
        self.permitted = permitted  # None unless its queue is limited
        self.used_units: int | None = None
        self.call_ended: str | None = None  # how the call went, where it had more jobs than this one
        self._permit_until = permitted.until if permitted is not None else None
        self._called = False
        self._database = database
        self.cancel_requested = (
            False  # True once this run should end; blocking handlers look here, async ones are cancelled
        )

    @property
    def id(self) -> int:
        """The job's id; the same in every attempt."""
        return self.claimed.id

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.claimed.attempt

    @property
    def credential(self) -> str | None:
        """The name of the limiter's credential to use; None where there are none."""
        return (self.permitted.credential or None) if self.permitted is not None else None

    def progress(self, percent: int, note: str | None = None) -> None:
        """Say how far it is, 0 to 100.

        Written at most once a second, safe to call from threads and often.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"progress({percent}): 0 to 100 are allowed")
        self.percent, self.note, self.reported = percent, note, False

    def used(self, units: int) -> None:
        """Say what the call used of the limiter's budget; adds up over several calls.

        Not said, the estimate is charged.
        """
        if units < 0:
            raise ValueError(f"used({units}): 0 or more units are allowed")
        self.used_units = (self.used_units or 0) + units

    def spend_permit(self) -> None:
        """Call it just before the request is written.

        Raises PermitLate when the permit's time is over. Then the job goes back, and nobody was
        called.
        """
        self.check_permit()
        self._called = True

    def check_permit(self) -> None:
        """Raise PermitLate when the permit's time is over; a request need not follow."""
        if self._permit_until is not None and time.monotonic() > self._permit_until:
            if not self._called:
                self.used_units = (
                    self.used_units or 0
                )  # 0: no call was made; a call before this one may still be on its way
            raise PermitLate(
                f"job {self.id}: the permit to call was not used in time; the job goes back for another one"
            )

    async def permit(self, calls: int = 1, *, answered: bool = False) -> None:
        """Wait until so many more calls may be made, and take the permits.

        Each lasts as long as the first one did.

        answered: every call that this job has made so far was answered. Then they count against the
        rate for one window from now; otherwise from the job's end, or until they can no longer
        arrive.
        """
        if calls < 1:
            raise ValueError(f"permit({calls}): 1 or more are allowed")
        while True:
            sent = time.monotonic()
            rows = await self._database.call(
                "SELECT * FROM livewell.take_permits(%s, %s, %s, %s, %s)",
                (self.worker, self.id, self.claimed.fence, calls, answered),
            )
            answer, reason, wait_seconds, permit_seconds, calls_max = rows[0]
            if answer == "fenced":
                raise OwnershipLost(f"job {self.id}: another worker owns it by now")
            if answer == "refused":
                raise PermitRefused(
                    f"job {self.id}: permit({calls}): its limiter never lets more than {calls_max} go at once "
                    f"({reason}); ask for fewer at a time"
                )
            if answer == "granted":
                self._permit_until = None if permit_seconds is None else sent + permit_seconds
                return
            most = _RESTART_SECONDS if reason == "restart" else _WAIT_SECONDS_MAX
            await asyncio.sleep(min(most, max(0.005, wait_seconds or 0.5)))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Do the job's effect in this transaction.

        It and the end of the job commit together, or neither does.
        """
        if self.finished:
            raise LivewellError(f"job {self.id}: transaction() has already finished it")
        async with self._database.transaction() as transaction:
            yield transaction
            fenced: list[Any] = await transaction.fetch(
                "SELECT * FROM livewell.finish_jobs(%s, %s::bigint[], %s::bigint[], %s::jsonb)",
                (self.worker, *results([(self, Succeeded())])),
            )
            if fenced:
                raise OwnershipLost(f"job {self.id}: another worker owns it by now; nothing was written")
        self.finished = True
