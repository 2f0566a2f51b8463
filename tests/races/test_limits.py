"""Limits under races: what runs, what was granted and what was reserved is read after the lock, in a statement of its own.

Few sessions go through all interleavings; crowds meet at a gate inside the claim, so that as many
as can get past the locks do so before any of them has committed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import GATE, OPEN, SHUT, Change, variant

CLAIM = "SELECT answer, id FROM livewell.claim_limited(%({})s, '{}', 3)"
Row = tuple[Any, ...]

# A gate that many may pass at once, just before the claimed rows are written: who stands here holds
# all the locks a claim ever has.
BEFORE_WRITING: Change = (
    "v_fence := nextval('livewell.fence_seq');",
    f"PERFORM pg_advisory_xact_lock_shared({GATE}); v_fence := nextval('livewell.fence_seq');",
)
QUEUE_LOCK = "SELECT * INTO locked_queue FROM livewell.queue q WHERE q.name = p_queue FOR NO KEY UPDATE;"
COUNTED_WITH_THE_LOCK: Change = (
    QUEUE_LOCK,
    (
        "PERFORM set_config('livewell.counted', (SELECT count(*) FROM livewell.job j WHERE j.queue = p_queue AND "
        "j.credential IS NOT NULL)::text, true) FROM livewell.queue q WHERE q.name = p_queue FOR NO KEY UPDATE; "
        "SELECT * INTO locked_queue FROM livewell.queue q WHERE q.name = p_queue;"
    ),
)
NO_QUEUE_LOCK: Change = (QUEUE_LOCK, QUEUE_LOCK.replace(" FOR NO KEY UPDATE", ""))
LIMITER_LOCK = "WHERE l.name = locked_queue.limiter FOR NO KEY UPDATE;"
NO_LIMITER_LOCK: Change = (LIMITER_LOCK, LIMITER_LOCK.replace(" FOR NO KEY UPDATE", ""))


# -- two claimers, every order -------------------------------------------------------------------


async def two_claimers(queue: QueueSession, queue_dsn: str, **limits: Any) -> list[str]:
    """Three may run of one group, and each claimer wants three.

    There are more jobs than one claim looks at and locks.
    """

    def prepare() -> Given:
        queue.reset()
        queue.declare(**limits)
        queue.enqueue(60, group_key="g")
        queue.rows("UPDATE livewell.job SET state = 'ready', held_by = NULL")  # as if the limit had just come down
        return {"a": queue.register(), "b": queue.register()}

    def judge(outcome: Outcome) -> str | None:
        running = queue.value("SELECT count(*) FROM livewell.job WHERE state = 'running'")
        return None if running == 3 and not outcome.errors else f"{running} run under a limit of 3; {outcome.errors}"

    return await violations(
        queue_dsn, [session(name, CLAIM.format(name, "work")) for name in "ab"], prepare=prepare, judge=judge
    )


@pytest.mark.parametrize("limit", ["group_limit", "concurrency"])
async def test_two_claimers_at_once_keep_a_limit_of_three(queue: QueueSession, queue_dsn: str, limit: str) -> None:
    """In every order exactly three run: the second counts what the first has taken."""
    assert await two_claimers(queue, queue_dsn, **{limit: 3}) == []


COUNTED = "current_setting('livewell.counted')::integer"
BROKEN_COUNTS: dict[str, tuple[str, Change]] = {
    "group_limit": (
        "pick_limited",
        (
            (
                "livewell.group_has_room(p_queue.name, p_queue.group_limit, p_room.running, p_limiter.per_key, "
                "v_j.group_key, v_taken)"
            ),
            f"({COUNTED} + cardinality(v_taken) < p_queue.group_limit)",
        ),
    ),
    "concurrency": (
        "measure_room",
        (
            "(SELECT count(*) FROM livewell.job j WHERE j.queue = p_queue.name AND j.credential IS NOT NULL)",
            COUNTED,
        ),
    ),
}


@pytest.mark.parametrize("limit", ["group_limit", "concurrency"])
async def test_a_count_in_the_same_statement_as_the_lock_breaks(
    queue: QueueSession, queue_dsn: str, limit: str
) -> None:
    """Its snapshot is from before the wait: six run under a limit of three."""
    name, change = BROKEN_COUNTS[limit]
    with variant(queue_dsn, "lock_limited", COUNTED_WITH_THE_LOCK), variant(queue_dsn, name, change):
        found = await two_claimers(queue, queue_dsn, **{limit: 3})

    assert [line for line in found if "6 run under a limit of 3" in line] != []


@pytest.mark.parametrize("limit", ["group_limit", "concurrency"])
async def test_without_the_queues_lock_it_breaks(queue: QueueSession, queue_dsn: str, limit: str) -> None:
    """Both count nothing, and skip each other's rows."""
    with variant(queue_dsn, "lock_limited", NO_QUEUE_LOCK):
        assert await two_claimers(queue, queue_dsn, **{limit: 3}) != []


