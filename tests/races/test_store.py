"""Storing under races: a stored value is never replaced by an older observation (GU1).

Nor by a worker that lost its job; and nothing is half stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import LimitedClaim
from tests.support.store_sql import KIND, QUEUE, StoreSession, ago, value
from tests.support.variants import GATE, OPEN, SHUT, Change, variant

STORE = "SELECT answer, reason FROM livewell.store_refreshes(%({worker})s, %({results})s::jsonb)"
SECOND = "refresh.api.other"

LEDGER_LOCK = "ORDER BY l.data_type, l.key FOR NO KEY UPDATE OF l;"
NO_LEDGER_LOCK: Change = (LEDGER_LOCK, "ORDER BY l.data_type, l.key;")
NO_FENCE: Change = (
    "WHERE j.fence = (e ->> 'fence')::bigint AND j.worker = p_worker",
    "",
)
NO_SECOND_LOOK: Change = ("u.rows IS NOT NULL AND d.version IS DISTINCT FROM u.version", "false")


@pytest.fixture
def store(queue_dsn: str) -> Iterator[StoreSession]:
    """One type with its table, and a second queue of its upstream."""
    with StoreSession(queue_dsn) as opened:
        opened.reset()
        yield opened
        opened.reset()


def sent(*results: dict[str, Any]) -> str:
    return json.dumps([{name: item for name, item in one.items() if name != "worker"} for one in results], default=str)


def two_claims(store: StoreSession, *keys: str) -> tuple[dict[str, LimitedClaim], dict[str, LimitedClaim]]:
    """The same keys claimed twice, as when a type moves to another pool while its jobs wait in the old one."""
    store.ask(*keys)
    first = store.take(store.register(queues=[QUEUE]))
    store.declare(SECOND, attempts=4, limiter="api")
    store.ask(*keys, queue=SECOND)
    rows = store.claim_limited(store.register(queues=[SECOND]), queue=SECOND, batches={KIND: 50})
    names: dict[int, str] = dict(store.rows("SELECT id, payload ->> 'key' FROM livewell.job"))
    return first, {names[claim.id]: claim for claim in rows}


# -- newer and older -----------------------------------------------------------------------------


async def newer_and_older(store: StoreSession, queue_dsn: str) -> list[str]:
    """Two workers bring answers about one key, one from a lagging replica."""

    def prepare() -> Given:
        store.reset()
        first, second = two_claims(store, "AAPL")
        newer = value(first["AAPL"], 2, ago(store, 10))
        older = value(second["AAPL"], 1, ago(store, 600))
        return {"n": first["AAPL"].worker, "newer": sent(newer), "o": second["AAPL"].worker, "older": sent(older)}

    def judge(outcome: Outcome) -> str | None:
        price = store.price()
        return None if price == 2 and not outcome.errors else f"{price} is stored; {outcome.errors} {outcome.answers}"

    return await violations(
        queue_dsn,
        [
            session("newer", STORE.format(worker="n", results="newer")),
            session("older", STORE.format(worker="o", results="older")),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_the_newer_value_stands_in_every_order(store: StoreSession, queue_dsn: str) -> None:
    """GU1, F-D10: older never replaces newer, whoever commits last."""
    assert await newer_and_older(store, queue_dsn) == []


async def test_without_the_ledger_lock_the_older_value_wins(store: StoreSession, queue_dsn: str) -> None:
    """Seen to fail: judged before the lock, the later commit overwrites the newer value."""
    with variant(queue_dsn, "own_results", NO_LEDGER_LOCK):
        assert await newer_and_older(store, queue_dsn) != []


# -- zombies -------------------------------------------------------------------------------------


async def zombie_and_owner(store: StoreSession, queue_dsn: str) -> list[str]:
    """A worker slept past its lease.

    Its job was recovered and claimed by another, and both bring a value without a source time.
    """

    def prepare() -> Given:
        store.reset()
        store.rows("UPDATE livewell.data_type SET has_source_time = false")
        zombie = store.claimed()
        store.expire(zombie.worker)
        store.recover(store.steady())
        owner = store.take(store.register(queues=[QUEUE]))
        if not owner:  # a job that was lost before runs on an empty worker only
            worker = store.register(queues=[QUEUE])
            [claim] = store.claim_limited(worker, queue=QUEUE, empty=True, batches={KIND: 50})
            owner = {"AAPL": claim}
        return {
            "z": zombie.worker,
            "old": sent(value(zombie, 1, None)),
            "o": owner["AAPL"].worker,
            "new": sent(value(owner["AAPL"], 2, None)),
        }

    def judge(outcome: Outcome) -> str | None:
        right = outcome.answer("zombie") == [("fenced", None)] and outcome.answer("owner") == [("stored", None)]
        return (
            None if right and store.price() == 2 else f"{outcome.answers} {outcome.errors}, {store.price()} is stored"
        )

    return await violations(
        queue_dsn,
        [
            session("zombie", STORE.format(worker="z", results="old")),
            session("owner", STORE.format(worker="o", results="new")),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_a_zombie_stores_nothing(store: StoreSession, queue_dsn: str) -> None:
    """F-A2 for values: fenced in every order, and the owner's value stands."""
    assert await zombie_and_owner(store, queue_dsn) == []


