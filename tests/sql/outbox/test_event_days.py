"""O8: a day of events leaves when nobody needs it any more, and not before."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.outbox_sql import OutboxSession

DAY = 86_400


def drop(outbox: OutboxSession, keep: int = 7) -> list[str]:
    """Drop what can go, as housekeeping does."""
    found: list[str] = []
    while name := outbox.value("SELECT livewell.drop_event_day(%s, 14)", keep):
        found.append(name)
    return found


def days_later(outbox: OutboxSession, days: int) -> None:
    outbox.advance(days * DAY)
    outbox.rows("SELECT livewell.ensure_event_days(3)")


def kept(outbox: OutboxSession) -> int:
    return int(outbox.value("SELECT count(*) FROM livewell.event"))


def test_a_day_that_was_delivered_goes_after_seven(outbox: OutboxSession) -> None:
    outbox.emit("k")
    outbox.drain(outbox.relay())
    days_later(outbox, 6)
    drop(outbox)
    assert kept(outbox) == 1

    days_later(outbox, 3)
    assert any(name.startswith("event_2") for name in drop(outbox))
    assert kept(outbox) == 0


def test_a_day_with_something_that_waits_stays(outbox: OutboxSession) -> None:
    """And what was delivered late counts from its delivery."""
    outbox.emit("k")
    days_later(outbox, 20)
    drop(outbox)
    assert kept(outbox) == 1

    outbox.drain(outbox.relay())
    drop(outbox)
    assert kept(outbox) == 1
    days_later(outbox, 9)
    drop(outbox)
    assert kept(outbox) == 0


def test_a_day_with_a_dead_letter_stays(outbox: OutboxSession) -> None:
    [dead] = outbox.emit("k")
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, refused=[dead], limit=0)
    days_later(outbox, 30)
    drop(outbox)

    assert kept(outbox) == 1


def test_less_than_a_day_is_refused(outbox: OutboxSession) -> None:
    with pytest.raises(psycopg.Error, match="at least 1 day"):
        drop(outbox, 0)
