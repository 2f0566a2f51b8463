"""What operators see: sinks, tenants, turns, keys that wait, dead letters, one event."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row

from tests.support.outbox_sql import PARKING, SINK, TOPIC, OutboxSession


def records(outbox: OutboxSession, query: str, *params: Any) -> list[dict[str, Any]]:
    with outbox.connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query.encode(), params).fetchall()


def sink_record(outbox: OutboxSession, name: str = SINK) -> dict[str, Any]:
    [row] = records(outbox, "SELECT * FROM livewell.list_sinks(%s)", name)
    return row


def test_a_sink_says_what_waits_for_it_and_who_delivers(outbox: OutboxSession) -> None:
    first, *_ = outbox.emit_many(["a", "a", "b", "c"])
    parked = outbox.emit("p", n=2, topic=PARKING)
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=[first], refused=[parked[0]], limit=0)
    outbox.beat(relay, away="it is down")

    found = sink_record(outbox)
    assert (found["waiting"], found["aside"], found["dead"]) == (5, 1, 1)
    assert (found["blocked"], found["parked"]) == (1, 1)
    assert (found["relays"], found["shards"]) == (1, 64)
    assert found["away_reason"] == "it is down"
    assert found["oldest_id"].endswith(f"-{first}")
    assert not found["waiting_is_more"]


def test_the_oldest_is_found_behind_ten_thousand_of_another_sink(outbox: OutboxSession) -> None:
    """The first look has none of this sink; the walk has."""
    outbox.sink("other", ["other"])
    outbox.topic("other")
    outbox.sink("busy")
    for _ in range(3):
        outbox.emit_many(["a"] * 5000)
    outbox.rows(
        "DELETE FROM livewell.event_delivery WHERE sink = (SELECT id FROM livewell.event_sink WHERE name = %s)", SINK
    )
    [number] = outbox.emit("z", topic="other")

    assert sink_record(outbox, "other")["oldest_id"].endswith(f"-{number}")
    busy = sink_record(outbox, "busy")
    assert (busy["waiting"], busy["waiting_is_more"]) == (10_000, True)


def test_tenants_that_have_waited_longest_come_first(outbox: OutboxSession) -> None:
    """What is set aside counts as waiting since it was emitted, too."""
    slow, *_ = outbox.emit_many(["k", "k"], tenants=["slow", "slow"])
    outbox.emit_many(["a", "b", "c"], tenants=["quick"] * 3)
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=[slow], limit=0)

    found = records(outbox, "SELECT * FROM livewell.list_lag(%s, 10)", SINK)
    assert [(row["tenant"], row["is_blocked"], row["waiting"]) for row in found] == [
        ("slow", True, 1),
        ("quick", False, 3),
    ]
    assert {row["is_all"] for row in found} == {True}


def test_the_fair_share_is_the_places_over_what_one_claim_comes_to(outbox: OutboxSession) -> None:
    """700 tenants with one event each are up to 700 places, so every tenant has its turn in three claims."""
    outbox.emit_many([f"k{i}" for i in range(700)], tenants=[f"t{i}" for i in range(700)])
    relay = outbox.relay()

    [row] = records(outbox, "SELECT * FROM livewell.fair_share(%s)", SINK)
    assert (row["relay"], row["shards"], row["places"], row["claims"]) == (relay, 64, 700, 3)
    reached: set[str] = set()
    done: list[int] = []
    for _ in range(row["claims"]):
        batch = outbox.exchange(relay, delivered=done, limit=1000)
        reached |= {event.tenant for event in batch.events}
        done = batch.numbers
    assert len(reached) == 700


def test_a_page_of_blocks_names_the_event_and_counts_what_is_behind(outbox: OutboxSession) -> None:
    parked = outbox.emit("p", n=3, topic=PARKING, tenant="acme")
    [failing] = outbox.emit("f")
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, refused=[parked[0]], failed=[failing], limit=0)
    outbox.claim_events(relay)

    query = "SELECT * FROM livewell.list_blocks(%s, %s, %s, %s)"
    [row] = records(outbox, query, None, "parked", None, 10)
    assert (row["tenant"], row["key"], row["topic"], row["aside"]) == ("acme", "p", PARKING, 2)
    assert row["event_id"].endswith(f"-{parked[0]}")
    assert (row["reason"], row["retry_at"], row["relay"]) == ("it was refused", None, relay)

    [first] = records(outbox, query, SINK, None, None, 1)
    [second] = records(outbox, query, SINK, None, first["next"], 1)
    assert {first["state"], second["state"]} == {"parked", "failed"}
    [last] = records(outbox, query, SINK, None, second["next"], 1)
    assert (last["next"], last["state"]) == (None, None)


def test_dead_events_are_listed_by_keyset_and_grouped(outbox: OutboxSession) -> None:
    outbox.sink("other", [TOPIC])
    numbers = outbox.emit_many([f"k{i}" for i in range(5)])
    [parked] = outbox.emit("p", topic=PARKING)
    for name in (SINK, "other"):
        relay = outbox.relay(name)
        outbox.exchange(relay, refused=outbox.claim_events(relay), limit=0)

    query = "SELECT * FROM livewell.list_dead_events(%s, %s, %s, %s, %s, %s)"
    seen: list[tuple[int, str]] = []
    after: tuple[int | None, str | None] = (None, None)
    while page := records(outbox, query, None, None, "refused", *after, 2):
        seen += [(row["number"], row["sink"]) for row in page]
        after = seen[-1]
    assert seen == sorted([*((n, "other") for n in numbers), *((n, SINK) for n in [*numbers, parked])])
    assert [row["number"] for row in records(outbox, query, SINK, PARKING, None, None, None, 100)] == [parked]
    assert records(outbox, query, None, None, "lost", None, None, 100) == []

    groups = records(outbox, "SELECT * FROM livewell.group_dead_events(10)")
    assert [(row["sink"], row["topic"], row["reason"], row["n"], row["parks"]) for row in groups] == [
        ("other", TOPIC, "refused", 5, 0),
        (SINK, TOPIC, "refused", 5, 0),
        (SINK, PARKING, "refused", 1, 1),
    ]


def test_one_event_is_found_by_its_id_and_by_its_number(outbox: OutboxSession) -> None:
    outbox.rows("SELECT livewell.emit_event(%s, %s::json, 'k', 'acme', 'trace')", TOPIC, '{"a":  1.50}')
    given = outbox.value("SELECT livewell.event_id(max(number)) FROM livewell.event")

    for name in (given, given.split("-")[1]):
        [row] = records(outbox, "SELECT * FROM livewell.show_event(%s)", name)
        assert (row["id"], row["payload"], row["tenant"]) == (given, '{"a":  1.50}', "acme")
    for name in ("00000000-1", "nonsense", "", given + "0"):
        assert records(outbox, "SELECT * FROM livewell.show_event(%s)", name) == []


def test_how_far_an_event_is_at_each_sink(outbox: OutboxSession) -> None:
    """One of each: delivered, in flight, waiting, blocked, behind, dead, not routed."""
    for name in ("delivered", "flying", "waiting", "failing", "dead"):
        outbox.sink(name, [TOPIC])
    outbox.sink("none", ["other"])
    outbox.rows(
        "DELETE FROM livewell.event_route WHERE sink = (SELECT id FROM livewell.event_sink WHERE name = %s)", SINK
    )
    first, second = outbox.emit("k", n=2)
    relays = {name: outbox.relay(name) for name in ("delivered", "failing", "dead")}
    for relay in relays.values():
        outbox.claim_events(relay)
    outbox.exchange(relays["delivered"], delivered=[first], limit=0)
    outbox.exchange(relays["failing"], failed=[first])  # sets the second aside
    outbox.exchange(relays["dead"], refused=[first], limit=0)
    outbox.claim_events(outbox.relay("flying"))

    query = "SELECT s.* FROM livewell.event e, livewell.list_event_states(e.number, e.day, NULL) s WHERE e.number = %s"
    states = {row["sink"]: row for row in records(outbox, query, first)}
    assert {name: row["state"] for name, row in states.items()} == {
        "delivered": "delivered",
        "flying": "in flight",
        "waiting": "waiting",
        "failing": "blocked",
        "dead": "dead",
        "none": "not routed",
        SINK: "not routed",
    }
    assert states["dead"]["reason"] == "refused"
    [behind] = [row for row in records(outbox, query, second) if row["sink"] == "failing"]
    assert (behind["state"], behind["block_state"]) == ("set aside", "failed")
    assert behind["behind"].endswith(f"-{first}")