# -- a crowd -------------------------------------------------------------------------------------


def crowd(dsn: str, statements: Sequence[str], *broken: Change) -> list[Row]:
    """Run all statements at once, each on its own connection.

    The gate opens when every one of them waits for something.
    """

    def run(statement: str) -> list[Row]:
        with psycopg.connect(dsn, autocommit=True, application_name="crowd") as connection:
            return connection.execute(statement.encode()).fetchall()

    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'crowd' AND datname = current_database() "
        "AND wait_event_type = 'Lock'"
    )
    with (
        variant(dsn, "claim_limited", BEFORE_WRITING),
        variant(dsn, "lock_limited", *broken),
        QueueSession(dsn) as keeper,
        ThreadPoolExecutor(len(statements)) as pool,
    ):
        keeper.rows(SHUT)
        try:
            answers = [pool.submit(run, statement) for statement in statements]
            give_up = time.monotonic() + 30
            while keeper.value(waiting) + sum(answer.done() for answer in answers) < len(statements):
                assert time.monotonic() < give_up, "the crowd does not come together"
        finally:
            keeper.rows(OPEN)
        return [row for answer in answers for row in answer.result()]


def claimed_by_a_crowd(queue: QueueSession, dsn: str, *broken: Change, n: int = 20) -> int:
    """Each claimer has a queue of its own with three jobs, all under one limiter.

    How many were claimed.
    """
    statements = []
    for number in range(n):
        name = f"q{number}"
        queue.declare(name, limiter="api")
        queue.enqueue(3, queue=name, lane=0)
        statements.append(
            f"SELECT id FROM livewell.claim_limited({queue.register()}, '{name}', 3) WHERE id IS NOT NULL"
        )
    return len(crowd(dsn, statements, *broken))


LIMITERS: dict[str, tuple[dict[str, Any], int]] = {
    "budget": (
        {"budget_units": 1000, "budget_unit": "bytes", "budget_seconds": 86400, "estimate_units": 100},
        9,  # of 100 bytes each fit below the stop at 950
    ),
    "rate": ({"rate_calls": 10, "rate_seconds": 60, "burst": 10, "reserve": 0}, 10),
    "concurrency": ({"concurrency": 7}, 7),
}


@pytest.mark.parametrize("limit", LIMITERS)
def test_twenty_claimers_at_once_keep_the_limiter(queue: QueueSession, queue_dsn: str, limit: str) -> None:
    """They take exactly what there is, from twenty queues."""
    limits, most = LIMITERS[limit]
    queue.limiter(**limits)
    assert claimed_by_a_crowd(queue, queue_dsn) == most


@pytest.mark.parametrize("limit", LIMITERS)
def test_without_the_limiters_lock_it_breaks(queue: QueueSession, queue_dsn: str, limit: str) -> None:
    """Each sees all the room there is and takes its three: sixty."""
    limits, _ = LIMITERS[limit]
    queue.limiter(**limits)
    assert claimed_by_a_crowd(queue, queue_dsn, NO_LIMITER_LOCK) == 60


@pytest.mark.parametrize(("broken", "probes"), [((), 1), ((NO_LIMITER_LOCK,), 10)])
def test_ten_claimers_at_a_half_open_breaker_are_one_probe(
    queue: QueueSession, queue_dsn: str, broken: tuple[Change, ...], probes: int
) -> None:
    """And without the lock, ten."""
    queue.limiter(breaker_failures=1)
    queue.rows(
        "UPDATE livewell.limiter_credential SET breaker = 'open', opened = 1, open_until = livewell.now() - "
        "interval '1 second'"
    )
    assert claimed_by_a_crowd(queue, queue_dsn, *broken, n=10) == probes


