"""O5: why an event has not arrived, with the next step: the first thing that stands in its way."""

from __future__ import annotations

from tests.support.outbox_sql import PARKING, SINK, OutboxSession


def why(outbox: OutboxSession, number: int, sink: str | None = SINK) -> str:
    """The one code; every answer has words and a next step."""
    [(_, code, words, step)] = outbox.rows("SELECT * FROM livewell.why_event(%s, %s)", str(number), sink)
    assert words
    assert step
    return str(code)


def test_each_thing_that_can_stand_in_the_way(outbox: OutboxSession) -> None:
    [number] = outbox.emit("k")
    assert why(outbox, number) == "no_relay"

    relay = outbox.relay()
    assert why(outbox, number) == "waiting"

    outbox.beat(relay, away="it is down")
    assert why(outbox, number) == "away"

    outbox.rows("SELECT livewell.pause_sink(%s, true)", SINK)
    assert why(outbox, number) == "paused"
    outbox.rows("SELECT livewell.pause_sink(%s, false)", SINK)

    outbox.beat(relay)
    outbox.claim_events(relay)
    assert why(outbox, number) == "in_flight"

    outbox.exchange(relay, failed=[number], limit=0)
    assert why(outbox, number) == "failed"

    [behind] = outbox.emit("k")
    outbox.claim_events(relay)
    assert why(outbox, behind) == "behind"

    outbox.advance(2)
    outbox.claim_events(relay)
    outbox.exchange(relay, refused=[number], limit=0)
    assert (why(outbox, number), why(outbox, behind)) == ("dead", "draining")

    outbox.drain(relay)
    assert why(outbox, behind) == "delivered"


def test_what_is_parked_says_behind_which_event(outbox: OutboxSession) -> None:
    first, second = outbox.emit("k", n=2, topic=PARKING)
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, refused=[first], limit=0)
    outbox.claim_events(relay)

    [(_, code, words, step)] = outbox.rows("SELECT * FROM livewell.why_event(%s, %s)", str(second), SINK)
    assert code == "parked"
    assert f"-{first}" in words
    assert f"-{first} --sink {SINK}" in step


def test_a_sink_that_does_not_take_it_and_one_that_came_later(outbox: OutboxSession) -> None:
    [number] = outbox.emit("k")
    outbox.sink("deaf", ["nothing.*"])
    outbox.sink("late")

    assert why(outbox, number, "deaf") == "not_routed"
    assert why(outbox, number, "late") == "not_recorded"
    assert outbox.rows("SELECT * FROM livewell.why_event('7', %s)", SINK) == []
    assert len(outbox.rows("SELECT * FROM livewell.why_event(%s, NULL)", str(number))) == 3


def test_a_sink_that_nobody_claims_from(outbox: OutboxSession) -> None:
    outbox.sink("out", outside=True)
    [number] = outbox.emit("k")
    assert why(outbox, number, "out") == "nobody_claims"
