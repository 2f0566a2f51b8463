"""Exports as a test speaks them: a user asks, a worker makes, a cleaner removes."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support.queue_sql import Claim, QueueSession

Document = dict[str, Any]
TABLES = ("export_member", "export_batch", "export_file", "export", "export_usage", "export_kind", "export_renderer")
ESTIMATE = 1000
LIMITS = {"bytes_max": 10 * ESTIMATE, "day_max": 100}
# What must never be: numbers of a user that are not the sum of their exports, a file of nobody, a
# finished export without its file or with two, more stored and reserved than is allowed.
WRONG = """
SELECT 'usage of ' || u.user_id || ': ' || u.stored_bytes || ' stored, ' || u.reserved_bytes || ' reserved; exports: '
    || coalesce(e.stored, 0) || ', ' || coalesce(e.reserved, 0)
FROM livewell.export_usage u LEFT JOIN (
    SELECT user_id, sum(stored_bytes) AS stored, sum(reserved_bytes) AS reserved FROM livewell.export GROUP BY user_id
) e USING (user_id)
WHERE (u.stored_bytes, u.reserved_bytes) IS DISTINCT FROM (coalesce(e.stored, 0), coalesce(e.reserved, 0))
UNION ALL SELECT 'over quota: ' || u.user_id FROM livewell.export_usage u
WHERE u.stored_bytes + u.reserved_bytes > u.bytes_max
UNION ALL SELECT 'file of nobody: ' || f.path FROM livewell.export_file f
WHERE NOT EXISTS (SELECT FROM livewell.export e WHERE e.id = f.export_id)
UNION ALL SELECT 'export ' || e.id || ' counts bytes and has ' || n.n || ' stored files' FROM livewell.export e
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM livewell.export_file f WHERE f.export_id = e.id AND f.state = 'stored'
) n
WHERE (e.stored_bytes > 0) <> (n.n = 1)
UNION ALL SELECT 'finished, and its job lives: ' || e.id FROM livewell.export e JOIN livewell.job j ON j.id = e.job_id
WHERE e.state IN ('finished', 'deleted')
UNION ALL SELECT 'batch over and open: ' || b.id FROM livewell.export_batch b WHERE b.ended_at IS NULL
    AND NOT EXISTS (SELECT FROM livewell.export_member m JOIN livewell.export e ON e.id = m.export_id
        WHERE m.batch_id = b.id AND e.state IN ('waiting', 'running'))
