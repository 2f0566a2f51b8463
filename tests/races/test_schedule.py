"""Schedulers that race for a slot, finish, renew and recover.

In every order each slot has one run, and nothing overlaps itself (S3, S4, R21).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.schedule_sql import ScheduleSession
from tests.support.variants import Change, variant

BEGIN = (
    "SELECT answer, fence FROM livewell.begin_run('nightly', '{0}', %(due)s, %(due)s, %(due)s + interval '1 "
    "minute', interval '1 minute', 0, NULL, interval '1 minute')"
)
FINISH = "SELECT livewell.finish_run(%(run)s, %(fence)s, true, NULL, NULL)"
RENEW = "SELECT livewell.renew_run(%(run)s, %(fence)s, interval '1 minute')"
CRASH = "SELECT livewell.crash_runs(100)"
EXPIRE = "UPDATE livewell_test.clock SET frozen_at = frozen_at + interval '1 second'"

ANY_SLOT: Change = ("IF v_row.due_at IS DISTINCT FROM p_from OR", "IF v_row.name IS NULL OR")
NO_ROW_LOCK: Change = ("WHERE s.name = p_name FOR NO KEY UPDATE SKIP LOCKED;", "WHERE s.name = p_name;")
NO_LEASE: tuple[Change, ...] = (
    ("IF v_answer <> 'held' THEN", "IF false THEN"),
    ("v_fence, p_holder, p_asked)", "coalesce(v_fence, 0), p_holder, p_asked)"),
    ("VALUES (p_name, p_slot, p_slot,", "VALUES (p_name, p_slot - random() * interval '1 second', p_slot,"),
)
NO_OPEN_LOOK: tuple[Change, ...] = (
    ("r.state = 'running') THEN", "false) THEN"),
    ("VALUES (p_name, p_slot, p_slot,", "VALUES (p_name, p_slot - random() * interval '1 second', p_slot,"),
)
NO_FENCE: Change = ("IF NOT livewell.hold_singleton('schedule.' || v_row.schedule, p_fence) THEN", "IF false THEN")


@pytest.fixture
def schedule(queue_dsn: str) -> Iterator[ScheduleSession]:
    with ScheduleSession(queue_dsn) as one:
        one.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        yield one
        one.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        one.reset()


async def racers(schedule: ScheduleSession, dsn: str, *, open_ended: bool = False) -> list[str]:
    """Three schedulers begin the same slot; one of them is late by its own doing."""

    def prepare() -> Given:
        schedule.reset()
        schedule.rows("UPDATE livewell.schedule SET open_ended = %s", open_ended)
        return {"due": schedule.due()}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        begun = [name for name in "abc" if outcome.answer(name) and outcome.answer(name)[0][0] == "begun"]
        rows = schedule.runs("state::text", "reason", "slots")
        moved = (schedule.due() - outcome.given["due"]).total_seconds()
        good = len(begun) == 1 and rows == [("running", None, 1)] and moved == 60
        return None if good else f"{begun} began; {rows}; moved by {moved} s"

    return await violations(dsn, [session(name, BEGIN.format(name)) for name in "abc"], prepare=prepare, judge=judge)


async def test_one_of_three_runs_a_slot(schedule: ScheduleSession, queue_dsn: str) -> None:
    """In all 90 orders: one run, and the slot moves once."""
    assert await racers(schedule, queue_dsn) == []


@pytest.mark.parametrize("change", [NO_ROW_LOCK, ANY_SLOT], ids=["no lock", "any slot"])
async def test_the_lease_and_the_unique_slot_hold_where_the_lock_is_missing(
    schedule: ScheduleSession, queue_dsn: str, change: Change
) -> None:
    """Three walls: the row's lock, the lease, one run per slot.

    With the first one down the others stand.
    """
    with variant(queue_dsn, "begin_run", change):
        assert await racers(schedule, queue_dsn) == []


async def test_without_all_three_walls_a_slot_runs_twice(schedule: ScheduleSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "begin_run", NO_ROW_LOCK), variant(queue_dsn, "take_run", *NO_LEASE):
        assert any("began" in line for line in await racers(schedule, queue_dsn))


async def test_one_of_three_begins_an_open_run(schedule: ScheduleSession, queue_dsn: str) -> None:
    """It has no lease: the row's lock and the run that is open keep the others away."""
    assert await racers(schedule, queue_dsn, open_ended=True) == []


async def test_without_its_walls_an_open_run_begins_twice(schedule: ScheduleSession, queue_dsn: str) -> None:
    """Broken on purpose: no lock, no look at what is open, and slots that differ."""
    with variant(queue_dsn, "begin_run", NO_ROW_LOCK), variant(queue_dsn, "open_run", *NO_OPEN_LOOK):
        assert any("began" in line for line in await racers(schedule, queue_dsn, open_ended=True))


