"""Walks of scheduled types are schedules.

Each is a run, and can be asked for, paused and late like any other (R19, S2, S5, R24).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.refresh_sql import SINGLETON, RefreshSession

KEYS = 1500  # more than a page
WALK = "walk.income"


def prepare(refresh: RefreshSession) -> None:
    """A scheduled type whose slot has not come; its schedule is planned for tomorrow."""
    refresh.freeze()
    refresh.type("income", strategy="scheduled", cron="0 6 * * *", zone="UTC", ttl="30 days")
    refresh.rows(
        "INSERT INTO livewell.universe (data_type, key, added_at) SELECT 'income', 'K' || lpad(n::text, 5, "
        "'0'), livewell.now() FROM generate_series(1, %s) AS n",
        KEYS,
    )
    sync(refresh)
    refresh.rows(
        "SELECT livewell.plan_schedule(%s, '0 6 * * *', 'UTC', livewell.now() + interval '1 day', '1 day')", WALK
    )


def sync(refresh: RefreshSession) -> None:
    refresh.rows("SELECT livewell.sync_walks()")


def walk(refresh: RefreshSession) -> str:
    """One page; what waited is done afterwards."""
    answer: str = refresh.value(
        "SELECT answer FROM livewell.dispatch_scheduled(%s, %s, 'income', NULL)", SINGLETON, refresh.hold()
    )
    refresh.rows("DELETE FROM livewell.job")
    return answer


def listed(refresh: RefreshSession) -> list[tuple[Any, ...]]:
    """What `livewell schedules list` says of it: seconds to its next slot, state, rule, late."""
    return refresh.rows(
        "SELECT extract(epoch FROM due_at - livewell.now())::int, state, rule, late FROM "
        "livewell.list_schedules() WHERE name = %s",
        WALK,
    )


def ticked(refresh: RefreshSession) -> list[str]:
    """What a scheduler finds to do."""
    rows = refresh.rows("SELECT name FROM livewell.tick_schedules(%s, 'test')", [WALK])
    return [name for (name,) in rows if name is not None]


def runs(refresh: RefreshSession) -> list[tuple[Any, ...]]:
    return refresh.rows(
        "SELECT schedule, state::text, rows_affected, finished_at IS NULL, asked FROM livewell.run ORDER BY id"
    )


def test_a_walk_is_one_run_through_a_restart(refresh: RefreshSession) -> None:
    """Begun by its slot, ended with the last page, whoever walked in between; nothing crashed."""
    prepare(refresh)
    assert walk(refresh) == "not_due"
    refresh.begin_walk("income")

    assert walk(refresh) == "walking"
    assert runs(refresh) == [(WALK, "running", 1000, True, False)]
    refresh.rows("UPDATE livewell.singleton SET expires_at = '-infinity'")
    refresh.advance(3600)
    refresh.rows("SELECT livewell.crash_runs(100)")
    assert walk(refresh) == "walked"
    assert runs(refresh) == [(WALK, "succeeded", KEYS, False, False)]
    assert walk(refresh) == "not_due"


def test_a_scheduled_type_is_listed_among_the_schedules(refresh: RefreshSession) -> None:
    """With its next slot; a paused one has none, and so is never late.

    On with the type, the slot that waited is due.
    """
    prepare(refresh)
    assert listed(refresh) == [(86400, "waiting", "0 6 * * *", False)]

    refresh.rows("SELECT livewell.pause_type('income', true)")
    sync(refresh)
    assert listed(refresh) == [(None, "waiting", "0 6 * * *", False)]
    refresh.advance(10 * 86400)
    assert (listed(refresh)[0][3], ticked(refresh)) == (False, [])

    refresh.rows("SELECT livewell.pause_type('income', false)")
    sync(refresh)
    assert ticked(refresh) == [WALK]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE livewell.data_type SET parked_reason = 'the plan does not include it' WHERE name = 'income'",
        "SELECT livewell.pause_upstream('api', true)",
        "SELECT livewell.pause_type('income', true)",
    ],
)
def test_whatever_stops_a_type_stops_its_walk(refresh: RefreshSession, statement: str) -> None:
    """Under way or not: no page is taken, no slot comes, nothing is late."""
    prepare(refresh)
    refresh.begin_walk("income")
    assert walk(refresh) == "walking"
    refresh.rows(statement)
    sync(refresh)

    assert walk(refresh) == "blocked"
    refresh.advance(10 * 86400)
    assert ticked(refresh) == []
    assert refresh.rows("SELECT name FROM livewell.late_schedules() WHERE name = %s", WALK) == []


def test_a_walk_that_is_not_over_when_the_next_is_due_is_late(refresh: RefreshSession) -> None:
    """A gap and a minute after its slot, begun or not."""
    prepare(refresh)
    late = "SELECT name FROM livewell.late_schedules() WHERE name LIKE 'walk.%'"
    refresh.begin_walk("income")
    assert walk(refresh) == "walking"

    refresh.advance(86400 + 59)
    assert refresh.rows(late) == []
    refresh.advance(2)
    assert refresh.rows(late) == [(WALK,)]
    assert listed(refresh)[0][3]
    assert walk(refresh) == "walked"
    assert refresh.rows(late) == []  # that slot is over; the next one is a minute late at most
    refresh.advance(86400)
    assert refresh.rows(late) == [(WALK,)]


def test_a_slot_that_comes_while_the_walk_goes_on_is_skipped(refresh: RefreshSession) -> None:
    """As for any schedule: nothing overlaps itself, and the history says so."""
    prepare(refresh)
    refresh.begin_walk("income")
    assert walk(refresh) == "walking"
    refresh.advance(86400)
    due = refresh.value("SELECT due_at FROM livewell.schedule WHERE name = %s", WALK)
    begin = "SELECT answer FROM livewell.begin_run(%s, 'test', %s, %s, %s, '1 day', 0, NULL, '1 minute')"

    assert refresh.value(begin, WALK, due, due, due + timedelta(days=1)) == "skipped"
    assert walk(refresh) == "walked"
    assert refresh.rows("SELECT state::text, reason FROM livewell.run ORDER BY id") == [
        ("succeeded", None),
        ("skipped", "still running"),
    ]


def test_who_asks_for_a_walk_gets_one(refresh: RefreshSession) -> None:
    """Though its slot is tomorrow, and though it is paused, from its first key to its last.

    Asked during a walk, another one follows.
    """
    prepare(refresh)
    ask = "SELECT answer FROM livewell.begin_asked_run(%s, 'test', '1 minute')"
    refresh.rows("SELECT livewell.pause_schedule(%s, true)", WALK)
    refresh.advance(60)
    assert refresh.value("SELECT livewell.ask_run(%s)", WALK) in ("asked", "nobody")
    assert ticked(refresh) == [WALK]
    assert refresh.value(ask, WALK) == "begun"
    assert walk(refresh) == "walking"

    refresh.advance(60)
    refresh.rows("SELECT livewell.ask_run(%s)", WALK)
    assert refresh.value(ask, WALK) == "waiting"
    assert walk(refresh) == "walked"
    assert refresh.value(ask, WALK) == "begun"
    assert [walk(refresh), walk(refresh), walk(refresh)] == ["walking", "walked", "not_due"]
    assert runs(refresh) == [(WALK, "succeeded", KEYS, False, True)] * 2
    assert listed(refresh)[0][:2] == (86400 - 120, "paused")


def test_a_paused_walk_waits(refresh: RefreshSession) -> None:
    """And goes on where it was."""
    prepare(refresh)
    refresh.begin_walk("income")
    assert walk(refresh) == "walking"
    refresh.rows("SELECT livewell.pause_schedule(%s, true)", WALK)
    assert walk(refresh) == "blocked"
    refresh.rows("SELECT livewell.pause_schedule(%s, false)", WALK)
    assert walk(refresh) == "walked"
    assert runs(refresh) == [(WALK, "succeeded", KEYS, False, False)]


def test_a_type_that_is_scheduled_no_more_leaves_the_list(refresh: RefreshSession) -> None:
    """What was under way has failed, and says why."""
    prepare(refresh)
    refresh.begin_walk("income")
    walk(refresh)
    refresh.rows("SELECT livewell.change_type('income', NULL, 'on_demand', NULL, NULL)")
    assert walk(refresh) == "unknown"
    sync(refresh)

    assert refresh.rows("SELECT name FROM livewell.schedule") == []
    assert refresh.rows("SELECT state::text, error FROM livewell.run") == [
        ("failed", "its schedule was changed or removed before it was over")
    ]


def test_another_cron_text_plans_the_walk_anew(refresh: RefreshSession) -> None:
    """Without a restart: what was under way has failed, and the next walk begins with the first key."""
    prepare(refresh)
    refresh.begin_walk("income")
    assert walk(refresh) == "walking"
    refresh.rows("UPDATE livewell.data_type SET cron = '0 7 * * *' WHERE name = 'income'")
    sync(refresh)

    assert listed(refresh) == [(None, "waiting", "0 7 * * *", False)]
    assert ticked(refresh) == [WALK]  # a scheduler plans it
    refresh.advance(60)
    refresh.begin_walk("income")
    assert [walk(refresh), walk(refresh)] == ["walking", "walked"]
    assert [run[1:3] for run in runs(refresh)] == [("failed", 1000), ("succeeded", KEYS)]


def test_nothing_is_written_where_nothing_differs(refresh: RefreshSession) -> None:
    """The due check asks once a second."""
    prepare(refresh)
    version = "SELECT xmin::text, due_at FROM livewell.schedule WHERE name = %s"
    before = refresh.rows(version, WALK)
    sync(refresh)

    assert refresh.rows(version, WALK) == before


def test_a_type_that_cannot_have_a_schedule_stops_no_other(refresh: RefreshSession) -> None:
    """It is warned of; a schedule that an app declared under such a name is left alone."""
    prepare(refresh)
    refresh.rows("DELETE FROM livewell.warning")
    refresh.type("bad", strategy="scheduled", cron="0 " * 60, zone="UTC")
    refresh.type("good", strategy="scheduled", cron="0 6 * * *", zone="UTC")
    refresh.type("taken", strategy="scheduled", cron="0 6 * * *", zone="UTC")
    refresh.rows(
        "SELECT livewell.declare_schedule('walk.taken', 'interval', NULL, NULL, '1 hour', NULL, 'skip', '1 "
        "hour', false, false)"
    )
    sync(refresh)

    names = "SELECT name, kind FROM livewell.schedule ORDER BY name"
    assert refresh.rows(names) == [("walk.good", "cron"), (WALK, "cron"), ("walk.taken", "interval")]
    assert refresh.rows("SELECT place, what FROM livewell.warning") == [
        ("refresh.schedule", "a scheduled type has no schedule")
    ]


def test_a_walk_reserves_the_measured_size(refresh: RefreshSession) -> None:
    """R16, R11: 80 % of a million bytes are eleven answers of 70,000.

    Seen failing on 0.5.0: a page of 1,000 by the 700 of the file.
    """
    prepare(refresh)
    refresh.begin_walk("income")
    refresh.limiter("api", budget_units=1_000_000, budget_unit="bytes", budget_seconds=86400)
    refresh.rows(
        "INSERT INTO livewell.limiter_estimate (limiter, kind, units) VALUES ('api', 'livewell.refresh:income', 70000)"
    )
    refresh.value("SELECT answer FROM livewell.dispatch_scheduled(%s, %s, 'income', NULL)", SINGLETON, refresh.hold())

    assert refresh.rows("SELECT units, count(*) FROM livewell.job GROUP BY units") == [(70_000, 11)]


# -- workers of 0.6.0: their due check plans and begins walks itself -----------------------------


def old_turn(refresh: RefreshSession) -> str | None:
    """What the due check of 0.6.0 does with a type, as in its dispatcher._walk.

    None: it leaves it alone.
    """
    next_slot = refresh.now() + timedelta(days=1)
    for name, cron, zone, due, paused, shown, now in refresh.rows(
        "SELECT data_type, cron, zone, due_at, paused, shown, now FROM livewell.list_walks()"
    ):
        waiting = paused or (due is not None and due > now)
        if not shown and due is not None:
            refresh.rows("SELECT livewell.show_walk(%s, '1 day')", name)
        if waiting:
            return None if shown else "shown"
        if due is None:
            refresh.rows("SELECT livewell.plan_cron(%s, %s, %s, %s)", name, cron, zone, next_slot)
            return "planned"
        answer: str = refresh.value(
            "SELECT answer FROM livewell.dispatch_scheduled(%s, %s, %s, %s)",
            SINGLETON,
            refresh.hold(),
            name,
            next_slot,
        )
        refresh.rows("DELETE FROM livewell.job")
        return answer
    return None


def test_a_fleet_of_old_workers_walks_on(refresh: RefreshSession) -> None:
    """Declared, planned, begun, walked to its end and planned for the next slot, by what 0.6.0 calls."""
    prepare(refresh)
    refresh.rows("DELETE FROM livewell.schedule")
    assert [old_turn(refresh) for _ in range(3)] == ["shown", "planned", None]
    assert listed(refresh) == [(86400, "waiting", "0 6 * * *", False)]
    refresh.advance(86400)

    assert [old_turn(refresh) for _ in range(3)] == ["walking", "walked", None]
    assert runs(refresh) == [(WALK, "succeeded", KEYS, False, False)]
    assert listed(refresh) == [(86400, "waiting", "0 6 * * *", False)]


def test_old_workers_walk_when_asked_and_stop_when_paused(refresh: RefreshSession) -> None:
    """And go on with a walk that a newer scheduler has begun."""
    prepare(refresh)
    refresh.rows("SELECT livewell.ask_run(%s)", WALK)
    assert [old_turn(refresh) for _ in range(3)] == ["walking", "walked", None]
    assert runs(refresh) == [(WALK, "succeeded", KEYS, False, True)]

    refresh.advance(60)
    refresh.begin_walk("income")
    refresh.rows("SELECT livewell.pause_type('income', true)")
    assert [old_turn(refresh) for _ in range(2)] == ["shown", None]
    refresh.rows("SELECT livewell.pause_type('income', false)")
    assert [old_turn(refresh) for _ in range(3)] == ["walking", "walked", None]


def test_listing_walks_writes_nothing(refresh: RefreshSession) -> None:
    """A function that lists may run on a session that cannot write."""
    prepare(refresh)
    refresh.begin_walk("income")
    refresh.rows("UPDATE livewell.data_type SET strategy = 'on_demand', cron = NULL, zone = NULL WHERE name = 'income'")
    with refresh.connection.transaction():
        refresh.rows("SET TRANSACTION READ ONLY")
        assert refresh.rows("SELECT * FROM livewell.list_walks()") == []
