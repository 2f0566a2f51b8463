"""Ids of sessions are secrets of their clients.

Stored as hashes, and of use only to whom they belong (L4, L12). Strangers have shares of a public
key's sessions (R3).
"""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from tests.support.refresh_sql import RefreshSession, new_session_id

STORED = """
SELECT v::text FROM livewell.viewer v UNION ALL SELECT s::text FROM livewell.viewer_session s UNION ALL SELECT b::text FROM livewell.subscription b
UNION ALL SELECT h::text FROM livewell.session_share h
"""
ANN, BEN = "public:AnnsKey@10.0.0.1", "public:BensKey@10.0.0.1"


def open_as(refresh: RefreshSession, who: str | None, most: int = 1000, session: str | None = None) -> tuple[str, str]:
    """The answer, and the id."""
    session = session or new_session_id()
    return str(refresh.value("SELECT livewell.open_session(%s, %s, %s)", session, who, most)), session


def calls(refresh: RefreshSession, session: str, who: str | None) -> list[Any]:
    """What somebody is told who does everything that can be done with a session.

    The end of it comes last.
    """
    known = refresh.rows(
        "SELECT subs_version IS NOT NULL FROM livewell.keys_of_sessions(ARRAY[%s]::uuid[], ARRAY[%s]::text[], '{-1}')",
        session,
        who,
    )
    return [
        refresh.heartbeat(session, who),
        [row["answer"] for row in refresh.subscribe(session, "AAPL", user=who).values()],
        refresh.unsubscribe(session, "AAPL", user=who),
        known,
        refresh.close_session(session, who),
    ]


UNKNOWN = ["unknown", ["unknown_session"], -1, [(False,)], "unknown"]
OWN = ["alive", ["subscribed"], 1, [(True,)], "closed"]


@pytest.mark.parametrize("who", [None, "ann", ANN])
def test_no_row_has_the_id_of_a_session(refresh: RefreshSession, who: str | None) -> None:
    """L4. Until 0.6.0 every row of a session had it."""
    _, session = open_as(refresh, who)
    refresh.subscribe(session, "AAPL", user=who)

    stored = [told for (told,) in refresh.rows(STORED)]
    assert len(stored) >= 3
    assert [told for told in stored if session in told] == []


def test_what_is_stored_is_of_no_use_as_an_id(refresh: RefreshSession) -> None:
    """Whoever reads the tables can act for nobody."""
    open_as(refresh, None)
    hashed = str(refresh.value("SELECT id FROM livewell.viewer_session"))

    assert calls(refresh, hashed, None) == UNKNOWN


def test_a_session_is_of_the_public_key_that_made_it(refresh: RefreshSession) -> None:
    """L12: another public key that knows its id gets the answer for an id that does not exist.

    In 0.5.0 an attacker did all of this.
    """
    _, session = open_as(refresh, ANN)

    assert calls(refresh, session, BEN) == calls(refresh, new_session_id(), BEN) == UNKNOWN
    assert open_as(refresh, BEN, session=session)[0] == "refused"
    assert calls(refresh, session, "public:AnnsKey@10.9.9.9") == OWN  # people move


def test_a_user_cannot_use_a_session_of_a_public_key_nor_the_other_way_round(refresh: RefreshSession) -> None:
    """As before."""
    anonymous, anns = open_as(refresh, ANN)[1], open_as(refresh, "ann")[1]

    assert calls(refresh, anonymous, "ann") == UNKNOWN
    assert calls(refresh, anns, ANN) == UNKNOWN


def test_servers_of_the_version_before_share_sessions_with_ours(refresh: RefreshSession) -> None:
    """They name somebody anonymous beside a user that is NULL, and their hubs compare with the plain id."""
    theirs = new_session_id()
    assert refresh.value("SELECT livewell.open_session(%s, NULL, p_origin => %s)", theirs, ANN) == "open"
    ours = open_as(refresh, ANN)[1]
    hub = "SELECT user_id, subs_version IS NOT NULL FROM livewell.session_keys(ARRAY[%s]::uuid[], '{-1}')"

    assert refresh.rows(hub, ours) == [(f"session:{ours}", True)]
    assert refresh.rows(hub, open_as(refresh, "ann")[1]) == [("ann", True)]
    assert calls(refresh, theirs, BEN) == UNKNOWN
    assert calls(refresh, theirs, ANN) == OWN
    assert calls(refresh, ours, None) == OWN


# -- shares --------------------------------------------------------------------------------------


