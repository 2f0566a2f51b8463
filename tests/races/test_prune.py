"""prune_refresh beside whoever comes for a key just then (R6, X5).

A key that is watched or demanded never loses its ledger row. Every race has a variant broken on
purpose that is seen to fail.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.refresh_sql import RefreshSession
from tests.support.variants import GATE, Change, gate_before, variant

SUBSCRIBE = "SELECT answer FROM livewell.subscribe(%(session)s, 'ann', '{quote}', '{AAPL}')"
READ = "SELECT demand FROM livewell.read_through('quote', 'AAPL')"
SET_TTL = "SELECT livewell.set_ttl('quote', 'AAPL', interval '5 seconds')"
PRUNE = "SELECT livewell.prune_refresh(30, 100)"
CLOSE_GATE = f"SELECT pg_advisory_xact_lock({GATE})"

LOOK_AGAIN = "DELETE FROM livewell.ledger l USING unnest"
NO_SECOND_LOOK: Change = (
    "AND l.key = g.key AND l.version = 0 AND coalesce(greatest(l.demanded_at, l.wanted_at) < v_before, true)\n      AND NOT EXISTS (SELECT FROM livewell.subscription b WHERE b.data_type = g.name AND b.key = g.key)",
    "AND l.key = g.key",
)
WAITS: Change = ("FOR UPDATE OF l SKIP LOCKED", "FOR UPDATE OF l")
NO_LOCK: Change = (" FOR UPDATE OF l SKIP LOCKED", "")
WEAKER_LOCK: Change = ("FOR UPDATE OF l SKIP LOCKED", "FOR NO KEY UPDATE OF l SKIP LOCKED")


async def prune_and(refresh: RefreshSession, dsn: str, comes: str, *changes: Change) -> list[str]:
    """Nobody wanted the key for two days; at this moment somebody does.

    A gate makes the prune stop between its lock and its look as well.
    """

    def prepare() -> Given:
        refresh.reset()
        refresh.keep("AAPL", due_at=refresh.now(), demand_class=1)  # a subscriber writes nothing to such a row
        refresh.rows("UPDATE livewell.ledger SET status_at = livewell.now() - interval '2 days'")
        return {"session": refresh.open("ann")}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        rows = refresh.rows("SELECT due_at FROM livewell.ledger")
        if comes == SET_TTL:
            kept = refresh.column("SELECT ttl_override FROM livewell.ledger")
            return None if kept == [timedelta(seconds=5)] else f"the time to live was set, but its ledger row is {kept}"
        wanted = refresh.viewers() or refresh.jobs()
        if not wanted:
            return f"nobody watches or demands it, but {outcome.answer('comes')}"
        return None if rows and rows[0][0] is not None else f"{outcome.answer('comes')}, but its ledger row is {rows}"

    with variant(dsn, "prune_refresh", *changes, gate_before(LOOK_AGAIN)):
        return await violations(
            dsn,
            [session("gate", CLOSE_GATE), session("comes", comes), session("prune", PRUNE)],
            prepare=prepare,
            judge=judge,
        )


@pytest.mark.parametrize("comes", [SUBSCRIBE, READ, SET_TTL], ids=["subscribe", "read", "time to live"])
async def test_what_is_wanted_keeps_its_ledger_row(refresh: RefreshSession, queue_dsn: str, comes: str) -> None:
    """In each of 90 orders.

    The time to live was seen lost: set_ttl found the row, waited for the prune, and then wrote to
    nothing.
    """
    assert await prune_and(refresh, queue_dsn, comes) == []


@pytest.mark.parametrize(
    ("comes", "changes"),
    [
        (SUBSCRIBE, (NO_LOCK,)),
        (SUBSCRIBE, (WEAKER_LOCK,)),
        (SUBSCRIBE, (WAITS, NO_SECOND_LOOK)),
        (READ, (NO_LOCK, NO_SECOND_LOOK)),
    ],
    ids=["subscribe, no lock", "subscribe, a lock it does not meet", "subscribe, no second look", "read, neither"],
)
async def test_without_lock_and_second_look_it_loses_it(
    refresh: RefreshSession, queue_dsn: str, comes: str, changes: tuple[Change, ...]
) -> None:
    """Broken on purpose."""
    found = await prune_and(refresh, queue_dsn, comes, *changes)

    assert [line for line in found if "its ledger row is" in line] != []
