"""enqueue_jobs and reserve_job_ids.

What a new job looks like, and what is answered for one that is not new.
"""

from __future__ import annotations

import itertools
from datetime import timedelta

import psycopg
import pytest

from tests.support.queue_sql import QueueSession


def test_a_job_is_ready_with_the_defaults_of_its_queue(queue: QueueSession) -> None:
    """Lane 1, priority 0, the queue's attempts, due now."""
    queue.freeze()
    queue.declare(attempts=7)
    job = queue.enqueue()[0]

    row = queue.job(
        job,
        "state::text",
        "lane",
        "priority",
        "attempt",
        "max_attempts",
        "lost",
        "fence",
        "worker",
        "run_at",
        "created_at",
    )
    assert row == ("ready", 1, 0, 0, 7, 0, 0, None, queue.now(), queue.now())


def test_the_options_of_a_job_are_stored(queue: QueueSession) -> None:
    """All of them."""
    job = queue.enqueue(
        kind="mail",
        payload={"a": [1, None]},
        unique_key="u",
        group_key="g",
        call_key="c",
        lane=0,
        priority=-5,
        max_attempts=3,
        trace="t",
    )[0]

    columns = ("kind", "payload", "unique_key", "group_key", "call_key", "lane", "priority", "max_attempts", "trace")
    assert queue.job(job, *columns) == ("mail", {"a": [1, None]}, "u", "g", "c", 0, -5, 3, "t")


def test_a_delay_makes_it_wait(queue: QueueSession) -> None:
    """Until now plus that many seconds."""
    queue.freeze()
    job = queue.enqueue(delay_seconds=90.5)[0]

    assert queue.job(job, "state::text", "run_at") == ("delayed", queue.now() + timedelta(seconds=90.5))


def test_a_time_in_the_future_makes_it_wait_and_one_in_the_past_does_not(queue: QueueSession) -> None:
    """run_at as given; the rank of a late one does not jump the line."""
    queue.freeze()
    later = queue.enqueue(run_at=str(queue.now() + timedelta(hours=1)))[0]
    past = queue.enqueue(run_at=str(queue.now() - timedelta(hours=1)))[0]
    now = queue.enqueue()[0]

    assert queue.states([later, past]) == ["delayed", "ready"]
    assert queue.job(past, "rank") == queue.job(now, "rank")


def test_a_priority_point_is_worth_a_minute(queue: QueueSession) -> None:
    """The rank contains the age, so what waits long enough overtakes."""
    queue.freeze()
    plain = queue.enqueue()[0]
    queue.advance(119)
    urgent = queue.enqueue(priority=2)[0]
    queue.advance(2)
    late = queue.enqueue(priority=2)[0]

    order = [claim.id for claim in queue.claim(queue.register())]
    assert order == [urgent, plain, late]


def test_an_empty_call_does_nothing(queue: QueueSession) -> None:
    """And answers nothing."""
    assert queue.enqueue_given([]) == []


def test_an_unknown_queue_is_named_and_nothing_is_written(queue: QueueSession) -> None:
    """LW002, all or none."""
    first, second = queue.ids(2)
    with pytest.raises(psycopg.Error, match='queue "nowhere" is not declared') as caught:
        queue.enqueue_given([{"id": first}, {"id": second, "queue": "nowhere"}])

    assert caught.value.sqlstate == "LW002"
    assert queue.column("SELECT id FROM livewell.job") == []


@pytest.mark.parametrize(
    "options",
    [
        {"lane": 2},
        {"priority": 101},
        {"priority": -101},
        {"max_attempts": 0},
        {"max_attempts": 101},
        {"kind": ""},
        {"kind": "k" * 201},
        {"unique_key": ""},
        {"unique_key": "k" * 513},
        {"group_key": "g" * 513},
        {"payload": {"x": "y" * 262_200}},
        {"payload": None, "kind": None},
    ],
    ids=lambda options: str(options)[:50],  # the whole would be in the environment of every process that is started
)
def test_what_is_out_of_bounds_is_refused_and_nothing_is_written(
    queue: QueueSession, options: dict[str, object]
) -> None:
    """By the database, whoever calls."""
    good, bad = queue.ids(2)
    with pytest.raises(psycopg.Error):
        queue.enqueue_given([{"id": good}, {"id": bad, **options}])

    assert queue.column("SELECT id FROM livewell.job") == []


def test_a_payload_at_the_bound_is_taken(queue: QueueSession) -> None:
    """262,144 bytes of text."""
    text = "y" * (262_144 - len('{"x": ""}'))
    job = queue.enqueue(payload={"x": text})[0]

    assert queue.job(job, "octet_length(payload::text)") == (262_144,)


def test_a_key_that_is_taken_merges(queue: QueueSession) -> None:
    """The live job stands for it, its payload unchanged."""
    first = queue.enqueue(unique_key="k", payload={"n": 1})[0]
    second = queue.ids(1)[0]

    assert queue.enqueue_given([{"id": second, "unique_key": "k", "payload": {"n": 2}}]) == [(second, "merged", first)]
    assert queue.job(first, "payload") == ({"n": 1},)


