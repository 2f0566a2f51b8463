"""Contract 3: periodic work never overlaps itself, on any number of machines.

A lease row with a fence; the work locks the row first, so a change of hands waits for it.

Broken once, and kept broken below: work that only looks at the fence, without the row's lock, goes
on while the next holder has begun.
"""

from __future__ import annotations

import asyncio

import pytest

from livewell.db.link import Link
from livewell.schedule.singleton import Held, HeldByOther, Singleton
from tests.support.interleave import Given, Outcome, session, violations
from tests.support.refresh_sql import RefreshSession
from tests.support.variants import variant

WORK = (
    "INSERT INTO livewell_test.log SELECT 'old', 'begin' WHERE livewell.hold_singleton('work', %(fence)s)",
    "INSERT INTO livewell_test.log SELECT 'old', 'end' WHERE EXISTS (SELECT FROM livewell_test.log WHERE who = 'old')",
)
NEXT = (
    "SELECT answer FROM livewell.acquire_singleton('work', 'new', NULL, interval '1 minute')",
    "INSERT INTO livewell_test.log SELECT 'new', 'begin' WHERE livewell.hold_singleton('work', %(fence)s::bigint + 1)",
)


async def overlaps(refresh: RefreshSession, dsn: str) -> list[str]:
    """Work under a term that is about to end, and the next holder.

    The log is in order of commit, so a begin inside another's work shows.
    """
    refresh.rows(
        "CREATE TABLE IF NOT EXISTS livewell_test.log (who text, what text, at timestamptz DEFAULT clock_timestamp())"
    )

    def prepare() -> Given:
        refresh.reset()
        refresh.rows("DELETE FROM livewell_test.log")
        fence = refresh.hold("work", lease=0.1)
        refresh.rows(
            "UPDATE livewell_test.clock SET frozen_at = (SELECT expires_at FROM livewell.singleton) - interval '1 ms'"
        )
        return {"fence": fence}

    def judge(outcome: Outcome) -> str | None:
        rows = refresh.rows("SELECT who, what FROM livewell_test.log ORDER BY at")
        works = [row for row in rows if row in (("old", "begin"), ("old", "end"))]
        if ("new", "begin") in rows and works and rows.index(("new", "begin")) < rows.index(works[-1]):
            return f"overlap: {rows}"
        return f"errors: {outcome.errors}" if outcome.errors else None

    expire = "UPDATE livewell_test.clock SET frozen_at = frozen_at + interval '1 second'"
    found = await violations(
        dsn,
        [session("old", *WORK), session("new", expire, *NEXT, transaction=False)],
        prepare=prepare,
        judge=judge,
    )
    refresh.rows("UPDATE livewell_test.clock SET frozen_at = NULL")
    return found


async def test_a_change_of_hands_waits_for_the_work(refresh: RefreshSession, queue_dsn: str) -> None:
    """In every order the new holder begins after the old one's last statement, or the old one does nothing."""
    assert await overlaps(refresh, queue_dsn) == []


async def test_work_that_only_looks_at_the_fence_overlaps(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "hold_singleton", (" FOR NO KEY UPDATE;", ";")):
        assert any("overlap" in line for line in await overlaps(refresh, queue_dsn))


@pytest.fixture
def links(queue_dsn: str) -> list[Link]:
    return [Link(queue_dsn, call_seconds=10, connect_seconds=10, prepare=True) for _ in range(2)]


async def test_a_process_stops_trusting_its_term_before_anybody_else_can_begin(
    refresh: RefreshSession, links: list[Link]
) -> None:
    """The first trusts its term for less than the lease.

    The second gets it after the lease, under a higher fence.
    """
    first, second = (
        Singleton(link, "work", holder=name, lease_seconds=0.5) for link, name in zip(links, "ab", strict=True)
    )
    try:
        held = await first.keep()
        assert isinstance(held, Held)
        other = await second.keep()
        assert isinstance(other, HeldByOther)
        assert (other.holder, other.wait_seconds <= 0.5) == ("a", True)
        taken: Held | HeldByOther = other
        while not isinstance(taken, Held):
            await asyncio.sleep(taken.wait_seconds)  # the lease itself, on the database's clock
            taken = await second.keep()
        assert first.fence is None
        assert taken.fence == held.fence + 1
        assert isinstance(await first.keep(), HeldByOther)
        assert await second.release()
        assert isinstance(await first.keep(), Held)
    finally:
        for link in links:
            await link.close()
