"""What loops stand on: rests that a wake-up ends, turns that survive, warnings that are bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from livewell.errors import ConfigurationError, DatabaseUnavailable, LivewellError
from livewell.loops import WARNINGS_MAX, Waker, WarningBuffer, backoff_seconds, every, jittered, kind_of, surviving


async def test_a_wake_up_ends_a_rest() -> None:
    """It does not wait for its time."""
    waker = Waker()
    asyncio.get_running_loop().call_soon(waker.set)
    began = time.monotonic()
    await waker.rest(60)

    assert time.monotonic() - began < 10
    assert not waker.is_set()


async def test_many_wake_ups_before_a_rest_are_one() -> None:
    """The first rest ends at once, the second one does not."""
    waker = Waker()
    for _ in range(100):
        waker.set()
    await waker.rest(60)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await waker.rest(60)


async def test_a_rest_ends_by_itself() -> None:
    """And leaves no wake-up and no timer behind."""
    waker = Waker()
    await waker.rest(0.001)
    assert not waker.is_set()
    await waker.rest(0)
    await waker.rest(-1)
    assert not waker.is_set()


async def test_waiting_keeps_the_wake_up() -> None:
    """For a loop that clears it itself, when it looks."""
    waker = Waker()
    await waker.wait(0.001)
    assert waker.is_set()
    waker.clear()
    assert not waker.is_set()


async def test_a_cancelled_wait_wakes_nobody_later() -> None:
    """Its timer is gone with it."""
    waker = Waker()
    waiting = asyncio.create_task(waker.wait(0.05))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.sleep(0.1)
    assert not waker.is_set()


async def test_a_turn_says_how_long_to_rest() -> None:
    """Nothing is told when nothing failed."""
    told: list[str] = []

    async def turn() -> float:
        return 7.0

    assert await surviving(turn, lambda kind, _: told.append(kind), pause_seconds=1) == 7.0
    assert told == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DatabaseUnavailable("away", sqlstate="57P01"), "57P01"),
        (DatabaseUnavailable("away"), "DatabaseUnavailable"),
        (ConfigurationError("wrong"), "ConfigurationError"),
    ],
)
async def test_an_error_is_told_and_becomes_a_pause(error: LivewellError, kind: str) -> None:
    """With jitter, and never longer than the pause."""
    told: list[tuple[str, LivewellError]] = []

    async def turn() -> float:
        raise error

    rests = [await surviving(turn, lambda *one: told.append(one), pause_seconds=2) for _ in range(50)]

    assert told == [(kind, error)] * 50
    assert all(1 <= rest <= 2 for rest in rests)
    assert len(set(rests)) > 1
    assert kind_of(error) == kind


async def test_a_mistake_in_the_code_is_not_survived() -> None:
    """It ends the loop, and the worker says so."""

    async def turn() -> float:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await surviving(turn, lambda *_: None, pause_seconds=1)


async def test_a_duty_goes_on_after_errors() -> None:
    """Every other turn fails; all of them are taken."""
    turns, told = 0, 0

    async def duty() -> None:
        nonlocal turns
        turns += 1
        if turns == 6:
            raise KeyError("enough")
        if turns % 2:
            raise DatabaseUnavailable("away")

    def failed(kind: str, error: LivewellError) -> None:
        nonlocal told
        told += 1
        assert (kind, str(error)) == ("DatabaseUnavailable", "away")

    with pytest.raises(KeyError):
        await every(0.001, duty, failed)
    assert (turns, told) == (6, 3)


def test_pauses_grow_to_a_bound() -> None:
    """50 ms doubled with every failure, at most 5 s, at least half of it."""
    for failures, most in ((0, 0.05), (1, 0.1), (3, 0.4), (7, 5.0), (10_000, 5.0)):
        pauses = [backoff_seconds(failures) for _ in range(50)]
        assert all(most / 2 <= pause <= most for pause in pauses)
    assert all(9 <= jittered(10, 0.9, 1.1) <= 11 for _ in range(50))


class Written:
    """Stands for the database."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.away = False

    async def __call__(self, query: str, params: Sequence[Any]) -> None:
        if self.away:
            raise DatabaseUnavailable("away")
        assert "livewell.warn" in query
        self.rows.append(tuple(params))


async def test_warnings_are_written_once_with_their_newest_sample() -> None:
    """However often the same was added."""
    written = Written()
    warnings = WarningBuffer(written)
    for n in range(5):
        warnings.add("here", "this", f"sample {n}")
    warnings.add("here", "that")
    await warnings.flush()
    await warnings.flush()

    assert written.rows == [("here", "this", "sample 4"), ("here", "that", "")]
    assert len(warnings) == 0


async def test_warnings_wait_for_the_database_and_are_bounded() -> None:
    """A hundred kinds; what is known already keeps its newest sample."""
    written = Written()
    warnings = WarningBuffer(written)
    written.away = True
    for n in range(WARNINGS_MAX + 50):
        warnings.add("here", f"kind {n}", "old")
    warnings.add("here", "kind 0", "new")
    with pytest.raises(DatabaseUnavailable):
        await warnings.flush()
    assert len(warnings) == WARNINGS_MAX

    written.away = False
    await warnings.flush()
    assert len(written.rows) == WARNINGS_MAX
    assert written.rows[0] == ("here", "kind 0", "new")
