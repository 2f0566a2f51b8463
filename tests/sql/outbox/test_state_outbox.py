"""The outbox in the system state: what waits and since when, of whom, and who delivers it; bounded."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from livewell.outbox.gauges import GAUGES
from livewell.outbox.stuck import stuck
from tests.support.outbox_sql import PARKING, OutboxSession
from tests.support.plans import PlanRecorder

MANY = """
WITH made AS (
    INSERT INTO livewell.event (number, created_at, day, topic, tenant, key, payload)
    SELECT nextval('livewell.event_number_seq'), livewell.now(), (livewell.now() AT TIME ZONE 'UTC')::date,
        'orders.created', 't' || n %% %s, n::text, '{}'
    FROM generate_series(1, %s) n
    RETURNING number, day, tenant
)
INSERT INTO livewell.event_delivery (number, key_hash, day, tenant_hash, sink, shard)
SELECT m.number, m.number, m.day, hashtext(m.tenant), %s, hashint8(m.number) & 63 FROM made m
"""


def state(outbox: OutboxSession) -> dict[str, Any]:
    """As asked now, not as it was ten seconds ago."""
    outbox.rows("DELETE FROM livewell.state_sample")
    found: dict[str, Any] = outbox.value("SELECT livewell.system_state()")["outbox"]
    return found


def sink(outbox: OutboxSession, name: str = "shop") -> dict[str, Any]:
    [found] = [one for one in state(outbox)["sinks"] if one["name"] == name]
    return dict(found)


def lines(outbox: OutboxSession) -> list[str]:
    return list(stuck({"outbox": state(outbox)}))


def fill(outbox: OutboxSession, n: int, *, tenants: int = 1, of: str = "shop") -> None:
    """Many events that wait for one sink, in one statement."""
    number = outbox.value("SELECT id FROM livewell.event_sink WHERE name = %s", of)
    outbox.rows(MANY, tenants, n, number)


def test_nothing_waits_and_nothing_is_stuck(outbox: OutboxSession) -> None:
    """An outbox that was never used is exact, and fair: everybody's turn is the next one."""
    found = state(outbox)
    [one] = found["sinks"]
    assert (found["how"], one["waiting"], one["oldest_seconds"], one["claims_until_turn"]) == ("exact", 0, None, 1)
    assert found["days"]["missing"] == []
    assert found["days"]["ahead"] >= 4
    assert lines(outbox) == []


def test_what_waits_is_counted_and_the_oldest_is_known(outbox: OutboxSession) -> None:
    """By sink; what was delivered does not count, whichever was the first."""
    outbox.sink("ledger", ["none.*"])
    relay = outbox.relay()
    outbox.emit("a", n=2)
    outbox.advance(100)
    outbox.emit("b", n=3)
    outbox.advance(20)
    assert (sink(outbox)["waiting"], sink(outbox)["oldest_seconds"]) == (5, 120)
    outbox.exchange(relay, delivered=outbox.claim_events(relay, 2), limit=0)
    assert (sink(outbox)["waiting"], sink(outbox)["has_waiting"]) == (3, True)
    assert (sink(outbox, "ledger")["waiting"], sink(outbox, "ledger")["has_waiting"]) == (0, False)


def test_an_event_that_has_left_since_the_sample_does_not_grow_older(outbox: OutboxSession) -> None:
    """The sample is up to ten seconds old: what it saw may be gone."""
    relay = outbox.relay()
    outbox.emit("a")
    outbox.advance(2)
    assert sink(outbox)["oldest_seconds"] == 2
    outbox.exchange(relay, delivered=outbox.claim_events(relay), limit=0)
    outbox.advance(8)
    [one] = outbox.value("SELECT livewell.state_outbox()")["sinks"]
    assert (one["oldest_seconds"], one["has_waiting"]) == (2, False)
    assert outbox.value("SELECT livewell.state_outbox()")["tenants"] == []