def test_a_key_of_a_limiter_runs_once_whatever_the_queue(queue: QueueSession, queue_dsn: str) -> None:
    """Ten queues, one key, one call."""
    queue.limiter(per_key=1)
    statements = []
    for number in range(10):
        queue.declare(f"q{number}", limiter="api")
        queue.enqueue(2, queue=f"q{number}", group_key="AAPL")
        statements.append(
            f"SELECT id FROM livewell.claim_limited({queue.register()}, 'q{number}', 3) WHERE id IS NOT NULL"
        )
    assert len(crowd(queue_dsn, statements)) == 1


# -- batches -------------------------------------------------------------------------------------

FINISH = "SELECT * FROM livewell.finish_jobs(%({0})s, %({0}_ids)s, %({0}_fences)s, %({0}_others)s::jsonb)"


def new_batch(queue: QueueSession) -> tuple[int, int]:
    """An open batch with a follow-up: its id and the follow-up's."""
    batch_id, follow_id = queue.ids(2)
    follow = json.dumps({"queue": "work", "kind": "report", "payload": {}})
    queue.rows("SELECT livewell.create_batch(%s, %s, 'done', %s::jsonb)", batch_id, follow_id, follow)
    return batch_id, follow_id


def finishing(name: str, worker: int, done: Sequence[Any], others: Sequence[dict[str, Any]] = ()) -> Given:
    """What FINISH needs: claims that succeeded, and others."""
    return {
        name: worker,
        f"{name}_ids": [claim.id for claim in done],
        f"{name}_fences": [claim.fence for claim in done],
        f"{name}_others": json.dumps(others) if others else None,
    }


async def last_two_finish(queue: QueueSession, queue_dsn: str) -> list[str]:
    """The last two jobs of a batch end at once, in two workers."""

    def prepare() -> Given:
        queue.reset()
        batch_id, follow_id = new_batch(queue)
        queue.enqueue(2, batch_id=batch_id)
        queue.value("SELECT livewell.seal_batch(%s)", batch_id)
        a, b = queue.register(), queue.register()
        first, second = queue.claim(a, 1), queue.claim(b, 1)
        return {**finishing("a", a, first), **finishing("b", b, second), "batch": batch_id, "follow": follow_id}

    def judge(outcome: Outcome) -> str | None:
        state, remaining, done = queue.rows(
            "SELECT state, remaining, succeeded FROM livewell.show_batch(%s)", outcome.given["batch"]
        )[0]
        followed = queue.column("SELECT id FROM livewell.job WHERE kind = 'report'")
        if outcome.errors or (state, remaining, done) != ("ended", 0, 2) or followed != [outcome.given["follow"]]:
            return f"{state}, {remaining} remain, {done} done, followed by {followed}; {outcome.errors}"
        return None

    return await violations(
        queue_dsn, [session(name, FINISH.format(name)) for name in "ab"], prepare=prepare, judge=judge
    )


async def test_the_last_two_jobs_of_a_batch_are_followed_once(queue: QueueSession, queue_dsn: str) -> None:
    """In every order."""
    assert await last_two_finish(queue, queue_dsn) == []


async def test_a_batch_counted_without_a_lock_before_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Counting what is left with a snapshot from before the wait.

    Each sees the other's job, and nothing follows.
    """
    lock = "PERFORM FROM livewell.batch b WHERE b.id = ANY (v_batches) ORDER BY b.id FOR NO KEY UPDATE;"
    count = (
        "SET remaining = b.remaining - n.ended",
        "SET remaining = (SELECT count(*) FROM livewell.job j WHERE j.batch_id = b.id)",
    )
    with variant(queue_dsn, "job_ended", (lock, ""), count):
        assert await last_two_finish(queue, queue_dsn) != []


async def seal_beside_adding(queue: QueueSession, queue_dsn: str) -> list[str]:
    """A transaction adds a job while another seals; the job either counts or is refused."""

    def prepare() -> Given:
        queue.reset()
        batch_id, follow_id = new_batch(queue)
        [job] = queue.ids(1)
        added = [{"id": job, "queue": "work", "kind": "task", "payload": {}, "batch_id": batch_id}]
        return {"batch": batch_id, "follow": follow_id, "job": job, "added": json.dumps(added)}

    def judge(outcome: Outcome) -> str | None:
        batch, follow, job = (outcome.given[name] for name in ("batch", "follow", "job"))
        [(state, total)] = queue.rows("SELECT state, total FROM livewell.show_batch(%s)", batch)
        seen = (outcome.errors, state, total, queue.state(job), queue.state(follow))
        added: Row = ({}, "running", 1, "ready", "nowhere")
        refused: Row = ({"add": "LW007"}, "ended", 0, "nowhere", "ready")
        return None if seen in (added, refused) else str(seen)

    return await violations(
        queue_dsn,
        [
            session("add", "SELECT * FROM livewell.enqueue_jobs(%(added)s::jsonb)", "SELECT 1"),
            session("seal", "SELECT livewell.seal_batch(%(batch)s)"),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_sealing_waits_for_whoever_is_adding(queue: QueueSession, queue_dsn: str) -> None:
    """No job is ever in a batch that does not count it."""
    assert await seal_beside_adding(queue, queue_dsn) == []


async def test_adding_without_a_lock_on_the_batch_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Sealed and followed, and then a job comes."""
    lock = "PERFORM FROM livewell.batch b WHERE b.id = ANY (v_batches) ORDER BY b.id FOR KEY SHARE;"
    with variant(queue_dsn, "check_jobs", (lock, "")):
        assert await seal_beside_adding(queue, queue_dsn) != []


