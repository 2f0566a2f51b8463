"""Subscribing under races (DESIGN 6): a watched key never sleeps, and caps hold.

Nothing is left behind. It races with the due check, the sweep, other sessions of the same user, and
heartbeats.

Every race has a variant broken on purpose that is seen to fail.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.refresh_sql import SINGLETON, RefreshSession
from tests.support.variants import GATE, OPEN, SHUT, Change, variant

SUBSCRIBE = "SELECT answer FROM livewell.subscribe(%(session)s, 'ann', '{quote}', '{AAPL}')"
DISPATCH = f"SELECT answer, inserted, parked FROM livewell.dispatch_due('{SINGLETON}', %(fence)s, 'api')"
PARK = "SELECT livewell.park_keys('{quote}', '{AAPL}', livewell.now())"

LOCK = "WHERE l.due_at <= p_now FOR UPDATE OF l SKIP LOCKED) x;"
COUNT = (
    "(SELECT FROM livewell.subscription b JOIN livewell.viewer_session v ON v.id = b.session_id WHERE "
    "b.data_type = g.name AND b.key = g.key AND v.seen_at > v_since)"
)
COUNTED_WITH_THE_LOCK: Change = (LOCK, f"WHERE l.due_at <= p_now AND NOT EXISTS {COUNT} FOR UPDATE OF l) x;")
NOT_COUNTED_AGAIN: Change = (
    "AND NOT EXISTS (SELECT FROM livewell.subscription b",
    "AND true OR false AND EXISTS (SELECT FROM livewell.subscription b",
)
NO_KEY_SHARE: Change = (" FOR KEY SHARE) l", " OFFSET 0) l")
WEAKER_PARK: Change = ("FOR UPDATE OF l SKIP LOCKED", "FOR NO KEY UPDATE OF l SKIP LOCKED")


# -- park and subscribe --------------------------------------------------------------------------


async def park_and_subscribe(refresh: RefreshSession, dsn: str, comes: str = SUBSCRIBE) -> list[str]:
    """The key is due and nobody watches it; at this moment somebody comes."""

    def prepare() -> Given:
        refresh.reset()
        one = refresh.open("ann")
        if comes != SUBSCRIBE:  # a ghost that watches it comes back to life
            refresh.subscribe(one, "AAPL", user="ann")
            refresh.rows("UPDATE livewell.viewer_session SET seen_at = livewell.now() - interval '10 minutes'")
            refresh.rows("UPDATE livewell.ledger SET due_at = livewell.now()")
        else:
            refresh.keep("AAPL", due_at=refresh.now())
        return {"session": one, "fence": refresh.hold()}

    def judge(outcome: Outcome) -> str | None:
        [(due_at,)] = [refresh.ledger("AAPL", "due_at")]
        watched = refresh.viewers()
        if outcome.errors:
            return f"errors: {outcome.errors}"
        return "a watched key sleeps for ever" if watched and due_at is None else None

    return await violations(dsn, [session("comes", comes), session("park", PARK)], prepare=prepare, judge=judge)


async def test_a_key_is_never_parked_while_somebody_comes(refresh: RefreshSession, queue_dsn: str) -> None:
    """In every order it is due for whoever watches it now."""
    assert await park_and_subscribe(refresh, queue_dsn) == []


async def test_a_ghost_that_comes_back_finds_its_keys_due(refresh: RefreshSession, queue_dsn: str) -> None:
    """A heartbeat un-parks like a subscription."""
    assert await park_and_subscribe(refresh, queue_dsn, "SELECT livewell.heartbeat_session(%(session)s, 'ann')") == []


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("subscribe", (NO_KEY_SHARE,)),
        ("park_keys", (WEAKER_PARK,)),
        ("park_keys", (COUNTED_WITH_THE_LOCK, NOT_COUNTED_AGAIN)),
    ],
    ids=["no share lock", "a lock that subscribers do not meet", "counted with the lock"],
)
async def test_without_the_locks_a_watched_key_sleeps(
    refresh: RefreshSession, queue_dsn: str, name: str, changes: tuple[Change, ...]
) -> None:
    """Broken on purpose, three ways."""
    with variant(queue_dsn, name, *changes):
        found = await park_and_subscribe(refresh, queue_dsn)

    assert [line for line in found if "sleeps for ever" in line] != []


async def test_a_heartbeat_that_does_not_un_park_breaks(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "heartbeat_session", ("IF v_seen < v_now - interval '2 minutes' THEN", "IF false THEN")):
        found = await park_and_subscribe(refresh, queue_dsn, "SELECT livewell.heartbeat_session(%(session)s, 'ann')")

    assert found != []


# -- sweep ---------------------------------------------------------------------------------------


async def sweep_and(refresh: RefreshSession, dsn: str, comes: str) -> list[str]:
    """A session is about to be swept, and shows a sign of life."""

    def prepare() -> Given:
        refresh.reset()
        one = refresh.open("ann")
        refresh.subscribe(one, "AAPL", "MSFT", user="ann")
        refresh.rows("UPDATE livewell.viewer_session SET seen_at = livewell.now() - interval '10 minutes'")
        return {"session": one}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        orphans = refresh.value(
            "SELECT count(*) FROM livewell.subscription b WHERE NOT EXISTS (SELECT FROM livewell.viewer_session "
            "v WHERE v.id = b.session_id)"
        )
        counted = refresh.value("SELECT coalesce(sum(subscriptions), 0) FROM livewell.viewer")
        there = refresh.value("SELECT count(*) FROM livewell.subscription")
        if orphans or counted != there:
            return f"{orphans} subscriptions of nobody, {counted} counted, {there} there"
        told = str(outcome.answer("comes"))
        alive = refresh.value("SELECT count(*) FROM livewell.viewer_session")
        return f"{alive} sessions, but told {told}" if alive == ("unknown" in told) else None

    return await violations(
        dsn,
        [session("sweep", "SELECT livewell.sweep_sessions(100)"), session("comes", comes)],
        prepare=prepare,
        judge=judge,
    )


@pytest.mark.parametrize(
    "comes", [SUBSCRIBE.replace("AAPL", "TSLA"), "SELECT livewell.heartbeat_session(%(session)s, 'ann')"]
)
async def test_the_sweep_and_a_sign_of_life_agree(refresh: RefreshSession, queue_dsn: str, comes: str) -> None:
    """Either the session is gone with all it had and is told so, or it lives with all it has."""
    assert await sweep_and(refresh, queue_dsn, comes) == []


async def test_a_subscribe_that_does_not_lock_its_session_leaves_orphans(
    refresh: RefreshSession, queue_dsn: str
) -> None:
    """Broken on purpose: it only looks whether the session is there."""
    broken: tuple[Change, ...] = (
        ("IF NOT FOUND AND livewell.heartbeat_session(p_session, p_user) = 'alive' THEN", "IF true THEN"),
        ("s.seen_at > p_begun - interval '2 minutes'", "false"),
        (
            (
                "UPDATE livewell.viewer_session s SET subs_version = s.subs_version + 1 WHERE s.id = p_id AND "
                "s.user_id || '' = p_name AND coalesce(s.public_key = p_public_key, true);"
            ),
            (
                "PERFORM FROM livewell.viewer_session s WHERE s.id = p_id AND s.user_id || '' = p_name AND "
                "coalesce(s.public_key = p_public_key, true);"
            ),
        ),
    )
    with variant(queue_dsn, "touch_session", *broken):
        assert await sweep_and(refresh, queue_dsn, SUBSCRIBE.replace("AAPL", "TSLA")) != []


# -- caps ----------------------------------------------------------------------------------------


async def two_sessions_one_cap(refresh: RefreshSession, dsn: str) -> list[str]:
    """Two sessions of one user want two keys each; three are allowed."""

    def prepare() -> Given:
        refresh.reset()
        refresh.rows("INSERT INTO livewell.viewer (user_id) VALUES ('ann')")
        return {"a": refresh.open("ann"), "b": refresh.open("ann")}

    def judge(outcome: Outcome) -> str | None:
        there = refresh.value("SELECT count(*) FROM livewell.subscription")
        counted = refresh.value("SELECT subscriptions FROM livewell.viewer")
        return (
            None
            if (there, counted) == (3, 3) and not outcome.errors
            else f"{there} there, {counted} counted; {outcome.errors}"
        )

    subscribe = "SELECT answer FROM livewell.subscribe(%({0})s, 'ann', '{{quote,quote}}', '{{X{1},Y{1}}}', 3)"
    return await violations(
        dsn, [session(name, subscribe.format(name, name.upper())) for name in "ab"], prepare=prepare, judge=judge
    )


async def test_a_cap_holds_for_two_sessions_at_once(refresh: RefreshSession, queue_dsn: str) -> None:
    """The user's row is locked before anything is counted."""
    assert await two_sessions_one_cap(refresh, queue_dsn) == []