def test_blocked_keys_are_told_and_what_waits_behind_them(outbox: OutboxSession) -> None:
    """A key that fails, and one that is parked: the age is of what may still go by itself."""
    relay = outbox.relay()
    outbox.emit("parked", topic=PARKING, n=2)
    outbox.advance(500)
    outbox.emit("failing", n=3)
    outbox.advance(100)
    [first, *_] = outbox.claim_events(relay)
    outbox.exchange(relay, refused=[first], limit=0)
    failing = outbox.claim_events(relay)
    outbox.exchange(relay, failed=failing[:1], limit=0)
    outbox.claim_events(relay)  # sets aside what is behind it
    found = sink(outbox)
    assert (found["blocked"], found["parked"], found["aside"], found["waiting"]) == (2, 1, 4, 0)
    assert found["oldest_seconds"] == 100
    assert found["dead_reasons"] == {"refused": 1}
    assert "sink shop: 1 key waits for a person" in lines(outbox)


def test_replays_are_not_late(outbox: OutboxSession) -> None:
    """They are as old as their events. Broken once on purpose (taken for heads): this fails."""
    outbox.emit("a")
    outbox.advance(86_000)
    outbox.rows("UPDATE livewell.event_delivery SET replay = true")
    outbox.emit("b")
    outbox.advance(3)
    assert (sink(outbox)["waiting"], sink(outbox)["oldest_seconds"]) == (2, 3)


def test_relays_say_what_they_hold_and_why_the_sink_is_away(outbox: OutboxSession) -> None:
    """Away is what all that live say, since the first of them said so."""
    one, two = outbox.relay(), outbox.relay()
    outbox.beat(one)
    outbox.beat(two)
    outbox.emit("a", n=5)
    found = sink(outbox)
    assert (found["relays"], found["shards"], found["away_since"]) == (2, 64, None)
    outbox.beat(one, away="connection refused")
    assert sink(outbox)["away_since"] is None
    outbox.advance(30)
    outbox.beat(one, away="connection refused")
    outbox.beat(two, away="login refused")
    outbox.advance(10)
    found = sink(outbox)
    assert (found["away_seconds"], found["away_reason"]) == (40, "connection refused")


def test_a_relay_whose_lease_ran_out_is_no_relay_and_is_counted(outbox: OutboxSession) -> None:
    """It is listed until it is buried; then it is a lost lease (O5)."""
    outbox.relay()
    dead, judge = outbox.relay(), outbox.relay()
    outbox.expire_relay(dead)
    assert (sink(outbox)["relays"], len(state(outbox)["relays"])) == (2, 3)
    outbox.make_steady(judge)
    outbox.beat(judge)
    assert (sink(outbox)["lost_leases"], len(state(outbox)["relays"])) == (1, 2)
    outbox.advance(3601)
    assert sink(outbox)["lost_leases"] == 0


def test_an_outsider_that_held_nothing_lost_no_lease(outbox: OutboxSession) -> None:
    """It came, marked everything, and stays away; one that was given events and is gone did lose them.

    Broken once on purpose (every outsider counted): this fails.
    """
    outbox.sink("outbox", outside=True)
    outbox.emit("a", n=2)
    idle, gone = uuid4(), uuid4()
    outbox.mark_delivered(idle, outbox.outside_claim(idle))
    outbox.advance(120)
    outbox.emit("b")
    assert outbox.outside_claim(gone)
    assert sink(outbox, "outbox")["lost_leases"] == 0
    outbox.advance(120)
    assert outbox.outside_claim(uuid4())
    assert sink(outbox, "outbox")["lost_leases"] == 1


def test_pace_is_of_five_minutes(outbox: OutboxSession) -> None:
    """By what relays count."""
    outbox.rows("SELECT livewell.add_event_stats('shop', '{delivered,failed,unknown}', '{100,10,5}', '{50,0,0}')")
    assert (sink(outbox)["delivered_per_minute"], sink(outbox)["other_per_minute"]) == (20, 3)
    outbox.advance(301)
    assert (sink(outbox)["delivered_per_minute"], sink(outbox)["other_per_minute"]) == (0, 0)


