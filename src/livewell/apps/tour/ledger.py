"""What the tour asks the database, and how it leaves it as it was.

The effect table has no unique constraint, on purpose: a doubled effect must be able to happen, or
counting none would prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from livewell.apps.tour.tasks import QUEUE
from livewell.db import Database

_SNAPSHOT = """
SELECT (SELECT count(*) FROM livewell_tour.effect),
       count(*) FILTER (WHERE j.state = 'running' AND NOT j.worker = ANY (%s)),
       count(*) FILTER (WHERE j.id = ANY (%s) AND (j.state <> 'running' OR j.worker = ANY (%s))),
       count(*)
FROM livewell.job j WHERE j.queue = %s
"""
_COUNT = """
SELECT count(DISTINCT e.number) FILTER (WHERE h.outcome = 'succeeded'),
       (SELECT count(*) - count(DISTINCT number) FROM livewell_tour.effect)
FROM livewell_tour.effect e LEFT JOIN livewell.job_history h ON h.id = e.job_id
"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far the work is. `orphans`: jobs of the killed worker that are in nobody's hands yet."""

    done: int
    running: int
    orphans: int
    live: int


class Ledger:
    """The tour's tables and questions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prepare(self) -> None:
        """Make room, also after a tour that was killed."""
        await self.clean()
        async with self._database.transaction() as tx:
            await tx.execute("CREATE SCHEMA livewell_tour")
            await tx.execute("CREATE TABLE livewell_tour.effect (number integer NOT NULL, job_id bigint NOT NULL)")

    async def clean(self) -> None:
        """Remove every trace of a tour, but the queue's name, which its app declares."""
        async with self._database.transaction() as tx:
            await tx.execute("SET LOCAL client_min_messages = warning")
            await tx.execute("DROP SCHEMA IF EXISTS livewell_tour CASCADE")
            for table in ("job", "dead_job", "job_history", "stat"):
                await tx.execute(f"DELETE FROM livewell.{table} WHERE queue = %s", (QUEUE,))  # noqa: S608 - our own four names
            await tx.execute("DELETE FROM livewell.worker WHERE %s = ANY (queues)", (QUEUE,))

    async def forget_queue(self) -> None:
        """Remove the queue itself."""
        await self._database.call("DELETE FROM livewell.queue WHERE name = %s", (QUEUE,))

    async def workers(self) -> dict[str, int]:
        """The workers of this queue whose lease holds: id by name."""
        rows = await self._database.call(
            "SELECT w.name, w.id FROM livewell.worker w WHERE %s = ANY (w.queues) AND w.expires_at > livewell.now()",
            (QUEUE,),
        )
        return {row[0]: row[1] for row in rows}

    async def held(self, name: str) -> tuple[list[int], list[int]]:
        """The ids of a worker by its name, and of the jobs it holds."""
        workers = [
            row[0] for row in await self._database.call("SELECT id FROM livewell.worker WHERE name = %s", (name,))
        ]
        jobs = await self._database.call("SELECT id FROM livewell.job WHERE worker = ANY (%s)", (workers,))
        return workers, [row[0] for row in jobs]

    async def look(self, dead: list[int], held: list[int]) -> Snapshot:
        """How far it is now."""
        return Snapshot(*(await self._database.call(_SNAPSHOT, (dead, held, dead, QUEUE)))[0])

    async def count(self) -> tuple[int, int]:
        """Jobs that are done, with their effect in place; and effects beyond one per job."""
        row = (await self._database.call(_COUNT))[0]
        return row[0], row[1]
