"""How many jobs a worker may take ahead."""

from __future__ import annotations

import pytest

from livewell.queue.worker import pace as module
from livewell.queue.worker.pace import Pace


class Clock:
    """Stands still until told."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_nothing_is_known_at_first(clock: Clock) -> None:
    """So nothing is taken ahead."""
    del clock
    assert Pace(20).ahead(0.1) == 0


def test_fast_jobs_are_taken_ahead_by_the_pace(clock: Clock) -> None:
    """A hundred in ten milliseconds are a thousand in a tenth of a second."""
    pace = Pace(20)
    clock.now += 0.01
    for _ in range(100):
        pace.ended(clock.now - 0.00001)
    pace.measure()
    assert pace.ahead(0.1) == pytest.approx(1000, abs=1)


def test_a_burst_of_slow_jobs_is_no_pace(clock: Clock) -> None:
    """Twenty jobs of a minute that end at once.

    Not even one more will end within a tenth of a second.
    """
    pace = Pace(20)
    for _ in range(20):
        pace.ended(clock.now - 60)
    clock.now += 0.004
    pace.measure()
    assert pace.ahead(0.1) == 0


def test_a_moment_too_short_is_added_to_the_next(clock: Clock) -> None:
    """Nothing is forgotten meanwhile."""
    pace = Pace(20)
    pace.ended(clock.now - 0.001)
    clock.now += 0.001
    pace.measure()
    assert pace.ahead(1) == 0
    clock.now += 0.009
    pace.measure()
    assert pace.ahead(1) == pytest.approx(100, abs=1)


def test_it_rises_at_once_and_sinks_slowly(clock: Clock) -> None:
    """A pause of one call is no reason to forget the pace."""
    pace = Pace(20)
    clock.now += 0.01
    for _ in range(100):
        pace.ended(clock.now - 0.00001)
    pace.measure()
    clock.now += 0.01
    pace.measure()
    assert pace.ahead(1) == pytest.approx(7000, abs=1)


def test_a_job_that_never_started_says_nothing(clock: Clock) -> None:
    """It was handed back from the buffer."""
    pace = Pace(20)
    pace.ended(0.0)
    clock.now += 0.01
    pace.measure()
    assert pace.ahead(1) == 0
