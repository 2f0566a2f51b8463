"""Acts on all that match beside each other: nothing is done twice.

Two workers step at once, two people ask at once, a worker dies in the middle, somebody cancels
while a page is done. Every race has a variant broken on purpose that is seen to fail.
"""

from __future__ import annotations

import pytest

from tests.sql.queue.test_bulk_acts import begin, letters, work
from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import Change, variant

STEP = "SELECT did FROM livewell.step_bulk_act(2)"
ASK = "SELECT act_id, is_new FROM livewell.begin_bulk_act('redrive', '{}', NULL, NULL, 4, 'exact', 'ann')"
CANCEL = "SELECT livewell.end_bulk_act((SELECT max(id) FROM livewell.bulk_act), NULL, 'bob')"

NO_LOCK: Change = (" FOR UPDATE SKIP LOCKED;\n    IF NOT FOUND", ";\n    IF NOT FOUND")
NO_TURN: Change = ("livewell.next_bulk_act()", "(SELECT max(n.id) FROM livewell.bulk_act n)")


async def step_twice(queue: QueueSession, dsn: str, *changes: Change) -> list[str]:
    """Two workers step one act at the same time; afterwards one does the rest."""

    def prepare() -> Given:
        queue.reset()
        letters(queue, 4)
        begin(queue, "redrive")
        return {}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        if not changes:
            work(queue)
        [(done, skipped)] = queue.rows("SELECT done, skipped FROM livewell.bulk_act")
        jobs = queue.value("SELECT count(*) FROM livewell.job")
        return None if (done + skipped, done) == (jobs, jobs) else f"{done} done, {skipped} skipped, {jobs} jobs"

    with variant(dsn, "step_bulk_act", *changes):
        return await violations(dsn, [session("a", STEP), session("b", STEP)], prepare=prepare, judge=judge)


async def test_two_workers_do_no_page_twice(queue: QueueSession, queue_dsn: str) -> None:
    """Each letter is counted once, in every order."""
    assert await step_twice(queue, queue_dsn) == []


async def test_without_the_lock_of_the_act_counts_are_lost(queue: QueueSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    assert await step_twice(queue, queue_dsn, NO_LOCK, NO_TURN) != []


async def test_two_people_who_ask_at_once_get_one_act(queue: QueueSession, queue_dsn: str) -> None:
    """The second waits for the first to be written, and gets its number."""

    def prepare() -> Given:
        queue.reset()
        letters(queue, 4)
        return {}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        acts = queue.column("SELECT id FROM livewell.bulk_act")
        return None if len(acts) == 1 else f"{len(acts)} acts"

    assert await violations(queue_dsn, [session("a", ASK), session("b", ASK)], prepare=prepare, judge=judge) == []


async def test_a_cancel_beside_a_step_leaves_true_counts(queue: QueueSession, queue_dsn: str) -> None:
    """Either the page came first and is counted, or nothing of it was done."""

    def prepare() -> Given:
        queue.reset()
        letters(queue, 4)
        begin(queue, "redrive")
        return {}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        [(state, done)] = queue.rows("SELECT state, done FROM livewell.bulk_act")
        jobs = queue.value("SELECT count(*) FROM livewell.job")
        return None if (state, done) == ("cancelled", jobs) else f"{state}, {done} done, {jobs} jobs"

    sessions = [session("step", STEP), session("cancel", CANCEL)]
    assert await violations(queue_dsn, sessions, prepare=prepare, judge=judge) == []


@pytest.mark.parametrize("killed_after", [1, 2])
def test_a_worker_that_dies_in_the_middle_has_done_nothing_of_its_page(
    queue: QueueSession, queue_dsn: str, killed_after: int
) -> None:
    """The next worker goes on where the last commit was; each letter is redriven once."""
    letters(queue, 6)
    begin(queue, "redrive")
    for _ in range(killed_after - 1):
        queue.rows(STEP)
    with QueueSession(queue_dsn) as victim:
        victim.rows("BEGIN")
        victim.rows(STEP)
        pid = victim.value("SELECT pg_backend_pid()")
        queue.rows("SELECT pg_terminate_backend(%s, 5000)", pid)

    assert queue.value("SELECT done FROM livewell.bulk_act") == 2 * (killed_after - 1)
    work(queue, 2)
    assert queue.rows("SELECT state, done, skipped FROM livewell.bulk_act") == [("done", 6, 0)]
    assert queue.value("SELECT count(*) FROM livewell.job") == 6
