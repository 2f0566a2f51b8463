"""The loop of a worker that does acts on many: begun by a nudge, ended, and given up when it cannot be done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.operations import bulk_acts
from livewell.operations.bulk_acts import BulkActLoop
from livewell.queue.bulk_acts import BulkAction, BulkActs
from livewell.queue.job_filter import JobFilter
from livewell.settings import Settings

LETTERS = """
INSERT INTO livewell.dead_job (id, queue, kind, reason, attempt, max_attempts, lost, lane, priority, created_at, died_at, payload)
SELECT n, 'mail', 'welcome', 'attempts', 5, 5, 0, 1, 0, now(), now(), '{}' FROM generate_series(1, 500) n
"""


@pytest.fixture
async def database(livewell_dsn: str, livewell_settings: Settings) -> AsyncIterator[Database]:
    """With 500 dead letters."""
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute("INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now())")
        admin.execute(LETTERS)
    opened = Database(livewell_dsn, livewell_settings)
    await opened.open()
    yield opened
    await opened.close()


async def ended(acts: BulkActs, number: int) -> dict[str, object]:
    """The act, when it has ended."""
    for _ in range(1000):
        record = await acts.show(number)
        if record["state"] != "running":
            return record
        await asyncio.sleep(0.02)
    raise AssertionError("it never ended")


async def postponed(acts: BulkActs, number: int) -> dict[str, object]:
    """The act, when a page of it was broken off."""
    for _ in range(1000):
        record = await acts.show(number)
        if record["broken_off"]:
            return record
        await asyncio.sleep(0.02)
    raise AssertionError("it was never postponed")


async def test_a_worker_begins_at_once_and_does_all_of_it(database: Database) -> None:
    """The loop would look again in an hour: the nudge woke it."""
    nudger = Nudger(database)
    loop = asyncio.create_task(BulkActLoop(database, nudger, poll_seconds=3600).run())
    await asyncio.sleep(0.1)
    acts = BulkActs(database, nudger)
    begun = await acts.begin(BulkAction.REDRIVE, JobFilter(queue="mail"), expected=500)
    record = await ended(acts, begun.id)

    assert (record["state"], record["done"], record["skipped"]) == ("done", 500, 0)
    loop.cancel()


async def test_an_act_that_cannot_be_done_is_given_up_and_says_why(
    database: Database, livewell_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few tries; the others go on."""
    monkeypatch.setattr(bulk_acts, "_AGAIN_SECONDS", 0.05)
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute("ALTER TABLE livewell.job ADD CONSTRAINT refuses CHECK (id <> 7) NOT VALID")
    nudger = Nudger(database)
    loop = asyncio.create_task(BulkActLoop(database, nudger, poll_seconds=0.05).run())
    acts = BulkActs(database, nudger)
    begun = await acts.begin(BulkAction.REDRIVE, JobFilter(), expected=500)
    record = await ended(acts, begun.id)
    other = await ended(acts, (await acts.begin(BulkAction.DISCARD, JobFilter())).id)

    assert record["state"] == "failed"
    assert "refuses" in str(record["error"])
    assert other["state"] == "done"
    loop.cancel()


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"statement_timeout_seconds": 0.3}, "statement timeout"),
        ({"call_timeout_seconds": 0.7}, "our own deadline"),
    ],
)
async def test_an_act_that_cannot_step_never_blocks_the_others(
    database: Database, livewell_dsn: str, livewell_settings: Settings, bounds: dict[str, float], words: str
) -> None:
    """Somebody holds its key and does not commit, so each of its pages ends with a timeout.

    After a deadline of our own the server is still at the page: it is postponed when that is over.

    Seen failing: the timeout rolled back its place in the line, so it was first again for ever, and
    the act behind it was never begun.
    """
    taken = (
        "INSERT INTO livewell.job (id, queue, kind, payload, state, rank, max_attempts, run_at, created_at, unique_key) "
        "VALUES (100000, 'mail', 'welcome', '{}', 'ready', 0, 5, now(), now(), 'k')"
    )
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute("UPDATE livewell.dead_job SET unique_key = 'k' WHERE id = 7")
    slow = Database(livewell_dsn, livewell_settings.model_copy(update=bounds))
    await slow.open()
    nudger = Nudger(database)
    acts = BulkActs(database, nudger)
    with psycopg.connect(livewell_dsn) as holder:
        holder.execute(taken)
        stuck = await acts.begin(BulkAction.REDRIVE, JobFilter(key="k"))
        other = await acts.begin(BulkAction.DISCARD, JobFilter(reason="attempts"))
        loop = asyncio.create_task(BulkActLoop(slow, nudger, poll_seconds=0.05).run())
        record = await ended(acts, other.id)
        waits = await postponed(acts, stuck.id)
        holder.rollback()
    loop.cancel()
    await slow.close()

    assert record["state"] == "done"
    assert (waits["state"], waits["done"]) == ("running", 0)
    assert words in str(waits["error"])