# -- finishes in opposite orders -----------------------------------------------------------------


def refused(claim: Any, **details: Any) -> dict[str, Any]:
    return {"id": claim.id, "fence": claim.fence, "outcome": "refused", **details}


def no_errors(outcome: Outcome) -> str | None:
    return f"errors: {outcome.errors}" if outcome.errors else None


async def batches_in_opposite_orders(queue: QueueSession, queue_dsn: str) -> list[str]:
    """One finish succeeds in batch x and fails in y, the other the reverse.

    A client who cancels holds both up in the middle.
    """

    def prepare() -> Given:
        queue.reset()
        x, _ = new_batch(queue)
        y, _ = new_batch(queue)
        a, b = queue.register(), queue.register()
        for batch in (x, y):
            queue.enqueue(2, batch_id=batch)
        x1, x2, y1, y2 = (claim for worker, n in ((a, 1), (b, 1), (a, 1), (b, 1)) for claim in queue.claim(worker, n))
        return {
            **finishing("a", a, [x1], [refused(y1)]),
            **finishing("b", b, [y2], [refused(x2)]),
            "x2": x2.id,
            "y1": y1.id,
        }

    return await violations(
        queue_dsn,
        [
            session("cancel", "SELECT livewell.cancel_job(%(y1)s)", "SELECT livewell.cancel_job(%(x2)s)"),
            session("a", FINISH.format("a"), transaction=False),
            session("b", FINISH.format("b"), transaction=False),
        ],
        prepare=prepare,
        judge=no_errors,
    )


async def test_two_finishes_with_batches_in_opposite_order_do_not_deadlock(queue: QueueSession, queue_dsn: str) -> None:
    """Each locks all its batches before it ends anything, in the order of their ids."""
    assert await batches_in_opposite_orders(queue, queue_dsn) == []


def claims_under_limiters(queue: QueueSession, worker: int, *names: str, **options: Any) -> list[Any]:
    """One claim from a queue under each of these limiters."""
    claims = []
    for name in names:
        queue.enqueue(1, queue=name, **options)
        claims += queue.claim_limited(worker, queue=name)
    return claims


def measured(claim: Any, outcome: str = "succeeded") -> dict[str, Any]:
    """The result of a limited job."""
    return {
        "id": claim.id,
        "fence": claim.fence,
        "outcome": outcome,
        "queue": claim.queue,
        "kind": "task",
        "credential": claim.credential,
        "used": 5,
        "ended": "ok",
    }


def declare_limiters(queue: QueueSession, *names: str) -> None:
    queue.reset()
    for name in names:
        queue.limiter(name, budget_units=1000, budget_unit="bytes", budget_seconds=86400)
        queue.declare(name, limiter=name)


HOLD_L = "SELECT FROM livewell.limiter WHERE name = 'l' FOR NO KEY UPDATE"  # as a claim does


async def limiters_in_opposite_orders(queue: QueueSession, queue_dsn: str) -> list[str]:
    """One worker ends a job of limiter m, and reports what it used of limiter a for a job that was taken from it. The other ends jobs of all three, and a claim holds it up at l."""

    def prepare() -> Given:
        declare_limiters(queue, "a", "l", "m")
        late, other = queue.register(), queue.register()
        [lost] = claims_under_limiters(queue, late, "a")
        queue.reconcile(late, mark=lost.fence)  # not its own any more
        queue.cancel(lost.id)
        [own] = claims_under_limiters(queue, late, "m")
        every = claims_under_limiters(queue, other, "a", "l", "m")
        return {
            **finishing("late", late, [], [measured(own), measured(lost)]),
            **finishing("other", other, [], [measured(claim) for claim in every]),
        }

    return await violations(
        queue_dsn,
        [
            session("claim", HOLD_L),
            session("late", FINISH.format("late"), transaction=False),
            session("other", FINISH.format("other"), transaction=False),
        ],
        prepare=prepare,
        judge=no_errors,
    )


