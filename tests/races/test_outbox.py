"""The outbox between sessions: exchanges, burials, hand-overs, claims outside, and overlapping transactions.

Every order of the steps is played. Each rule has a twin in which the words that hold it are broken.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.outbox_sql import SINK, TOPIC, OutboxSession
from tests.support.variants import variant

A, B = UUID(int=1), UUID(int=2)
FINISH = (
    "SELECT answer, number FROM livewell.exchange_events(%(relay)s, %(numbers)s::bigint[], %(verdicts)s::text[], "
    "%(nothing)s::text[], %(nothing)s::float8[], %(sending)s::bigint[], 100)"
)
BEAT = "SELECT alive, shards FROM livewell.renew_relay(%(judge)s, 45, NULL, NULL)"
LOCK = "FROM livewell.relay r WHERE r.id = p_relay FOR NO KEY UPDATE;"


def prepared(outbox: OutboxSession, *, expired: bool) -> dict[str, Any]:
    """A relay with two events in flight, and one that may bury it if it is expired."""
    outbox.reset()
    relay = outbox.relay()
    numbers = outbox.emit("k", n=2)
    outbox.claim_events(relay)
    judge = outbox.relay()
    outbox.make_steady(judge)
    if expired:
        outbox.expire_relay(relay)
    verdicts, nothing = ["delivered", "delivered"], [None, None]
    return {"relay": relay, "judge": judge, "numbers": numbers, "verdicts": verdicts, "nothing": nothing, "sending": []}


# -- exchange against burial ---------------------------------------------------------------------


async def exchange_against_burial(outbox: OutboxSession, dsn: str) -> list[str]:
    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        finished, waiting = outcome.answer("exchange"), outbox.waiting()
        sent = outbox.value("SELECT count(*) FROM livewell.event_sent")
        if finished and (waiting or finished[0] != ("finished", 2)):
            return f"told {finished}, but {waiting} wait"
        if not finished and (waiting != outcome.given["numbers"] or sent):
            return f"buried, but {waiting} wait and {sent} were sent"
        gone = set(outbox.column("SELECT relay FROM livewell.event_flight")) - set(
            outbox.column("SELECT id FROM livewell.relay")
        )
        return f"flights of {gone}, who are no more" if gone else None

    return await violations(
        dsn,
        [session("exchange", FINISH), session("burial", BEAT)],
        prepare=lambda: prepared(outbox, expired=True),
        judge=judge,
    )


async def test_a_batch_is_finished_by_its_relay_or_lost_and_never_both(outbox: OutboxSession, queue_dsn: str) -> None:
    assert await exchange_against_burial(outbox, queue_dsn) == []


async def test_without_the_lock_on_the_lease_it_breaks(outbox: OutboxSession, queue_dsn: str) -> None:
    """An exchange that only looks at its row claims for a relay that is no more."""
    with variant(queue_dsn, "exchange_events", (LOCK, LOCK.replace(" FOR NO KEY UPDATE", ""))):
        assert await exchange_against_burial(outbox, queue_dsn) != []


# -- exchange against hand-over ------------------------------------------------------------------


async def exchange_against_balance(outbox: OutboxSession, dsn: str) -> list[str]:
    """One claims for itself while its heartbeat gives shards up and another takes them."""

    def prepare() -> Given:
        outbox.reset()
        first = outbox.relay()
        numbers = outbox.emit_many([f"k{n}" for n in range(40)])
        outbox.claim_events(first, 20)
        second = int(outbox.value("SELECT livewell.register_relay(%s, 'b', '1', 45)", SINK))
        return {"relay": first, "judge": second, "numbers": [], "verdicts": [], "nothing": [], "sending": numbers}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        flying = outbox.flying()
        if len(flying) != len(set(flying)):
            return f"in two flights: {flying}"
        strangers = outbox.column(
            "SELECT d.number FROM livewell.event_flight f CROSS JOIN unnest(f.numbers) AS n JOIN "
            "livewell.event_delivery d ON d.number = n JOIN livewell.relay_shard h USING (sink, shard) "
            "WHERE h.relay IS DISTINCT FROM f.relay"
        )
        return f"in flight in a shard of another: {strangers}" if strangers else None

    own = BEAT.replace("judge", "relay")
    take = FINISH.replace("relay)s", "judge)s")
    return await violations(
        dsn,
        [session("exchange", FINISH), session("beat", own), session("other", BEAT, take, transaction=False)],
        prepare=prepare,
        judge=judge,
    )


async def test_no_event_is_with_two_relays_while_shards_change_hands(outbox: OutboxSession, queue_dsn: str) -> None:
    assert await exchange_against_balance(outbox, queue_dsn) == []


async def test_a_hand_over_that_does_not_look_at_flights_breaks(outbox: OutboxSession, queue_dsn: str) -> None:
    blind = ("WHERE g.relay = p_relay AND d.shard = f.shard", "WHERE false")
    with variant(queue_dsn, "balance_shards", blind):
        assert await exchange_against_balance(outbox, queue_dsn) != []


async def test_two_relays_that_start_at_once_share(outbox: OutboxSession, queue_dsn: str) -> None:
    """No shard has two, none is forgotten, and neither waits for ever."""

    def prepare() -> Given:
        outbox.reset()
        one, two = (int(outbox.value("SELECT livewell.register_relay(%s, 'x', '1', 45)", SINK)) for _ in range(2))
        return {"relay": one, "judge": two}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        for relay in outcome.given.values():
            outbox.beat(relay)
        shares = [outbox.shards(relay) for relay in outcome.given.values()]
        return None if shares == [32, 32] else f"they have {shares}"

    one = session("one", BEAT.replace("judge", "relay"))
    assert await violations(queue_dsn, [one, session("two", BEAT)], prepare=prepare, judge=judge) == []


# -- the order of overlapping transactions -------------------------------------------------------

EMIT = f"SELECT livewell.emit_event('{TOPIC}', '{{}}', 'k')"
CLAIM = (
    "SELECT answer, number FROM livewell.exchange_events(%(relay)s, (SELECT numbers FROM livewell.event_flight "
    "WHERE relay = %(relay)s), (SELECT array_agg('delivered'::text) FROM livewell.event_flight f, unnest(f.numbers) "
    "WHERE relay = %(relay)s), NULL, NULL, '{}', 100)"
)


async def overtaking(outbox: OutboxSession, dsn: str) -> list[str]:
    """Two producers on one key, a relay that delivers whenever it likes."""

    def prepare() -> Given:
        outbox.reset()
        return {"relay": outbox.relay()}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        relay = outcome.given["relay"]
        arrived = [row[1] for step in outcome.answers["relay"] for row in step if row[0] == "event"]
        last = outbox.exchange(relay, delivered=outbox.flying())
        arrived += last.numbers
        arrived += [event.number for event in outbox.drain(relay)]
        arrived = list(dict.fromkeys(arrived))
        events = {
            name: [int(row[0].rsplit("-", 1)[1]) for step in outcome.answers[name] for row in step]
            for name in ("one", "two")
        }
        if sorted(arrived) != sorted(events["one"] + events["two"]):
            return f"arrived {arrived} of {events}"
        turns = outcome.order.split()
        for first, second in (("one", "two"), ("two", "one")):
            committed = max(i for i, turn in enumerate(turns) if turn == first)
            began = turns.index(second)
            if committed < began and max(map(arrived.index, events[first])) > min(map(arrived.index, events[second])):
                return f"{second} began after {first} had committed, and came before it: {arrived} of {events}"
        return None

    return await violations(
        dsn,
        [session("one", EMIT, EMIT), session("two", EMIT), session("relay", CLAIM, CLAIM, transaction=False)],
        prepare=prepare,
        judge=judge,
    )


async def test_nothing_overtakes_what_was_committed_before_it_began(outbox: OutboxSession, queue_dsn: str) -> None:
    assert await overtaking(outbox, queue_dsn) == []


async def test_with_numbers_from_a_cache_it_breaks(outbox: OutboxSession, queue_dsn: str) -> None:
    """A session that keeps numbers for later uses a low one for a late transaction."""
    outbox.rows("ALTER SEQUENCE livewell.event_number_seq CACHE 50")
    try:
        assert await overtaking(outbox, queue_dsn) != []
    finally:
        outbox.rows("ALTER SEQUENCE livewell.event_number_seq CACHE 1")


# -- outside -------------------------------------------------------------------------------------


async def outside_claims(outbox: OutboxSession, dsn: str) -> list[str]:
    def prepare() -> Given:
        outbox.reset()
        outbox.sink("outbox", outside=True)
        outbox.rows(
            "DELETE FROM livewell.event_route r USING livewell.event_sink s WHERE s.id = r.sink AND s.name <> 'outbox'"
        )
        return {"numbers": outbox.emit_many(["a", "a", "b", None, None, "c"])}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        one, two = ([row[0] for row in outcome.answer(name)] for name in ("one", "two"))
        if set(one) & set(two):
            return f"both have {set(one) & set(two)}"
        for token, ids in ((A, one), (B, two)):
            if outbox.mark_delivered(token, ids) != len(ids):
                return f"{ids} were not marked"
        return None

    claims = [
        session(name, f"SELECT id FROM livewell.outbox_claim(3, '{token}')") for name, token in (("one", A), ("two", B))
    ]
    return await violations(dsn, claims, prepare=prepare, judge=judge)


async def test_two_outside_claimers_never_have_the_same(outbox: OutboxSession, queue_dsn: str) -> None:
    assert await outside_claims(outbox, queue_dsn) == []


async def test_a_mark_against_the_end_of_the_lease(outbox: OutboxSession, queue_dsn: str) -> None:
    """Whoever comes second gets nothing: the mark counts, or the other one has them."""

    def prepare() -> Given:
        outbox.reset()
        outbox.sink("outbox", outside=True)
        outbox.rows(
            "DELETE FROM livewell.event_route r USING livewell.event_sink s WHERE s.id = r.sink AND s.name <> 'outbox'"
        )
        numbers = outbox.emit("k", n=2)
        assert outbox.outside_claim(A) == numbers
        outbox.advance(61)
        return {"numbers": numbers}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        marked, claimed_now = outcome.answer("mark")[0][0], len(outcome.answer("claim"))
        return None if (marked, claimed_now) in ((2, 0), (0, 2)) else f"marked {marked}, claimed {claimed_now}"

    mark = session("mark", f"SELECT livewell.outbox_mark_delivered('{A}', %(numbers)s::bigint[])")
    claim = session("claim", f"SELECT id FROM livewell.outbox_claim(10, '{B}')")
    assert await violations(queue_dsn, [mark, claim], prepare=prepare, judge=judge) == []


def test_a_topic_and_a_sink_that_are_declared_at_once_find_each_other(
    outbox: OutboxSession, other_outbox: OutboxSession, queue_dsn: str
) -> None:
    """The second waits for the first, and sees it."""
    outbox.connection.execute("BEGIN")
    outbox.topic("users.new")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        other_outbox.rows("SET lock_timeout = '50ms'")
        other_outbox.sink("late", topics=["users.*"])
    outbox.connection.execute("COMMIT")
    other_outbox.sink("late", topics=["users.*"])

    assert outbox.value("SELECT count(*) FROM livewell.event_route WHERE topic = 'users.new'") == 2
