"""Sessions, heartbeats, subscriptions, caps and the sweep, as clients call them (R3, R6)."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.refresh_sql import RefreshSession, new_session_id

MINUTES = 60


def test_a_new_key_is_missing_wanted_and_due_at_once(refresh: RefreshSession) -> None:
    """Missing data counts as stale."""
    refresh.freeze()

    [row] = refresh.subscribe(refresh.open(), "AAPL").values()

    assert (row["answer"], row["verdict"], row["wanted"], row["version"]) == ("subscribed", "missing", True, 0)
    assert refresh.ledger("AAPL", "due_at") == (refresh.now(),)


def test_many_pairs_in_one_round_trip(refresh: RefreshSession) -> None:
    """Answers come in the order given, once per distinct pair."""
    refresh.type("profile", ttl="1 day")
    refresh.freeze()
    refresh.keep("A", fetched_at=refresh.now(), checked_at=refresh.now(), source_at=refresh.now(), version=7)
    session = refresh.open("ann")

    rows = refresh.subscribe(session, "B", "A", "A", "A", user="ann", of=["quote", "quote", "profile", "quote"])

    assert list(rows) == [("quote", "B"), ("quote", "A"), ("profile", "A")]
    assert [(row["verdict"], row["wanted"], row["version"], row["age_seconds"]) for row in rows.values()] == [
        ("missing", True, 0, None),
        ("fresh", False, 7, 0.0),
        ("missing", True, 0, None),
    ]


def test_a_parked_key_is_due_when_its_value_goes_stale(refresh: RefreshSession) -> None:
    """At once if it is stale already, but not before its back-off is over."""
    refresh.freeze()
    now = refresh.now()
    fresh = {"fetched_at": now, "checked_at": now, "source_at": now}
    refresh.keep("FRESH", **fresh)
    refresh.keep("OLD", fetched_at="2020-01-01Z", checked_at="2020-01-01Z")
    refresh.keep("BAD", failures=3, retry_at=now + refresh.value("SELECT interval '1 hour'"))

    rows = refresh.subscribe(refresh.open(), "FRESH", "OLD", "BAD")

    due = {
        key: refresh.value("SELECT extract(epoch FROM due_at - %s)::int FROM livewell.ledger WHERE key = %s", now, key)
        for key in ("FRESH", "OLD", "BAD")
    }
    assert due == {"FRESH": 60, "OLD": 0, "BAD": 3600}
    assert [row["wanted"] for row in rows.values()] == [False, True, False]


def test_an_unknown_type_does_not_break_the_others(refresh: RefreshSession) -> None:
    """It counts as stale and leaves a warning."""
    rows = refresh.subscribe(refresh.open(), "A", "A", of=["quote", "nothing"])

    assert [(row["answer"], row["verdict"]) for row in rows.values()] == [
        ("subscribed", "missing"),
        ("unknown_type", "stale"),
    ]
    assert refresh.column("SELECT sample FROM livewell.warning WHERE place = 'refresh.subscribe'") == ["nothing"]


def test_strangers_bring_up_so_many_unknown_keys_a_minute(refresh: RefreshSession) -> None:
    """Beyond it they are refused and cost nothing.

    Keys that somebody asked for before, and sessions without a budget, are free.
    """
    refresh.freeze()  # a budget is per minute of the clock
    known, eve = refresh.open("ann"), refresh.open("eve")
    refresh.subscribe(known, "A", "B", user="ann")

    rows = refresh.subscribe(eve, "X1", "A", "X2", "X3", "B", user="eve", cold=2)
    assert [row["answer"] for row in rows.values()] == [
        "subscribed", "subscribed", "subscribed", "cold_budget", "subscribed",
    ]  # fmt: skip
    assert not rows["quote", "X3"]["wanted"]
    rows = refresh.subscribe(eve, "X3", "X2", "A", user="eve", cold=2)
    assert [row["answer"] for row in rows.values()] == ["cold_budget", "subscribed", "subscribed"]
    assert refresh.column("SELECT key FROM livewell.ledger ORDER BY key") == ["A", "B", "X1", "X2"]
    assert refresh.value("SELECT subscriptions FROM livewell.viewer WHERE user_id = 'eve'") == 4
    assert refresh.value("SELECT livewell.spend_cold_read('eve', 2)") is False

    refresh.rows("UPDATE livewell.viewer SET cold_minute = cold_minute - interval '1 minute' WHERE user_id = 'eve'")
    rows = refresh.subscribe(eve, "X3", user="eve", cold=2)
    assert [row["answer"] for row in rows.values()] == ["subscribed"]
    rows = refresh.subscribe(eve, "X4", "X5", "X6", user="eve")
    assert {row["answer"] for row in rows.values()} == {"subscribed"}


@pytest.mark.parametrize("key", ["", "x" * 201, "A\nB", "../A", "<b>"])
def test_a_key_that_does_not_fit_its_type_is_refused_alone(refresh: RefreshSession, key: str) -> None:
    """And the others are subscribed."""
    rows = refresh.subscribe(refresh.open(), key, "A")

    assert [row["answer"] for row in rows.values()] == ["bad_key", "subscribed"]


def test_more_than_a_thousand_pairs_are_refused(refresh: RefreshSession) -> None:
    """A call is bounded."""
    with pytest.raises(psycopg.Error, match="at most 1000 pairs"):
        refresh.subscribe(refresh.open(), *[f"K{n}" for n in range(1001)])


def test_a_strangers_session_is_as_unknown_as_none(refresh: RefreshSession) -> None:
    """The same answers, and nothing is changed."""
    anns = refresh.open("ann")
    refresh.subscribe(anns, "A", user="ann")
    nobodys = new_session_id()

    for session in (anns, nobodys):
        assert refresh.heartbeat(session, "eve") == "unknown"
        assert refresh.heartbeat(session) == "unknown"
        assert [row["answer"] for row in refresh.subscribe(session, "B", user="eve").values()] == ["unknown_session"]
        assert refresh.unsubscribe(session, "A", user="eve") == -1
        assert refresh.close_session(session, "eve") == "unknown"
    assert refresh.value("SELECT livewell.open_session(%s, 'eve')", anns) == "refused"
    assert refresh.column("SELECT key FROM livewell.subscription") == ["A"]


def test_nobody_can_be_named_like_an_anonymous_session(refresh: RefreshSession) -> None:
    """Or they could take it over."""
    anonymous = refresh.open()

    with pytest.raises(psycopg.Error, match="session:"):
        refresh.value("SELECT livewell.open_session(%s, %s)", new_session_id(), f"session:{anonymous}")


def test_the_cap_takes_the_first_and_refuses_the_rest(refresh: RefreshSession) -> None:
    """What is subscribed already does not count again, over all sessions of a user."""
    one, two = refresh.open("ann"), refresh.open("ann")
    refresh.subscribe(one, "A", "B", user="ann", most=4)

    rows = refresh.subscribe(two, "A", "B", "C", user="ann", most=4)
    assert [row["answer"] for row in rows.values()] == ["subscribed", "subscribed", "capped"]
    rows = refresh.subscribe(two, "A", "C", user="ann", most=4)
    assert [row["answer"] for row in rows.values()] == ["subscribed", "capped"]
    assert refresh.unsubscribe(one, "A", "Z", user="ann") == 1
    rows = refresh.subscribe(two, "C", user="ann", most=4)
    assert [row["answer"] for row in rows.values()] == ["subscribed"]
    assert refresh.value("SELECT subscriptions FROM livewell.viewer WHERE user_id = 'ann'") == 4


def test_viewers_are_distinct_users_seen_within_five_minutes(refresh: RefreshSession) -> None:
    """Tabs buy no priority; anonymous sessions count each."""
    refresh.freeze()
    for _ in range(3):
        refresh.subscribe(refresh.open("ann"), "AAPL", user="ann")
    refresh.subscribe(refresh.open("bob"), "AAPL", user="bob")
    for _ in range(2):
        refresh.subscribe(refresh.open(), "AAPL")
    assert refresh.viewers() == 4

    refresh.advance(5 * MINUTES - 1)
    assert refresh.viewers() == 4
    refresh.advance(1)
    assert refresh.viewers() == 0


def test_a_heartbeat_is_written_once_a_second_at_most(refresh: RefreshSession) -> None:
    """F-E7: a thousand heartbeats in a second are one write."""
    refresh.freeze()
    session = refresh.open("ann")
    refresh.advance(10)
    written = "SELECT ctid::text, xmin::text, seen_at FROM livewell.viewer_session"

    assert refresh.heartbeat(session, "ann") == "alive"
    first = refresh.rows(written)
    for _ in range(1000):
        assert refresh.heartbeat(session, "ann") == "alive"
    assert refresh.rows(written) == first
    refresh.advance(1)
    refresh.heartbeat(session, "ann")
    assert refresh.rows(written) != first


def test_only_the_client_moves_last_seen(refresh: RefreshSession) -> None:
    """Counting, dispatching and sweeping do not."""
    refresh.freeze()
    session = refresh.open("ann")
    refresh.subscribe(session, "AAPL", user="ann")
    seen = refresh.rows("SELECT seen_at FROM livewell.viewer_session")
    refresh.advance(60)

    refresh.viewers()
    refresh.dispatch()
    refresh.sweep()

    assert refresh.rows("SELECT seen_at FROM livewell.viewer_session") == seen


def test_a_heartbeat_after_a_long_silence_un_parks(refresh: RefreshSession) -> None:
    """The keys of a session that was taken for a ghost are due again."""
    refresh.freeze()
    session = refresh.open("ann")
    refresh.subscribe(session, "AAPL", user="ann")
    refresh.advance(5.5 * MINUTES)
    assert refresh.dispatch()["parked"] == 1
    assert refresh.ledger("AAPL", "due_at") == (None,)

    assert refresh.heartbeat(session, "ann") == "alive"

    assert refresh.ledger("AAPL", "due_at") == (refresh.now(),)


def test_the_sweep_removes_ghosts_with_all_they_had(refresh: RefreshSession) -> None:
    """In bounded pages; the living stay."""
    refresh.freeze()
    for _ in range(3):
        refresh.subscribe(refresh.open("ann"), "A", "B", user="ann")
        refresh.subscribe(refresh.open(), "A")
    refresh.advance(6 * MINUTES + 1)
    alive = refresh.open("ann")
    refresh.subscribe(alive, "C", user="ann")

    assert [refresh.sweep(4), refresh.sweep(4), refresh.sweep(4)] == [4, 2, 0]
    assert refresh.rows("SELECT session_id = livewell.session_hash(%s), key FROM livewell.subscription", alive) == [
        (True, "C")
    ]
    assert refresh.rows("SELECT user_id, subscriptions FROM livewell.viewer") == [("ann", 1)]


def test_closing_a_session_frees_what_it_counted(refresh: RefreshSession) -> None:
    """The same call again says that there is none."""
    session = refresh.open("ann")
    refresh.subscribe(session, "A", "B", user="ann")

    assert [refresh.close_session(session, "ann") for _ in range(2)] == ["closed", "unknown"]
    assert refresh.rows("SELECT subscriptions FROM livewell.viewer") == [(0,)]
    assert refresh.rows("SELECT FROM livewell.subscription") == []


def test_every_change_of_subscriptions_is_told_to_the_streaming_server(refresh: RefreshSession) -> None:
    """By the session's subs_version."""
    session = refresh.open("ann")
    refresh.subscribe(session, "A", user="ann")
    refresh.unsubscribe(session, "A", user="ann")

    assert refresh.value("SELECT subs_version FROM livewell.viewer_session") == 2


