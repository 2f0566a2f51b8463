"""Fairness (X2): with more demand than calls viewers decide the order, and nothing waits for ever.

Three parts. The policy of dispatch_due, page and all, is played in virtual time by a few lines of
Python over 10,000 keys, beside plain "most viewers first": the stated bound holds, and the other
starves. The SQL is compared with those few lines, round by round: given the same keys, viewers and
waits it dispatches the same keys in the same order. And the SQL serves 20,000 sessions over 5,000
keys for ten virtual minutes: whatever is called had at least half the score of whatever waits.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.refresh_sql import RefreshSession

LITTLE = 10.0  # seconds; as in dispatch_due
PAGE = 250  # the least it looks at; twice what can go otherwise


@dataclass(slots=True)
class Key:
    """A watched key: its viewers, when it is due, and what it saw so far."""

    name: str
    viewers: int
    due_at: float
    worst: float = 0.0  # longest wait, also of one that is not over
    fresh: float = 0.0  # seconds
    refreshed: int = 0


Policy = Callable[[list[Key], float, int], list[Key]]


def by_viewers_and_waiting(due: list[Key], now: float, calls: int) -> list[Key]:
    """What dispatch_due does: take the highest viewers · (waited + a little).

    They are taken from a page of those that are highest by their class.
    """
    page = heapq.nlargest(
        max(2 * calls, PAGE), due, key=lambda key: 2 ** (key.viewers.bit_length() - 1) * (now - key.due_at + LITTLE)
    )
    return heapq.nlargest(calls, page, key=lambda key: (key.viewers * (now - key.due_at + LITTLE), -key.due_at))


def most_viewers_first(due: list[Key], now: float, calls: int) -> list[Key]:
    """The old order; those who waited longest first among equals."""
    return heapq.nlargest(calls, due, key=lambda key: (key.viewers, now - key.due_at))


@dataclass(frozen=True, slots=True)
class Played:
    """What viewers saw."""

    fresh_share: float  # of viewer-seconds
    worst_seconds: float
    never: int  # keys that were not refreshed at all after the first quarter
    worst_over_bound: float


def play(policy: Policy, *, keys: int, calls_per_second: int, ttl: float, seconds: int, step: int) -> Played:
    """Every key wants a refresh each ttl; calls are far too few.

    Viewers as they are in life: few keys have many.
    """
    watched = [Key(f"K{n}", min(1000, max(1, 3000 // n)), 0.0) for n in range(1, keys + 1)]
    warm = seconds // 4  # the start, where everything is due at once, is not counted as fresh or not
    for now in range(0, seconds, step):
        due = sorted((key for key in watched if key.due_at <= now), key=lambda key: key.due_at)
        for key in policy(due, now, calls_per_second * step):
            key.worst = max(key.worst, now - key.due_at)
            key.due_at = now + ttl
            if now >= warm:
                key.fresh += min(ttl, seconds - now)
                key.refreshed += 1
    for key in watched:
        key.worst = max(key.worst, seconds - key.due_at)
    viewers = sum(key.viewers for key in watched)
    bound = {key.name: 2 * (keys + 4 * viewers / key.viewers) / calls_per_second + step for key in watched}
    return Played(
        sum(key.viewers * key.fresh for key in watched) / (viewers * (seconds - warm)),
        max(key.worst for key in watched),
        sum(key.refreshed == 0 for key in watched),
        max(key.worst / bound[key.name] for key in watched),
    )


def test_the_bound_holds_for_ten_thousand_keys_where_most_viewers_first_starves() -> None:
    """10,000 keys of a minute each want 167 calls a second; there are 10.

    Run with -s for the figures.
    """
    seed = random.randrange(1 << 32)
    random.seed(seed)
    size = {"keys": 10_000, "calls_per_second": 10, "ttl": 60.0, "seconds": 6_000, "step": 10}

    ours = play(by_viewers_and_waiting, **size)  # type: ignore[arg-type]  # numbers, as the parameters say
    theirs = play(most_viewers_first, **size)  # type: ignore[arg-type]  # the same

    print(f"\nseed {seed}; 10,000 keys, 10 calls a second, 167 wanted, 6,000 s of virtual time")
    for name, one in (("viewers · waiting", ours), ("most viewers first", theirs)):
        print(
            f"{name:20} viewers seeing fresh {one.fresh_share:6.1%}   worst wait {one.worst_seconds:7,.0f} s   "
            f"never refreshed {one.never:5,}   worst wait / bound {one.worst_over_bound:.2f}"
        )
    assert ours.worst_over_bound <= 1, seed
    assert ours.never == 0, seed
    assert theirs.never > 5000, "the comparison no longer starves: is there still more demand than calls?"
    assert theirs.worst_seconds == 6_000  # the whole time; the bound above is for the other order


def test_refreshes_are_as_frequent_as_viewers_are_many() -> None:
    """A key with ten times the viewers is refreshed about ten times as often.

    That is so where both wait far longer than they live.
    """
    random.seed(1)
    watched = [Key(f"K{n}", 10 if n < 100 else 1, 0.0) for n in range(1100)]
    for now in range(0, 30_000, 10):
        due = sorted((key for key in watched if key.due_at <= now), key=lambda key: key.due_at)
        for key in by_viewers_and_waiting(due, now, 10):
            key.due_at = now + 10.0
            key.refreshed += 1
    many, one = (sum(key.refreshed for key in part) / len(part) for part in (watched[:100], watched[100:]))

    assert 8 <= many / one <= 12


def test_the_sql_dispatches_what_the_model_does(refresh: RefreshSession) -> None:
    """Sixty keys with one to eight viewers, room for seven at a time, thirty rounds."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    refresh.freeze()
    start = refresh.now()
    keys = {f"K{n:02}": Key(f"K{n:02}", chance.randint(1, 8), 0.0) for n in range(60)}
    sessions = [refresh.open() for _ in range(8)]
    for key in keys.values():
        for one in sessions[: key.viewers]:
            refresh.subscribe(one, key.name)
        key.due_at = round(-chance.uniform(0, 500), 4)  # no two alike, so no two scores are
        refresh.rows(
            "UPDATE livewell.ledger SET due_at = %s + %s * interval '1 second' WHERE key = %s",
            start,
            key.due_at,
            key.name,
        )
    now = 0.0
    for turn in range(30):
        due = sorted((key for key in keys.values() if key.due_at <= now), key=lambda key: key.due_at)
        expected = by_viewers_and_waiting(due, now, 7)

        answer = refresh.dispatch(page=7)

        done = [name for (name,) in refresh.rows("SELECT payload ->> 'key' FROM livewell.job ORDER BY lane, rank, id")]
        assert done == [key.name for key in expected], (seed, turn, answer)
        refresh.rows("DELETE FROM livewell.job")
        for key in expected:
            key.due_at = now + 60 + int(key.name[1:]) / 1000
        refresh.rows(
            "UPDATE livewell.ledger SET fetched_at = livewell.now(), checked_at = livewell.now(), due_at = "
            "livewell.now() + interval '1 minute' + substr(key, 2)::int * interval '1 ms' WHERE key = ANY (%s)",
            done,
        )
        passes = chance.randint(1, 40) + 0.5 * chance.random()
        passes = round(passes, 3)
        now += passes
        refresh.advance(passes)
        for one in sessions:
            refresh.heartbeat(one)


