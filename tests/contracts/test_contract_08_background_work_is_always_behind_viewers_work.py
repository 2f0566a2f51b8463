"""Contract 8: scheduled work is always behind viewers' work.

The lane is a column that a CHECK bounds, set by code; every claim serves lane 0 first.

Broken once, and kept broken below: ordered by rank alone, an old background job goes before a
viewer's.
"""

from __future__ import annotations

import json

import psycopg
import pytest

from tests.support.queue_sql import QueueSession
from tests.support.refresh_sql import RefreshSession
from tests.support.variants import variant

INSERT = """
INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, lane, priority, payload)
VALUES (7000000, 0, now(), now(), 'ready', 1, 'work', 'work', %s, %s, %s::jsonb)
"""


def order(queue: QueueSession, *, limited: bool) -> list[int]:
    """Lanes in the order in which jobs are claimed one by one.

    Background jobs are older and of the highest priority.
    """
    queue.reset()
    queue.declare(concurrency=100 if limited else None)
    for _ in range(3):
        queue.enqueue(1, lane=1, priority=100)
        queue.enqueue(1, lane=0, priority=-100)
    worker = queue.register()
    claims = [queue.claim_limited(worker, 1) if limited else queue.claim(worker, 1) for _ in range(6)]
    return [queue.job(claim.id, "lane")[0] for [claim] in claims]


@pytest.mark.parametrize("limited", [False, True])
def test_lane_0_is_served_first_whatever_the_priority(queue: QueueSession, limited: bool) -> None:
    """In ordinary and in limited queues."""
    assert order(queue, limited=limited) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("lane", [-1, 2])
def test_there_is_no_lane_before_the_first(queue: QueueSession, lane: int) -> None:
    """The functions refuse it with words."""
    with pytest.raises(psycopg.Error, match="lane 0 or 1"):
        queue.enqueue(1, lane=lane)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lane": -1},
        {"lane": 2},
        {"priority": 101},
        {"priority": -101},
        {"payload": '{"text": "' + "x" * 262_144 + '"}'},
        {"payload": json.dumps({"text": "\x01" * 50_000})},  # six bytes of text for each byte that is stored
    ],
    ids=lambda wrong: f"{next(iter(wrong))} {str(next(iter(wrong.values())))[:20]}",
)
def test_the_table_itself_refuses_what_is_outside_the_bounds(queue: QueueSession, wrong: dict[str, object]) -> None:
    """Seen failing on 0.5.0: all six rows were accepted by a plain INSERT."""
    row = {"lane": 1, "priority": 0, "payload": "{}"} | wrong
    with pytest.raises(psycopg.errors.CheckViolation, match="job_birth_check"):
        queue.rows(INSERT, row["lane"], row["priority"], row["payload"])


@pytest.mark.parametrize("right", [(0, -100, "{}"), (1, 100, '{"text": "' + "x" * 262_130 + '"}')])
def test_the_table_takes_what_is_within_the_bounds(queue: QueueSession, right: tuple[int, int, str]) -> None:
    """The bounds themselves are allowed, and a large payload is claimed like any other."""
    queue.rows(INSERT, *right)

    assert [claim.id for claim in queue.claim(queue.register(), 1)] == [7_000_000]


def test_by_rank_alone_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with (
        variant(
            queue_dsn,
            "limited_candidates",
            ("ORDER BY r.lane, r.rank, r.id", "ORDER BY r.rank, r.id"),
            ("SET enable_sort = off\n", ""),
        ),
        variant(queue_dsn, "read_candidates", ("ORDER BY j.lane, j.rank, j.id", "ORDER BY j.rank, j.id")),
    ):
        assert order(queue, limited=True) == [1, 1, 1, 0, 0, 0]


# -- the refresh engine: the lane is decided by code, whatever the registry says -----------------


def lanes(refresh: RefreshSession) -> dict[str, int]:
    """A scheduled type and an ordinary one, both watched by the same three.

    The registry claims otherwise.
    """
    refresh.type("daily", strategy="scheduled", cron="* * * * *", zone="UTC", definition='{"lane": 0, "priority": 100}')
    for _ in range(3):
        refresh.subscribe(refresh.open(), "A", "A", of=["daily", "quote"])
    refresh.dispatch()
    return {str(key): lane for key, lane in refresh.jobs("unique_key", "lane")}


def test_a_scheduled_type_is_background_even_while_it_is_watched(refresh: RefreshSession) -> None:
    """And the ordinary one is not."""
    assert lanes(refresh) == {"quote:A": 0, "daily:A": 1}


def test_a_due_check_that_does_not_look_at_the_strategy_breaks(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "order_refreshes", ("t.strategy = 'scheduled' OR g.viewers = 0", "g.viewers = 0")):
        assert lanes(refresh)["daily:A"] == 0
