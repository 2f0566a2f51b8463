"""The job as its handler sees it: who it is, progress, cancellation, and a transaction that ends it.

running ──transaction commits──▶ finished (effects and end together)
   │    ──fenced at commit──▶ rolled back, OwnershipLost: somebody else runs it
   └── cancel asked, timeout, shutdown ──▶ the handler is cancelled; `cancel_requested` says so to threads
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from livewell.errors import LivewellError, OwnershipLost
from livewell.model import Claimed

if TYPE_CHECKING:
    from livewell.db import Database, Transaction


class Job:
    """One run of one job. Ask for it by annotating a parameter: `async def resize(job: Job, path: str)`."""

    __slots__ = ("_database", "cancel_requested", "claimed", "finished", "note", "percent", "reported", "worker")

    def __init__(self, claimed: Claimed, worker: int, database: Database) -> None:
        self.claimed = claimed
        self.worker = worker
        self.finished = False
        self.percent = 0
        self.note: str | None = None
        self.reported = True
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

    def progress(self, percent: int, note: str | None = None) -> None:
        """Say how far it is, 0 to 100; written at most once a second, safe to call from threads and often."""
        if not 0 <= percent <= 100:
            raise ValueError(f"progress({percent}): 0 to 100 are allowed")
        self.percent, self.note, self.reported = percent, note, False

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Do the job's effect in this transaction: it and the end of the job commit together, or neither does."""
        if self.finished:
            raise LivewellError(f"job {self.id}: transaction() has already finished it")
        async with self._database.transaction() as transaction:
            yield transaction
            fenced: list[Any] = await transaction.fetch(
                "SELECT * FROM livewell.finish_jobs(%s, %s, %s)", (self.worker, [self.id], [self.claimed.fence])
            )
            if fenced:
                raise OwnershipLost(f"job {self.id}: another worker owns it by now; nothing was written")
        self.finished = True
