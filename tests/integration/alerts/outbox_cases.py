"""How the conditions of the outbox's alert rules come about, and what ends them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.conninfo import make_conninfo

from tests.support.alerts_sql import AlertSession
from tests.support.outbox_sql import PARKING, OutboxSession

MINUTE = 60.0
LIVING = 30 * 86_400.0  # a lease that outlives all that the tests move the clock


@contextmanager
def outbox_of(alerts: AlertSession) -> Iterator[OutboxSession]:
    """A session of the outbox beside it, on the same database."""
    info = alerts.connection.info
    with OutboxSession(make_conninfo(info.dsn, password=info.password)) as session:
        session.rows("SELECT livewell.ensure_event_days(3)")
        yield session


def empty_outbox(alerts: AlertSession) -> None:
    with outbox_of(alerts) as outbox:
        outbox.reset()


def event_waits(alerts: AlertSession) -> None:
    """For six minutes; nobody relays."""
    with outbox_of(alerts) as outbox:
        outbox.emit("a")
        outbox.advance(6 * MINUTE)


def deliver_all(alerts: AlertSession) -> None:
    with outbox_of(alerts) as outbox:
        relay = outbox.relay()
        outbox.drain(relay)
        outbox.rows("SELECT livewell.release_relay(%s)", relay)


def sink_is_gone(alerts: AlertSession) -> None:
    """Its only relay says so, and goes on saying it."""
    with outbox_of(alerts) as outbox:
        outbox.rows("SELECT livewell.release_relay(id) FROM livewell.relay")
        relay = outbox.relay(lease=LIVING)
        outbox.beat(relay, lease=LIVING, away="connection refused")
        outbox.advance(6 * MINUTE)


def sink_is_back(alerts: AlertSession) -> None:
    with outbox_of(alerts) as outbox:
        outbox.rows("SELECT livewell.renew_relay(id, %s, NULL, NULL) FROM livewell.relay", LIVING)


def first_is_refused(alerts: AlertSession, topic: str) -> None:
    with outbox_of(alerts) as outbox:
        relay = outbox.relay()
        outbox.emit("a", n=2, topic=topic)
        outbox.exchange(relay, refused=outbox.claim_events(relay)[:1])  # the claim sets aside what is behind
        outbox.rows("SELECT livewell.release_relay(%s)", relay)


def refused(alerts: AlertSession) -> None:
    first_is_refused(alerts, "orders.created")


def refused_and_parked(alerts: AlertSession) -> None:
    first_is_refused(alerts, PARKING)


def discarded(alerts: AlertSession) -> None:
    """A person has decided: what waited behind the letter goes on."""
    alerts.rows("DELETE FROM livewell.dead_event")
    alerts.rows("UPDATE livewell.event_block SET state = 'draining', retry_at = livewell.now()")
    deliver_all(alerts)
