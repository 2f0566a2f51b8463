"""R25 for the outbox: every finding, provoked for real; the doctor names the command that mends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from livewell.db.scratch import TestClock
from tests.integration.operations.conftest import Examine
from tests.support.outbox_sql import PARKING, OutboxSession

LIVING = 30 * 86_400.0  # a lease that outlives all that the tests move the clock


@pytest.fixture
def outbox(livewell_dsn: str, livewell_clock: TestClock) -> Iterator[OutboxSession]:
    """A session on a database of the test's own: two topics and one sink."""
    assert livewell_clock
    with OutboxSession(livewell_dsn) as session:
        session.reset()
        yield session


async def test_an_outbox_that_delivers_is_no_finding(outbox: OutboxSession, doctor: Examine) -> None:
    """A relay lives, and what was emitted a moment ago is on its way."""
    outbox.relay(lease=LIVING)
    outbox.emit("a")
    words = {"sink_away", "sink_without_relay", "sink_paused", "keys_parked", "outbox_dead", "event_day_missing"}
    assert words & set(await doctor()) == set()


async def test_a_sink_that_no_relay_reaches_is_named_with_the_reason(outbox: OutboxSession, doctor: Examine) -> None:
    """After a minute; it is gone when one relay reaches it."""
    relay = outbox.relay(lease=LIVING)
    outbox.beat(relay, lease=LIVING, away="login refused")
    assert "sink_away" not in await doctor()
    outbox.advance(90)
    found = (await doctor())["sink_away"]
    assert found.subject == "shop"
    assert "1.5 min: login refused" in found.seen
    outbox.beat(relay, lease=LIVING)
    assert "sink_away" not in await doctor()


async def test_a_sink_that_nobody_relays_to_is_named(outbox: OutboxSession, doctor: Examine) -> None:
    """Although events wait for a minute; a relay whose lease ran out is none."""
    outbox.relay(lease=5)
    assert "sink_without_relay" not in await doctor()
    outbox.emit("a", n=3)
    outbox.advance(90)
    found = (await doctor())["sink_without_relay"]
    assert (found.subject, found.level) == ("shop", "P0")
    assert found.seen == "3 events wait for sink shop, the oldest for 1.5 min."
    assert "livewell worker APP" in found.command
    judge = outbox.relay(lease=LIVING)
    outbox.rows("SELECT livewell.release_relay(id) FROM livewell.relay WHERE id <> %s", judge)
    outbox.beat(judge, lease=LIVING)
    outbox.rows("DELETE FROM livewell.state_sample")
    assert "sink_without_relay" not in await doctor()


async def test_a_sink_that_nobody_claims_from_outside_is_named(outbox: OutboxSession, doctor: Examine) -> None:
    """There is no worker of ours to start for it."""
    outbox.rows("DELETE FROM livewell.event_route")
    outbox.sink("outbox", outside=True)
    outbox.emit("a")
    outbox.advance(90)
    found = (await doctor())["sink_without_relay"]
    assert found.subject == "outbox"
    assert "outbox_claim" in found.means


async def test_a_paused_sink_with_events_is_named(outbox: OutboxSession, doctor: Examine) -> None:
    """No alert tells of it, so the doctor does; and nothing else is said of it."""
    outbox.emit("a")
    outbox.rows("UPDATE livewell.event_sink SET paused_at = livewell.now()")
    assert "sink_paused" not in await doctor()
    outbox.advance(90)
    found = await doctor()
    assert found["sink_paused"].command == "livewell outbox resume shop"
    assert "sink_without_relay" not in found


async def test_keys_that_wait_for_a_person_are_named(outbox: OutboxSession, doctor: Examine) -> None:
    """Behind which event, and what decides."""
    relay = outbox.relay(lease=LIVING)
    first, _ = outbox.emit("a", n=2, topic=PARKING)
    outbox.exchange(relay, refused=outbox.claim_events(relay)[:1])
    found = (await doctor())["keys_parked"]
    assert found.seen.startswith("1 keys of sink shop are parked")
    assert f"behind event {first}." in found.seen
    assert "livewell outbox dead redrive" in found.command


async def test_dead_letters_of_the_outbox_are_named_by_topic_and_reason(outbox: OutboxSession, doctor: Examine) -> None:
    """With an example; after a day they are history."""
    relay = outbox.relay(lease=LIVING)
    outbox.emit("a")
    outbox.exchange(relay, refused=outbox.claim_events(relay))
    found = (await doctor())["outbox_dead"]
    assert "1 events orders.created became dead letters of sink shop in the last day (refused" in found.seen
    assert "one with: it was refused" in found.seen
    outbox.advance(90_000)
    assert "outbox_dead" not in await doctor()


async def test_a_day_without_a_partition_is_named(outbox: OutboxSession, doctor: Examine) -> None:
    """Tomorrow's, before the first emission fails for want of it."""
    tomorrow = outbox.value("SELECT to_char((livewell.now() AT TIME ZONE 'UTC')::date + 1, 'YYYYMMDD')")
    outbox.rows(f"DROP TABLE livewell.event_{tomorrow}")
    found = (await doctor())["event_day_missing"]
    assert (found.subject, found.level) == (f"event_{tomorrow}", "P0")
    outbox.rows("SELECT livewell.ensure_event_days(3)")
    assert "event_day_missing" not in await doctor()
