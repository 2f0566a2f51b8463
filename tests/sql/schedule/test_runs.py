"""Runs in SQL (S1–S4, R21).

A run is begun once per slot under a lease, kept by renewing, ended by fence, crashed when the lease
is over, and skipped with the reason.
"""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from tests.support.schedule_sql import BEGIN, MINUTE, NAME, ScheduleSession


def test_a_slot_runs_once_and_the_next_one_follows(schedule: ScheduleSession) -> None:
    """The lease, the run and the next slot come in one call.

    Whoever comes second finds that it has moved (S3).
    """
    due = schedule.due()
    first = schedule.begin("a")
    second = schedule.rows(BEGIN, NAME, "b", due, due, due + MINUTE, MINUTE, 0, None, MINUTE)[0][0]

    assert (first["answer"], second) == ("begun", "moved")
    assert schedule.due() == due + MINUTE
    assert schedule.runs("state::text", "due_at", "holder", "fence") == [("running", due, "a", first["fence"])]


def test_a_run_ends_by_its_fence_with_rows_or_an_error(schedule: ScheduleSession) -> None:
    """Succeeded with the rows affected, failed with the error, its secrets hidden (S2)."""
    schedule.close_run(schedule.begin(), rows=7)
    schedule.advance(60)
    schedule.close_run(schedule.begin(), ok=False, error="no answer from postgres://me:hunter2@db/x")

    assert schedule.runs("state::text", "rows_affected", "error") == [
        ("succeeded", 7, None),
        ("failed", None, "no answer from postgres://me:***@db/x"),
    ]


def test_the_end_may_be_said_twice(schedule: ScheduleSession) -> None:
    """After an unknown answer the caller asks again, and nothing changes."""
    begun = schedule.begin()

    assert [schedule.close_run(begun), schedule.close_run(begun)] == [True, True]
    assert schedule.runs() == [("succeeded", None)]


def test_a_frozen_holder_can_neither_finish_nor_renew_an_old_term(schedule: ScheduleSession) -> None:
    """Its lease ran out; before anybody takes it, and after (R21)."""
    old = schedule.begin("frozen", lease=5)
    schedule.advance(61)
    assert [schedule.keep(old), schedule.close_run(old)] == [False, False]
    new = schedule.begin("b")

    assert new["answer"] == "begun"
    assert new["fence"] > old["fence"]
    assert [schedule.keep(old), schedule.close_run(old)] == [False, False]
    assert schedule.close_run(new)
    assert schedule.runs("state::text", "holder") == [("crashed", "frozen"), ("succeeded", "b")]


def test_runs_left_running_become_crashed_with_the_next_turn(schedule: ScheduleSession) -> None:
    """When the lease has expired, and not before (S4)."""
    schedule.begin(lease=30)
    schedule.tick()
    assert schedule.runs() == [("running", None)]
    schedule.advance(31)
    schedule.tick()

    assert schedule.runs("state::text", "finished_at IS NOT NULL", "error") == [
        ("crashed", True, "its lease ran out: the process ended, stood still, or lost the database")
    ]


def test_a_handler_that_takes_longer_keeps_its_lease_until_its_timeout(schedule: ScheduleSession) -> None:
    """Renewing works past the first lease, and not past the timeout and half a minute."""
    schedule.every("slow", timeout=100)
    begun = schedule.begin(name="slow", lease=20)
    kept = 0
    while kept < 100 and schedule.keep(begun, lease=20):
        schedule.advance(10)
        kept += 1

    assert 10 <= kept <= 14
    assert not schedule.close_run(begun)


@pytest.mark.parametrize("policy", ["skip", "once"])
def test_a_slot_that_comes_while_the_last_run_still_runs_is_skipped(schedule: ScheduleSession, policy: str) -> None:
    """With the reason; several in a row are one row (R21)."""
    schedule.every(missed=policy)
    begun = schedule.begin(lease=3600)
    answers = []
    for _ in range(3):
        schedule.advance(60)
        answers.append(schedule.begin("b")["answer"])
    schedule.close_run(begun)
    schedule.advance(60)
    answers.append(schedule.begin("b")["answer"])

    assert answers == ["skipped", "skipped", "skipped", "begun"]
    assert schedule.runs("state::text", "reason", "slots") == [
        ("succeeded", None, 1),
        ("skipped", "still running", 3),
        ("running", None, 1),
    ]