async def test_a_late_report_beside_other_results_does_not_deadlock(queue: QueueSession, queue_dsn: str) -> None:
    """The limiters of what is still ours and of what is not are locked together, in the order of their names."""
    assert await limiters_in_opposite_orders(queue, queue_dsn) == []


async def batch_and_limiter_in_opposite_orders(queue: QueueSession, queue_dsn: str) -> list[str]:
    """One finish has a plain job of a batch and a limited job.

    The other limited jobs, one of them of the same batch.
    """

    def prepare() -> Given:
        declare_limiters(queue, "a", "l")
        batch_id, _ = new_batch(queue)
        mixed, limited = queue.register(), queue.register()
        queue.enqueue(1, batch_id=batch_id)
        plain = queue.claim(mixed)
        [beside] = claims_under_limiters(queue, mixed, "a")
        every = claims_under_limiters(queue, limited, "a", "l", batch_id=batch_id)
        return {
            **finishing("mixed", mixed, plain, [measured(beside)]),
            **finishing("limited", limited, [], [measured(claim) for claim in every]),
        }

    return await violations(
        queue_dsn,
        [
            session("claim", HOLD_L),
            session("mixed", FINISH.format("mixed"), transaction=False),
            session("limited", FINISH.format("limited"), transaction=False),
        ],
        prepare=prepare,
        judge=no_errors,
    )


async def test_plain_and_limited_jobs_of_one_batch_do_not_deadlock(queue: QueueSession, queue_dsn: str) -> None:
    """Job rows, then limiters, then batches: also when one finish has both kinds."""
    assert await batch_and_limiter_in_opposite_orders(queue, queue_dsn) == []


async def test_claims_and_finishes_over_two_limiters_do_not_deadlock(queue: QueueSession, queue_dsn: str) -> None:
    """Two workers finish jobs of both, given in opposite orders, while claims go on from both."""

    def prepare() -> Given:
        declare_limiters(queue, "a", "l")
        up, down, idle = queue.register(), queue.register(), queue.register()
        rising = claims_under_limiters(queue, up, "a", "l")
        falling = claims_under_limiters(queue, down, "l", "a")
        for name in ("a", "l"):
            queue.enqueue(2, queue=name)
        return {
            **finishing("up", up, [], [measured(claim) for claim in rising]),
            **finishing("down", down, [], [measured(claim, "retry") for claim in falling]),
            "idle": idle,
        }

    found = await violations(
        queue_dsn,
        [
            session("claim", CLAIM.format("idle", "l")),
            session("up", FINISH.format("up")),
            session("down", FINISH.format("down")),
        ],
        prepare=prepare,
        judge=no_errors,
    )
    assert found == []


# -- unique policies beside a finish -------------------------------------------------------------


def upkeep(queue: QueueSession) -> None:
    for _ in range(3):  # the first makes its row, and each looks at a page
        queue.rows("SELECT livewell.maintain(0, 0, 1)")


def key_trouble(queue: QueueSession) -> str | None:
    """A key with two live jobs, or one that nothing holds any more."""
    for key, live, held in queue.rows(
        "SELECT unique_key, count(*) FILTER (WHERE held_by IS NULL), count(*) FILTER (WHERE held_by = 'k') FROM "
        "livewell.job GROUP BY 1"
    ):
        if live > 1 or held > 1 or (held and not live):
            return f"key {key}: {live} live, {held} held"
    return None


