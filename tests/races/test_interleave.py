"""The harness itself: it runs every order, notices a lock, goes on afterwards, and reports a deadlock."""

from __future__ import annotations

import psycopg

from tests.support.interleave import Given, Outcome, orders, session, violations


def table(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE thing (id int PRIMARY KEY, n int); INSERT INTO thing VALUES (1, 0), (2, 0)")


def nothing() -> Given:
    return {}


def test_every_order_is_tried_once() -> None:
    """Two sessions with two and one turns can be merged in three ways."""
    assert list(orders([2, 1])) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]


async def test_a_blocked_session_is_noticed_and_goes_on(livewell_dsn: str) -> None:
    """Whoever comes second waits for the row; both updates are made."""
    table(livewell_dsn)
    seen: list[tuple[str, set[str]]] = []

    def judge(outcome: Outcome) -> str | None:
        seen.append((outcome.order, outcome.waited))
        with psycopg.connect(livewell_dsn) as connection:
            row = connection.execute("SELECT n FROM thing WHERE id = 1").fetchone()
        return None if row == (2 * len(seen),) and not outcome.errors else f"{row} {outcome.errors}"

    update = "UPDATE thing SET n = n + 1 WHERE id = 1"
    found = await violations(livewell_dsn, [session("a", update), session("b", update)], prepare=nothing, judge=judge)

    assert found == []
    assert dict(seen) == {
        "a a b b": set(),
        "a b a b": {"b"},
        "a b b a": {"b"},
        "b a a b": {"a"},
        "b a b a": {"a"},
        "b b a a": set(),
    }


async def test_a_deadlock_is_reported(livewell_dsn: str) -> None:
    """Two sessions that lock two rows in opposite orders: one of them gets 40P01."""
    table(livewell_dsn)
    one, two = (f"UPDATE thing SET n = n + 1 WHERE id = {n}" for n in (1, 2))

    found = await violations(
        livewell_dsn,
        [session("a", one, two), session("b", two, one)],
        prepare=nothing,
        judge=lambda outcome: ",".join(outcome.errors.values()) or None,
    )

    assert {line.split("] ")[1] for line in found} == {"40P01"}
