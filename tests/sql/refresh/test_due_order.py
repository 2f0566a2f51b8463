"""The order over everything that is due (X2, R7, R8).

The class of a key follows its viewers, and a wrong one cannot hold it back for long.
"""

from __future__ import annotations

import pytest

from tests.support.refresh_sql import RefreshSession

CROWD = 2000  # due keys with one viewer each: more than a page


@pytest.fixture(autouse=True)
def crowd(refresh: RefreshSession) -> None:
    """2,000 keys of one viewer, due for an hour."""
    refresh.freeze()
    one = refresh.open("crowd")
    refresh.rows(
        "INSERT INTO livewell.subscription SELECT livewell.session_hash(%s), 'quote', 'C' || n, 'crowd' FROM "
        "generate_series(1, %s) AS n",
        one,
        CROWD,
    )
    refresh.rows(
        "INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at) SELECT 'quote', 'C' || n, "
        "'api', livewell.now(), livewell.now() - interval '1 hour' FROM generate_series(1, %s) AS n",
        CROWD,
    )


def watch(refresh: RefreshSession, key: str, viewers: int, *, of: str = "quote") -> None:
    for n in range(viewers):
        refresh.subscribe(refresh.open(f"{key} {n}"), key, of=of, user=f"{key} {n}")


def recount(refresh: RefreshSession) -> int:
    """Go round once; answers how many pages it took."""
    pages, after = 0, (None, None)
    while pages == 0 or after != (None, None):
        [after] = refresh.rows("SELECT * FROM livewell.recount_viewers('api', %s, %s)", *after)
        pages += 1
    return pages


def classes(refresh: RefreshSession, *keys: str) -> list[int]:
    return [refresh.ledger(key, "demand_class")[0] for key in keys]


def first(refresh: RefreshSession, n: int = 1) -> list[str]:
    refresh.dispatch(page=n)
    found = [key for (key,) in refresh.jobs("group_key")]
    refresh.rows("DELETE FROM livewell.job")
    return found


def test_a_key_that_gains_viewers_while_it_waits_is_found(refresh: RefreshSession) -> None:
    """The newest of 2,001 due keys.

    Seen failing with a recount_viewers that classifies nothing: its class stayed 1. Going round
    takes a page a second.
    """
    watch(refresh, "POPULAR", 1)
    watch(refresh, "POPULAR", 40)
    refresh.rows("UPDATE livewell.ledger SET due_at = livewell.now() - interval '10 minutes' WHERE key = 'POPULAR'")

    assert recount(refresh) == 9
    assert classes(refresh, "POPULAR", "C1") == [6, 1]
    assert first(refresh) == ["POPULAR"]


def test_a_class_that_is_too_high_costs_one_look(refresh: RefreshSession) -> None:
    """Three hundred keys that were popular once, with one viewer left, fill a page.

    They are counted there, and the next look finds who has more.
    """
    watch(refresh, "POPULAR", 40)
    recount(refresh)
    refresh.rows("UPDATE livewell.ledger SET demand_class = 10 WHERE key ~ '^C[1-3]..$'")
    refresh.rows("UPDATE livewell.ledger SET due_at = livewell.now() - interval '10 minutes' WHERE key = 'POPULAR'")

    assert [first(refresh) for _ in range(2)][1] == ["POPULAR"]


def test_keys_that_everybody_left_are_parked_and_hold_nobody_up(refresh: RefreshSession) -> None:
    """Ghosts of high classes: one look parks what it meets."""
    watch(refresh, "POPULAR", 3)
    refresh.rows("UPDATE livewell.ledger SET demand_class = 10 WHERE key LIKE 'C%%'")
    refresh.rows("DELETE FROM livewell.viewer_session WHERE user_id = 'crowd'")

    looks = 0
    while "POPULAR" not in first(refresh):
        looks += 1
        assert looks <= 2 * CROWD / 250

    assert classes(refresh, "C1") == [1]


def test_the_background_takes_no_place_from_viewers(refresh: RefreshSession) -> None:
    """R19, contract 8: keys of a scheduled type fill no page of the others.

    There are two thousand, watched and due for longer. Prefetched keys fill none either.
    """
    refresh.rows("UPDATE livewell.data_type SET strategy = 'scheduled', cron = '0 6 * * *', zone = 'UTC'")
    refresh.type("news", prefetch=True)
    recount(refresh)
    watch(refresh, "N1", 1, of="news")

    assert classes(refresh, "C1") == [-1]
    assert first(refresh, 2)[0] == "N1"


def test_whoever_looks_at_a_prefetched_key_is_seen_at_once(refresh: RefreshSession) -> None:
    """Nobody looked when it was counted, so it was of the background.

    The first viewer takes it out of there.
    """
    refresh.rows("UPDATE livewell.data_type SET prefetch = true")
    refresh.keep("QUIET", due_at=refresh.now(), wanted_at=refresh.now())
    recount(refresh)
    assert classes(refresh, "QUIET") == [0]

    watch(refresh, "QUIET", 1)

    assert classes(refresh, "QUIET") == [1]


def test_somebody_who_waits_for_a_read_is_of_a_class(refresh: RefreshSession) -> None:
    """Due by read-through while the queue is full: one viewer more."""
    refresh.rows("UPDATE livewell.data_type SET prefetch = true")
    refresh.keep("READ", due_at=refresh.now(), wanted_at=refresh.now(), demand_class=0)
    refresh.rows("SELECT * FROM livewell.read_through('quote', 'READ')")

    assert classes(refresh, "READ") == [1]


def test_a_hot_key_costs_a_bounded_number_of_looks(refresh: RefreshSession) -> None:
    """Its class says that it is hot, so a page need not count all its viewers to keep it there."""
    refresh.rows(
        "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) SELECT md5('h' || n)::uuid, "
        "livewell.now(), livewell.now(), 'h' || n FROM generate_series(1, 700) AS n"
    )
    refresh.rows(
        "INSERT INTO livewell.subscription SELECT md5('h' || n)::uuid, 'quote', 'HOT', 'h' || n FROM "
        "generate_series(1, 700) AS n"
    )
    refresh.keep("HOT", due_at=refresh.now())
    recount(refresh)
    assert classes(refresh, "HOT") == [10]

    [(viewers,)] = refresh.rows(
        "SELECT viewers FROM livewell.due_candidates('api', livewell.now(), 250, 250, 10) WHERE key = 'HOT'"
    )

    assert viewers == 512
    assert classes(refresh, "HOT") == [10]
