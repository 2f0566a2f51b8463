"""While looking from the beginning is slow, a relay begins at a mark; no event is passed over by it."""

from __future__ import annotations

from tests.support.outbox_sql import OutboxSession

_SHARDS = "ARRAY(SELECT h.shard FROM livewell.relay_shard h WHERE h.relay = r.id ORDER BY h.shard)"
_SLOW = f"SELECT livewell.move_mark(r, {_SHARDS}, 0, '{{}}', 1.0) FROM livewell.relay r"


def slow_looks(outbox: OutboxSession) -> int:
    """Three looks from the beginning were slow; answers the mark. The third may raise it."""
    for _ in range(3):
        outbox.rows(_SLOW)
    return int(outbox.value("SELECT mark FROM livewell.relay"))


def test_a_look_begins_behind_what_was_delivered(outbox: OutboxSession) -> None:
    """And finds what is new."""
    relay = outbox.relay()
    numbers = outbox.emit("k", n=3)
    assert [event.number for event in outbox.drain(relay)] == numbers

    # Transactions of other tests' databases count too: until they have ended it does not rise.
    assert any(slow_looks(outbox) >= numbers[-1] for _ in range(2000))
    later = outbox.emit("k", n=2)
    assert outbox.claim_events(relay) == later


def test_a_mark_stays_below_an_open_transaction(outbox: OutboxSession, other_outbox: OutboxSession) -> None:
    """What it emitted comes as soon as it commits, and before what began after that.

    Seen failing with the mark raised to the last number drawn, whoever drew it.
    """
    relay = outbox.relay()
    other_outbox.connection.execute("BEGIN")
    [early] = other_outbox.emit("k")
    overlapping = outbox.emit("other", n=3)
    assert [event.number for event in outbox.drain(relay)] == overlapping

    assert slow_looks(outbox) < early
    other_outbox.connection.execute("COMMIT")
    [after] = outbox.emit("k")
    assert [event.number for event in outbox.drain(relay)] == [early, after]


def test_a_mark_stays_below_what_is_on_its_way(outbox: OutboxSession) -> None:
    """For it may go back."""
    relay = outbox.relay()
    numbers = outbox.emit("k", n=3)
    assert outbox.claim_events(relay) == numbers

    assert slow_looks(outbox) < numbers[0]
    assert outbox.exchange(relay).numbers == numbers


def test_a_mark_holds_for_the_shards_it_was_found_for(outbox: OutboxSession) -> None:
    """Seen failing without the comparison: what was in a shard that came later waited for the next look."""
    relay = outbox.relay()
    outbox.drain(relay)
    slow_looks(outbox)
    outbox.rows("UPDATE livewell.relay SET mark = 1000000000000, mark_until = 'infinity'")
    numbers = outbox.emit("k", n=2)
    assert outbox.claim_events(relay) == []

    outbox.rows("UPDATE livewell.relay SET mark_shards = mark_shards[2:]")
    assert outbox.claim_events(relay) == numbers


def test_a_look_from_the_beginning_comes_again(outbox: OutboxSession) -> None:
    """It finds what is below the mark although nothing should be."""
    relay = outbox.relay()
    [number] = outbox.emit("k")
    outbox.rows(
        "UPDATE livewell.relay r SET mark = 1000000000000, mark_until = livewell.now() + interval '1 minute', "
        f"mark_moved_at = livewell.now(), mark_shards = {_SHARDS}"
    )
    assert outbox.claim_events(relay) == []

    outbox.advance(61)
    assert outbox.claim_events(relay) == [number]


def test_a_transaction_has_its_id_before_it_draws_a_number(outbox: OutboxSession) -> None:
    """Else a number could be below a mark although its transaction is newer than all that were waited for."""
    for name in ("emit_event", "emit_events"):
        source = str(outbox.value("SELECT prosrc FROM pg_proc WHERE proname = %s", name))
        assert 0 < source.index("pg_current_xact_id()") < source.index("nextval('livewell.event_number_seq')"), name