def test_who_catches_up_waits_for_the_last_run(schedule: ScheduleSession) -> None:
    """The slot stays due, and is told for how long; then it runs."""
    schedule.every(missed="all")
    begun = schedule.begin(lease=90)
    schedule.advance(60)
    due, waiting = schedule.due(), schedule.begin("b")
    schedule.close_run(begun)

    assert waiting["answer"] == "waiting"
    assert 0 < waiting["wait"] <= 30
    assert schedule.due() == due
    assert schedule.begin("b")["answer"] == "begun"


def test_missed_slots_are_one_row_before_the_run(schedule: ScheduleSession) -> None:
    """How many, from when to when."""
    due = schedule.due()
    schedule.advance(600)
    schedule.begin(slots=5)

    assert schedule.runs("state::text", "reason", "slots", "due_at", "last_due_at") == [
        ("skipped", "missed", 4, due, due + 3 * MINUTE),
        ("running", None, 1, due + 4 * MINUTE, due + 4 * MINUTE),
    ]


def test_slots_may_all_be_missed(schedule: ScheduleSession) -> None:
    """Then nothing runs, and no lease is taken."""
    due = schedule.due()
    schedule.advance(600)
    [(answer, *_)] = schedule.rows(BEGIN, NAME, "a", due, None, due + 5 * MINUTE, MINUTE, 5, due + 4 * MINUTE, MINUTE)

    assert answer == "skipped"
    assert schedule.runs("state::text", "reason", "slots") == [("skipped", "missed", 5)]
    assert schedule.due() == due + 5 * MINUTE
    assert schedule.rows("SELECT 1 FROM livewell.singleton") == []


def test_a_paused_schedule_skips_its_slots_and_goes_on_when_resumed(schedule: ScheduleSession) -> None:
    """A month of pause is one row."""
    schedule.rows("SELECT livewell.pause_schedule(%s, true)", NAME)
    answers = []
    for _ in range(4):
        answers.append(schedule.begin()["answer"])
        schedule.advance(60)
    schedule.rows("SELECT livewell.pause_schedule(%s, false)", NAME)
    answers.append(schedule.begin()["answer"])

    assert answers == ["skipped"] * 4 + ["begun"]
    assert schedule.runs("state::text", "reason", "slots") == [("skipped", "paused", 4), ("running", None, 1)]


def test_nothing_begins_before_it_is_due_by_the_databases_clock(schedule: ScheduleSession) -> None:
    """Whatever a caller's own clock says (F-C1)."""
    schedule.close_run(schedule.begin())
    due = schedule.due()
    early = schedule.rows(BEGIN, NAME, "early", due, due, due + MINUTE, MINUTE, 0, None, MINUTE)[0][0]

    assert early == "moved"
    assert schedule.runs() == [("succeeded", None)]


@pytest.mark.parametrize(
    ("slot", "after"), [(-1, 1), (0, 0), (0, -1)], ids=["before the due one", "next is the same", "next is earlier"]
)
def test_a_plan_that_would_go_back_is_refused(schedule: ScheduleSession, slot: int, after: int) -> None:
    """A slot never comes twice because of a caller's mistake."""
    due = schedule.due()
    answer = schedule.rows(BEGIN, NAME, "a", due, due + slot * MINUTE, due + after * MINUTE, MINUTE, 0, None, MINUTE)
    assert answer[0][0] == "moved"
    assert schedule.runs() == []


def test_a_clock_that_is_set_back_runs_no_slot_twice(schedule: ScheduleSession) -> None:
    """The next slot is simply further away (F-C3)."""
    schedule.freeze()
    schedule.close_run(schedule.begin())
    due = schedule.due()
    schedule.advance(-600)

    assert [row[0] for row in schedule.tick()] == [None]
    schedule.rows("UPDATE livewell.schedule SET due_at = due_at - interval '1 minute'")
    schedule.advance(600)
    assert schedule.begin()["answer"] == "skipped"
    assert schedule.due() == due
    assert schedule.runs() == [("succeeded", None)]


