"""list_dead, edit_dead, redrive_dead and prune_queue.

Dead letters can be seen, mended, sent again, and are kept for thirty days.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.support.queue_sql import QueueSession


def dead(session: QueueSession, n: int = 1, **options: Any) -> list[int]:
    """Jobs that were refused."""
    ids = session.enqueue(n, **options)
    for claim in session.claim(session.register(), queues=[options.get("queue", "work")]):
        session.settle(claim, "refused", error="no")
    return ids


def test_the_list_is_a_page_by_id(queue: QueueSession) -> None:
    """Filtered by queue and kind, continued after the last id."""
    queue.declare("other")
    first, second = dead(queue, 2, kind="a")
    third = dead(queue, kind="b")[0]
    elsewhere = dead(queue, queue="other", kind="a")[0]
    page = "SELECT id FROM livewell.list_dead(%s, %s, %s, %s)"

    assert queue.column(page, None, None, 0, 2) == [first, second]
    assert queue.column(page, None, None, second, 10) == [third, elsewhere]
    assert queue.column(page, "work", "a", 0, 10) == [first, second]
    assert queue.column(page, None, None, None, 0) == [first]


def test_a_letter_tells_why(queue: QueueSession) -> None:
    """Reason, counts, time and error."""
    queue.freeze()
    job = dead(queue, kind="a")[0]

    assert queue.rows("SELECT * FROM livewell.list_dead(NULL, NULL, 0, 10)") == [
        (job, "work", "a", "refused", 1, 0, queue.now(), "no")
    ]


def test_a_payload_can_be_mended(queue: QueueSession) -> None:
    """And only that of a letter that exists."""
    job = dead(queue, payload={"a": "bad"})[0]

    assert queue.value("SELECT livewell.edit_dead(%s, %s)", job, '{"a": 1}') is True
    assert queue.dead(job, "payload") == ({"a": 1},)
    assert queue.value("SELECT livewell.edit_dead(1, '{}')") is False


def test_a_redriven_letter_starts_a_new_life_under_its_old_id(queue: QueueSession) -> None:
    """Attempts and losses at zero, everything else as it was."""
    queue.freeze()
    options: dict[str, Any] = {
        "kind": "a",
        "payload": {"x": 1},
        "unique_key": "u",
        "group_key": "g",
        "call_key": "c",
        "lane": 0,
        "priority": 4,
        "max_attempts": 3,
        "trace": "t",
    }
    job = dead(queue, **options)[0]
    created = queue.dead(job, "created_at")[0]
    queue.advance(60)

    assert queue.redrive([job]) == (1, 0)
    assert queue.job(job, *options) == tuple(options.values())
    row = queue.job(job, "state::text", "attempt", "lost", "last_error", "created_at", "run_at")
    assert row == ("ready", 0, 0, "no", created, queue.now())
    assert queue.column("SELECT id FROM livewell.dead_job") == []


def test_a_redriven_suspect_is_no_suspect(queue: QueueSession) -> None:
    """Whoever sends it again has looked at it."""
    job = dead(queue)[0]
    queue.rows("UPDATE livewell.dead_job SET lost = 5")
    queue.redrive([job])

    assert [claim.id for claim in queue.claim(queue.register())] == [job]


def test_letters_are_redriven_by_queue_and_kind_up_to_a_limit(queue: QueueSession) -> None:
    """All that fit, oldest first."""
    a = dead(queue, 3, kind="a")
    b = dead(queue, kind="b")

    assert queue.redrive(kind="a", limit=2) == (2, 0)
    assert queue.states([*a, *b]) == ["ready", "ready", "failed", "failed"]
    assert queue.redrive(queue="nowhere") == (0, 0)
    assert queue.redrive() == (2, 0)


def test_a_letter_whose_key_is_taken_stays(queue: QueueSession) -> None:
    """Counted as kept, and redriven when the key is free."""
    first = dead(queue, unique_key="k")[0]
    second = dead(queue, unique_key="k")[0]
    live = queue.enqueue(unique_key="k")[0]
    assert queue.redrive([first, second]) == (0, 2)

    queue.cancel(live)
    assert queue.redrive([first, second]) == (1, 1)
    assert queue.states([first, second]) == ["ready", "failed"]


def test_a_redrive_of_nothing_is_nothing(queue: QueueSession) -> None:
    """An empty list means none, not all."""
    dead(queue)

    assert queue.redrive([]) == (0, 0)


def test_a_payload_beyond_the_bound_is_refused(queue: QueueSession) -> None:
    """Also one that compresses well: a redrive would not notice it."""
    job = dead(queue, payload={"a": 1})[0]
    with pytest.raises(psycopg.Error, match="262144 are allowed") as caught:
        queue.rows("SELECT livewell.edit_dead(%s, jsonb_build_object('x', repeat('y', 300000)))", job)

    assert caught.value.sqlstate == "LW005"
    assert queue.dead(job, "payload") == ({"a": 1},)


@pytest.mark.parametrize(("days", "kept"), [(1, 30), (30, 30), (90, 90)])
def test_letters_are_kept_thirty_days_at_least(queue: QueueSession, days: int, kept: int) -> None:
    """Whatever the caller says."""
    queue.freeze()
    dead(queue)
    queue.rows("UPDATE livewell.dead_job SET died_at = livewell.now() - %s * interval '1 day'", kept)
    assert queue.value("SELECT livewell.prune_queue(%s, 1, 100)", days) == 0

    queue.rows("UPDATE livewell.dead_job SET died_at = died_at - interval '1 second'")
    assert queue.value("SELECT livewell.prune_queue(%s, 1, 100)", days) == 1


def test_statistics_are_pruned_in_pages(queue: QueueSession) -> None:
    """Older than the days given, a bounded number per call."""
    queue.rows(
        "INSERT INTO livewell.stat SELECT livewell.now() - n * interval '1 day', 'work', 'task', 'ok', 1, 1 "
        "FROM generate_series(0, 9) AS n"
    )

    assert [queue.value("SELECT livewell.prune_queue(30, 5, 3)") for _ in range(3)] == [3, 2, 0]


def test_statistics_add_up_within_their_minute(queue: QueueSession) -> None:
    """From any number of workers."""
    queue.freeze()
    for _ in range(2):
        queue.rows("SELECT livewell.add_stats('{work,work}', '{a,b}', '{succeeded,retry}', '{2,1}', '{30,4}')")
    queue.advance(60)
    queue.rows("SELECT livewell.add_stats('{work}', '{a}', '{succeeded}', '{1}', '{1}')")

    rows = queue.rows("SELECT kind, outcome, n, ms FROM livewell.stat ORDER BY minute, kind")
    assert rows == [("a", "succeeded", 4, 60), ("b", "retry", 2, 8), ("a", "succeeded", 1, 1)]