async def policy_beside_finish(queue: QueueSession, queue_dsn: str, policy: str) -> list[str]:
    """A client enqueues keys a and b while a worker finishes their jobs, b's first.

    Then the queue looks after itself.
    """

    def enqueue(job: int, key: str) -> str:
        return json.dumps(
            [
                {
                    "id": job,
                    "queue": "work",
                    "kind": "task",
                    "payload": {},
                    "unique_key": key,
                    "policy": policy,
                    "lane": 0,
                }
            ]
        )

    def prepare() -> Given:
        queue.reset()
        for key in "ab":
            queue.enqueue(1, unique_key=key, lane=1)
        worker = queue.register()
        first, second = queue.claim(worker)
        new_a, new_b = queue.ids(2)
        return {
            **finishing("fa", worker, [first]),
            **finishing("fb", worker, [second]),
            "a": enqueue(new_a, "a"),
            "b": enqueue(new_b, "b"),
            "new": [new_a, new_b],
        }

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        for step, job in enumerate(outcome.given["new"]):
            answer = [row[1] for row in outcome.answer("client", step)]
            exists = queue.state(job) != "nowhere"
            if exists != (answer in ([], ["held"])):
                return f"told {answer or 'inserted'}, but the job {'exists' if exists else 'does not exist'}"
        upkeep(queue)
        return key_trouble(queue)

    return await violations(
        queue_dsn,
        [
            session("finish", FINISH.format("fb"), FINISH.format("fa")),
            session(
                "client",
                "SELECT * FROM livewell.enqueue_jobs(%(a)s::jsonb)",
                "SELECT * FROM livewell.enqueue_jobs(%(b)s::jsonb)",
            ),
        ],
        prepare=prepare,
        judge=judge,
    )


@pytest.mark.parametrize("policy", ["keep", "raise", "replace", "again"])
async def test_a_policy_beside_a_finish_leaves_one_live_job_and_nothing_stuck(
    queue: QueueSession, queue_dsn: str, policy: str
) -> None:
    """In every order, without a deadlock, and each answer is true."""
    assert await policy_beside_finish(queue, queue_dsn, policy) == []


async def test_a_raise_that_locks_running_jobs_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """As ON CONFLICT DO UPDATE does.

    The client has a and wants b, the finish has b and wants a (40P01).
    """
    locks = ("AND w.state <> 'running' FOR UPDATE SKIP LOCKED", "FOR UPDATE")
    with variant(queue_dsn, "merge_jobs", locks):
        found = await policy_beside_finish(queue, queue_dsn, "raise")

    assert [line for line in found if "40P01" in line] != []


async def test_without_upkeep_a_held_job_is_stuck(queue: QueueSession, queue_dsn: str) -> None:
    """Held behind a job that ended before the client committed.

    Neither saw the other, so promote_held is needed.
    """
    with variant(queue_dsn, "promote_held", ("AND j.held_by = 'k' AND (j.queue", "AND false AND (j.queue")):
        assert await policy_beside_finish(queue, queue_dsn, "again") != []


async def upkeep_beside_enqueue(queue: QueueSession, queue_dsn: str) -> list[str]:
    """A job is held behind a key that is free by now.

    A client takes the key in an open transaction while upkeep looks.
    """

    def prepare() -> Given:
        queue.reset()
        queue.rows("SELECT livewell.maintain(0, 0, 1)")
        queue.enqueue(1, unique_key="k")
        [held, new, other] = queue.ids(3)
        queue.enqueue_given([{"id": held, "unique_key": "k", "policy": "again"}])
        queue.enqueue_given(
            [{"id": other, "unique_key": "l"}, {"id": queue.ids(1)[0], "unique_key": "l", "policy": "again"}]
        )
        # As after a race: the jobs before them ended and did not see them.
        queue.rows("SET session_replication_role = replica")
        queue.rows("DELETE FROM livewell.job WHERE held_by IS NULL")
        queue.rows("SET session_replication_role = origin")
        return {"new": json.dumps([{"id": new, "queue": "work", "kind": "task", "payload": {}, "unique_key": "k"}])}

    def judge(outcome: Outcome) -> str | None:
        free = queue.value("SELECT state::text FROM livewell.job WHERE unique_key = 'l'")
        ran = [row[0] for row in outcome.answer("upkeep")]
        if outcome.errors or ran != [True] or free != "ready":
            return f"upkeep ran: {ran}, errors {outcome.errors}, the other key's job is {free}"
        upkeep(queue)
        return key_trouble(queue)

    return await violations(
        queue_dsn,
        [
            session("client", "SELECT * FROM livewell.enqueue_jobs(%(new)s::jsonb)"),
            session("upkeep", "SELECT ran FROM livewell.maintain(0, 0, 1)", transaction=False),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_upkeep_is_not_stopped_by_a_client_who_takes_the_key_of_a_held_job(
    queue: QueueSession, queue_dsn: str
) -> None:
    """It leaves that one for later, and goes on with the rest."""
    assert await upkeep_beside_enqueue(queue, queue_dsn) == []
