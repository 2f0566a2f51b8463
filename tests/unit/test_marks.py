"""Where a worker goes on looking while looking from the beginning is slow."""

from __future__ import annotations

import pytest

from livewell.queue.worker import marks as module
from livewell.queue.worker.marks import Marks


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


def test_marks_are_used_only_after_a_slow_look_and_only_for_a_while(clock: Clock) -> None:
    """Half a second, then the next look is from the beginning."""
    marks = Marks()
    assert not marks.use()
    marks.slow(0.01)
    assert marks.use()
    clock.now += 0.5
    assert not marks.use()


def test_a_dear_look_is_repeated_less_often(clock: Clock) -> None:
    """It may take a tenth of the time, not all of it."""
    marks = Marks()
    marks.slow(0.5)
    clock.now += 4.9
    assert marks.use()
    clock.now += 0.2
    assert not marks.use()


def test_a_quick_look_ends_it(clock: Clock) -> None:
    """Nothing is remembered."""
    marks = Marks()
    marks.slow(0.01)
    marks.move("mail", 1, (7, 70))
    marks.quick()
    clock.now += 0.1
    assert not marks.use()
    assert marks.arrays(["mail"]) == ([None, None], [None, None])


def test_a_look_at_a_paused_queue_says_nothing(clock: Clock) -> None:
    """Marks stay, and are used for as long again."""
    marks = Marks()
    marks.not_looked()
    assert not marks.use()
    marks.slow(0.2)
    marks.move("mail", 1, (7, 70))
    clock.now += 2.1
    assert not marks.use()
    marks.not_looked()
    clock.now += 1.9
    assert marks.use()
    assert marks.arrays(["mail"]) == ([None, 7], [None, 70])


def test_a_mark_moves_forward_only() -> None:
    """One for each queue and lane, in the order of the queues asked for."""
    marks = Marks()
    marks.move("mail", 1, (7, 70))
    marks.move("mail", 1, (7, 69))
    marks.move("web", 0, (3, 30))
    assert marks.arrays(["web", "mail"]) == ([3, None, None, 7], [30, None, None, 70])


def test_what_is_forgotten_starts_again_and_the_rest_stays() -> None:
    """A mountain of urgent jobs before the mark is worked off from there.

    Not a page at each look from the beginning.
    """
    marks = Marks()
    marks.move("mail", 0, (9, 90))
    marks.move("mail", 1, (9, 91))
    marks.forget([("mail", 1), ("web", 0)])
    marks.move("mail", 1, (2, 20))
    assert marks.arrays(["mail"]) == ([9, 2], [90, 20])


def test_even_the_dearest_look_is_repeated_soon(clock: Clock) -> None:
    """Whatever a clock says that was set meanwhile."""
    marks = Marks()
    marks.slow(3600)
    clock.now += 5
    assert not marks.use()
