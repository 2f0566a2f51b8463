"""O5: a relay that dies strands nothing; one that lives is robbed of nothing."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.outbox_sql import PARKING, OutboxSession


def judge(outbox: OutboxSession) -> int:
    """A relay that may bury others."""
    relay = outbox.relay()
    outbox.make_steady(relay)
    return relay


def test_what_a_dead_relay_had_goes_to_the_next_and_counts_as_lost(outbox: OutboxSession) -> None:
    dead = outbox.relay()
    numbers = outbox.emit_many(["a", "a", "b"])
    outbox.claim_events(dead)
    living = judge(outbox)
    outbox.expire_relay(dead)
    outbox.beat(living)

    assert outbox.claim_events(living) == numbers
    assert outbox.column("SELECT lost FROM livewell.event_delivery") == [1, 1, 1]


def test_a_buried_relay_is_told_so_and_changes_nothing(outbox: OutboxSession) -> None:
    zombie = outbox.relay()
    numbers = outbox.emit_many(["a", "b"])
    outbox.claim_events(zombie)
    living = judge(outbox)
    outbox.expire_relay(zombie)
    outbox.beat(living)

    assert outbox.exchange(zombie, delivered=numbers).finished is None
    assert outbox.beat(zombie)[0] is False
    assert outbox.waiting() == numbers


def test_only_a_judge_that_was_steady_for_a_lease_buries(outbox: OutboxSession) -> None:
    """After an outage everybody was late, and nobody is dead for it."""
    late = outbox.relay(lease=45)
    other = outbox.relay(lease=45)
    outbox.make_steady(other)
    outbox.advance(100)
    outbox.beat(other)

    assert outbox.beat(late)[0] is True
    outbox.expire_relay(late)
    for _ in range(4):
        outbox.advance(10)
        outbox.beat(other)
    assert outbox.beat(late)[0] is True


def test_a_judge_is_as_patient_as_the_lease_of_whom_it_buries(outbox: OutboxSession) -> None:
    slow = outbox.relay(lease=300)
    quick = outbox.relay(lease=10)
    outbox.make_steady(quick)
    outbox.expire_relay(slow)
    outbox.beat(quick, lease=10)

    assert outbox.beat(slow, lease=300)[0] is True


def test_a_late_heartbeat_is_valid_while_the_row_is_there(outbox: OutboxSession) -> None:
    relay = outbox.relay()
    numbers = outbox.emit("k")
    outbox.claim_events(relay)
    outbox.advance(100_000)

    assert outbox.beat(relay)[0] is True
    assert outbox.exchange(relay, delivered=numbers).finished == 1


def test_the_lease_is_four_times_a_batch(outbox: OutboxSession) -> None:
    relay = outbox.relay(lease=10)
    outbox.beat(relay, lease=10, batch=60)

    assert outbox.value("SELECT extract(epoch FROM lease)::int FROM livewell.relay") == 240


def test_a_suspect_goes_alone(outbox: OutboxSession) -> None:
    """And before it the first of its key, as the order asks."""
    numbers = outbox.emit_many(["a", "b", "b", "c"])
    relay = outbox.relay()
    outbox.rows("UPDATE livewell.event_delivery SET lost = 2 WHERE number = %s", numbers[2])

    assert outbox.claim_events(relay) == [numbers[1]]
    assert outbox.exchange(relay, delivered=[numbers[1]]).numbers == [numbers[2]]
    assert outbox.exchange(relay, delivered=[numbers[2]]).numbers == [numbers[0], numbers[3]]


@pytest.mark.parametrize("parks", [False, True])
def test_the_fifth_loss_makes_a_dead_letter(outbox: OutboxSession, parks: bool) -> None:
    killer, later = outbox.emit("k", n=2, topic=PARKING if parks else "orders.created")
    relay = outbox.relay()
    outbox.rows("UPDATE livewell.event_delivery SET lost = 4 WHERE number = %s", killer)
    assert outbox.claim_events(relay) == [killer]
    living = judge(outbox)
    outbox.expire_relay(relay)
    outbox.beat(living)

    assert outbox.letters() == [(killer, "lost", parks)]
    assert [event.number for event in outbox.drain(living)] == ([] if parks else [later])
    assert outbox.blocks() == ([("parked", killer)] if parks else [])


def test_a_straggler_of_a_dead_relay_goes_again(outbox: OutboxSession) -> None:
    relay = outbox.relay()
    slow, behind = outbox.emit("k", n=2)
    outbox.claim_events(relay, 1)
    outbox.exchange(relay, sending=[slow])
    living = judge(outbox)
    outbox.expire_relay(relay)
    outbox.beat(living)

    assert [event.number for event in outbox.drain(living)] == [slow, behind]


def test_a_graceful_end_loses_nothing_and_blames_nobody(outbox: OutboxSession) -> None:
    relay = outbox.relay()
    numbers = outbox.emit_many(["a", "a", "b"])
    outbox.claim_events(relay)

    assert outbox.value("SELECT livewell.release_relay(%s)", relay) == 3
    assert outbox.value("SELECT livewell.release_relay(%s)", relay) == 0
    assert outbox.claim_events(outbox.relay()) == numbers
    assert outbox.column("SELECT DISTINCT lost FROM livewell.event_delivery") == [0]


def test_there_is_no_relay_for_an_unknown_or_outside_sink(outbox: OutboxSession) -> None:
    outbox.sink("theirs", outside=True)

    assert outbox.column("SELECT livewell.register_relay(s, 'x', '1', 45) FROM unnest('{nope,theirs}'::text[]) s") == [
        None,
        None,
    ]


def test_numbers_of_nobody_are_refused_nowhere(outbox: OutboxSession) -> None:
    """An exchange of a relay that never was answers nothing at all."""
    assert outbox.exchange(10**9, delivered=[1]).finished is None
    with pytest.raises(psycopg.Error):
        outbox.rows("SELECT livewell.claim_events(NULL, 'x', NULL)")
