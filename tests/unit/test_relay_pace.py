"""A sink with a rate: what each relay may send of it."""

from __future__ import annotations

from livewell.limits.notation import Rate
from livewell.outbox.relay.pace import SHARDS, Pace


class Clock:
    """Goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _send(pace: Pace, clock: Clock, shards: int, *, seconds: float) -> int:
    """Send all that may go, every 20 ms; answers how many went."""
    sent = 0
    for _ in range(round(seconds / 0.02)):
        clock.now += 0.02
        now = pace.room(shards, 1000)
        pace.sent(now)
        sent += now
    return sent


def test_relays_that_share_the_shards_share_the_rate() -> None:
    """Three relays of unequal size, ten windows: together the rate, and a burst at most."""
    clock = Clock()
    parts = (SHARDS // 2, SHARDS // 4, SHARDS // 4)
    paces = [Pace(Rate(100, 1.0), clock) for _ in parts]
    sent = 0
    for _ in range(500):
        clock.now += 0.02
        for pace, shards in zip(paces, parts, strict=True):
            now = pace.room(shards, 1000)
            pace.sent(now)
            sent += now

    assert 950 <= sent <= 1000


def test_a_long_rest_saves_up_a_tenth_of_a_window() -> None:
    """An hour without events is not sent at once; seen failing without the bound."""
    clock = Clock()
    pace = Pace(Rate(100, 1.0), clock)
    clock.now += 3600

    assert pace.room(SHARDS, 1000) == 10


def test_a_restart_adds_nothing() -> None:
    """A relay begins with nothing saved up."""
    assert Pace(Rate(100, 1.0), Clock()).room(SHARDS, 1000) == 0


def test_a_slow_rate_gives_single_events() -> None:
    """One event in ten seconds, with a part of the shards: one goes, late, and none is forgotten."""
    clock = Clock()
    pace = Pace(Rate(6, 60.0), clock)

    assert _send(pace, clock, SHARDS // 2, seconds=101) == 5
    assert 0 < pace.until_room_seconds(SHARDS // 2) <= 20


def test_without_a_rate_there_is_room() -> None:
    """And no wait."""
    pace = Pace(None, Clock())
    pace.sent(5000)

    assert pace.room(1, 5000) == 5000
    assert pace.until_room_seconds(1) == 0
