"""The storer: many results in one transaction; the bad one fails alone.

Conflicts and unknown outcomes cost nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from livewell import Settings
from livewell.db import Database
from livewell.errors import DatabaseConflict, DatabaseUnavailable
from livewell.refresh.result import Value
from livewell.refresh.store.entry import Entry
from livewell.refresh.store.storer import Stored, Storer
from tests.support.queue_sql import LimitedClaim
from tests.support.refresh_sql import TYPE
from tests.support.store_sql import KIND, QUEUE, StoreSession, ago


@pytest.fixture
def session(livewell_dsn: str) -> Iterator[StoreSession]:
    """One type with its table, in a database of the test's own."""
    with StoreSession(livewell_dsn) as opened:
        opened.reset()
        yield opened


@pytest.fixture
async def storer(livewell_dsn: str, livewell_settings: Settings) -> AsyncIterator[Storer]:
    """A storer that keeps no time and nudges nobody."""
    database = Database(livewell_dsn, livewell_settings)
    await database.open()
    told: list[datetime] = []
    opened = Storer(database, batch_max=50, on_time=told.append, on_changed=lambda: None)
    yield opened
    await opened.close()
    await database.close()


def claims(session: StoreSession, n: int) -> dict[str, LimitedClaim]:
    session.ask(*(f"K{place}" for place in range(n)))
    return session.take(session.register(queues=[QUEUE]), n)


def entry(session: StoreSession, claim: LimitedClaim, key: str, price: float) -> Entry:
    return Entry(
        id=claim.id,
        fence=claim.fence,
        call=claim.call,
        queue=claim.queue,
        kind=KIND,
        credential=claim.credential,
        type=TYPE,
        key=key,
        version=1,
        result=Value([{"price": price}], ago(session, 5), None, bytes(32), ()),
        sent=time.monotonic(),
        used=700,
        wire_bytes=700,
        decoded_bytes=600,
    )


async def test_what_comes_while_a_flush_is_under_way_shares_the_next(session: StoreSession, storer: Storer) -> None:
    """Forty calls, a handful of transactions."""
    held = claims(session, 40)
    answers = await asyncio.gather(
        *(storer.store(claim.worker, [entry(session, claim, key, 1)]) for key, claim in held.items())
    )
    assert answers == [[Stored("stored", None)]] * 40
    assert storer.flushes < 10


async def test_the_bad_one_fails_alone(session: StoreSession, storer: Storer) -> None:
    """The table refuses one value of ten (class 23).

    Nine are stored, the tenth is a failure that says so, and its job is tried again.
    """
    held = claims(session, 10)
    answers = await asyncio.gather(
        *(
            storer.store(claim.worker, [entry(session, claim, key, -1 if key == "K3" else 1)])
            for key, claim in held.items()
        )
    )
    by_key = dict(zip(held, answers, strict=True))
    assert by_key.pop("K3") == [Stored("rejected", "out_of_bounds")]
    assert list(by_key.values()) == [[Stored("stored", None)]] * 9
    assert session.value("SELECT count(*) FROM livewell_data.quote") == 9
    assert "23514" in session.ledger("K3", "error")[0]
    assert session.state(held["K3"].id) == "delayed"


async def test_two_results_for_one_key_are_stored_one_after_the_other(session: StoreSession, storer: Storer) -> None:
    """The second is compared with the first, not with what was there before."""
    held = claims(session, 1)
    worker = held["K0"].worker
    session.declare("refresh.api.other", attempts=4, limiter="api")
    session.ask("K0", queue="refresh.api.other")
    [second] = session.claim_limited(worker, queue="refresh.api.other", batches={"livewell.refresh": 50})
    first = entry(session, held["K0"], "K0", 1)
    answers = await asyncio.gather(
        storer.store(worker, [first]), storer.store(worker, [replace(first, id=second.id, fence=second.fence)])
    )
    assert list(answers) == [[Stored("stored", None)], [Stored("unchanged", None)]]


async def test_a_conflict_is_sent_again_and_is_no_attempt(
    session: StoreSession, storer: Storer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R17: 40P01 twice, then it is stored, in the first attempt."""
    held = claims(session, 1)
    real, left = storer._link.call, 2

    async def call(query: str, params: Any = ()) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise DatabaseConflict("deadlock detected", sqlstate="40P01")
        return await real(query, params)

    monkeypatch.setattr(storer._link, "call", call)
    assert await storer.store(held["K0"].worker, [entry(session, held["K0"], "K0", 1)]) == [Stored("stored", None)]
    assert session.value("SELECT attempt FROM livewell.job_history") == 1


async def test_a_result_that_waited_out_an_outage_has_aged(
    session: StoreSession, storer: Storer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as old as its call, not as its last try.

    Seen to fail (a value shown fresh that was not) when the age was taken once.
    """
    held = claims(session, 1)
    real, clock = storer._link.call, [1000.0]

    async def call(query: str, params: Any = ()) -> Any:
        if clock[0] < 1040:
            clock[0] += 40
            raise DatabaseUnavailable("the server is away")
        return await real(query, params)

    monkeypatch.setattr(storer._link, "call", call)
    monkeypatch.setattr("livewell.refresh.store.storer.time", SimpleNamespace(monotonic=lambda: clock[0]))
    await storer.store(held["K0"].worker, [replace(entry(session, held["K0"], "K0", 1), sent=998.0)])
    age = session.value("SELECT extract(epoch FROM livewell.now() - checked_at) FROM livewell.ledger")
    assert 42 <= float(age) < 60


async def test_an_unanswered_commit_is_fenced_the_second_time(
    session: StoreSession, storer: Storer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did commit; sent again it changes nothing, and the bytes are booked once."""
    held = claims(session, 1)
    real, first = storer._link.call, True

    async def call(query: str, params: Any = ()) -> Any:
        nonlocal first
        rows = await real(query, params)
        if first:
            first = False
            raise DatabaseUnavailable("no answer")
        return rows

    monkeypatch.setattr(storer._link, "call", call)
    assert await storer.store(held["K0"].worker, [entry(session, held["K0"], "K0", 1)]) == [Stored("fenced", None)]
    assert session.ledger("K0", "version", "status_version") == (1, 1)
    assert session.value("SELECT sum(units) FROM livewell.limiter_usage") == 700


async def test_a_database_that_stays_away_is_said_to_whoever_waits(
    session: StoreSession, storer: Storer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler hands its job back; nothing waits for ever."""
    held = claims(session, 1)

    async def call(query: str, params: Any = ()) -> Any:
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(storer._link, "call", call)
    with pytest.raises(DatabaseUnavailable):
        await storer.store(held["K0"].worker, [entry(session, held["K0"], "K0", 1)])