"""


def item(document: str = "cv", version: str = "1", **options: Any) -> Document:
    """One document of a request."""
    written = json.dumps(options, sort_keys=True)
    return {
        "id": str(uuid.uuid4()),
        "kind": "resume",
        "document": document,
        "version": version,
        "options": options,
        "hash": hashlib.sha256(written.encode()).hexdigest(),
        "file_name": f"{document}.pdf",
    }


class ExportSession(QueueSession):
    """One session on one connection."""

    def reset(self) -> None:
        self.connection.execute("; ".join(f"DELETE FROM livewell.{table}" for table in TABLES).encode())
        super().reset()
        self.declare("exports", base=60, cap=3600, group_limit=3)
        self.kind()

    def kind(self, name: str = "resume", *, estimate: int = ESTIMATE, templates: Sequence[str] = ()) -> None:
        self.rows(
            "SELECT livewell.declare_export_kind(%s, 'application/pdf', 'pdf', %s, %s)",
            name,
            list(templates),
            estimate,
        )

    # -- a user -----------------------------------------------------------------------------------

    def ask(
        self,
        user: str,
        *items: Document,
        batch: str | None = None,
        follow: Document | None = None,
        **limits: int,
    ) -> Document:
        answer: Document = self.value(
            "SELECT livewell.request_exports(%s, %s::jsonb, %s::jsonb, %s, %s::jsonb)",
            user,
            json.dumps(items),
            json.dumps(LIMITS | limits),
            batch,
            None if follow is None else json.dumps(follow),
        )
        return answer

    def one(self, user: str = "ann", document: str = "cv", version: str = "1", **options: Any) -> str:
        """Ask for one; its id."""
        answer = self.ask(user, item(document, version, **options))
        assert answer["answer"] == "made", answer
        return str(answer["items"][0]["id"])

    def show(self, user: str, export: str, after: int = 0) -> Document | None:
        found: Document | None = self.value("SELECT livewell.show_export(%s, %s, %s)", user, export, after)
        return found

    def seen(self, export: str, user: str = "ann") -> Document:
        found = self.show(user, export)
        assert found is not None
        return found

    def batch(self, user: str, batch: str, after: int = 0) -> Document | None:
        found: Document | None = self.value("SELECT livewell.show_export_batch(%s, %s, %s)", user, batch, after)
        return found

    def cancel_export(self, export: str, user: str = "ann") -> Document | None:
        found: Document | None = self.value("SELECT livewell.cancel_export(%s, %s)", user, export)
        return found

    def delete(self, export: str, user: str = "ann") -> Document | None:
        found: Document | None = self.value("SELECT livewell.delete_export(%s, %s)", user, export)
        return found

    def usage(self, user: str = "ann") -> Document:
        found: Document = self.value("SELECT livewell.show_export_usage(%s)", user)
        return found

    # -- a worker ---------------------------------------------------------------------------------

    def worker(self) -> int:
        return self.register(queues=("exports",))

    def take(self, worker: int | None = None) -> Claim:
        """Claim the next job, by a worker of its own if none is given."""
        claims = self.claim_limited(worker or self.worker(), 1, empty=worker is None, queue="exports")
        assert claims, "no export is ready"
        return claims[0]

    def begin(self, claim: Claim, export: str, bytes_max: int = LIMITS["bytes_max"]) -> Document:
        found: Document = self.value(
            "SELECT livewell.begin_export(%s, %s, %s, %s, %s)", claim.worker, claim.id, claim.fence, export, bytes_max
        )
        return found

    def step(self, claim: Claim, export: str, progress: int) -> str:
        query = "SELECT livewell.step_export(%s, %s, %s, %s, %s)"
        return str(self.value(query, claim.worker, claim.id, claim.fence, export, progress))

    def plan(self, claim: Claim, export: str, size: int = 500, bytes_max: int = LIMITS["bytes_max"]) -> str:
        return str(
            self.value(
                "SELECT livewell.plan_export_file(%s, %s, %s, %s, %s, %s, %s)",
                claim.worker,
                claim.id,
                claim.fence,
                export,
                path(export, claim),
                size,
                bytes_max,
            )
        )

    def finish_export(self, claim: Claim, export: str, size: int = 500) -> str:
        """As job.transaction() does it: both, or none."""
        with self.connection.transaction() as tx:
            said = str(self.value(FINISH, claim.id, claim.fence, export, path(export, claim), result(size)))
            if said == "fenced" or self.finish(claim):
                said = "fenced"
                raise_rollback(tx)
        return said

    def make(self, export: str, size: int = 500, claim: Claim | None = None) -> Claim:
        """From claim to finished."""
        claim = claim or self.take()
        assert self.begin(claim, export)["answer"] == "begun"
        assert self.plan(claim, export, size) == "planned"
        assert self.finish_export(claim, export, size) == "finished"
        return claim

    def fail(self, claim: Claim, export: str, reason: str = "died", *, again: bool = True) -> str:
        query = "SELECT livewell.fail_export(%s, %s, %s, %s, %s, %s)"
        return str(self.value(query, claim.worker, claim.id, claim.fence, export, reason, again))

    def job_of(self, export: str) -> int:
        return int(self.value("SELECT job_id FROM livewell.export WHERE id = %s", export))

    def job_of_dead(self, export: str) -> int:
        """Its job, which must be a dead letter."""
        job = self.job_of(export)
        assert self.state(job) == "failed"
        return job

    # -- cleaners ---------------------------------------------------------------------------------

    def settle_all(self) -> int:
        return int(self.value("SELECT livewell.settle_exports(100)"))

    def expire_all(self) -> int:
        return int(self.value("SELECT livewell.expire_exports(100)"))

    def files_to_remove(self, grace: float = 0) -> list[tuple[str, str]]:
        return [(path, user) for path, user in self.rows("SELECT * FROM livewell.claim_export_files(100, %s)", grace)]

    def forget(self, path: str, user: str = "ann") -> bool:
        return bool(self.value("SELECT livewell.forget_export_file(%s, %s)", user, path))

    def clean(self, grace: float = 0) -> list[str]:
        """Remove what is to be removed; answers the paths."""
        self.expire_all()
        found = self.files_to_remove(grace)
        for path, user in found:
            assert self.forget(path, user)
        return [path for path, _ in found]

    def wrong(self) -> list[str]:
        """What must never be."""
        return self.column(WRONG)


FINISH = "SELECT livewell.finish_export(%s, %s, %s, %s, %s::jsonb, 7)"


def path(export: str, claim: Claim) -> str:
    """Where an attempt writes its file."""
    return f"u/{export}/{claim.fence}.pdf"


def result(size: int = 500) -> str:
    """What finish_export is told."""
    return json.dumps({"bytes": size, "pages": 1, "sha256": "ab" * 32, "crc32": 7, "as_of": None})


def raise_rollback(tx: Any) -> None:
    """Leave the block, with nothing written."""
    import psycopg  # noqa: PLC0415 - of this helper alone

    raise psycopg.Rollback(tx)


@pytest.fixture
def exports(queue_dsn: str) -> Iterator[ExportSession]:
    """Every table of exports and of the queue empty, one kind, the queue as the capability declares it."""
    with ExportSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        yield session
        session.reset()
