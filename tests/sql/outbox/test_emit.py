"""O1: what may be emitted, and what an event is then."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.outbox_sql import PARKING, TOPIC, OutboxSession

EMIT = "SELECT livewell.emit_event(%s, %s::json, %s, %s, %s)"
FINE = ['{"a": "\\u00e9"}', '"\\ud83d\\ude00"', '"\\\\u0000"', '{"n": 1e200000, "s": "\\u00e9"}', "null", "1.50"]
BAD = ['"\\u0000"', '"\\ud83d"', '"\\ude00"', '"\\ud83d x \\ude00"', '{"n": 1e200000, "s": "\\u0000"}']


def refused(outbox: OutboxSession, *arguments: object) -> tuple[str | None, str]:
    """SQLSTATE and words of an emission that is refused."""
    with pytest.raises(psycopg.Error) as caught:
        outbox.rows(EMIT, *arguments)
    return caught.value.sqlstate, caught.value.diag.message_primary or ""


@pytest.mark.parametrize("payload", FINE)
def test_the_payload_is_kept_letter_by_letter(outbox: OutboxSession, payload: str) -> None:
    """Spaces, escapes, digits and all: whatever stands for a character, and any number."""
    outbox.emit("k", payload=payload)

    assert outbox.column("SELECT payload::text FROM livewell.event") == [payload]
    assert [event.payload for event in outbox.drain(outbox.relay())] == [payload]


@pytest.mark.parametrize("payload", BAD)
def test_an_escape_that_stands_for_no_character_is_refused(outbox: OutboxSession, payload: str) -> None:
    """NUL, and half of a surrogate pair: receivers could not read them. One and many alike."""
    assert refused(outbox, TOPIC, payload, "k", "", None)[0] == "LW005"
    with pytest.raises(psycopg.Error, match="stands for no character"):
        outbox.rows("SELECT livewell.emit_events(%s, %s, %s, %s)", [TOPIC] * 2, ["{}", payload], ["k", "k"], ["", ""])
    assert outbox.waiting() == []


def test_an_unknown_topic_is_refused_with_what_mends_it(outbox: OutboxSession) -> None:
    state, words = refused(outbox, "orders.lost", "{}", "k", "", None)

    assert (state, "livewell outbox topics declare orders.lost" in words) == ("LW003", True)


def test_bounds_are_those_of_the_topic_and_count_bytes(outbox: OutboxSession) -> None:
    """A letter of two bytes counts two; one byte less fits."""
    outbox.topic("small", payload_bytes_max=6)

    outbox.emit(topic="small", payload='"éé"')
    state, words = refused(outbox, "small", '"ééa"', None, "", None)
    assert (state, "7 bytes; 6 are allowed" in words) == ("LW005", True)


@pytest.mark.parametrize(
    ("key", "tenant", "trace"), [("k" * 513, "", None), ("k", "t" * 201, None), ("k", "", "x" * 201)]
)
def test_key_tenant_and_trace_have_bounds(outbox: OutboxSession, key: str, tenant: str, trace: str | None) -> None:
    assert refused(outbox, TOPIC, "{}", key, tenant, trace)[0] == "LW003"
    outbox.rows(EMIT, TOPIC, "{}", key[:512], tenant[:200], trace and trace[:200])


def test_no_payload_is_refused_and_a_null_is_one(outbox: OutboxSession) -> None:
    assert refused(outbox, TOPIC, None, "k", "", None)[0] == "LW005"
    outbox.emit("k", payload="null")


def test_an_empty_key_is_a_key(outbox: OutboxSession) -> None:
    """Its events have an order; those without a key have none, and each a lane of its own."""
    outbox.emit("", n=2)
    outbox.emit(None, n=2)

    lanes = outbox.column("SELECT key_hash FROM livewell.event_delivery ORDER BY number")
    assert (len(set(lanes[:2])), len(set(lanes[2:]))) == (1, 2)


def test_no_tenant_is_the_empty_tenant(outbox: OutboxSession) -> None:
    outbox.rows(EMIT, TOPIC, "{}", "k", None, None)
    outbox.emit("k", tenant="")

    assert len(set(outbox.column("SELECT key_hash FROM livewell.event_delivery"))) == 1


def test_tenants_and_keys_are_not_run_together(outbox: OutboxSession) -> None:
    """Tenant a with key "b\\x1fc" and tenant "a\\x1fb" with key c share no lane: one could block the other."""
    outbox.emit("b\x1fc", tenant="a")
    outbox.emit("c", tenant="a\x1fb")

    assert len(set(outbox.column("SELECT key_hash FROM livewell.event_delivery"))) == 2


def test_an_event_exists_exactly_if_its_transaction_commits(outbox: OutboxSession, other_outbox: OutboxSession) -> None:
    relay = outbox.relay()
    with other_outbox.connection.transaction():
        [number] = other_outbox.emit("k")
        assert outbox.claim_events(relay) == []
    with other_outbox.connection.transaction(force_rollback=True):
        other_outbox.emit("k")

    assert [event.number for event in outbox.drain(relay)] == [number]


def test_many_are_numbered_in_their_order_and_are_all_or_none(outbox: OutboxSession) -> None:
    numbers = outbox.emit_many(["a", None, "a", ""])

    assert numbers == sorted(numbers)
    assert outbox.column("SELECT key FROM livewell.event ORDER BY number") == ["a", None, "a", ""]
    with pytest.raises(psycopg.Error):
        outbox.rows("SELECT livewell.emit_events(%s, %s, %s, %s)", [TOPIC, "nope"], ["{}", "{}"], ["k", "k"], ["", ""])
    assert len(outbox.waiting()) == 4


def test_arrays_of_different_lengths_are_refused(outbox: OutboxSession) -> None:
    """A key that is missing would be no key, and its order lost without a word."""
    with pytest.raises(psycopg.Error, match="2 topics, 2 payloads, 1 keys and 2 tenants"):
        outbox.rows("SELECT livewell.emit_events(%s, %s, %s, %s)", [TOPIC] * 2, ["{}"] * 2, ["k"], ["", ""])


def test_every_sink_of_the_topic_gets_it_with_progress_of_its_own(outbox: OutboxSession) -> None:
    outbox.sink("paid", topics=["orders.paid"])
    outbox.sink("all", topics=["orders.*"], ordered=False)
    [created] = outbox.emit("k")
    [paid] = outbox.emit("k", topic=PARKING)

    assert [event.number for event in outbox.drain(outbox.relay("paid"))] == [paid]
    assert [event.number for event in outbox.drain(outbox.relay("all"))] == [created, paid]
    assert [event.number for event in outbox.drain(outbox.relay())] == [created, paid]


def test_an_event_without_a_sink_is_kept_and_delivered_to_nobody(outbox: OutboxSession) -> None:
    outbox.rows("DELETE FROM livewell.event_route")
    outbox.emit("k")

    assert (outbox.value("SELECT count(*) FROM livewell.event"), outbox.waiting()) == (1, [])


def test_the_day_is_that_of_the_clock_in_utc(outbox: OutboxSession) -> None:
    """Before midnight into today's partition, after it into tomorrow's."""
    outbox.rows("UPDATE livewell_test.clock SET frozen_at = date_trunc('day', frozen_at, 'UTC') + interval '86399 s'")
    outbox.emit("k")
    outbox.advance(2)
    outbox.emit("k")

    days = outbox.column("SELECT tableoid::regclass::text FROM livewell.event ORDER BY number")
    assert len(set(days)) == 2
    assert [event.key for event in outbox.drain(outbox.relay())] == ["k", "k"]


def test_after_a_failover_numbers_begin_above_all_that_were_drawn(outbox: OutboxSession) -> None:
    """Once for each timeline, and not again for the next event."""
    [before] = outbox.emit("k")
    outbox.rows("SELECT setval('livewell.event_timeline_seq', 0)")
    [after, next_one] = outbox.emit("k", n=2)

    assert after - before > 2**28
    assert next_one == after + 1


def test_the_id_begins_with_the_installation(outbox: OutboxSession) -> None:
    install = outbox.value("SELECT install FROM livewell.event_source")
    answer = outbox.value(EMIT, TOPIC, "{}", None, "", None)

    assert answer == f"{install}-{outbox.waiting()[0]}"