async def test_an_open_run_that_was_removed_is_not_ended_as_well(schedule: ScheduleSession, queue_dsn: str) -> None:
    """The last page, the removal of the schedule and its next slot, in every order.

    One end, and no second run beside it.
    """

    def prepare() -> Given:
        schedule.reset()
        schedule.rows("UPDATE livewell.schedule SET open_ended = true, internal = true")
        begun = schedule.begin("old")
        schedule.rows("UPDATE livewell.schedule SET due_at = livewell.now()")
        return {**begun, "due": schedule.due()}

    def judge(outcome: Outcome) -> str | None:
        rows = schedule.runs("id", "state::text", "rows_affected")
        first = {state for run, state, _ in rows if run == outcome.given["run"]}
        good = not outcome.errors and first <= {"succeeded", "failed"} and len(first) == 1
        overlap = sum(state == "running" for _, state, _ in rows) > 1
        return None if good and not overlap else f"{outcome.errors}; {rows}"

    page = "SELECT livewell.count_open_run(%(run)s, 'old', 1, true)"
    remove = "SELECT livewell.remove_open_schedule('nightly')"
    sessions = [session("page", page), session("remove", remove), session("next", BEGIN.format("next"))]
    assert await violations(queue_dsn, sessions, prepare=prepare, judge=judge) == []


async def ends(schedule: ScheduleSession, dsn: str) -> list[str]:
    """A holder at the end of its lease finishes and renews.

    Meanwhile one session recovers, and another begins the next slot.
    """

    def prepare() -> Given:
        schedule.rows("UPDATE livewell_test.clock SET frozen_at = clock_timestamp()")
        schedule.reset()
        begun = schedule.begin("old", lease=0.5)
        schedule.rows("UPDATE livewell.schedule SET due_at = livewell.now()")
        schedule.rows("UPDATE livewell.run SET due_at = due_at - interval '1 minute'")
        schedule.rows(
            "UPDATE livewell_test.clock SET frozen_at = (SELECT expires_at FROM livewell.singleton WHERE name = "
            "'schedule.nightly') - interval '1 ms'"
        )
        return {**begun, "due": schedule.due()}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        rows = schedule.runs("holder", "state::text", "reason")
        finished, next_answer = outcome.answer("old")[0][0], outcome.answer("new", 1)[0][0]
        states = {(holder, state) for holder, state, _ in rows}
        if finished != (("old", "succeeded") in states):
            return f"the old one was told {finished}: {rows}"
        if next_answer == "begun" and ("old", "running") in states:
            return f"overlap: {rows}"
        if ("old", "succeeded") not in states and ("old", "crashed") not in states and ("old", "running") not in states:
            return f"a run has vanished: {rows}"
        return None

    return await violations(
        dsn,
        [
            session("old", FINISH),
            session("new", EXPIRE, BEGIN.format("new"), transaction=False),
            session("recover", CRASH),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_an_end_a_recovery_and_the_next_run_agree(schedule: ScheduleSession, queue_dsn: str) -> None:
    """In every order the old run has succeeded or crashed as its holder was told.

    And it is not running beside the next.
    """
    assert await ends(schedule, queue_dsn) == []


async def test_an_end_without_a_fence_would_be_believed_too_late(schedule: ScheduleSession, queue_dsn: str) -> None:
    """Broken on purpose: a frozen holder ends a run whose lease is over."""

    async def late() -> bool:
        schedule.rows("UPDATE livewell_test.clock SET frozen_at = clock_timestamp()")
        schedule.reset()
        begun = schedule.begin("old", lease=0.5)
        schedule.advance(1)
        return schedule.close_run(begun)

    assert not await late()
    with variant(queue_dsn, "finish_run", NO_FENCE):
        assert await late()


async def test_an_old_term_is_not_renewed_beside_the_next_run(schedule: ScheduleSession, queue_dsn: str) -> None:
    """In every order of a late renewal and the next beginning (F-A9)."""

    def prepare() -> Given:
        schedule.rows("UPDATE livewell_test.clock SET frozen_at = clock_timestamp()")
        schedule.reset()
        begun = schedule.begin("old", lease=0.5)
        schedule.advance(60)
        return {**begun, "due": schedule.due()}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        if outcome.answer("old")[0][0]:
            return "an old term was renewed"
        begun = outcome.answer("new")[0][0]
        rows = schedule.runs("holder", "state::text")
        return None if begun == "begun" and rows == [("old", "crashed"), ("new", "running")] else f"{begun}: {rows}"

    found = await violations(
        queue_dsn, [session("old", RENEW, RENEW), session("new", BEGIN.format("new"))], prepare=prepare, judge=judge
    )
    assert found == []
