"""Sinks that go, and what housekeeping lets go of (O8)."""

from __future__ import annotations

from uuid import uuid4

from tests.support.outbox_sql import PARKING, SINK, TOPIC, OutboxSession


def remove(outbox: OutboxSession, *, force: bool = False, n: int = 10_000) -> str | None:
    answer = outbox.value("SELECT livewell.remove_sink(%s, %s, %s)", SINK, force, n)
    return None if answer is None else str(answer)


def prune(outbox: OutboxSession, n: int = 100) -> int:
    return int(outbox.value("SELECT livewell.prune_outbox(30, 30, %s)", n))


def test_a_sink_with_events_is_not_removed(outbox: OutboxSession) -> None:
    [number] = outbox.emit("k")
    assert remove(outbox) == "waiting"
    assert outbox.waiting() == [number]

    relay = outbox.relay()
    outbox.drain(relay)
    assert remove(outbox) == "removed"
    assert remove(outbox) is None
    assert outbox.exchange(relay).finished is None  # its relay is told that it has lost the lease


def test_told_to_it_drops_what_waits_in_pages(outbox: OutboxSession) -> None:
    """What is dead, set aside and on its way goes too; nothing is routed to it meanwhile."""
    failing, dead, *_ = outbox.emit_many(["a", "b", *["c"] * 8])
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=[failing], refused=[dead])

    assert [remove(outbox, force=True, n=4) for _ in range(3)] == ["more", "more", "removed"]
    for table in ("event_delivery", "dead_event", "event_block", "event_flight", "relay", "relay_shard"):
        assert outbox.value(f"SELECT count(*) FROM livewell.{table}") == 0


def test_what_was_emitted_for_a_sink_that_is_gone_is_dropped(
    outbox: OutboxSession, other_outbox: OutboxSession
) -> None:
    """By a transaction that had read its route before: it would keep its day from leaving."""
    with other_outbox.connection.transaction():
        other_outbox.emit("k")
        assert remove(outbox) == "removed"
    assert len(outbox.waiting()) == 1
    assert prune(outbox) == 1
    assert outbox.waiting() == []


def test_old_dead_letters_leave_and_those_that_park_stay(outbox: OutboxSession) -> None:
    """Also at one sink only, when the event is a younger letter of another."""
    outbox.sink("other")
    [plain] = outbox.emit("a", topic=TOPIC)
    [parks] = outbox.emit("b", topic=PARKING)
    for name in (SINK, "other"):
        relay = outbox.relay(name)
        outbox.exchange(relay, refused=outbox.claim_events(relay), limit=0)
    outbox.rows(
        "UPDATE livewell.dead_event SET died_at = died_at - interval '31 days' WHERE sink = "
        "(SELECT id FROM livewell.event_sink WHERE name = %s)",
        SINK,
    )

    assert (prune(outbox), prune(outbox)) == (1, 0)
    assert outbox.letters() == [(plain, "refused", False), (parks, "refused", True), (parks, "refused", True)]


def test_claimers_outside_whose_lease_is_over_are_ended(outbox: OutboxSession) -> None:
    """A relay of ours is not: only another of ours may judge it."""
    outbox.sink("outbox", outside=True)
    outbox.emit("k")
    outbox.outside_claim(uuid4())
    relay = outbox.relay()
    outbox.expire_relay(relay)
    bury = "SELECT livewell.bury_outside()"

    assert outbox.value(bury) == 0
    outbox.advance(61)
    assert outbox.value(bury) == 1
    assert outbox.column("SELECT id FROM livewell.relay") == [relay]
    assert outbox.outside_claim(uuid4()) != []
