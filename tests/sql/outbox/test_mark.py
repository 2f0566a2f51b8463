"""The mark below which nothing is ready: no event is passed over by it, and no order is broken."""

from __future__ import annotations

from tests.support.outbox_sql import SINK, OutboxSession


def slow(outbox: OutboxSession, relay: int) -> None:
    """As if the last look had been slow: the mark is used and moved by the next claim."""
    outbox.rows("UPDATE livewell.relay SET mark_until = 'infinity', mark_moved_at = NULL WHERE id = %s", relay)


def mark(outbox: OutboxSession, relay: int) -> int:
    return int(outbox.value("SELECT mark FROM livewell.relay WHERE id = %s", relay))


def test_it_rises_to_what_is_over(outbox: OutboxSession) -> None:
    """Transactions of other tests' databases count too: until they have ended it does not rise."""
    relay = outbox.relay()
    numbers = outbox.emit_many(["a", "b", "c"])
    outbox.exchange(relay, delivered=outbox.claim_events(relay))
    for _ in range(5000):
        slow(outbox, relay)
        outbox.exchange(relay)
        if mark(outbox, relay) >= numbers[-1]:
            break

    assert mark(outbox, relay) >= numbers[-1]
    slow(outbox, relay)
    later = outbox.emit("a")
    assert outbox.claim_events(relay) == later


def test_it_never_passes_a_transaction_that_is_open(outbox: OutboxSession, other_outbox: OutboxSession) -> None:
    """Seen failing: the end of a snapshot is the newest id that has ended, plus one; the open one was that one."""
    relay = outbox.relay()
    slow(outbox, relay)
    other_outbox.connection.execute("BEGIN")
    [early] = other_outbox.emit("k")
    for _ in range(4):
        outbox.exchange(relay)
        slow(outbox, relay)
    assert mark(outbox, relay) < early
    other_outbox.connection.execute("COMMIT")
    [after] = outbox.emit("k")

    assert outbox.claim_events(relay) == [early, after]


def test_every_way_to_emit_has_an_id_before_a_number(outbox: OutboxSession) -> None:
    """Whoever draws a number has its transaction's id first."""
    for name in ("emit_event", "emit_events", "emit_dated_event"):
        text = outbox.value("SELECT prosrc FROM pg_proc WHERE proname = %s", name)
        assert 0 < text.index("pg_current_xact_id()") < text.index("nextval('livewell.event_number_seq')"), name


def test_what_is_replayed_from_below_the_mark_keeps_its_order(outbox: OutboxSession) -> None:
    """Seen failing: the half above the mark went first."""
    relay = outbox.relay()
    numbers = outbox.emit("k", n=6)
    outbox.exchange(relay, delivered=outbox.claim_events(relay))
    slow(outbox, relay)
    outbox.rows(
        "UPDATE livewell.relay SET mark = %s, mark_shards = ARRAY(SELECT shard FROM livewell.relay_shard "
        "WHERE relay = relay.id ORDER BY shard)",
        numbers[2],
    )
    outbox.advance(10)
    replay = outbox.value(
        "SELECT livewell.begin_replay(%s, NULL, NULL, NULL, livewell.now() - interval '1 hour', NULL, 1000, 'r')", SINK
    )
    outbox.advance(10)
    assert outbox.value("SELECT livewell.feed_replay(%s, 1000)", replay) == 6
    outbox.rows("UPDATE livewell.relay SET mark_until = 'infinity'")

    assert [event.number for event in outbox.drain(relay)] == numbers