async def test_without_the_fence_the_zombie_stores(store: StoreSession, queue_dsn: str) -> None:
    """Seen to fail: by the job's id alone the zombie ends the owner's job."""
    with variant(queue_dsn, "own_results", NO_FENCE):
        assert await zombie_and_owner(store, queue_dsn) != []


# -- a type is changed under the job -------------------------------------------------------------


async def changed_type(store: StoreSession, queue_dsn: str) -> list[str]:
    """A column is added while a value of the version before is stored.

    Under the table's lock the change sees what was stored before it; what is stored after it is of
    the old version.
    """

    def prepare() -> Given:
        store.reset()
        claim = store.claimed()
        return {"w": claim.worker, "results": sent(value(claim, 1, ago(store, 5)))}

    def judge(outcome: Outcome) -> str | None:
        seen = outcome.answer("change", 2)
        stored = outcome.answer("store") == [("stored", None)] and "store" not in outcome.errors
        if stored and seen == [(0,)]:
            return "a value of version 1 was stored after version 2 was applied"
        return None if set(outcome.errors.values()) <= {"40001"} else f"{outcome.errors}"

    change = session(
        "change",
        "UPDATE livewell.data_type SET version = 2 WHERE name = 'quote'",
        "ALTER TABLE livewell_data.quote ADD COLUMN extra text",
        "SELECT count(*)::integer FROM livewell_data.quote",
    )
    return await violations(
        queue_dsn, [change, session("store", STORE.format(worker="w", results="results"))], prepare=prepare, judge=judge
    )


async def test_a_type_that_is_applied_while_we_store_is_never_mixed(store: StoreSession, queue_dsn: str) -> None:
    """Stored before the change, or not at all: then the next try ends as type_changed."""
    assert await changed_type(store, queue_dsn) == []


async def test_without_the_second_look_an_old_value_comes_after_the_change(store: StoreSession, queue_dsn: str) -> None:
    """Seen to fail: the version read before waiting for the table is the old one."""
    with variant(queue_dsn, "store_values", NO_SECOND_LOOK):
        assert await changed_type(store, queue_dsn) != []


# -- two storers, and a death in between ---------------------------------------------------------


def test_two_storers_with_the_same_keys_never_deadlock(store: StoreSession, queue_dsn: str) -> None:
    """Crossed orders of the same keys, side by side, again and again."""
    keys = [f"K{n}" for n in range(20)]
    for _ in range(10):
        store.reset()
        first, second = two_claims(store, *keys)

        def flush(claims: dict[str, LimitedClaim], order: list[str], price: int) -> list[str]:
            with StoreSession(queue_dsn) as own:
                return [
                    one.answer
                    for one in own.store(*(value(claims[key], price, ago(own, 9 - price), key) for key in order))
                ]

        with ThreadPoolExecutor(2) as pool:
            forwards = pool.submit(flush, first, keys, 1)
            backwards = pool.submit(flush, second, keys[::-1], 2)
            assert set(backwards.result()) == {"stored"}
            assert set(forwards.result()) <= {"stored", "older"}
        assert store.value("SELECT count(*) FROM livewell_data.quote WHERE price = 2") == 20


def test_a_storer_that_dies_before_the_end_leaves_nothing(store: StoreSession, queue_dsn: str) -> None:
    """Value, ledger, bytes and job commit together.

    Killed after the value was written and before the job was ended, there is no trace of it.
    """
    claim = store.claimed()
    before = store.rows("SELECT * FROM livewell.ledger")
    gate: Change = (
        "PERFORM livewell.finish_jobs(",
        f"PERFORM pg_advisory_xact_lock({GATE}); PERFORM livewell.finish_jobs(",
    )
    with variant(queue_dsn, "store_refreshes", gate), StoreSession(queue_dsn) as doomed, ThreadPoolExecutor(1) as pool:
        store.rows(SHUT)
        flight = pool.submit(doomed.store, value(claim, 1, ago(store, 5)))
        pid = doomed.connection.info.backend_pid
        while not store.value(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = %s AND locktype = 'advisory' AND NOT granted)", pid
        ):
            assert not flight.done()
        store.rows("SELECT pg_terminate_backend(%s)", pid)
        with pytest.raises(psycopg.OperationalError):
            flight.result()
        store.rows(OPEN)
    assert store.price() is None
    assert store.rows("SELECT * FROM livewell.ledger") == before
    assert store.counts() == {}
    assert store.value("SELECT count(*) FROM livewell.usage_settled") == 0
    assert store.state(claim.id) == "running"
