"""Contract 14: source timestamps are respected.

The store refuses what is older than what it has, whoever brings it and whenever.

Proven by breaking it: without the comparison of source times (the last test installs that) older
answers replace newer ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.support.fixtures import queue_dsn
from tests.support.store_sql import StoreSession, ago, value
from tests.support.variants import Change, variant

__all__ = ["queue_dsn"]

BLIND: Change = ("ELSIF v_source < p_ledger.source_at THEN", "ELSIF false THEN")
BLIND_LEDGER: Change = (
    (
        "greatest((p_result ->> 'source_at')::timestamp with time zone, CASE WHEN p_type.has_source_time THEN "
        "p_ledger.source_at END)"
    ),
    "(p_result ->> 'source_at')::timestamp with time zone",
)


@pytest.fixture
def store(queue_dsn: str) -> Iterator[StoreSession]:
    """One type with its table."""
    with StoreSession(queue_dsn) as session:
        session.reset()
        yield session
        session.reset()


def regressions(store: StoreSession, seed: int) -> int:
    """Answers about one key in a random order of their source times.

    How often the stored time went back.
    """
    picked = random.Random(seed)
    ages = [picked.randrange(1, 10_000) for _ in range(25)]
    back, newest = 0, None
    for place, seconds in enumerate(ages):
        store.store(value(store.claimed(), 1 + place, ago(store, seconds)))
        [at] = store.ledger("AAPL", "source_at")
        back += newest is not None and at < newest
        newest = at if newest is None else max(newest, at)
    return back


def test_the_stored_source_time_never_goes_back(store: StoreSession) -> None:
    """Twenty-five answers in random order.

    Only newer ones are stored, the others are counted as older.
    """
    seed = random.randrange(10**6)
    assert regressions(store, seed) == 0, f"seed {seed}"
    counts = store.counts()
    assert counts["older"] > 0, f"seed {seed}"
    assert counts["older"] + counts["stored"] == 25, f"seed {seed}: {counts}"


def test_without_the_comparison_it_does(store: StoreSession, queue_dsn: str) -> None:
    """The contract broken on purpose."""
    with variant(queue_dsn, "judge_refresh", BLIND), variant(queue_dsn, "move_ledger", BLIND_LEDGER):
        assert regressions(store, 7) > 0