def test_the_tenants_that_wait_longest_come_first(outbox: OutboxSession) -> None:
    """Ten at most, and by their names."""
    for n in range(12):
        outbox.emit("a", n=2, tenant=f"t{n}")
        outbox.advance(10)
    found = state(outbox)["tenants"]
    assert [(one["tenant"], one["lag_seconds"]) for one in found] == [(f"t{n}", 120 - 10 * n) for n in range(10)]


def test_a_large_backlog_is_estimated_and_the_small_one_beside_it_is_counted(outbox: OutboxSession) -> None:
    """60,000 within a fifth; its oldest is exact, for it is the oldest of all."""
    outbox.sink("ledger", ["none.*"])
    fill(outbox, 60_000, tenants=50)
    outbox.advance(60)
    fill(outbox, 7, of="ledger")
    outbox.advance(5)
    found = state(outbox)
    large, small = (next(one for one in found["sinks"] if one["name"] == name) for name in ("shop", "ledger"))
    assert found["how"] == "estimated"
    assert large["waiting"] == pytest.approx(60_000, rel=0.2)
    assert (large["oldest_seconds"], large["oldest_how"]) == (65, "exact")
    assert (small["waiting"], small["oldest_seconds"], small["oldest_how"]) == (7, 5, "exact")


def test_of_two_that_are_far_behind_the_younger_is_at_least_so_old(outbox: OutboxSession) -> None:
    """Its oldest event is not among the oldest of all: the first of each of its shards are looked at."""
    outbox.sink("ledger", ["none.*"])
    fill(outbox, 3000)
    outbox.advance(600)
    fill(outbox, 3000, of="ledger")
    outbox.advance(300)
    fill(outbox, 3000, of="ledger", tenants=20)
    found = sink(outbox, "ledger")
    assert (found["oldest_seconds"], found["oldest_how"]) == (300, "at_least")


@pytest.mark.parametrize(("tenants", "claims", "how"), [(4, 1, "exact"), (100, 25, "exact"), (400, 63, "at_least")])
def test_the_bound_of_fairness_is_told(outbox: OutboxSession, tenants: int, claims: int, how: str) -> None:
    """A claim takes 256 places, a place being a tenant in a shard: 100 tenants in 64 shards are 25 claims."""
    outbox.relay()
    fill(outbox, 64 * tenants * 3, tenants=tenants)
    found = sink(outbox)
    assert found["claims_until_turn"] == pytest.approx(claims, rel=0.3)
    assert found["claims_until_turn_how"] == how


@pytest.mark.parametrize(("batch", "claims"), [(200, 10), (10, 40)])
def test_the_bound_holds(outbox: OutboxSession, batch: int, claims: int) -> None:
    """Every tenant is claimed within so many claims, also where a batch has fewer events than there are tenants."""
    relay = outbox.relay()
    fill(outbox, 64 * 40 * 4, tenants=40)
    outbox.sink("shop", batch_max=batch)
    bound = sink(outbox)["claims_until_turn"]
    assert bound == pytest.approx(claims, rel=0.2)
    seen: set[str] = set()
    for _ in range(bound):
        found = outbox.exchange(relay, limit=batch)
        seen |= {event.tenant for event in found.events}
        outbox.exchange(relay, failed=found.numbers, limit=0)
    assert len(seen) == 40


def test_a_day_without_a_partition_is_named(outbox: OutboxSession) -> None:
    """Tomorrow's, before it is needed; it is dropped by hand here."""
    tomorrow = outbox.value("SELECT to_char((livewell.now() AT TIME ZONE 'UTC')::date + 1, 'YYYYMMDD')")
    outbox.rows(f"DROP TABLE livewell.event_{tomorrow}")
    assert state(outbox)["days"] == {"missing": [f"event_{tomorrow}"], "ahead": 1}
    assert f"partition event_{tomorrow} is missing" in lines(outbox)
    outbox.rows("DELETE FROM livewell.event_topic")
    assert state(outbox)["days"] == {"missing": [], "ahead": None}  # nothing can be emitted
    outbox.topic("orders.created")
    outbox.rows("SELECT livewell.ensure_event_days(3)")
    assert state(outbox)["days"]["missing"] == []


