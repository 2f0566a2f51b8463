"""A count of the last hour, on a clock that the test turns."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from livewell.server.streams.session_source import SessionSource
from livewell.telemetry.last_hour import LastHour


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_what_was_counted_is_there_for_an_hour_and_then_gone() -> None:
    """Minute by minute."""
    clock = Clock()
    counted = LastHour(clock)
    counted.add(2)
    clock.now += 30 * 60
    counted.add(3)
    assert counted.total() == 5
    clock.now += 30 * 60
    assert counted.total() == 3
    clock.now += 30 * 60
    assert counted.total() == 0


def test_a_long_silence_empties_it_at_once() -> None:
    """It looks at sixty places, however many minutes have passed."""
    clock = Clock()
    counted = LastHour(clock)
    counted.add(7)
    clock.now += 86400 * 365
    assert counted.total() == 0
    counted.add(1)
    assert counted.total() == 1


def test_it_says_how_long_it_has_counted() -> None:
    """A process that has just begun knows less than an hour."""
    clock = Clock()
    counted = LastHour(clock)
    clock.now += 90
    assert counted.seconds == 90
    clock.now += 86400
    assert counted.seconds == 3600


async def test_a_stream_counts_the_readings_that_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what it says beside them, nor a look that found nothing."""
    counted = LastHour()
    monkeypatch.setattr("livewell.server.streams.session_source.READINGS_PUSHED", counted)
    state = SimpleNamespace(pair=("quote", "AAPL"), version=1)
    state.now = lambda: SimpleNamespace(document=lambda **_: b"{}")
    waiting = [state, state]
    follower: Any = SimpleNamespace(
        pop=lambda: waiting.pop() if waiting else None, has={}, awaited=0, keys={}, wake=asyncio.Event(), waiting=0
    )
    sessions: Any = None
    streamed: Any = SimpleNamespace(follower=follower, session="s", untold={("quote", "B"): None}, ended=False)
    source = SessionSource(sessions, streamed)
    assert (source.next() or b"").count(b"event: reading") == 2
    source.next()
    source.next()
    assert counted.total() == 2
