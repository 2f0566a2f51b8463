"""R12, G1: the rate as the upstream stamps it, whatever the delays.

In virtual time, through the real SQL; the judge counts stamps.

Requests arrive up to 30 s after they were written, answers come up to 30 s later, the upstream
stands still now and then and stamps what came meanwhile at one instant. Workers give up at their
deadline, are killed, frozen beyond their lease, or stopped; their requests arrive all the same.
Never more stamps than the limit in any window, wherever it begins.

Each test prints its seed; LIVEWELL_TEST_SEED repeats it. The twin that counts a call at its grant
(as 0.5.0 did, which added two permits) must be seen to exceed the limit, or the delays prove
nothing. Seen: 71 of 60. With calls that were not answered counted from their end (end_calls), 61
were seen with the seed 11, and none too many with 3356103838: not every seed tells.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import os
import random
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from livewell.testing.call_windows import busiest_window, calls_between
from livewell.testing.upstream.call import Call
from tests.support.queue_sql import LimitedClaim, QueueSession
from tests.support.variants import variant

PERMIT, DEADLINE, LEASE = 1.0, 30.0, 5.0
SECONDS = 480
AT_GRANT = ("p_now + (p_limiter.permit_seconds + p_limiter.deadline_seconds) * interval '1 second'", "p_now")


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("LIVEWELL_TEST_SEED", secrets.randbelow(2**32)))
    print(f"simulation: LIVEWELL_TEST_SEED={seed}")
    return random.Random(seed)


@dataclass(slots=True)
class Network:
    """How long requests and answers take, and how often workers come to grief."""

    chance: random.Random
    ordinary_seconds: float = 0.2
    slow_share: float = 0.3
    slow_seconds: float = DEADLINE
    trouble_seconds: float = 20.0  # between two kills, freezes or stops; 0: never
    still: list[tuple[float, float]] = field(default_factory=list)  # when the upstream stands still

    def delay(self) -> float:
        slow = self.chance.random() < self.slow_share
        return self.chance.uniform(0, self.slow_seconds if slow else self.ordinary_seconds)

    def stamp(self, written: float) -> float:
        """When the upstream writes the request down; never later than it could arrive."""
        at = written + self.delay()
        late = next((end for begin, end in self.still if begin <= at < end), at)
        return min(late, written + DEADLINE)


@dataclass(slots=True)
class Fleet:
    """A few workers on that network, and the upstream's own log."""

    queue: QueueSession
    network: Network
    limit: int = 60
    window: float = 60.0
    burst: int = 60  # the pace must not hide what the window lets through
    size: int = 4
    now: float = 0.0
    stamps: list[Call] = field(default_factory=list)
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    workers: list[int] = field(default_factory=list)
    dead: set[int] = field(default_factory=set)  # killed: they report nothing
    held: dict[int, int] = field(default_factory=dict)  # by worker
    troubles: int = 0
    undertaker: int = 0

    def __post_init__(self) -> None:
        self.queue.freeze()
        self.queue.limiter(
            rate_calls=self.limit,
            rate_seconds=self.window,
            burst=self.burst,
            reserve=0,
            permit_seconds=PERMIT,
            deadline_seconds=DEADLINE,
        )
        self.queue.declare(limiter="api", attempts=100, base=0, cap=0)
        self.undertaker = self.queue.register()
        self.workers = [self.queue.register() for _ in range(self.size)]

    def at(self, instant: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (instant, next(self.numbers), event))

    def run(self, seconds: float) -> None:
        self.queue.enqueue(int(self.limit * seconds / self.window * 1.5), lane=0)
        for place in range(self.size):
            self.at(self.network.chance.uniform(0, 1), functools.partial(self.ask, place, 0.0))
        if self.network.trouble_seconds:
            self.at(self.network.trouble_seconds, self.trouble)
        while self.events and self.events[0][0] < seconds:
            self.now, _, event = heapq.heappop(self.events)
            self.queue.rows("UPDATE livewell_test.clock SET ahead = %s * interval '1 second'", self.now)
            event()

    def ask(self, place: int, sent: float) -> None:
        """The claim is at the database; its answer takes a moment too."""
        chance, worker = self.network.chance, self.workers[place]
        rows = self.queue.ask_limited(worker, chance.randint(1, 5), empty=not self.held.get(worker))
        claims = [row for row in rows if row.id]
        answered = self.now + chance.uniform(0, 0.005)
        for claim in claims:
            self.held[worker] = self.held.get(worker, 0) + 1
            self.call(claim, sent, answered)
        wait = 0.0 if claims else rows[0].wait or 0.5
        if place == 0:
            wait = min(wait, chance.uniform(0, 1))  # one never believes how long it should wait
        again = answered + wait
        self.at(again + chance.uniform(0, 0.01), lambda: self.ask(place, again))

    def call(self, claim: LimitedClaim, sent: float, answered: float) -> None:
        """Written while the permit is good; stamped.

        Answered in time, or given up at the deadline.
        """
        chance = self.network.chance
        if answered > sent + PERMIT:
            self.at(answered, lambda: self.end(claim, "released", used=0, ended="ours"))
            return
        written = chance.uniform(answered, sent + PERMIT) if chance.random() < self.network.slow_share else answered
        stamp = self.network.stamp(written)
        self.stamps.append(Call(len(self.stamps), int(stamp * 1e9), "GET", "/"))
        back = stamp + self.network.delay()
        if back > written + DEADLINE:
            self.at(written + DEADLINE, lambda: self.end(claim, "retry", used=0, ended="upstream"))
        else:
            self.at(back, lambda: self.end(claim))

    def end(self, claim: LimitedClaim, outcome: str = "succeeded", **details: object) -> None:
        """Whoever was killed says nothing; whoever was frozen is fenced."""
        self.held[claim.worker] -= 1
        if claim.worker not in self.dead:
            fenced = self.queue.end(claim, outcome, **details)
            assert not fenced or claim.worker not in self.workers

    def trouble(self) -> None:
        """Somebody is killed, frozen until after its lease, or stopped; another takes its place."""
        chance = self.network.chance
        place, kind = chance.randrange(self.size), chance.choice(["killed", "frozen", "stopped"])
        gone, self.workers[place] = self.workers[place], self.queue.register()
        self.troubles += 1
        if kind == "stopped":
            self.queue.release(gone)
        else:
            self.dead |= {gone} if kind == "killed" else set()
            self.at(self.now + LEASE, lambda: self.bury(gone))
        self.at(self.now + chance.uniform(0.5, 1.5) * self.network.trouble_seconds, self.trouble)

    def bury(self, gone: int) -> None:
        self.queue.expire(gone)
        self.queue.rows(
            "UPDATE livewell.worker SET renewed_at = livewell.now(), steady_since = livewell.now() - lease, "
            "expires_at = livewell.now() + lease WHERE id = ANY (%s)",
            [self.undertaker, *self.workers],
        )
        self.queue.recover(self.undertaker)

    @property
    def worst(self) -> int:
        return busiest_window(self.stamps, self.window).calls

    def use(self, begin: float, end: float) -> float:
        made = len(calls_between(self.stamps, int(begin * 1e9), int(end * 1e9)))
        return made * self.window / self.limit / (end - begin)