def test_what_stands_still_is_said_in_few_words(outbox: OutboxSession) -> None:
    """The first thing that an operator looks for on the screen."""
    outbox.emit("a", n=2)
    assert lines(outbox) == ["sink shop: 2 wait, no relay is there"]
    relay = outbox.relay(lease=3600)
    assert lines(outbox) == []
    outbox.advance(360)
    outbox.beat(relay, lease=3600)
    assert lines(outbox) == ["sink shop: 2 wait, the oldest for 6 min"]
    outbox.beat(relay, lease=3600, away="connection refused")
    outbox.advance(120)
    assert lines(outbox) == ["sink shop: 2 wait, it is away for 2 min"]
    outbox.rows("UPDATE livewell.event_sink SET paused_at = livewell.now()")
    assert lines(outbox) == ["sink shop: 2 wait, it is paused"]


def test_gauges_say_what_the_state_says(outbox: OutboxSession) -> None:
    """Each sink, each reason, each of the ten tenants."""
    relay = outbox.relay()
    outbox.emit("a", tenant="acme", n=3)
    outbox.advance(7)
    outbox.exchange(relay, refused=outbox.claim_events(relay)[:1], limit=0)
    document = {"outbox": state(outbox)}
    told = {gauge.name: {tuple(labels): n for labels, n in gauge.samples(document)} for gauge in GAUGES}
    assert told["livewell_outbox_waiting"] == {("shop",): 2}
    assert told["livewell_outbox_oldest_seconds"] == {("shop",): 7}
    assert told["livewell_outbox_lag_seconds"] == {("shop", "acme"): 7}
    assert told["livewell_outbox_dead"] == {("shop", "refused"): 1}
    assert told["livewell_outbox_relays"] == {("shop",): 1}
    assert told["livewell_outbox_claims_until_turn"] == {("shop",): 1}
    assert (told["livewell_outbox_days_ahead"][()] or 0) >= 4


def test_no_large_table_is_read_as_a_whole(outbox: OutboxSession) -> None:
    """Deliveries, dead letters, blocks and statistics by index only, with a sample and without."""
    relay = outbox.relay()
    fill(outbox, 3000, tenants=5)
    outbox.exchange(relay, refused=outbox.claim_events(relay, 50), limit=0)
    outbox.rows("ANALYZE livewell.event_delivery, livewell.dead_event, livewell.event_block, livewell.event_stat")
    outbox.rows("DELETE FROM livewell.state_sample")
    hot = {"event_delivery", "dead_event", "event_block", "event_stat"}
    for _ in range(2):
        plans = PlanRecorder(outbox).plans("SELECT livewell.state_outbox()")
        nodes = [node for plan in plans for node in plan.nodes]
        assert nodes
        assert [node for node in nodes if node.relation in hot and node.kind == "Seq Scan"] == []
        assert [node for node in nodes if node.relation.startswith("event_20") and node.kind == "Seq Scan"] == []


@pytest.mark.parametrize("role", ["livewell_operate", "livewell_worker", "livewell_readonly"])
def test_whoever_may_look_sees_it(outbox: OutboxSession, role: str) -> None:
    """With something in it, so that every statement inside runs."""
    outbox.relay()
    fill(outbox, 6000)
    outbox.rows("DELETE FROM livewell.state_sample")
    outbox.rows(f"SET ROLE {role}")
    try:
        found = outbox.value("SELECT livewell.state_outbox()")
    finally:
        outbox.rows("RESET ROLE")
    assert (found["how"], found["sinks"][0]["relays"]) == ("estimated", 1)
