"""A shard of a sink belongs to one relay, and relays share them evenly."""

from __future__ import annotations

from tests.support.outbox_sql import OutboxSession


def test_one_relay_has_all(outbox: OutboxSession) -> None:
    relay = outbox.relay()

    assert (outbox.shards(relay), outbox.shards(None)) == (64, 0)


def test_relays_come_to_a_fair_share(outbox: OutboxSession) -> None:
    relays = [outbox.relay() for _ in range(5)]
    for _ in range(3):
        for relay in relays:
            outbox.beat(relay)

    shares = [outbox.shards(relay) for relay in relays]
    assert sum(shares) == 64
    assert max(shares) <= 13


def test_a_shard_in_flight_is_not_given_up(outbox: OutboxSession) -> None:
    """The next relay begins where this one ended: no event is with both."""
    first = outbox.relay()
    numbers = outbox.emit_many([f"k{n}" for n in range(300)])
    outbox.claim_events(first, 1000)
    second = outbox.relay()
    for relay in (first, second, first, second):
        outbox.beat(relay)

    assert outbox.claim_events(second) == []
    assert outbox.flying() == numbers


def test_under_load_shards_are_handed_over_between_two_batches(outbox: OutboxSession) -> None:
    """At a heartbeat of a busy relay every shard has something in flight, so they go between batches."""
    first = outbox.relay()
    outbox.emit_many([f"k{n}" for n in range(600)])
    batch = outbox.claim_events(first, 300)
    second = outbox.relay()
    outbox.beat(first)
    batch = outbox.exchange(first, delivered=batch, limit=300).numbers
    outbox.exchange(second)

    assert (outbox.shards(first), outbox.shards(second)) == (32, 32)
    assert len(set(batch) & set(outbox.flying())) == len(batch)


def test_a_straggler_keeps_its_shard_and_no_other(outbox: OutboxSession) -> None:
    first = outbox.relay()
    [slow] = outbox.emit("slow")
    outbox.claim_events(first)
    shard = outbox.value("SELECT shard FROM livewell.event_delivery")
    relays = [outbox.relay() for _ in range(63)]
    for _ in range(3):
        outbox.exchange(first, sending=[slow])
        for relay in relays:
            outbox.beat(relay)

    assert outbox.column("SELECT shard FROM livewell.relay_shard WHERE relay = %s", first) == [shard]


def test_a_relay_whose_sink_is_away_leaves_its_shards_to_those_that_reach_it(outbox: OutboxSession) -> None:
    """And takes them back when it reaches it again; if nobody does, they stay."""
    away, well = outbox.relay(), outbox.relay()
    for relay in (away, well):
        outbox.beat(relay)
    outbox.beat(away, away="down")
    outbox.beat(well)
    assert (outbox.shards(away), outbox.shards(well)) == (0, 64)

    outbox.beat(well, away="down")
    outbox.beat(away, away="down")
    assert outbox.shards(well) == 64
    outbox.beat(away)
    outbox.beat(well)
    outbox.beat(away)
    assert outbox.shards(away) > 0


def test_sinks_share_nothing(outbox: OutboxSession) -> None:
    outbox.sink("second")
    one, two = outbox.relay(), outbox.relay("second")

    assert (outbox.shards(one), outbox.shards(two)) == (64, 64)
