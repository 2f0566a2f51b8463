"""Whoever writes job rows beside a finish skips what is locked: nobody ever waits in a circle."""

from __future__ import annotations

import pytest

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import Change, variant

FINISH_LAST = "SELECT * FROM livewell.finish_jobs(%(worker)s, ARRAY[%(last)s], ARRAY[%(last_fence)s])"
FINISH_FIRST = "SELECT * FROM livewell.finish_jobs(%(worker)s, ARRAY[%(first)s], ARRAY[%(first_fence)s])"

RIVALS = {
    "recover_jobs": "SELECT * FROM livewell.recover_jobs(%(undertaker)s, 100, 0)",
    "renew_worker": "SELECT * FROM livewell.renew_worker(%(worker)s, %(ids)s, %(fences)s, '{60,60}')",
    "report_progress": "SELECT livewell.report_progress(%(worker)s, %(ids)s, %(fences)s, '{1,1}', '{x,x}')",
    "reconcile_jobs": "SELECT livewell.reconcile_jobs(%(worker)s, '{}', 9223372036854775807)",
    "overdue": "SELECT * FROM livewell.recover_jobs(%(worker)s, 100, 0)",
}
WITHOUT_SKIP_LOCKED: dict[str, tuple[str, Change]] = {
    "recover_jobs": ("recover_jobs", ("LIMIT p_limit FOR UPDATE SKIP LOCKED) d", "LIMIT p_limit FOR UPDATE) d")),
    "renew_worker": ("renew_worker", ("ORDER BY l.id FOR UPDATE SKIP LOCKED", "ORDER BY l.id FOR UPDATE")),
    "report_progress": ("report_progress", ("ORDER BY l.id FOR UPDATE SKIP LOCKED", "ORDER BY l.id FOR UPDATE")),
    "reconcile_jobs": ("reconcile_jobs", ("LIMIT 10000 FOR UPDATE SKIP LOCKED", "LIMIT 10000 FOR UPDATE")),
    "overdue": ("recover_jobs", ("LIMIT p_limit FOR UPDATE SKIP LOCKED);", "LIMIT p_limit FOR UPDATE);")),
}


async def finish_against(queue: QueueSession, queue_dsn: str, rival: str) -> list[str]:
    """A transaction finishes two jobs, the later one first, while a rival wants both in order."""

    def prepare() -> Given:
        queue.reset()
        worker, undertaker = queue.register(), queue.steady()
        queue.enqueue(2)
        first, last = queue.claim(worker)
        if rival == "recover_jobs":
            queue.expire(worker)
        if rival == "overdue":
            queue.renew(worker, first, timeout=-2)
            queue.renew(worker, last, timeout=-1)
        return {
            "worker": worker,
            "undertaker": undertaker,
            "ids": [first.id, last.id],
            "fences": [first.fence, last.fence],
            "first": first.id,
            "first_fence": first.fence,
            "last": last.id,
            "last_fence": last.fence,
        }

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        if rival in outcome.waited:
            return f"{rival} waited for the finish"
        for step, job in enumerate((outcome.given["last"], outcome.given["first"])):
            if (queue.state(job) == "succeeded") != (outcome.answer("finish", step) == []):
                return f"job {job} is {queue.state(job)}, the finisher was told {outcome.answer('finish', step)}"
        return None

    return await violations(
        queue_dsn,
        [session("finish", FINISH_LAST, FINISH_FIRST), session(rival, RIVALS[rival])],
        prepare=prepare,
        judge=judge,
    )


@pytest.mark.parametrize("rival", RIVALS)
async def test_no_order_deadlocks_or_makes_the_rival_wait(queue: QueueSession, queue_dsn: str, rival: str) -> None:
    """And the finisher is told the truth about each job."""
    assert await finish_against(queue, queue_dsn, rival) == []


@pytest.mark.parametrize("rival", RIVALS)
async def test_without_skip_locked_it_breaks(queue: QueueSession, queue_dsn: str, rival: str) -> None:
    """Waiting for the row that is being finished, while the finisher waits for ours: 40P01."""
    name, removed = WITHOUT_SKIP_LOCKED[rival]
    with variant(queue_dsn, name, removed):
        found = await finish_against(queue, queue_dsn, rival)

    assert [line for line in found if "40P01" in line] != []


async def statistics_in_opposite_orders(queue: QueueSession, queue_dsn: str) -> list[str]:
    """Two workers add to the same minute, their kinds in opposite orders, while a third holds the one in the middle."""
    add = "SELECT livewell.add_stats('{{work,work,work}}', '{{{}}}', '{{ok,ok,ok}}', '{{1,1,1}}', '{{1,1,1}}')"
    one = "SELECT livewell.add_stats('{work}', '{m}', '{ok}', '{1}', '{1}')"

    def prepare() -> Given:
        queue.rows("DELETE FROM livewell.stat")
        return {}

    def judge(outcome: Outcome) -> str | None:
        counted = queue.rows("SELECT kind, n FROM livewell.stat ORDER BY kind")
        return None if counted == [("a", 2), ("m", 3), ("z", 2)] else f"{outcome.errors} {counted}"

    queue.freeze()
    return await violations(
        queue_dsn,
        [
            session("middle", one),
            session("up", add.format("a,m,z"), transaction=False),
            session("down", add.format("z,m,a"), transaction=False),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_workers_that_add_statistics_together_do_not_deadlock(queue: QueueSession, queue_dsn: str) -> None:
    """Rows are added in key order, whatever order they come in."""
    assert await statistics_in_opposite_orders(queue, queue_dsn) == []


async def test_statistics_without_key_order_break(queue: QueueSession, queue_dsn: str) -> None:
    """In the order given, two workers wait for each other."""
    unordered = ('    ORDER BY g.queue COLLATE "C", g.kind COLLATE "C", g.outcome COLLATE "C"\n', "")
    with variant(queue_dsn, "add_stats", unordered):
        assert await statistics_in_opposite_orders(queue, queue_dsn) != []
