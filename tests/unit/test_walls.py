"""What is heard while the database is away is kept, shrinks, and is told in order (G5)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from livewell.errors import DatabaseConflict, DatabaseError, DatabaseUnavailable
from livewell.limits import Limiter, Limits, Walls
from livewell.limits.walls import BandwidthWall, Heard, tell_all


class Calls:
    """A database that may be away, or refuse."""

    def __init__(self) -> None:
        self.told: list[Sequence[Any]] = []
        self.error: DatabaseError | None = None

    async def __call__(self, _query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        if self.error is not None:
            raise self.error
        self.told.append(params)
        return [(True,)]


async def test_a_silence_that_cannot_be_told_is_kept_until_it_is() -> None:
    """Seen to fail with an observe() that does not keep what it heard: nothing was pending."""
    calls, walls = Calls(), Walls()
    limiter = Limiter("api", Limits({}, ()), calls, walls)
    calls.error = DatabaseUnavailable("away")
    with pytest.raises(DatabaseUnavailable):
        await limiter.observe({"Retry-After": "30"})
    [kept] = walls.pending()
    with pytest.raises(DatabaseUnavailable):
        await tell_all(calls, walls.pending())
    calls.error = None
    await tell_all(calls, walls.pending())
    walls.told([kept])
    assert walls.pending() == ()
    [(name, credential, _, _, _, retry)] = calls.told
    assert (name, credential) == ("api", "")
    assert 29 < retry <= 30


async def test_a_silence_that_met_a_deadlock_is_told_again() -> None:
    """The database said "try again", not "never"; seen to fail: it was logged and forgotten."""
    calls = Calls()
    calls.error = DatabaseConflict("deadlock detected")
    with pytest.raises(DatabaseConflict):
        await tell_all(calls, [Heard("api", "", retry_seconds=30)])


async def test_what_is_told_at_once_is_not_kept() -> None:
    """The usual case: one statement, nothing left."""
    calls, walls = Calls(), Walls()
    assert await Limiter("api", Limits({}, ()), calls, walls).observe({"Retry-After": "30"})
    assert walls.pending() == ()


async def test_the_time_left_shrinks_while_it_waits() -> None:
    """Heard twenty seconds ago; a silence that is over is told as none."""
    calls, ago = Calls(), time.monotonic() - 20
    await tell_all(calls, [Heard("api", "", retry_seconds=30, heard=ago), Heard("api", "", retry_seconds=5, heard=ago)])
    assert [round(told[5]) for told in calls.told] == [10, 0]


def test_a_longer_silence_stands_whatever_is_heard_after_it() -> None:
    """Two answers of one credential are one thing to tell; others are not touched."""
    walls = Walls()
    walls.keep(Heard("api", "", limit=5, retry_seconds=30, heard=100.0))
    walls.keep(Heard("api", "", retry_seconds=2, heard=110.0))
    walls.keep(Heard("api", "spare", limit=9))
    first, second = walls.pending()
    assert isinstance(first, Heard)
    assert (first.limit, first.retry_seconds, first.heard) == (5, 20.0, 110.0)
    walls.told([first])
    assert walls.pending() == (second,)


def test_what_came_while_it_was_told_is_told_next() -> None:
    """Only what was really sent is forgotten."""
    walls = Walls()
    sent = walls.keep(Heard("api", "", retry_seconds=30))
    walls.keep(Heard("api", "", retry_seconds=60))
    walls.told([sent])
    [left] = walls.pending()
    assert isinstance(left, Heard)
    assert left.retry_seconds == 60


def test_only_what_asks_for_silence_stops_calls() -> None:
    """A limit that is stated with every answer does not."""
    walls = Walls()
    walls.keep(Heard("api", "", limit=5, remaining=4, reset_seconds=10))
    assert not walls.silent
    for silence in (
        Heard("api", "", retry_seconds=1),
        Heard("api", "", retry_at=1.0),
        Heard("api", "", remaining=0),
        BandwidthWall("q", "", 1),
    ):
        alone = Walls()
        alone.keep(silence)
        assert alone.silent


def test_what_is_kept_is_bounded() -> None:
    """The oldest goes first."""
    walls = Walls()
    for number in range(1200):
        walls.keep(BandwidthWall(f"queue{number}", "", 1))
    assert len(walls.pending()) == 1000


async def test_what_the_database_refuses_for_good_does_not_stop_the_worker() -> None:
    """Logged, and the next one is told."""
    calls = Calls()
    calls.error = DatabaseError("42883")
    await tell_all(calls, [BandwidthWall("q", "", 1)])
    assert calls.told == []
