"""O3: what an exchange settles, and that only the holder of an event can."""

from __future__ import annotations

import pytest

from tests.support.outbox_sql import PARKING, TOPIC, OutboxSession


def test_the_count_is_of_what_was_still_held(outbox: OutboxSession) -> None:
    """Numbers of others, of nobody, and of another relay count for nothing and change nothing."""
    one, two = outbox.emit_many(["a", "b"])
    relay = outbox.relay()
    outbox.claim_events(relay)
    other = outbox.relay()

    assert outbox.exchange(other, delivered=[one, two], limit=0).finished == 0
    assert outbox.exchange(relay, delivered=[one, 10**9], limit=0).finished == 1
    assert outbox.waiting() == [two]


def test_an_exchange_that_is_sent_again_does_no_harm(outbox: OutboxSession) -> None:
    """Its answer was lost: what it claimed goes back, and nothing counts twice."""
    first = outbox.emit_many(["a", "b"])
    relay = outbox.relay()
    outbox.claim_events(relay)
    second = outbox.emit_many(["a", "c"])
    assert outbox.exchange(relay, delivered=first).numbers == second

    again = outbox.exchange(relay, delivered=first)
    assert (again.finished, again.numbers) == (0, second)
    assert outbox.value("SELECT sum(cardinality(places)) FROM livewell.event_sent") == 2


def test_what_is_not_mentioned_goes_back_and_nobody_is_to_blame(outbox: OutboxSession) -> None:
    numbers = outbox.emit_many(["a", "a", "b"])
    relay = outbox.relay()
    outbox.claim_events(relay)

    again = outbox.exchange(relay)
    assert (again.numbers, {event.attempt for event in again.events}) == (numbers, {0})


def test_every_verdict_has_its_end(outbox: OutboxSession) -> None:
    good, bad, unknown, refused = outbox.emit_many(["a", "b", "c", "d"])
    relay = outbox.relay()
    outbox.claim_events(relay)

    done = outbox.exchange(relay, delivered=[good], failed=[bad], unknown=[unknown], refused=[refused], limit=0)
    assert done.finished == 4
    assert outbox.waiting() == [bad, unknown]
    assert outbox.column("SELECT attempt FROM livewell.event_delivery") == [1, 1]
    assert outbox.letters() == [(refused, "refused", False)]
    assert outbox.column("SELECT reason FROM livewell.event_block ORDER BY number") == [
        "it was failed",
        "it was unknown",
        "it was refused",
    ]


def test_what_was_sent_is_written_down(outbox: OutboxSession) -> None:
    """By block of 1,024 numbers."""
    numbers = outbox.emit_many([None] * 5)
    relay = outbox.relay()
    outbox.exchange(relay, delivered=outbox.claim_events(relay))

    assert sorted(outbox.column("SELECT block * 1024 + unnest(places) FROM livewell.event_sent")) == numbers


@pytest.mark.parametrize(("again", "seconds"), [(None, 60), (7.0, 7), (0.0, 0), (1e9, 3600), (-5.0, 60)])
def test_the_pause_is_the_sinks_own_or_what_it_asked_for(
    outbox: OutboxSession, again: float | None, seconds: float
) -> None:
    """Seen failing: without a time of its own every event waited for an hour."""
    outbox.sink(backoff_base_seconds=60, backoff_cap_seconds=600)
    [bad] = outbox.emit("k")
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=[bad], again=again, limit=0)

    waits = outbox.value("SELECT extract(epoch FROM retry_at - livewell.now())::float8 FROM livewell.event_block")
    spread = 0.2 if again is None or again < 0 else 0
    assert seconds * (1 - spread) - 0.01 <= waits <= seconds * (1 + spread) + 0.01


def test_the_pause_doubles_up_to_its_cap(outbox: OutboxSession) -> None:
    outbox.sink(backoff_base_seconds=10, backoff_cap_seconds=50)
    [bad] = outbox.emit("k")
    relay = outbox.relay()
    waits = []
    for _ in range(4):
        assert outbox.claim_events(relay) == [bad]
        outbox.exchange(relay, failed=[bad], limit=0)
        waits.append(
            outbox.value("SELECT extract(epoch FROM retry_at - livewell.now())::float8 FROM livewell.event_block")
        )
        outbox.advance(100)

    assert [round(wait / base) for wait, base in zip(waits, (10, 20, 40, 50), strict=True)] == [1, 1, 1, 1]


def test_the_last_attempt_makes_a_dead_letter_and_the_key_goes_on(outbox: OutboxSession) -> None:
    """Of a topic that continues; the letter says that the order was broken by it."""
    outbox.sink(attempts=2)
    bad, later = outbox.emit("k", n=2)
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=[bad], limit=0)
    outbox.advance(2)

    assert outbox.exchange(relay).numbers == [bad]
    assert outbox.exchange(relay, failed=[bad]).numbers == [later]
    assert outbox.letters() == [(bad, "attempts", False)]
    assert outbox.rows("SELECT attempt, topic, detail FROM livewell.dead_event") == [(2, TOPIC, "it was failed")]


def test_a_topic_that_parks_holds_up_its_key_and_no_other(outbox: OutboxSession) -> None:
    dead, *later = outbox.emit("k", n=3, topic=PARKING)
    later += outbox.emit("k", topic=TOPIC)
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, refused=[dead], limit=0)
    [good] = outbox.emit("good", topic=PARKING)
    outbox.advance(100_000)

    assert [event.number for event in outbox.drain(relay)] == [good]
    assert (outbox.letters(), outbox.blocks()) == ([(dead, "refused", True)], [("parked", dead)])
    assert outbox.aside() == later


def test_a_topic_that_parks_has_nothing_to_park_without_a_key(outbox: OutboxSession) -> None:
    dead, good = outbox.emit(None, n=2, topic=PARKING)
    relay = outbox.relay()
    outbox.claim_events(relay)

    outbox.exchange(relay, refused=[dead], limit=0)
    assert [event.number for event in outbox.drain(relay)] == [good]
    assert outbox.letters() == [(dead, "refused", False)]
    assert outbox.blocks() == []


def test_one_that_fails_behind_a_parked_one_leaves_it_parked(outbox: OutboxSession) -> None:
    """Also from a sink that sent on where it should have stopped."""
    dead, rest, last = outbox.emit("k", n=3, topic=PARKING)
    relay = outbox.relay()
    outbox.claim_events(relay)

    outbox.exchange(relay, refused=[dead], failed=[rest], delivered=[last], limit=0)
    outbox.advance(100_000)
    assert outbox.drain(relay) == []
    assert outbox.blocks() == [("parked", dead)]


def test_secrets_and_length_of_a_reason_are_bounded(outbox: OutboxSession) -> None:
    [bad] = outbox.emit("k")
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.rows(
        "SELECT livewell.exchange_events(%s, %s::bigint[], '{refused}', %s::text[], '{NULL}', '{}', 0)",
        relay,
        [bad],
        ["postgresql://me:hunter2@db/x " + "x" * 5000],
    )

    [detail] = outbox.column("SELECT detail FROM livewell.dead_event")
    assert "hunter2" not in detail
    assert len(detail) <= 500
