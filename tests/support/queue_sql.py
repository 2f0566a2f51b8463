"""The queue's SQL functions as a test speaks them.

One connection, short words, plain values back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import psycopg

Row = tuple[Any, ...]
FENCES = 16384  # in a block, one block per claim
QUEUE = "work"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker holds: enough to finish it."""

    id: int
    fence: int
    attempt: int
    lost: int
    worker: int


@dataclass(frozen=True, slots=True)
class LimitedClaim(Claim):
    """The same from a limited queue; or, with id 0, why there is nothing and for how long."""

    queue: str
    call: int
    credential: str | None
    wait: float | None
    reason: str | None


class QueueSession(AbstractContextManager["QueueSession"]):
    """One session on one connection. Two of them are two sessions."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    # -- plain SQL --------------------------------------------------------------------------------

    def rows(self, query: str, *params: Any) -> list[Row]:
        """All rows of one statement; none when it gives none."""
        cursor = self.connection.execute(query.encode(), params or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, query: str, *params: Any) -> Any:
        """The first column of the first row."""
        return self.rows(query, *params)[0][0]

    def column(self, query: str, *params: Any) -> list[Any]:
        """The first column of every row."""
        return [row[0] for row in self.rows(query, *params)]

    def reset(self) -> None:
        """Empty everything, and declare the one queue the tests use."""
        # DELETE, not TRUNCATE: the tables are small, and fifteen partitions take fifteen files each
        # time. Batches first: what a broken twin left behind must not be counted any more.
        tables = (
            "bulk_act",
            "batch",
            "job",
            "job_history",
            "dead_job",
            "job_failure",
            "worker",
            "stat",
            "tick",
            "queue",
            "warning",
            "limiter_grant",
            "limiter_flight",
            "limiter_usage",
            "limiter_calls",
            "usage_settled",
            "limiter",
        )
        self.connection.execute("; ".join(f"DELETE FROM livewell.{table}" for table in tables).encode())
        self.declare()

    # -- clients ----------------------------------------------------------------------------------

    def declare(
        self,
        queue: str = QUEUE,
        *,
        attempts: int = 5,
        base: float = 5,
        cap: float = 300,
        concurrency: int | None = None,
        group_limit: int | None = None,
        limiter: str | None = None,
    ) -> None:
        self.rows(
            "SELECT livewell.declare_queue(%s, %s, %s, %s, 5, %s::jsonb)",
            queue,
            attempts,
            base,
            cap,
            json.dumps({"concurrency": concurrency, "group_limit": group_limit, "limiter": limiter}),
        )

    def limiter(self, name: str = "api", *, credentials: Sequence[str] = (), **limits: Any) -> None:
        """Declare a limiter by its columns."""
        self.rows(
            "SELECT livewell.declare_limiter(%s, %s::jsonb, %s)",
            name,
            json.dumps(limits, default=str),
            list(credentials),
        )

    def ids(self, n: int) -> list[int]:
        """Fresh job ids."""
        first = self.column("SELECT livewell.reserve_job_ids(%s)", -(-n // 64))
        return [start + offset for start in first for offset in range(64)][:n]

    def enqueue(self, n: int = 1, **options: Any) -> list[int]:
        """Enqueue n jobs with the same options; answers their ids."""
        ids = self.ids(n)
        assert self.enqueue_given([{"id": job, **options} for job in ids]) == []
        return ids

    def enqueue_given(self, jobs: Iterable[dict[str, Any]], *, again: bool = False) -> list[Row]:
        """Enqueue exactly these; answers what was not inserted."""
        return self.rows("SELECT * FROM livewell.enqueue_jobs(%s::jsonb, %s)", document(jobs), again)

    def cancel(self, job: int) -> str:
        return str(self.value("SELECT livewell.cancel_job(%s)", job))

    def pause(self, *, paused: bool = True, queue: str = QUEUE) -> bool:
        return bool(self.value("SELECT livewell.pause_queue(%s, %s)", queue, paused))

    def redrive(
        self, ids: Sequence[int] | None = None, *, queue: str | None = None, kind: str | None = None, limit: int = 1000
    ) -> Row:
        return self.rows("SELECT * FROM livewell.redrive_dead(%s, %s, %s, %s)", ids, queue, kind, limit)[0]

    # -- workers ----------------------------------------------------------------------------------

    def register(self, *, lease: float = 45, queues: Sequence[str] = (QUEUE,), name: str = "test") -> int:
        return int(
            self.value("SELECT livewell.register_worker(%s, 'test', %s, '{}', 1, %s)", name, list(queues), lease)
        )

    def steady(self, *, lease: float = 45) -> int:
        """A worker that has renewed without a gap for a whole lease, so it may bury others."""
        worker = self.register(lease=lease)
        self.rows("UPDATE livewell.worker SET steady_since = steady_since - lease WHERE id = %s", worker)
        return worker

    def expire(self, worker: int) -> None:
        """Let this worker's lease have run out a minute ago."""
        self.rows(
            "UPDATE livewell.worker SET renewed_at = livewell.now() - lease - interval '1 minute', expires_at = "
            "livewell.now() - interval '1 minute' WHERE id = %s",
            worker,
        )

    def claim(
        self, worker: int, limit: int = 100, *, empty: bool = False, queues: Sequence[str] = (QUEUE,)
    ) -> list[Claim]:
        """Claim, in the order in which they would be run; a buried worker gets none."""
        rows = self.rows("SELECT * FROM livewell.claim_jobs(%s, %s, %s, %s)", worker, list(queues), limit, empty)
        found = sorted((row for row in rows if row[0] == "claimed"), key=lambda row: (row[6], row[7], row[1]))
        return [Claim(row[1], row[2], row[3], row[5], worker) for row in found]

    def claim_limited(
        self,
        worker: int,
        calls: int = 100,
        *,
        empty: bool = False,
        queue: str = QUEUE,
        batches: dict[str, int] | None = None,
    ) -> list[LimitedClaim]:
        """Claim from a limited queue, in order of fences.

        None when there is something to wait for.
        """
        return [row for row in self.ask_limited(worker, calls, empty=empty, queue=queue, batches=batches) if row.id]

    def ask_limited(
        self,
        worker: int,
        calls: int = 100,
        *,
        empty: bool = False,
        queue: str = QUEUE,
        batches: dict[str, int] | None = None,
    ) -> list[LimitedClaim]:
        """The same, with the row that says what to wait for."""
        batches = batches or {}
        rows = self.rows(
            "SELECT * FROM livewell.claim_limited(%s, %s, %s, %s, %s, %s)",
            worker,
            queue,
            calls,
            empty,
            list(batches),
            list(batches.values()),
        )
        claims = [
            LimitedClaim(
                id=row[1] or 0,
                fence=row[2] or 0,
                attempt=row[3] or 0,
                lost=row[5] or 0,
                worker=worker,
                queue=queue,
                call=row[14] or 0,
                credential=row[16],
                wait=row[18],
                reason=row[19],
            )
            for row in rows
        ]
        return sorted(claims, key=lambda claim: claim.fence)

    def end(self, claim: LimitedClaim, outcome: str = "succeeded", **details: Any) -> list[Row]:
        """End a job of a limited queue, as a worker does."""
        if claim.call == claim.fence:
            details = {"ended": "ok" if outcome == "succeeded" else "ours", **details}
        return self.settle(claim, outcome, queue=claim.queue, kind="task", credential=claim.credential, **details)

    def finish(self, *claims: Claim) -> list[Row]:
        """Finish as succeeded; answers the fenced."""
        worker = claims[0].worker if claims else 0
        return self.rows(
            "SELECT * FROM livewell.finish_jobs(%s, %s::bigint[], %s::bigint[])",
            worker,
            [claim.id for claim in claims],
            [claim.fence for claim in claims],
        )

    def settle(self, claim: Claim, outcome: str, **details: Any) -> list[Row]:
        """Finish some other way; answers the fenced."""
        others = [{"id": claim.id, "fence": claim.fence, "outcome": outcome, **details}]
        return self.rows(
            "SELECT * FROM livewell.finish_jobs(%s, '{}', '{}', %s::jsonb)", claim.worker, json.dumps(others)
        )

    def renew(self, worker: int, *claims: Claim, timeout: float = 60) -> Row:
        """The heartbeat, with handlers that have started: (alive, mark, cancel, drain)."""
        return self.rows(
            "SELECT * FROM livewell.renew_worker(%s, %s::bigint[], %s::bigint[], %s::float8[])",
            worker,
            [claim.id for claim in claims],
            [claim.fence for claim in claims],
            [timeout for _ in claims],
        )[0]

    def reconcile(self, worker: int, *known: Claim, mark: int) -> int:
        return int(
            self.value(
                "SELECT livewell.reconcile_jobs(%s, %s::bigint[], %s)", worker, [claim.fence for claim in known], mark
            )
        )

    def recover(self, worker: int, *, limit: int = 5000, grace: float = 0) -> Row:
        """(buried, lost, overdue)."""
        return self.rows("SELECT * FROM livewell.recover_jobs(%s, %s, %s)", worker, limit, grace)[0]

    def release(self, worker: int) -> int:
        return int(self.value("SELECT livewell.release_worker(%s)", worker))

    def promote(self, limit: int = 5000) -> int:
        return int(self.value("SELECT livewell.promote_jobs(%s)", limit))

    # -- time -------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Move the virtual clock of the shared test database."""
        self.rows("UPDATE livewell_test.clock SET ahead = ahead + %s * interval '1 second'", seconds)

    def freeze(self) -> None:
        """Stop the virtual clock; advance() still moves it."""
        self.rows("UPDATE livewell_test.clock SET frozen_at = date_trunc('second', pg_catalog.clock_timestamp())")

    def now(self) -> Any:
        """What the database's clock says."""
        return self.value("SELECT livewell.now()")

    # -- looking ----------------------------------------------------------------------------------

    def state(self, job: int) -> str:
        """Where a job is: live state, succeeded, cancelled, failed; 'nowhere' if it is lost."""
        rows = self.rows("SELECT state FROM livewell.show_job(%s)", job)
        return str(rows[0][0]) if rows else "nowhere"

    def states(self, jobs: Iterable[int]) -> list[str]:
        return [self.state(job) for job in jobs]

    def job(self, job: int, *columns: str) -> Row:
        """Some columns of a live job."""
        return self.rows(f"SELECT {', '.join(columns)} FROM livewell.job WHERE id = %s", job)[0]

    def dead(self, job: int, *columns: str) -> Row:
        """Some columns of a dead letter."""
        return self.rows(f"SELECT {', '.join(columns)} FROM livewell.dead_job WHERE id = %s", job)[0]

    def mark(self) -> int:
        """The end of the newest block of fences."""
        return int(
            self.value(f"SELECT CASE WHEN is_called THEN last_value + {FENCES - 1} ELSE 0 END FROM livewell.fence_seq")
        )


def document(jobs: Iterable[dict[str, Any]]) -> str:
    """The argument of enqueue_jobs: kind, queue and payload are filled in."""
    return json.dumps([{"queue": QUEUE, "kind": "task", "payload": {}, **job} for job in jobs])