def test_a_running_job_holds_its_key_and_a_finished_one_does_not(queue: QueueSession) -> None:
    """Unique means: among live jobs."""
    queue.enqueue(unique_key="k")
    held = queue.claim(queue.register())
    second, third = queue.ids(2)
    assert queue.enqueue_given([{"id": second, "unique_key": "k"}]) == [(second, "merged", held[0].id)]

    queue.finish(*held)
    assert queue.enqueue_given([{"id": third, "unique_key": "k"}]) == []


def test_the_same_key_in_another_queue_is_another_key(queue: QueueSession) -> None:
    """Keys belong to their queue."""
    queue.declare("other")
    queue.enqueue(unique_key="k")

    assert len(queue.enqueue(unique_key="k", queue="other")) == 1


def test_the_same_key_twice_in_one_call_is_one_job(queue: QueueSession) -> None:
    """The one with the lower id."""
    first, second = queue.ids(2)
    answers = queue.enqueue_given([{"id": second, "unique_key": "k"}, {"id": first, "unique_key": "k"}])

    assert answers == [(second, "merged", first)]


@pytest.mark.parametrize("end", ["live", "running", "finished", "cancelled", "dead"])
def test_a_repeated_call_knows_its_ids_wherever_they_are(queue: QueueSession, end: str) -> None:
    """After an unknown commit the same call can be made again, and has no effect."""
    job = queue.enqueue(payload={"n": 1})[0]
    if end != "live":
        held = queue.claim(queue.register())[0]
        if end == "finished":
            queue.finish(held)
        elif end in ("cancelled", "dead"):
            queue.settle(held, "cancelled" if end == "cancelled" else "refused")
    before = queue.state(job)

    assert queue.enqueue_given([{"id": job, "payload": {"n": 2}}], again=True) == [(job, "known", job)]
    assert queue.state(job) == before


def test_a_repeated_call_inserts_what_the_first_did_not(queue: QueueSession) -> None:
    """The first never arrived."""
    job = queue.ids(1)[0]

    assert queue.enqueue_given([{"id": job}], again=True) == []
    assert queue.state(job) == "ready"


def test_an_enqueue_exists_exactly_if_its_transaction_commits(queue: QueueSession, other: QueueSession) -> None:
    """In the caller's own transaction."""
    with queue.connection.transaction(force_rollback=True):
        gone = queue.enqueue()[0]
        assert other.state(gone) == "nowhere"
    with queue.connection.transaction():
        kept = queue.enqueue()[0]

    assert other.states([gone, kept]) == ["nowhere", "ready"]


def test_reserved_blocks_do_not_overlap(queue: QueueSession, other: QueueSession) -> None:
    """Sixty-four ids each, bounded in number."""
    blocks = [
        *queue.column("SELECT livewell.reserve_job_ids(3)"),
        *other.column("SELECT livewell.reserve_job_ids(0)"),
        *queue.column("SELECT livewell.reserve_job_ids(2)"),
    ]

    assert [later - earlier for earlier, later in itertools.pairwise(blocks)] == [64] * 5
    assert queue.value("SELECT count(*) FROM livewell.reserve_job_ids(100000)") == 2000


@pytest.mark.parametrize(
    ("broken", "state"),
    [
        ({"lane": 2}, "LW003"),
        ({"lane": -1}, "LW003"),
        ({"priority": 101}, "LW003"),
        ({"priority": -101}, "LW003"),
        ({"attempts": 0}, "LW003"),
        ({"attempts": 101}, "LW003"),
        ({"kind": ""}, "LW003"),
        ({"kind": "k" * 201}, "LW003"),
        ({"payload": '{"x": "' + "y" * 262_200 + '"}'}, "LW005"),
    ],
)
@pytest.mark.parametrize(
    "function",
    [
        (
            "SELECT livewell.enqueue_one('work', %(kind)s, %(id)s, %(payload)s::jsonb, %(lane)s, %(priority)s, "
            "%(attempts)s)"
        ),
        (
            "SELECT livewell.enqueue_plain('work', %(kind)s, ARRAY[%(id)s]::bigint[], ('[' || %(payload)s || "
            "']')::jsonb, %(lane)s, %(priority)s, NULL, NULL, %(attempts)s, false)"
        ),
        (
            "SELECT livewell.enqueue_plain('work', %(kind)s, ARRAY[%(id)s]::bigint[], ('[' || %(payload)s || "
            "']')::jsonb, %(lane)s, %(priority)s, NULL, NULL, %(attempts)s, true)"
        ),
    ],
    ids=["one", "plain", "again"],
)
def test_a_plain_job_beyond_the_bounds_is_refused(
    queue: QueueSession, function: str, broken: dict[str, object], state: str
) -> None:
    """The functions look, for the table does not: see refuse_job.sql."""
    job = {"id": queue.ids(1)[0], "kind": "task", "payload": "{}", "lane": 1, "priority": 0, "attempts": 5} | broken
    with pytest.raises(psycopg.Error) as caught:
        queue.connection.execute(function.encode(), job)
    assert caught.value.sqlstate == state
    assert queue.column("SELECT id FROM livewell.job") == []
