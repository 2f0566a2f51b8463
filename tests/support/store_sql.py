"""Storing as a test speaks it.

Claimed refresh jobs, answers by what they say, and what is in the data table afterwards.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.support.queue_sql import LimitedClaim
from tests.support.refresh_sql import TYPE, UPSTREAM, RefreshSession

QUEUE = f"refresh.{UPSTREAM}"
KIND = "livewell.refresh"


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one result."""

    answer: str
    reason: str | None


class StoreSession(RefreshSession):
    """A session with one type that has a real table: livewell_data.quote (key, price)."""

    def reset(self) -> None:
        super().reset()
        self.rows("DROP TABLE IF EXISTS livewell_data.quote")
        self.rows(
            'CREATE TABLE livewell_data.quote (key text COLLATE "C" PRIMARY KEY, price numeric NOT NULL CHECK '
            "(price > 0))"
        )
        self.rows("ALTER TABLE livewell_data.quote OWNER TO livewell_owner")  # as apply_type makes them
        columns = [{"name": "price", "type": "numeric", "nullable": False, "key": False, "bounds": {}}]
        self.rows("UPDATE livewell.data_type SET columns = %s::jsonb WHERE name = %s", json.dumps(columns), TYPE)

    # -- jobs -------------------------------------------------------------------------------------

    def ask(
        self,
        *keys: str,
        of: str = TYPE,
        version: int = 1,
        call_key: str | None = None,
        queue: str = QUEUE,
        **columns: Any,
    ) -> None:
        """Enqueue refreshes, with the ledger rows they are about."""
        for key in keys:
            if not self.rows("SELECT 1 FROM livewell.ledger WHERE data_type = %s AND key = %s", of, key):
                self.keep(key, of=of, due_at=self.now(), **columns)
        given = [
            {
                "id": job,
                "queue": queue,
                "kind": KIND,
                "payload": {"type": of, "key": key, "version": version},
                "unique_key": f"{of}:{key}",
                "policy": "raise",
                "group_key": key,
                "call_key": call_key or f"{of}:{key}",
                "lane": 0,
            }
            for job, key in zip(self.ids(len(keys)), keys, strict=True)
        ]
        self.enqueue_given(given)

    def take(self, worker: int, calls: int = 100) -> dict[str, LimitedClaim]:
        """Claim refreshes; by key."""
        claims = self.claim_limited(worker, calls, queue=QUEUE, batches={KIND: 50})
        keys: dict[int, str] = dict(
            self.rows("SELECT id, payload ->> 'key' FROM livewell.job WHERE id = ANY (%s)", [c.id for c in claims])
        )
        return {keys[claim.id]: claim for claim in claims}

    def claimed(self, key: str = "AAPL", **options: Any) -> LimitedClaim:
        """One job for one key, claimed by a worker of its own."""
        self.ask(key, **options)
        return self.take(self.register(queues=[QUEUE]))[key]

    # -- answers ----------------------------------------------------------------------------------

    def store(self, *results: dict[str, Any], worker: int | None = None) -> list[Answered]:
        """store_refreshes; the answers in the order of the results."""
        worker = results[0]["worker"] if worker is None else worker
        sent = [{name: value for name, value in result.items() if name != "worker"} for result in results]
        rows = self.rows(
            "SELECT job_fence, answer, reason FROM livewell.store_refreshes(%s, %s::jsonb)",
            worker,
            json.dumps(sent, default=str),
        )
        answers = {fence: Answered(answer, reason) for fence, answer, reason in rows}
        return [answers[result["fence"]] for result in results]

    def put(self, key: str, price: float, *, late: float = 0.0) -> None:
        """A value as a worker stores it, in one transaction with its job and claim.

        Late: its time was read so many seconds before the commit.
        """
        with self.connection.transaction():
            claim = self.claimed(key)
            [answered] = self.store(value(claim, price, self.now(), key))
            assert answered.answer == "stored", answered
            if late:
                self.date_back(key, late)

    def date_back(self, key: str, seconds: float, *, of: str = TYPE) -> None:
        """Let the last change of a key have its time so much earlier."""
        self.rows(
            "UPDATE livewell.ledger SET status_at = status_at - %s * interval '1 second' WHERE data_type = %s "
            "AND key = %s",
            seconds,
            of,
            key,
        )

    def price(self, key: str = "AAPL") -> float | None:
        """What is stored."""
        rows = self.rows("SELECT price FROM livewell_data.quote WHERE key = %s", key)
        return float(rows[0][0]) if rows else None

    def counts(self) -> dict[str, int]:
        """refresh_count by outcome."""
        return dict(self.rows("SELECT outcome, sum(n)::integer FROM livewell.refresh_count GROUP BY outcome"))

    def verdict(self, key: str = "AAPL", of: str = TYPE) -> str:
        """What is to be said of it now."""
        return str(
            self.value(
                "SELECT livewell.verdict(d, l, livewell.now()) FROM livewell.ledger l JOIN livewell.data_type d "
                "ON d.name = l.data_type WHERE l.data_type = %s AND l.key = %s",
                of,
                key,
            )
        )


def result(claim: LimitedClaim, key: str = "AAPL", *, of: str = TYPE, version: int = 1, **told: Any) -> dict[str, Any]:
    """A result as the storer sends it."""
    return {
        "id": claim.id,
        "fence": claim.fence,
        "call": claim.call,
        "queue": claim.queue,
        "kind": KIND,
        "credential": claim.credential,
        "type": of,
        "key": key,
        "version": version,
        "used": 700,
        "wire": 700,
        "decoded": 600,
        "age_seconds": 0,
        "worker": claim.worker,
        **told,
    }


def value(
    claim: LimitedClaim, price: float, source_at: datetime | None, key: str = "AAPL", **told: Any
) -> dict[str, Any]:
    """An answer with a price from then."""
    rows = [{"price": price}]
    digest = hashlib.sha256(
        json.dumps([rows, str(source_at)] if told.pop("timed", True) else rows).encode()
    ).hexdigest()
    content = {"outcome": "value", "rows": rows, "source_at": source_at, "hash": digest}
    return result(claim, key, **(content | told))


def failed(
    claim: LimitedClaim, reason: str, key: str = "AAPL", *, blame: str = "upstream", **told: Any
) -> dict[str, Any]:
    """An answer that cannot be stored."""
    return result(claim, key, outcome="failed", reason=reason, error=f"{reason} seen", blame=blame, **told)


def ago(session: RefreshSession, seconds: float) -> datetime:
    """On the database's clock."""
    then: datetime = session.now() - timedelta(seconds=seconds)
    return then