def test_a_run_that_was_asked_for_comes_beside_the_slots(schedule: ScheduleSession) -> None:
    """Once, also when it was asked for twice; also of a schedule that is paused.

    And it moves no slot (S5).
    """
    schedule.close_run(schedule.begin())
    due = schedule.due()
    schedule.rows("SELECT livewell.pause_schedule(%s, true)", NAME)
    assert [schedule.value("SELECT livewell.ask_run(%s)", NAME) for _ in range(2)] == ["asked", "asked"]
    asked = "SELECT answer, run_id, fence FROM livewell.begin_asked_run(%s, 'a', interval '1 minute')"
    [(answer, run, fence)] = schedule.rows(asked, NAME)

    assert answer == "begun"
    assert schedule.close_run({"run": run, "fence": fence})
    assert schedule.rows(asked, NAME)[0][0] == "moved"
    assert schedule.due() == due
    assert schedule.runs("state::text", "asked") == [("succeeded", False), ("succeeded", True)]
    assert schedule.value("SELECT livewell.ask_run('nothing')") == "unknown"


def test_a_one_off_ends_with_its_run(schedule: ScheduleSession) -> None:
    """And stays ended when it is declared again with the same instant, not with another."""
    declare = (
        "SELECT livewell.declare_schedule('launch', 'once', NULL, NULL, NULL, livewell.now() + %s, 'once', "
        "interval '1 hour', false, false)"
    )
    schedule.freeze()
    schedule.rows(declare, timedelta(0))
    due = schedule.due("launch")
    [(answer, *_)] = schedule.rows(BEGIN, "launch", "a", due, due, None, timedelta(0), 0, None, MINUTE)
    schedule.rows(declare, timedelta(0))

    assert answer == "begun"
    assert [row[0] for row in schedule.tick("launch")] == [None]
    schedule.rows(declare, timedelta(hours=1))
    assert schedule.due("launch") == due + timedelta(hours=1)


def test_declaring_again_keeps_the_slot_unless_the_rule_is_new(schedule: ScheduleSession) -> None:
    """A restart neither forgets a slot nor adds one."""
    due = schedule.due()
    schedule.advance(3600)
    schedule.every(missed="all")
    assert schedule.due() == due
    schedule.every(every=timedelta(minutes=5), at_once=False)
    assert schedule.due() > due + timedelta(hours=1)
    schedule.cron()
    assert schedule.due() is None
    plan = "SELECT livewell.plan_schedule(%s, %s, 'UTC', livewell.now(), interval '1 day')"
    assert [schedule.value(plan, NAME, text) for text in ("0 3 * * *", "0 2 * * *", "0 2 * * *")] == [
        False,
        True,
        False,
    ]


def test_a_tick_says_what_is_due_and_when_the_next_will_be(schedule: ScheduleSession) -> None:
    """Only of the schedules that were named: nobody runs what it has no handler for."""
    schedule.freeze()
    schedule.every("later", every=timedelta(seconds=30), at_once=False)
    schedule.every("strange", at_once=True)

    due = schedule.tick(NAME, "later")
    assert [(row[0], row[-1]) for row in due] == [(NAME, None), (None, 30)]


def test_bounds_are_kept_by_the_database(schedule: ScheduleSession) -> None:
    """Whatever a client sends."""
    for name, every, timeout in (("Bad", 60, 60), ("x" * 55, 60, 60), ("short", 0.001, 60), ("long", 60, 90000)):
        with pytest.raises(psycopg.errors.CheckViolation):
            schedule.every(name, every=timedelta(seconds=every), timeout=timeout)
    with pytest.raises(psycopg.Error, match="there are 1000 already"):
        schedule.rows(
            "SELECT livewell.declare_schedule('s' || n, 'interval', NULL, NULL, interval '1 minute', NULL, "
            "'once', interval '1 minute', false, false) FROM generate_series(1, 1000) AS n"
        )


def test_runs_are_kept_thirty_days_and_what_runs_stays(schedule: ScheduleSession) -> None:
    """Whatever the setting says (S2)."""
    schedule.close_run(schedule.begin())
    schedule.every("held")
    schedule.begin(name="held", lease=3600)
    schedule.advance(29 * 86400)
    assert schedule.value("SELECT livewell.prune_runs(1, 100)") == 0
    schedule.advance(2 * 86400)

    assert schedule.value("SELECT livewell.prune_runs(1, 100)") == 1
    assert schedule.runs("schedule") == [("held",)]


