"""Unique `keep` under races, calls repeated after an unknown commit, and many keys at once from two sides."""

from __future__ import annotations

import json

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession, document
from tests.support.variants import OPEN, SHUT, gate_before, variant

ENQUEUE = "SELECT * FROM livewell.enqueue_jobs(%({})s::jsonb)"
AGAIN = "SELECT * FROM livewell.enqueue_jobs(%({})s::jsonb, true)"
LOOK = gate_before("RETURN QUERY\n    SELECT g.id,")  # between the insert and the look at what it collided with


def with_key(queue: QueueSession, *keys: str) -> tuple[list[int], str]:
    """Ids, and the document that enqueues them under these keys."""
    ids = queue.ids(len(keys))
    return ids, document([{"id": job, "unique_key": key} for job, key in zip(ids, keys, strict=True)])


def live(queue: QueueSession) -> list[int]:
    return queue.column("SELECT id FROM livewell.job ORDER BY id")


# -- one key, three callers ----------------------------------------------------------------------


async def three_callers_with_one_key(queue: QueueSession, queue_dsn: str) -> list[str]:
    def prepare() -> Given:
        queue.reset()
        made = {name: with_key(queue, "k") for name in "abc"}
        return {name: text for name, (_, text) in made.items()} | {"ids": {n: i[0] for n, (i, _) in made.items()}}

    def judge(outcome: Outcome) -> str | None:
        stands = live(queue)
        if len(stands) != 1 or outcome.errors:
            return f"{len(stands)} live jobs have the key; errors: {outcome.errors}"
        for name, own in outcome.given["ids"].items():
            expected = [] if own == stands[0] else [(own, "merged", stands[0])]
            if outcome.answer(name) != expected:
                return f"{name} was told {outcome.answer(name)} instead of {expected}"
        return None

    return await violations(
        queue_dsn, [session(name, ENQUEUE.format(name)) for name in "abc"], prepare=prepare, judge=judge
    )


async def test_of_three_callers_with_one_key_one_is_inserted_and_the_others_are_told_which(
    queue: QueueSession, queue_dsn: str
) -> None:
    """In all ninety orders."""
    assert await three_callers_with_one_key(queue, queue_dsn) == []


async def test_without_the_unique_index_it_breaks(livewell_dsn: str) -> None:
    """Looking before inserting is not enough: it is the index that decides."""
    with QueueSession(livewell_dsn) as queue:
        queue.rows("DROP INDEX livewell.job_unique_key_idx")
        assert await three_callers_with_one_key(queue, livewell_dsn) != []


# -- many keys, opposite orders ------------------------------------------------------------------