def hostile(chance: random.Random) -> Network:
    """Delays up to the deadline on both ways, and a standstill of up to ten seconds in most minutes."""
    begins = [minute * 60 + chance.uniform(0, 50) for minute in range(SECONDS // 60)]
    return Network(chance, still=[(begin, begin + chance.uniform(1, 10)) for begin in begins])


def test_the_limit_holds_as_the_upstream_stamps_it_whatever_the_delays(
    queue: QueueSession, chance: random.Random
) -> None:
    """Never 61 in any minute: eight minutes of slow ways, standstills, kills, freezes and stops."""
    fleet = Fleet(queue, hostile(chance))
    fleet.run(SECONDS)
    print(f"simulation: {len(fleet.stamps)} calls, worst window {fleet.worst}, {fleet.troubles} troubles")
    assert fleet.troubles > 10
    assert len(fleet.stamps) > 200, "a limiter that lets nothing through proves nothing"
    assert fleet.worst <= fleet.limit


def test_the_twin_that_counts_at_the_grant_exceeds_it(
    queue: QueueSession, queue_dsn: str, chance: random.Random
) -> None:
    """The same network shows what 0.5.0 did."""
    with variant(queue_dsn, "grant_calls", AT_GRANT):
        fleet = Fleet(queue, hostile(chance))
        fleet.run(SECONDS)
    print(f"simulation: {len(fleet.stamps)} calls, worst window {fleet.worst} of {fleet.limit}")
    assert fleet.worst > fleet.limit


def test_an_ordinary_way_costs_next_to_nothing(queue: QueueSession, chance: random.Random) -> None:
    """300 a minute at a round trip of up to 100 ms.

    At least 97 % of the limit is used, and it is never exceeded.
    """
    network = Network(chance, ordinary_seconds=0.05, slow_share=0, trouble_seconds=0)
    fleet = Fleet(queue, network, limit=300, burst=10)
    fleet.run(190)
    share = fleet.use(62, 186)
    print(f"simulation: {len(fleet.stamps)} calls, worst window {fleet.worst}, use {share:.4f}")
    assert fleet.worst <= fleet.limit
    assert share >= 0.97