def test_what_is_late_is_named_after_two_intervals_and_a_minute(schedule: ScheduleSession) -> None:
    """A schedule by its gap, a loop by its pulse.

    What is paused is not late, and where no scheduler ever ran its loop is (R24).
    """
    assert schedule.late() == ["schedule.loop"]
    schedule.freeze()
    schedule.tick()
    schedule.close_run(schedule.begin())
    schedule.rows("SELECT livewell.record_pulse('refresh.due', 'a', interval '5 seconds', 10, 3)")
    told: list[list[str]] = []
    for seconds in (0, 60, 9, 2, 108, 2):  # the last run was at 0; the slot after it is due at 60
        schedule.advance(seconds)
        told.append(schedule.late())
    assert told == [
        [],
        [],
        [],
        ["refresh.due", "schedule.loop"],
        ["refresh.due", "schedule.loop"],
        [NAME, "refresh.due", "schedule.loop"],
    ]
    schedule.rows("SELECT livewell.pause_schedule(%s, true)", NAME)
    schedule.tick()
    assert schedule.late() == ["refresh.due"]


def test_a_schedule_that_nobody_has_any_more_is_marked_and_can_be_removed(schedule: ScheduleSession) -> None:
    """Not while somebody has it; its history stays."""
    schedule.close_run(schedule.begin())
    assert schedule.value("SELECT livewell.remove_schedule(%s)", NAME) == "in use"
    schedule.advance(61)
    state = "SELECT state FROM livewell.list_schedules() WHERE name = %s"
    assert schedule.value(state, NAME) == "orphaned"
    schedule.tick()
    assert schedule.value(state, NAME) == "waiting"
    schedule.advance(61)

    assert schedule.value("SELECT livewell.remove_schedule(%s)", NAME) == "removed"
    assert schedule.value("SELECT livewell.remove_schedule(%s)", NAME) == "unknown"
    assert schedule.runs() == [("succeeded", None)]


def test_the_history_is_read_in_pages_newest_first(schedule: ScheduleSession) -> None:
    """Of all, and of one (S5)."""
    schedule.every("other")
    for name in (NAME, "other", NAME):
        schedule.close_run(schedule.begin(name=name))
        schedule.advance(60)
    ids = schedule.column("SELECT id FROM livewell.run ORDER BY id DESC")
    page = "SELECT id FROM livewell.list_runs(%s, %s, 2)"

    assert schedule.column(page, None, None) == ids[:2]
    assert schedule.column(page, None, ids[1]) == ids[2:]
    assert schedule.column(page, NAME, None) == [ids[0], ids[2]]


def test_every_role_has_the_rights_it_needs(schedule: ScheduleSession) -> None:
    """A worker declares, ticks, begins, renews, ends and prunes.

    An operator asks, pauses, lists and removes; the hub knows what is late.
    """
    try:
        schedule.rows("SET ROLE livewell_worker")
        schedule.every("by_worker")
        schedule.tick("by_worker")
        begun = schedule.begin(name="by_worker")
        assert [schedule.keep(begun), schedule.close_run(begun, error=None)] == [True, True]
        schedule.rows("SELECT livewell.prune_runs(30, 10), livewell.record_pulse('x', 'y', interval '1 second', 1, 1)")
        schedule.rows("SET ROLE livewell_operate")
        assert schedule.value("SELECT livewell.ask_run('by_worker')") == "asked"
        assert schedule.value("SELECT livewell.pause_schedule('by_worker', true)")
        assert schedule.rows("SELECT * FROM livewell.list_schedules()")
        assert schedule.rows("SELECT * FROM livewell.list_runs(NULL, NULL, 10)")
        schedule.rows("RESET ROLE")
        schedule.advance(120)
        schedule.rows("SET ROLE livewell_operate")
        assert schedule.value("SELECT livewell.remove_schedule('by_worker')") == "removed"
        schedule.rows("SET ROLE livewell_hub")
        assert "schedule.loop" in schedule.late()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            schedule.rows("SELECT * FROM livewell.run")
    finally:
        schedule.rows("RESET ROLE")