def test_one_address_cannot_use_up_the_sessions_of_a_key(refresh: RefreshSession) -> None:
    """R3: it has a tenth of them, whatever number of ids it makes up.

    Others of the same page come in beside it. In 0.5.0 an attacker opened 628 in 40 s.
    """
    greedy = [open_as(refresh, ANN, 40)[0] for _ in range(60)]
    others = [open_as(refresh, f"public:AnnsKey@10.0.1.{n}", 40)[0] for n in range(40)]

    assert (greedy.count("open"), greedy.count("too_many")) == (4, 56)
    assert (others.count("open"), others[:36]) == (36, ["open"] * 36)
    assert open_as(refresh, BEN, 40)[0] == "open"  # a key of its own
    assert open_as(refresh, "ann", 40)[0] == "open"


def test_what_was_refused_leaves_nothing_and_the_same_call_again_is_the_same_session(refresh: RefreshSession) -> None:
    """At the bound a repeated call is still answered with its session."""
    _, first = open_as(refresh, ANN, 1)

    assert [open_as(refresh, ANN, 1)[0] for _ in range(3)] == ["too_many"] * 3
    assert open_as(refresh, ANN, 1, first) == ("open", first)
    assert refresh.value("SELECT count(*) FROM livewell.viewer_session") == 1
    assert refresh.rows("SELECT sessions FROM livewell.session_share") == [(1,), (1,)]


def test_sessions_that_end_make_room(refresh: RefreshSession) -> None:
    """Closed, and swept after a long silence; what is empty is pruned."""
    refresh.freeze()
    _, closed = open_as(refresh, ANN, 1)
    refresh.close_session(closed, ANN)
    assert open_as(refresh, ANN, 1)[0] == "open"
    refresh.advance(6 * 60 + 1)
    assert refresh.sweep() == 1

    assert open_as(refresh, ANN, 1)[0] == "open"
    refresh.advance(6 * 60 + 1)
    refresh.sweep()
    refresh.rows("SELECT livewell.prune_refresh(30, 100)")
    assert refresh.rows("SELECT FROM livewell.session_share") == []


# -- who may know --------------------------------------------------------------------------------


def as_role(refresh: RefreshSession, role: str, query: str) -> Any:
    """One value, as this role."""
    refresh.rows(f"SET ROLE {role}")
    try:
        return refresh.value(query)
    finally:
        refresh.rows("RESET ROLE")


@pytest.mark.parametrize("role", ["livewell_operate", "livewell_readonly"])
def test_operators_and_readers_count_viewers_and_do_not_see_them(refresh: RefreshSession, role: str) -> None:
    """L4: plan, state and counts are as a worker sees them.

    In 0.5.0 an attacker read ids and who watches what.
    """
    for who in ("ann", "ben", None):
        _, session = open_as(refresh, who)
        refresh.subscribe(session, "AAPL", user=who)
    told = {
        "count": "SELECT livewell.count_viewers('quote', 'AAPL')",
        "plan": "SELECT (livewell.plan_state() -> 'groups')::text",
        "state": "SELECT (livewell.sample_refresh(livewell.now()) - 'keys')::text",
        "why": "SELECT viewers FROM livewell.why_key('quote', 'AAPL')",
    }

    for name, query in told.items():
        assert as_role(refresh, role, query) == as_role(refresh, "livewell_worker", query), name
    assert as_role(refresh, role, told["count"]) == 3
    for forbidden in (
        "SELECT count(id) FROM livewell.viewer_session",
        "SELECT count(user_id) FROM livewell.subscription",
        "SELECT count(key) FROM livewell.subscription",
        "SELECT count(*) FROM livewell.viewer",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(refresh, role, forbidden)


def test_counting_from_outside_opens_nobodys_session(refresh: RefreshSession) -> None:
    """A caller who switches livewell.counts on is held to their own rows all the same.

    And a count leaves nothing switched on.
    """
    _, anns = open_as(refresh, "ann")
    refresh.subscribe(anns, "AAPL", user="ann")
    with refresh.connection.transaction():
        refresh.rows("SELECT livewell.heartbeat_session(%s, 'ann')", anns)
        assert refresh.value("SELECT livewell.count_viewers('quote', 'AAPL')") == 1
        settings = (
            "SELECT current_setting('livewell.user_id', true), coalesce(current_setting('livewell.counts', true), '')"
        )
        assert refresh.rows(settings) == [("ann", "")]
    with refresh.connection.transaction():
        refresh.rows("SET LOCAL livewell.counts = 'on'")
        assert calls(refresh, anns, "eve") == UNKNOWN
    assert uuid.UUID(anns)