async def test_a_cap_without_the_users_lock_breaks(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose: both count nothing."""
    unlocked: Change = (
        (
            "INSERT INTO livewell.viewer AS w (user_id) VALUES (v_user) ON CONFLICT (user_id) DO UPDATE SET "
            "subscriptions = w.subscriptions RETURNING w.subscriptions INTO v_has;"
        ),
        "SELECT w.subscriptions INTO v_has FROM livewell.viewer w WHERE w.user_id = v_user;",
    )
    with variant(queue_dsn, "subscribe", unlocked):
        assert await two_sessions_one_cap(refresh, queue_dsn) != []


# -- dispatch ------------------------------------------------------------------------------------


async def two_dispatchers(refresh: RefreshSession, dsn: str, steps: tuple[str, ...] = (DISPATCH,)) -> list[str]:
    """An old term's dispatch and a new term's, of the same key."""

    def prepare() -> Given:
        refresh.reset()
        refresh.subscribe(refresh.open("ann"), "AAPL", user="ann")
        fence = refresh.hold()
        refresh.rows("UPDATE livewell.singleton SET expires_at = livewell.now() - interval '1 second'")
        return {"fence": fence}

    acquire = f"SELECT answer, fence FROM livewell.acquire_singleton('{SINGLETON}', 'new', NULL, interval '1 minute')"

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        if outcome.answer("new", 1)[0][0] != "dispatched":
            return f"the new holder was told {outcome.answer('new', 1)}"
        jobs = refresh.value("SELECT count(*) FROM livewell.job")
        old = outcome.answer("old")[0][0]
        return None if jobs == 1 and old == "not_holder" else f"{jobs} jobs; the old term was told {old}"

    return await violations(
        dsn,
        [
            session("old", *steps),
            session("new", acquire, DISPATCH.replace("%(fence)s", "%(fence)s::bigint + 1"), transaction=False),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_an_old_term_dispatches_nothing(refresh: RefreshSession, queue_dsn: str) -> None:
    """However the two meet, the old fence opens nothing."""
    assert await two_dispatchers(refresh, queue_dsn) == []


async def test_a_dispatch_that_does_not_ask_for_the_fence_breaks(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "dispatch_due", ("IF NOT livewell.hold_singleton(p_name, p_fence) THEN", "IF false THEN")):
        assert await two_dispatchers(refresh, queue_dsn) != []


def dispatched_beside_a_subscriber(refresh: RefreshSession, other: RefreshSession) -> int:
    """Somebody is subscribing, not committed yet, as somebody always is on a hot key."""
    refresh.subscribe(refresh.open("ann"), "AAPL", user="ann")
    late = refresh.open("bob")
    with other.connection.transaction(force_rollback=True):
        other.subscribe(late, "AAPL", user="bob")
        return int(refresh.dispatch()["inserted"])


def test_a_hot_key_whose_row_is_always_share_locked_is_dispatched(
    refresh: RefreshSession, other_refresh: RefreshSession
) -> None:
    """The lock of a dispatch does not meet theirs."""
    assert dispatched_beside_a_subscriber(refresh, other_refresh) == 1


def test_a_dispatch_with_the_lock_of_parking_skips_a_hot_key_for_ever(
    refresh: RefreshSession, other_refresh: RefreshSession, queue_dsn: str
) -> None:
    """Broken on purpose."""
    with variant(
        queue_dsn, "queue_chosen", ("FOR NO KEY UPDATE OF l SKIP LOCKED) x;", "FOR UPDATE OF l SKIP LOCKED) x;")
    ):
        assert dispatched_beside_a_subscriber(refresh, other_refresh) == 0


def test_two_subscribers_with_the_same_keys_in_other_orders_do_not_deadlock(
    refresh: RefreshSession, queue_dsn: str
) -> None:
    """Both un-park fifty keys, given in opposite orders; a gate makes them meet."""
    keys = [f"K{n:02}" for n in range(50)]
    for key in keys:
        refresh.keep(key)
    sessions = [refresh.open(user) for user in ("ann", "bob")]
    before: Change = (
        "UPDATE livewell.ledger l SET demand_class",
        f"PERFORM pg_advisory_xact_lock_shared({GATE}); UPDATE livewell.ledger l SET demand_class",
    )

    def run(one: str, user: str, order: list[str]) -> int:
        with RefreshSession(queue_dsn) as mine:
            mine.rows("SET application_name = 'crowd'")
            return len(mine.subscribe(one, *order, user=user))

    with variant(queue_dsn, "unpark", before), RefreshSession(queue_dsn) as keeper, ThreadPoolExecutor(2) as pool:
        keeper.rows(SHUT)
        try:
            answers = [
                pool.submit(run, sessions[0], "ann", keys),
                pool.submit(run, sessions[1], "bob", keys[::-1]),
            ]
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'crowd' AND wait_event_type = 'Lock'"
            )
            give_up = time.monotonic() + 20
            while keeper.value(waiting) < 2:
                assert time.monotonic() < give_up, "they do not come together"
        finally:
            keeper.rows(OPEN)
        assert [answer.result() for answer in answers] == [50, 50]
    assert refresh.value("SELECT count(*) FROM livewell.ledger WHERE due_at IS NULL") == 0