async def many_keys_in_opposite_orders(queue: QueueSession, queue_dsn: str) -> list[str]:
    """Two callers with the same three keys in opposite orders.

    A third, who will roll back, holds the middle one.
    """

    def prepare() -> Given:
        queue.reset()
        (middle, held), (up, rising), (down, falling) = (with_key(queue, *keys) for keys in ("m", "amz", "zma"))
        return {"held": held, "rising": rising, "falling": falling, "ids": [*middle, *up, *down]}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        keys = queue.column("SELECT unique_key FROM livewell.job ORDER BY unique_key")
        return None if keys == ["a", "m", "z"] else f"live keys: {keys}"

    return await violations(
        queue_dsn,
        [
            session("middle", "BEGIN", ENQUEUE.format("held"), "ROLLBACK", transaction=False),
            session("up", ENQUEUE.format("rising"), transaction=False),
            session("down", ENQUEUE.format("falling"), transaction=False),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_callers_with_overlapping_keys_wait_for_each_other_and_never_deadlock(
    queue: QueueSession, queue_dsn: str
) -> None:
    """Each inserts in key order, whatever order it was given."""
    assert await many_keys_in_opposite_orders(queue, queue_dsn) == []


async def test_without_key_order_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """In the order given, each waits for a key of the other."""
    with variant(queue_dsn, "insert_jobs", ("        ORDER BY g.queue, g.unique_key, g.id\n", "")):
        found = await many_keys_in_opposite_orders(queue, queue_dsn)

    assert [line for line in found if "40P01" in line] != []


# -- the key's holder ends meanwhile -------------------------------------------------------------


async def holder_ends_between_insert_and_look(queue: QueueSession, queue_dsn: str, call: str) -> list[Outcome]:
    """The insert collides with a live job; by the time we look which one, it has finished."""
    seen: list[Outcome] = []

    def prepare() -> Given:
        queue.reset()
        worker = queue.register()
        queue.enqueue(unique_key="k")
        held = queue.claim(worker)[0]
        ids, text = with_key(queue, "k")
        return {"a": text, "id": ids[0], "worker": worker, "job": held.id, "fence": held.fence}

    def judge(outcome: Outcome) -> str | None:
        seen.append(outcome)
        answer = [row[1] for row in outcome.answer("enqueue")]
        exists = queue.state(outcome.given["id"]) != "nowhere"
        if outcome.errors or exists != (answer in ([], ["known"])):
            return (
                f"told {answer or 'inserted'}, but the job {'exists' if exists else 'does not exist'} {outcome.errors}"
            )
        return None

    finish = "SELECT * FROM livewell.finish_jobs(%(worker)s, ARRAY[%(job)s], ARRAY[%(fence)s])"
    found = await violations(
        queue_dsn,
        [
            session("gate", SHUT, OPEN, transaction=False),
            session("enqueue", call.format("a"), transaction=False),
            session("finish", finish, transaction=False),
        ],
        prepare=prepare,
        judge=judge,
    )
    assert found == []
    return seen


async def test_a_key_that_was_freed_just_now_is_called_vanished(queue: QueueSession, queue_dsn: str) -> None:
    """Nothing was inserted, and the answer says so: ask once more."""
    with variant(queue_dsn, "answer_jobs", LOOK):
        seen = await holder_ends_between_insert_and_look(queue, queue_dsn, ENQUEUE)

    assert "vanished" in [row[1] for outcome in seen for row in outcome.answer("enqueue")]


async def test_a_repeated_call_is_not_told_known_when_the_key_vanished(queue: QueueSession, queue_dsn: str) -> None:
    """Known means accepted before: live, finished or dead under this very id.

    It was once said of jobs that never existed.
    """
    with variant(queue_dsn, "answer_jobs", LOOK):
        seen = await holder_ends_between_insert_and_look(queue, queue_dsn, AGAIN)

    assert "vanished" in [row[1] for outcome in seen for row in outcome.answer("enqueue")]


def test_a_repeated_call_knows_its_finished_job_although_its_key_is_taken_again(queue: QueueSession) -> None:
    """The answer is about the id that was asked, not about who has the key by now."""
    worker = queue.register()
    ids, text = with_key(queue, "k")
    assert queue.enqueue_given(json.loads(text)) == []
    assert queue.finish(*queue.claim(worker)) == []
    queue.enqueue(unique_key="k")

    assert queue.enqueue_given(json.loads(text), again=True) == [(ids[0], "known", ids[0])]


# -- a call repeated after an unknown commit -----------------------------------------------------


async def repeated_call_beside_its_first_jobs_life(queue: QueueSession, queue_dsn: str) -> list[str]:
    """The first call committed without an answer.

    Its repetition waits for a stranger's key while the first job is run to its end.
    """

    def prepare() -> Given:
        queue.reset()
        worker = queue.register()
        plain = queue.ids(1)[0]
        (waits,), _ = with_key(queue, "s")
        (_, strangers) = with_key(queue, "s")
        queue.enqueue_given([{"id": plain, "unique_key": "t"}])
        held = queue.claim(worker)[0]
        text = document([{"id": plain, "unique_key": "t"}, {"id": waits, "unique_key": "s"}])
        return {"s": strangers, "a": text, "worker": worker, "job": plain, "fence": held.fence}

    def judge(outcome: Outcome) -> str | None:
        job = outcome.given["job"]
        places = queue.column(
            "SELECT 'live' FROM livewell.job WHERE id = %s UNION ALL SELECT 'history' FROM livewell.job_history "
            "WHERE id = %s",
            job,
            job,
        )
        return None if places == ["history"] and not outcome.errors else f"the job is in {places}; {outcome.errors}"

    finish = "SELECT * FROM livewell.finish_jobs(%(worker)s, ARRAY[%(job)s], ARRAY[%(fence)s])"
    return await violations(
        queue_dsn,
        [
            session("stranger", ENQUEUE.format("s")),
            session("repetition", AGAIN.format("a"), transaction=False),
            session("worker", finish, transaction=False),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_a_repeated_call_does_not_run_a_job_twice(queue: QueueSession, queue_dsn: str) -> None:
    """Even if the job ended while the repetition was waiting, with a snapshot older than that end."""
    assert await repeated_call_beside_its_first_jobs_life(queue, queue_dsn) == []


async def test_without_looking_again_after_the_insert_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """The snapshot from before the wait does not know the end of the first job.

    It is born again.
    """
    with variant(queue_dsn, "enqueue_jobs", ("    IF p_again THEN\n", "    IF false THEN\n")):
        assert await repeated_call_beside_its_first_jobs_life(queue, queue_dsn) != []


PLAIN = (
    "SELECT livewell.enqueue_plain('work', 'task', %({ids})s::bigint[], %({payloads})s::jsonb, 1, 0, NULL, NULL, "
    "NULL, {again})"
)


async def repeated_plain_call_beside_its_first_jobs_life(queue: QueueSession, queue_dsn: str) -> list[str]:
    """The same for many alike: the repetition waits for its first id, which is still under way.

    Meanwhile the job of its second id is run to its end.
    """

    def prepare() -> Given:
        queue.reset()
        worker = queue.register()
        waits, ended = queue.ids(2)
        queue.enqueue_given([{"id": ended}])
        held = queue.claim(worker)[0]
        return {
            "one": [waits],
            "payload": "[{}]",
            "both": [waits, ended],
            "payloads": "[{}, {}]",
            "worker": worker,
            "job": ended,
            "fence": held.fence,
        }

    def judge(outcome: Outcome) -> str | None:
        job = outcome.given["job"]
        live = queue.column("SELECT id FROM livewell.job WHERE id = %s", job)
        # The first call may come after its own repetition: it is refused as a whole, and nobody
        # waits for its answer any more.
        errors = {name: state for name, state in outcome.errors.items() if (name, state) != ("first", "23505")}
        return None if not live and not errors else f"the job is live again; {outcome.errors}"

    return await violations(
        queue_dsn,
        [
            session("first", PLAIN.format(ids="one", payloads="payload", again="false")),
            session("repetition", PLAIN.format(ids="both", payloads="payloads", again="true"), transaction=False),
            session(
                "worker",
                "SELECT * FROM livewell.finish_jobs(%(worker)s, ARRAY[%(job)s], ARRAY[%(fence)s])",
                transaction=False,
            ),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_a_repeated_plain_call_does_not_run_a_job_twice(queue: QueueSession, queue_dsn: str) -> None:
    """Its snapshot is older than the end of the job."""
    assert await repeated_plain_call_beside_its_first_jobs_life(queue, queue_dsn) == []


async def test_a_plain_call_that_does_not_look_again_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Broken on purpose: F-B6 once found it, one effect in five hundred twice."""
    with variant(queue_dsn, "enqueue_plain", ("WHERE j.id = ANY (p_ids) AND j.state <> 'running'", "WHERE false")):
        assert await repeated_plain_call_beside_its_first_jobs_life(queue, queue_dsn) != []
