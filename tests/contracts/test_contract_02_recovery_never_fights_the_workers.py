"""Contract 2: recovery never fights the workers.

Broken once, and kept broken below: without SKIP LOCKED recovery waits for whoever is busy with a
job or a lease, and with a finish in the other order it deadlocks (tests/races/test_deadlock.py has
that for every function that writes job rows).
"""

from __future__ import annotations

import pytest

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

RECOVER = "SELECT * FROM livewell.recover_jobs(%(undertaker)s, 100, 0)"
WORKERS_DO = {
    "claim": "SELECT * FROM livewell.claim_jobs(%(worker)s, '{work}', 10, false)",
    "finish": "SELECT * FROM livewell.finish_jobs(%(worker)s, %(ids)s, %(fences)s)",
    "exchange": "SELECT * FROM livewell.exchange_jobs(%(worker)s, %(ids)s, %(fences)s, NULL, '{work}', 10, false)",
    "heartbeat": "SELECT * FROM livewell.renew_worker(%(worker)s, %(ids)s, %(fences)s, '{60,60}')",
    "progress": "SELECT livewell.report_progress(%(worker)s, %(ids)s, %(fences)s, '{1,1}', '{x,x}')",
    "reconcile": "SELECT livewell.reconcile_jobs(%(worker)s, '{}', 9223372036854775807)",
    "release": "SELECT livewell.release_worker(%(worker)s)",
    "recovery": "SELECT * FROM livewell.recover_jobs(%(undertaker)s, 100, 0)",
    "cancel": "SELECT livewell.cancel_job(%(first)s)",
}
ALL_SKIPS = (
    ("ORDER BY d.id FOR UPDATE SKIP LOCKED", "ORDER BY d.id FOR UPDATE"),
    ("LIMIT p_limit FOR UPDATE SKIP LOCKED", "LIMIT p_limit FOR UPDATE"),
)


async def recovery_beside(queue: QueueSession, queue_dsn: str, what: str) -> list[str]:
    """A worker whose lease has run out is busy while recovery comes by."""

    def prepare() -> Given:
        queue.reset()
        worker, undertaker = queue.register(), queue.steady()
        queue.enqueue(2)
        held = queue.claim(worker)
        queue.enqueue(1)
        queue.expire(worker)
        return {
            "worker": worker,
            "undertaker": undertaker,
            "first": held[0].id,
            "ids": [claim.id for claim in held],
            "fences": [claim.fence for claim in held],
        }

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors or "recover" in outcome.waited:
            return f"errors: {outcome.errors}, waited: {outcome.waited}"
        return None

    return await violations(
        queue_dsn, [session(what, WORKERS_DO[what]), session("recover", RECOVER)], prepare=prepare, judge=judge
    )


@pytest.mark.parametrize("what", WORKERS_DO)
async def test_recovery_waits_for_nobody_and_fails_for_nobody(queue: QueueSession, queue_dsn: str, what: str) -> None:
    """Whatever a worker or client does, in every order."""
    assert await recovery_beside(queue, queue_dsn, what) == []


@pytest.mark.parametrize("what", ["claim", "finish", "heartbeat", "cancel"])
async def test_without_skip_locked_it_breaks(queue: QueueSession, queue_dsn: str, what: str) -> None:
    """Broken on purpose: recovery stands behind the worker."""
    with variant(queue_dsn, "recover_jobs", *ALL_SKIPS):
        assert await recovery_beside(queue, queue_dsn, what) != []