SESSIONS, KEYS, TTL, SECONDS, STEP = 20_000, 5_000, 60, 600, 4
CALLS = 300 * STEP // 60  # of a step
CROWD = """
INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id)
SELECT md5('s' || n)::uuid, livewell.now() + interval '1 day', livewell.now(), 'u' || n FROM generate_series(0, %(sessions)s - 1) AS n;
INSERT INTO livewell.subscription (session_id, data_type, key, user_id)
SELECT md5('s' || s)::uuid, 'quote', 'K' || k, 'u' || s FROM generate_series(1, %(keys)s) AS k, generate_series(0, greatest(22000 / k, 2) - 1) AS v, LATERAL (SELECT (k * 7919 + v) %% %(sessions)s AS s) x
ON CONFLICT DO NOTHING;
INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at, wanted_at)
SELECT 'quote', 'K' || k, 'api', livewell.now(), livewell.now(), livewell.now() FROM generate_series(1, %(keys)s) AS k ORDER BY md5(k::text);
ANALYZE
"""
# Stored in the order of their claims, a little apart: what a worker does with them within the step.
SERVE = """
WITH done AS (DELETE FROM livewell.job RETURNING payload ->> 'key' AS key)
UPDATE livewell.ledger l SET fetched_at = livewell.now(), checked_at = livewell.now(), due_at = livewell.now() + %s * interval '1 second' FROM done d WHERE l.key = d.key RETURNING l.key
"""


def test_viewers_decide_over_everything_that_is_due(refresh: RefreshSession) -> None:
    """X2, R7, R8: with far more demand than calls, the keys with most viewers are called first.

    20,000 sessions look at ten keys each of 5,000, at 300 calls a minute, for ten minutes. Run with
    -s for the figures.

    Seen failing on 0.5.0, which looked at the 1,500 oldest: in the first step it called keys with
    few viewers while keys with twenty times as many waited.
    """
    refresh.freeze()
    for statement in CROWD.split(";\n"):
        refresh.connection.execute(statement.encode(), {"sessions": SESSIONS, "keys": KEYS})
    viewers = {f"K{n}": min(max(22_000 // n, 2), 1000) for n in range(1, KEYS + 1)}
    due_at = dict.fromkeys(viewers, 0.0)
    calls = dict.fromkeys(viewers, 0)
    fence = refresh.hold()
    counted: tuple[str | None, str | None] = (None, None)
    fresh, worst = 0.0, 1.0
    for now in range(0, SECONDS, STEP):
        waiting = {key: viewers[key] * (now - at + LITTLE) for key, at in due_at.items() if at <= now}
        refresh.dispatch(fence, page=CALLS)
        called = [str(key) for (key,) in refresh.rows(SERVE, TTL)]
        if now >= 60:  # the first counts: until then a class is what a new key has
            left = waiting.keys() - set(called)
            worst = max([worst, *(max(waiting[key] for key in left) / waiting[one] for one in called)])
        for key in called:
            calls[key] += 1
            due_at[key] = now + TTL
        fresh += STEP * sum(viewers[key] for key, at in due_at.items() if at > now)
        for _ in range(STEP):  # as the dispatcher does, every second
            [counted] = refresh.rows("SELECT * FROM livewell.recount_viewers('api', %s, %s)", *counted)
        refresh.advance(STEP)
    share = fresh / (SECONDS * sum(viewers.values()))
    many = [calls[key] for key in viewers if viewers[key] >= 23]
    few = [calls[key] for key in viewers if viewers[key] <= 8]
    print(
        f"\n{sum(calls.values()):,} calls; viewers seeing fresh {share:.1%}; called once at least: {sum(map(bool, many))} of {len(many)} keys with 23 viewers or more, "
        f"{sum(map(bool, few))} of {len(few)} with 8 or fewer; highest score that waited / lowest that went {worst:.2f}"
    )
    assert sum(calls.values()) == CALLS * SECONDS / STEP
    assert worst <= 2
    assert sum(few) == 0
