"""Two copies of one event at once: the consumer sees one first time, also on both sides of midnight.

The day is part of the inbox's key, as partitions demand. So the key alone does not keep two copies
apart that arrive on two days.
"""

from __future__ import annotations

import pytest

from livewell.db.scratch import TestClock
from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

SEE = "SELECT livewell.see_event('billing', 'shop-1')"
MIDNIGHT = session("midnight", "UPDATE livewell_test.clock SET ahead = interval '2 seconds'", transaction=False)
BEFORE_MIDNIGHT = """
UPDATE livewell_test.clock SET ahead = '0',
    frozen_at = (date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC' - interval '1 second'
"""
LOCK = r"""PERFORM pg_catalog.pg_advisory_xact_lock(
        hashtextextended(p_consumer || E'\x1f' || p_event_id, 7091318)
    );"""


async def races(dsn: str, *steps: str) -> tuple[list[str], set[str]]:
    """Every order of two consumers and midnight; what went wrong, and the days that were used."""
    days: set[str] = set()
    place = steps.index(SEE)
    with QueueSession(dsn) as admin:

        def prepare() -> Given:
            admin.rows("TRUNCATE livewell.inbox")
            admin.rows(BEFORE_MIDNIGHT)
            return {}

        def judged(outcome: Outcome) -> str | None:
            days.update(admin.column("SELECT DISTINCT received_at::date::text FROM livewell.inbox"))
            firsts = [
                name for name in ("a", "b") if name not in outcome.errors and outcome.answer(name, place) == [(True,)]
            ]
            return None if len(firsts) == 1 else f"first for {firsts}, errors {outcome.errors}"

        found = await violations(
            dsn, [session("a", *steps), MIDNIGHT, session("b", *steps)], prepare=prepare, judge=judged
        )
    return found, days


async def test_of_two_copies_on_two_days_one_is_the_first(livewell_dsn: str, livewell_clock: TestClock) -> None:
    """In every order of two transactions and the turn of the day."""
    found, days = await races(livewell_dsn, SEE)
    assert found == []
    assert len(days) == 2


async def test_without_the_lock_both_are_the_first(livewell_dsn: str, livewell_clock: TestClock) -> None:
    """Broken on purpose: the look and the key of each day alone."""
    with variant(livewell_dsn, "see_event", (LOCK, "")):
        found, _ = await races(livewell_dsn, SEE)
    assert any("first for ['a', 'b']" in line for line in found)


async def test_a_look_in_the_statement_of_the_lock_is_blind(livewell_dsn: str, livewell_clock: TestClock) -> None:
    """Broken on purpose: one statement has one snapshot, from before the wait."""
    look = "PERFORM FROM livewell.inbox i WHERE i.event_id = p_event_id AND i.consumer = p_consumer;"
    both = r"""PERFORM FROM pg_catalog.pg_advisory_xact_lock(
        hashtextextended(p_consumer || E'\x1f' || p_event_id, 7091318)) l, livewell.inbox i
        WHERE i.event_id = p_event_id AND i.consumer = p_consumer;"""
    with variant(livewell_dsn, "see_event", (LOCK, ""), (look, both)):
        found, _ = await races(livewell_dsn, SEE)
    assert any("first for ['a', 'b']" in line for line in found)


async def test_under_serializable_one_of_two_is_ended_instead(livewell_dsn: str, livewell_clock: TestClock) -> None:
    """Its look is blind, and Postgres notices; nothing is the first time twice."""
    found, _ = await races(livewell_dsn, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", SEE)
    assert [line for line in found if "first for ['a', 'b']" in line] == []


@pytest.mark.parametrize("broken", [False, True])
async def test_under_repeatable_read_a_blind_look_is_refused(
    livewell_dsn: str, livewell_clock: TestClock, *, broken: bool
) -> None:
    """Nobody would notice there: without the refusal both are the first."""
    steps = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", SEE)
    if not broken:
        found, _ = await races(livewell_dsn, *steps)
        assert [line for line in found if "first for []" not in line] == []
        return
    with variant(livewell_dsn, "see_event", ("'repeatable read'", "'none'")):
        found, _ = await races(livewell_dsn, *steps)
    assert any("first for ['a', 'b']" in line for line in found)