def test_livewell_api_may_subscribe_and_read_no_table(refresh: RefreshSession) -> None:
    """The functions run as the owner."""
    refresh.rows("SET ROLE livewell_api")
    try:
        session = refresh.open("ann")
        assert len(refresh.subscribe(session, "A", user="ann")) == 1
        assert refresh.heartbeat(session, "ann") == "alive"
        for denied in ("SELECT FROM livewell.subscription", "SELECT livewell.count_viewers('quote', 'A')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                refresh.rows(denied)
    finally:
        refresh.rows("RESET ROLE")
    assert refresh.viewers("A") == 1


def test_ten_thousand_subscriptions_from_one_client_are_a_thousand(refresh: RefreshSession) -> None:
    """F-E6: the cap is the database's; a quiet client is served as before."""
    loud, quiet = refresh.open("eve"), refresh.open("ann")
    answers: list[str] = []
    for page in range(10):
        rows = refresh.subscribe(loud, *[f"K{page}X{n}" for n in range(1000)], user="eve")
        answers += [row["answer"] for row in rows.values()]

    assert (answers.count("subscribed"), answers.count("capped")) == (1000, 9000)
    assert [row["answer"] for row in refresh.subscribe(quiet, "AAPL", user="ann").values()] == ["subscribed"]
    assert refresh.value("SELECT count(*) FROM livewell.ledger") == 1001  # what was refused left nothing behind
