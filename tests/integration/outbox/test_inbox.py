"""app.inbox: the mark and the effects commit together, or neither is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from livewell import Livewell, Settings
from livewell.errors import InvalidOption
from livewell.testing import opened
from tests.integration.outbox.their_transaction import ASYNC, BLOCKING
from tests.support.queue_sql import QueueSession

KILLED = Path(__file__).parent / "killed_consumers.py"
EFFECTS = "SELECT event_id FROM effect ORDER BY event_id"


@pytest.fixture
def observer(livewell_dsn: str) -> Iterator[QueueSession]:
    with QueueSession(livewell_dsn) as session:
        session.rows("CREATE TABLE effect (event_id text NOT NULL)")
        yield session


async def test_effects_commit_with_the_mark_and_a_duplicate_is_told(
    livewell_settings: Settings, observer: QueueSession
) -> None:
    """Nothing of it is visible before the block ends."""
    app = Livewell(livewell_settings)
    async with opened(app, livewell_settings):
        async with app.inbox("e-1", consumer="billing") as first:
            assert first
            await first.tx.execute("INSERT INTO effect VALUES ('e-1')")
            assert observer.column(EFFECTS) == []
            assert observer.value("SELECT count(*) FROM livewell.inbox") == 0
        async with app.inbox("e-1", consumer="billing") as first:
            assert not first
        async with app.inbox("e-1", consumer="mail") as first:
            assert first
    assert observer.column(EFFECTS) == ["e-1"]


async def test_an_error_rolls_both_back(livewell_settings: Settings, observer: QueueSession) -> None:
    """The next delivery is the first."""
    app = Livewell(livewell_settings)
    async with opened(app, livewell_settings):
        with pytest.raises(ValueError, match="card declined"):
            async with app.inbox("e-1", consumer="billing") as first:
                await first.tx.execute("INSERT INTO effect VALUES ('e-1')")
                raise ValueError("card declined")
        assert observer.column(EFFECTS) == []
        async with app.inbox("e-1", consumer="billing") as first:
            assert first


async def test_with_tx_it_is_the_callers_transaction(livewell_settings: Settings, observer: QueueSession) -> None:
    """The mark goes with that transaction, and so does whatever else it did."""
    app = Livewell(livewell_settings)
    async with opened(app, livewell_settings):
        with pytest.raises(ValueError, match="later"):
            async with app.transaction() as tx:
                async with app.inbox("e-1", consumer="billing", tx=tx) as first:
                    assert first
                    assert first.tx is tx
                raise ValueError("later")
        async with app.transaction() as tx, app.inbox("e-1", consumer="billing", tx=tx) as first:
            assert first


@pytest.mark.parametrize("kind", ASYNC)
async def test_with_the_transaction_of_any_library(livewell_settings: Settings, livewell_dsn: str, kind: str) -> None:
    """As tx= of emit."""
    app = Livewell(livewell_settings)
    async with opened(app, livewell_settings):
        for expected in (True, False):
            async with ASYNC[kind](livewell_dsn) as tx, app.inbox("e-1", consumer="billing", tx=tx) as first:
                assert bool(first) is expected


@pytest.mark.parametrize("kind", BLOCKING)
def test_blocking_with_the_transaction_of_any_library(
    livewell_settings: Settings, livewell_dsn: str, kind: str
) -> None:
    """The same."""
    with Livewell(livewell_settings).sync as sync:
        for expected in (True, False):
            with BLOCKING[kind](livewell_dsn) as tx, sync.inbox("e-1", consumer="billing", tx=tx) as first:
                assert bool(first) is expected


def test_blocking_code_has_it_with_a_transaction_of_its_own(
    livewell_settings: Settings, observer: QueueSession
) -> None:
    """An error rolls both back, there too."""
    with Livewell(livewell_settings).sync as sync:
        with pytest.raises(ValueError, match="no"), sync.inbox("e-1", consumer="billing") as first:
            first.tx.execute("INSERT INTO effect VALUES ('e-1')")
            raise ValueError("no")
        for _ in range(2):
            with sync.inbox("e-1", consumer="billing") as first:
                if first:
                    first.tx.execute("INSERT INTO effect VALUES ('e-1')")
    assert observer.column(EFFECTS) == ["e-1"]


async def test_what_is_wrong_is_refused_in_words(livewell_settings: Settings, livewell_dsn: str) -> None:
    """A name that is too long, and a connection on which the mark would be committed at once."""
    app = Livewell(livewell_settings)
    async with opened(app, livewell_settings):
        with pytest.raises(InvalidOption, match=r"201 bytes \(1 to 200 are allowed\)"):
            async with app.inbox("e-1", consumer="c" * 201):
                pytest.fail("it was entered")
        async with await psycopg.AsyncConnection.connect(livewell_dsn, autocommit=True) as connection:
            with pytest.raises(InvalidOption, match="no transaction is open on it"):
                async with app.inbox("e-1", consumer="billing", tx=connection):
                    pytest.fail("it was entered")


def killed(dsn: str, *options: str) -> dict[str, Any]:
    """Two consumers at a time, killed with kill -9 between effect and acknowledgement."""
    done = subprocess.run(
        [sys.executable, KILLED, *options],
        env={**os.environ, "DATABASE_URL": dsn},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return dict(pair.split("=") for pair in done.stdout.split())


def test_the_effect_happens_once_though_consumers_are_killed(livewell_dsn: str, observer: QueueSession) -> None:
    """Every event is delivered several times, to two processes at once; each has one effect."""
    told = killed(livewell_dsn)
    assert int(told["killed"]) >= 8
    assert int(told["deliveries"]) > 2 * int(told["events"])
    assert observer.column(EFFECTS) == [f"shop-{n:02}" for n in range(int(told["events"]))]


def test_without_the_inbox_effects_are_repeated(livewell_dsn: str, observer: QueueSession) -> None:
    """Broken on purpose: a consumer that does not ask whether it is the first."""
    killed(livewell_dsn, "careless")
    effects = observer.column(EFFECTS)
    assert len(effects) > len(set(effects))
