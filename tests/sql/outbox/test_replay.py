"""Demand 9: history goes out once more, with the same ids, behind what is new, at a rate."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.outbox_sql import SINK, TOPIC, OutboxSession


def begin(outbox: OutboxSession, *, rate: float = 1000, key: str | None = None, topic: str | None = None) -> int:
    """Of everything until now."""
    return int(
        outbox.value(
            "SELECT livewell.begin_replay(%s, %s, NULL, %s, livewell.now() - interval '1 day', NULL, %s, "
            "gen_random_uuid()::text)",
            SINK,
            topic,
            key,
            rate,
        )
    )


def feed(outbox: OutboxSession, replay: int, *, seconds: float = 1, looks: int = 20_000) -> int | None:
    """One page, a second later."""
    outbox.advance(seconds)
    fed = outbox.value("SELECT livewell.feed_replay(%s, %s)", replay, looks)
    return None if fed is None else int(fed)


def state(outbox: OutboxSession, replay: int) -> tuple[str, int, int]:
    """State, fed, skipped."""
    [(name, fed, skipped)] = outbox.rows(
        "SELECT state::text, fed, skipped FROM livewell.event_replay WHERE id = %s", replay
    )
    return name, fed, skipped


def finish(outbox: OutboxSession, replay: int, relay: int) -> list[int]:
    """Feed and deliver until it is done."""
    numbers: list[int] = []
    for _ in range(50):
        if feed(outbox, replay) is None:
            return numbers
        numbers += [event.number for event in outbox.drain(relay)]
    raise AssertionError("it does not end")


def test_history_is_delivered_again_in_the_order_of_each_key(outbox: OutboxSession) -> None:
    numbers = outbox.emit_many([f"k{i % 3}" for i in range(30)])
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)
    replay = begin(outbox)

    again = finish(outbox, replay, relay)
    assert sorted(again) == numbers
    for key in range(3):
        assert [n for n in again if n in numbers[key::3]] == numbers[key::3]
    assert state(outbox, replay) == ("done", 30, 0)


def test_replayed_events_say_so(outbox: OutboxSession) -> None:
    outbox.emit("k")
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)
    feed(outbox, begin(outbox))

    rows = outbox.rows("SELECT * FROM livewell.exchange_events(%s, '{}', '{}', '{}', '{}', '{}', 10)", relay)
    assert [row[-1] for row in rows if row[0] == "event"] == [True]


def test_what_still_waits_is_not_given_a_second_delivery(outbox: OutboxSession) -> None:
    """Nor a dead letter: that one is redriven."""
    dead, waiting = outbox.emit_many(["a", "b"])
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, refused=[dead], limit=0)
    outbox.advance(1)
    replay = begin(outbox)

    assert feed(outbox, replay) == 0
    assert state(outbox, replay)[1:] == (0, 2)
    assert outbox.waiting() == [waiting]
    assert outbox.value("SELECT NOT replay FROM livewell.event_delivery")


def test_no_more_than_the_rate_a_second(outbox: OutboxSession) -> None:
    """Also after a pause: what it did not use is not saved up."""
    outbox.emit_many(["a"] * 100)
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)
    replay = begin(outbox, rate=10)

    assert [feed(outbox, replay) for _ in range(3)] == [10, 10, 10]
    assert feed(outbox, replay, seconds=0) == 0
    assert feed(outbox, replay, seconds=60) == 10


def test_it_waits_while_the_sink_is_busy_with_what_is_new(outbox: OutboxSession) -> None:
    """Seen failing (it fed at once) without the look at what waits."""
    outbox.emit("old")
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)
    replay = begin(outbox)
    outbox.emit_many(["new"] * 1000)

    assert feed(outbox, replay) == 0
    outbox.drain(relay)
    assert feed(outbox, replay) == 1


def test_a_replayed_event_that_fails_holds_up_nothing_new(outbox: OutboxSession) -> None:
    """It has a lane of its own. Seen failing (the new event waited) with the lane of its key."""
    [old] = outbox.emit("k")
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)
    feed(outbox, begin(outbox))
    assert outbox.claim_events(relay) == [old]
    outbox.exchange(relay, failed=[old], limit=0, again=3600)

    [new] = outbox.emit("k")
    assert outbox.claim_events(relay) == [new]


def test_replays_are_one_tenant_more(outbox: OutboxSession) -> None:
    """Of a batch of ten, a tenant with one event has its turn beside a thousand replayed ones."""
    outbox.emit_many([f"k{i}" for i in range(500)])
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)
    feed(outbox, begin(outbox))
    [new] = outbox.emit("quick", tenant="acme")

    assert new in outbox.claim_events(relay, 10)


def test_only_the_key_and_the_topic_that_were_asked_for(outbox: OutboxSession) -> None:
    outbox.topic("other")
    wanted = outbox.emit("k", n=2)
    outbox.emit("x")
    outbox.emit("k", topic="other")
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)

    assert finish(outbox, begin(outbox, key="k", topic=TOPIC), relay) == wanted


def test_it_goes_on_where_a_page_ended(outbox: OutboxSession) -> None:
    """A page looks at a bounded number of events, also when none of them is wanted."""
    outbox.emit_many(["x"] * 50)
    [wanted] = outbox.emit("k")
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)
    replay = begin(outbox, key="k")

    assert [feed(outbox, replay, looks=20) for _ in range(3)] == [0, 0, 1]
    assert outbox.waiting() == [wanted]
    assert outbox.value("SELECT progress FROM livewell.list_replays(NULL, 1, false)") == 1


def test_a_cancelled_replay_feeds_nothing_more(outbox: OutboxSession) -> None:
    outbox.emit_many(["a"] * 20)
    relay = outbox.relay()
    outbox.drain(relay)
    outbox.advance(1)
    replay = begin(outbox, rate=5)
    feed(outbox, replay)

    cancel = "SELECT livewell.cancel_replay(%s)"
    assert [outbox.value(cancel, replay), outbox.value(cancel, replay), outbox.value(cancel, 0)] == [
        "ended",
        "cancelled",
        None,
    ]
    assert feed(outbox, replay) is None
    assert len(outbox.drain(relay)) == 5


def test_a_request_that_is_repeated_is_the_same_replay(outbox: OutboxSession) -> None:
    outbox.emit("k")
    query = "SELECT livewell.begin_replay(%s, NULL, NULL, NULL, livewell.now() - interval '1 day', NULL, 10, 'mine')"
    assert outbox.value(query, SINK) == outbox.value(query, SINK)


@pytest.mark.parametrize(
    ("sink", "topic", "rate", "words"),
    [
        ("nobody", None, 1, "not declared"),
        (SINK, "other.topic", 1, "does not take topic"),
        (SINK, None, 0, "events a second"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    outbox: OutboxSession, sink: str, topic: str | None, rate: float, words: str
) -> None:
    query = "SELECT livewell.begin_replay(%s, %s, NULL, NULL, livewell.now() - interval '1 day', NULL, %s, 'r')"
    with pytest.raises(psycopg.Error, match=words):
        outbox.rows(query, sink, topic, rate)


def test_what_is_replayed_is_found_although_a_relay_has_a_mark(outbox: OutboxSession) -> None:
    """Seen failing while the mark was left: the events waited for the next look from the beginning."""
    relay = outbox.relay()
    numbers = outbox.emit("k", n=3)
    outbox.drain(relay)
    outbox.advance(1)
    replay = begin(outbox)
    outbox.rows(
        "UPDATE livewell.relay r SET mark = 1000000000000, mark_until = 'infinity', mark_moved_at = livewell.now(), "
        "mark_shards = ARRAY(SELECT h.shard FROM livewell.relay_shard h WHERE h.relay = r.id ORDER BY h.shard)"
    )

    assert feed(outbox, replay) == 3
    assert outbox.claim_events(relay) == numbers
