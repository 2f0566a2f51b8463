"""H1, R13, R3: a refresh that waits though nobody wants it any more is ended, before it is called or chosen as a probe.

Seen failing on 0.6.0 for want of drop_refreshes: jobs of sessions that had ended stayed ready, and
were the next probe of an open breaker.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.refresh_sql import RefreshSession
from tests.support.store_sql import QUEUE, StoreSession, failed

MADE_UP = [f"ZZ{n}" for n in range(5)]


@pytest.fixture
def store(queue_dsn: str) -> Iterator[StoreSession]:
    """One type and an upstream with a breaker; the clock stands still."""
    with StoreSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        session.freeze()
        session.limiter("api", rate_calls=300, rate_seconds=60, burst=10, breaker_failures=10, breaker_in_row=5)
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()


def drop(session: RefreshSession, limit: int = 1000) -> int:
    return int(session.value("SELECT livewell.drop_refreshes('api', %s)", limit))


def keys(session: RefreshSession) -> set[str]:
    """Of the jobs that are there."""
    return {key for (key,) in session.jobs("group_key")}


def test_what_a_stranger_left_behind_is_no_probe(store: StoreSession) -> None:
    """H1. The stranger's session has ended, an honest key is due: the probe is the honest one's."""
    stranger, honest = store.open(), store.open("ann")
    store.subscribe(stranger, *MADE_UP)
    store.dispatch()
    store.rows(
        "UPDATE livewell.limiter_credential SET breaker = 'open', open_until = livewell.now() + interval '1 "
        "minute', opened_at = livewell.now()"
    )
    store.close_session(stranger)
    store.subscribe(honest, "AAPL", user="ann")
    store.advance(61)

    dropped = drop(store)
    store.dispatch()
    probe = store.take(store.register(queues=[QUEUE]))

    assert dropped == 5
    assert set(probe) == {"AAPL"}
    assert store.rows("SELECT DISTINCT outcome::text, attempt, note FROM livewell.job_history") == [
        ("cancelled", 0, "nobody wants it any more")
    ]


def test_what_somebody_wants_stays(refresh: RefreshSession) -> None:
    """Jobs that somebody wants stay; one unwanted job among them goes.

    A viewer's, a reader's, a walk's, the background's, and jobs that have just been made or are
    running.
    """
    refresh.type("daily", strategy="scheduled", cron="0 0 * * *", zone="UTC")
    viewer, gone = refresh.open("ann"), refresh.open()
    refresh.subscribe(viewer, "SEEN", user="ann")
    refresh.subscribe(gone, "SEEN", "LEFT", "RUNS")
    refresh.dispatch()
    for data_type, key in (("quote", "READ"), ("daily", "WALK")):
        refresh.rows("SELECT livewell.read_through(%s, %s)", data_type, key)
    refresh.rows("UPDATE livewell.ledger SET demanded_at = NULL WHERE key = 'WALK'")
    worker = refresh.register(queues=[QUEUE])
    refresh.rows(
        "UPDATE livewell.job SET state = 'running', worker = %s, fence = nextval('livewell.fence_seq') WHERE "
        "group_key = 'RUNS'",
        worker,
    )
    refresh.close_session(gone)
    refresh.advance(11)
    late = refresh.open()
    refresh.subscribe(late, "YOUNG")
    refresh.dispatch()
    refresh.close_session(late)

    assert (drop(refresh), drop(refresh)) == (1, 0)
    assert keys(refresh) == {"SEEN", "READ", "WALK", "RUNS", "YOUNG"}


def test_the_background_is_left_alone(refresh: RefreshSession) -> None:
    """Lane 1 is prefetched or walked: nobody looks, and that is known."""
    session = refresh.open()
    refresh.subscribe(session, "AAPL")
    refresh.dispatch()
    refresh.rows("UPDATE livewell.job SET lane = 1")
    refresh.close_session(session)
    refresh.advance(3600)

    assert drop(refresh) == 0


@pytest.mark.parametrize(("seconds", "dropped"), [(299, 0), (301, 1)])
def test_a_viewer_that_says_nothing_counts_for_five_minutes(
    refresh: RefreshSession, seconds: int, dropped: int
) -> None:
    refresh.freeze()
    refresh.subscribe(refresh.open(), "AAPL")
    refresh.dispatch()
    refresh.advance(seconds)

    assert drop(refresh) == dropped


@pytest.mark.parametrize(("seconds", "dropped"), [(419, 0), (421, 1)])
def test_a_reader_counts_for_seven_minutes(refresh: RefreshSession, seconds: int, dropped: int) -> None:
    """No wait is longer than five, and whoever joins a demand that is on its way comes within two."""
    refresh.freeze()
    assert refresh.rows("SELECT demand FROM livewell.read_through('quote', 'AAPL')") == [("queued",)]
    refresh.advance(seconds)

    assert drop(refresh) == dropped


def test_a_job_between_two_attempts_goes_too(store: StoreSession) -> None:
    """240 jobs with four attempts each kept a breaker open for hours."""
    session = store.open()
    store.subscribe(session, "ZZ1")
    store.dispatch()
    [claim] = store.take(store.register(queues=[QUEUE])).values()
    store.store(failed(claim, "transient", "ZZ1"))
    assert store.jobs("state", "attempt") == [("delayed", 1)]
    store.close_session(session)
    store.advance(11)

    assert drop(store) == 1
    assert store.jobs() == []


@pytest.mark.parametrize(("seconds", "dropped"), [(60, 0), (301, 1)])
def test_what_an_operator_puts_back_has_five_minutes(store: StoreSession, seconds: int, dropped: int) -> None:
    """Nobody watches it, and somebody asked for it by hand."""
    store.ask("ZZ1")
    [claim] = store.take(store.register(queues=[QUEUE])).values()
    store.rows("UPDATE livewell.job SET attempt = max_attempts")
    store.store(failed(claim, "transient", "ZZ1"))
    store.advance(3600)
    store.redrive()
    assert store.jobs("state", "attempt") == [("ready", 0)]
    store.advance(seconds)

    assert drop(store) == dropped


def test_who_comes_after_it_was_ended_does_not_wait(refresh: RefreshSession) -> None:
    """The key is due at once: parked by the next due check if nobody came, queued if somebody did."""
    session = refresh.open()
    refresh.subscribe(session, "AAPL", "MSFT")
    refresh.dispatch()
    refresh.close_session(session)
    refresh.advance(11)
    assert drop(refresh) == 2
    refresh.subscribe(refresh.open("ann"), "MSFT", user="ann")

    found = refresh.dispatch()

    assert (found["inserted"], found["parked"]) == (1, 1)
    assert keys(refresh) == {"MSFT"}


def test_who_comes_while_it_is_ended_is_served(refresh: RefreshSession, other_refresh: RefreshSession) -> None:
    """The subscription is written and not committed, so it is not seen.

    The key is due all the same, and queued when it is.
    """
    session = refresh.open()
    refresh.subscribe(session, "AAPL")
    refresh.dispatch()
    refresh.close_session(session)
    refresh.advance(11)

    with other_refresh.connection.transaction():
        other_refresh.subscribe(other_refresh.open("ann"), "AAPL", user="ann")
        assert drop(refresh) == 1

    assert refresh.dispatch()["inserted"] == 1


def test_a_row_that_somebody_holds_is_passed_over(refresh: RefreshSession, other_refresh: RefreshSession) -> None:
    """A reader that demands the key now has its ledger row: nobody waits for anybody."""
    session = refresh.open()
    refresh.subscribe(session, "AAPL", "MSFT")
    refresh.dispatch()
    refresh.close_session(session)
    refresh.advance(11)

    with other_refresh.connection.transaction():
        other_refresh.rows("SELECT 1 FROM livewell.ledger WHERE key = 'AAPL' FOR NO KEY UPDATE")
        other_refresh.rows("SELECT 1 FROM livewell.job WHERE group_key = 'MSFT' FOR UPDATE")
        assert drop(refresh) == 0
    assert drop(refresh) == 2


def test_a_page_at_a_time(refresh: RefreshSession) -> None:
    """At most p_limit in one transaction."""
    session = refresh.open()
    refresh.subscribe(session, *(f"K{n}" for n in range(5)))
    refresh.dispatch()
    refresh.close_session(session)
    refresh.advance(11)

    assert [drop(refresh, 2) for _ in range(4)] == [2, 2, 1, 0]
