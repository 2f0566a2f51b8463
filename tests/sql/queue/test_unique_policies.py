"""Q2: what an enqueue does when a live job has its key: keep, raise, replace, again.

And what becomes of the held one.
"""

from __future__ import annotations

import pytest

from tests.support.queue_sql import QueueSession

Answer = tuple[str, int]


def enqueue(queue: QueueSession, policy: str, payload: str = "new", **options: object) -> tuple[Answer, int]:
    """Enqueue with the key k; the answer with the id it names, and the id that was asked for."""
    [job] = queue.ids(1)
    rows = queue.enqueue_given([{"id": job, "unique_key": "k", "policy": policy, "payload": {"v": payload}, **options}])
    return ((rows[0][1], rows[0][2]) if rows else ("inserted", job)), job


def payload(queue: QueueSession, job: int) -> str:
    return str(queue.job(job, "payload ->> 'v'")[0])


@pytest.mark.parametrize("policy", ["keep", "raise", "replace", "again"])
def test_a_free_key_is_simply_inserted(queue: QueueSession, policy: str) -> None:
    """Whatever the policy."""
    answer, job = enqueue(queue, policy)
    assert answer == ("inserted", job)
    assert queue.state(job) == "ready"


@pytest.mark.parametrize("policy", ["keep", "raise", "replace", "again"])
@pytest.mark.parametrize(
    ("other", "answers"),
    [
        ("ready", ["merged", "merged", "merged", "held"]),
        ("delayed", ["merged", "merged", "merged", "held"]),
        ("held by its group", ["merged", "merged", "merged", "held"]),
        ("ready, one held", ["merged", "merged", "merged", "dropped"]),
        ("running", ["merged", "merged", "held", "held"]),
        ("running, one held", ["merged", "merged", "held", "dropped"]),
    ],
)
def test_the_table_of_the_manual(queue: QueueSession, other: str, answers: list[str], policy: str) -> None:
    """docs/concepts/unique_keys.md, cell by cell: merged names the live job.

    Held and dropped the held one, which exists at most once.
    """
    queue.declare(group_limit=1)
    if other == "held by its group":
        queue.enqueue_given([{"id": queue.ids(1)[0], "group_key": "g"}])
    delay = 60 if other == "delayed" else 0
    _, live = enqueue(queue, "keep", "first", group_key="g", delay_seconds=delay)
    held = enqueue(queue, "again", "held")[1] if "one held" in other else None
    if other.startswith("running"):
        queue.claim_limited(queue.register())
    expected = answers[["keep", "raise", "replace", "again"].index(policy)]

    answer, asked = enqueue(queue, policy, "new")

    assert answer == (expected, live if expected == "merged" else held or asked)
    assert other.startswith(queue.state(live))
    payloads = [payload(queue, job) for job in (live, held or (asked if expected == "held" else None)) if job]
    assert (
        payloads
        == {
            "keep": ["first"] + ["held"] * bool(held),
            "raise": ["first"] + ["held"] * bool(held),
            "replace": ["new"] + ["held"] * bool(held) if expected == "merged" else ["first", "new"],
            "again": ["first", "held" if held else "new"],
        }[policy]
    )


def test_raise_gives_a_waiting_job_the_better_lane_and_rank(queue: QueueSession) -> None:
    """Never the worse."""
    _, job = enqueue(queue, "keep", lane=1, priority=0)
    rank = queue.job(job, "rank")[0]

    assert enqueue(queue, "raise", lane=0, priority=10)[0] == ("merged", job)
    raised = queue.job(job, "lane", "priority", "rank")
    assert raised[:2] == (0, 10)
    assert raised[2] < rank - 9 * 60000

    enqueue(queue, "raise", lane=1, priority=-50)
    assert queue.job(job, "lane", "priority", "rank") == raised
    assert payload(queue, job) == "new"


def test_raise_leaves_a_running_job_alone(queue: QueueSession) -> None:
    """Only its owner, recovery and cancel write a running row."""
    _, job = enqueue(queue, "keep", lane=1)
    queue.claim(queue.register())
    assert enqueue(queue, "raise", lane=0)[0] == ("merged", job)
    assert queue.job(job, "lane") == (1,)


def test_replace_changes_the_payload_of_a_waiting_job(queue: QueueSession) -> None:
    """One job, the newest payload."""
    _, job = enqueue(queue, "replace", "first")
    assert enqueue(queue, "replace", "second")[0] == ("merged", job)
    assert payload(queue, job) == "second"


def test_replace_behind_a_running_job_runs_after_it_with_the_newest_payload(queue: QueueSession) -> None:
    """The running one keeps its payload; what is held is replaced again."""
    _, first = enqueue(queue, "replace", "first")
    [claim] = queue.claim(queue.register())
    answer, held = enqueue(queue, "replace", "second")
    assert answer == ("held", held)
    assert enqueue(queue, "replace", "third")[0] == ("held", held)
    assert (payload(queue, first), payload(queue, held), queue.state(held)) == ("first", "third", "held")

    assert queue.finish(claim) == []
    assert queue.states([first, held]) == ["succeeded", "ready"]


def test_again_holds_one_and_drops_the_next(queue: QueueSession) -> None:
    """One run after this one is enough, with the payload of the first who asked."""
    _, first = enqueue(queue, "again", "first")
    answer, held = enqueue(queue, "again", "second")
    assert answer == ("held", held)
    assert enqueue(queue, "again", "third")[0] == ("dropped", held)
    assert payload(queue, held) == "second"
    assert queue.states([first, held]) == ["ready", "held"]


@pytest.mark.parametrize(
    ("end", "state"),
    [("succeeded", "ready"), ("refused", "ready"), ("cancelled", "ready"), ("retry", "held"), ("released", "held")],
)
def test_what_becomes_of_the_held_job(queue: QueueSession, end: str, state: str) -> None:
    """It is let go when the one before it has ended for good, as success, dead letter or cancelled.

    While that is tried again it stays held.
    """
    enqueue(queue, "again")
    _, held = enqueue(queue, "again")
    [claim] = queue.claim(queue.register())
    if end == "succeeded":
        queue.finish(claim)
    else:
        queue.settle(claim, end)
    assert queue.state(held) == state


def test_a_lost_job_keeps_the_one_behind_it_waiting(queue: QueueSession) -> None:
    """Recovery runs the lost one again first."""
    _, first = enqueue(queue, "again")
    _, held = enqueue(queue, "again")
    dying = queue.register()
    queue.claim(dying)
    queue.expire(dying)
    queue.recover(queue.steady())
    assert queue.states([first, held]) == ["ready", "held"]


def test_cancelling_the_waiting_one_lets_the_held_one_go_and_cancelling_the_held_one_is_just_that(
    queue: QueueSession,
) -> None:
    """Either way the key is used by at most one waiting or running job."""
    _, first = enqueue(queue, "again")
    _, held = enqueue(queue, "again")
    assert queue.cancel(held) == "cancelled"
    _, other = enqueue(queue, "again")
    assert queue.cancel(first) == "cancelled"
    assert queue.states([first, held, other]) == ["cancelled", "cancelled", "ready"]


def test_a_held_job_keeps_its_own_time(queue: QueueSession) -> None:
    """Let go before its time, it is delayed."""
    enqueue(queue, "again")
    _, held = enqueue(queue, "again", delay_seconds=60)
    [claim] = queue.claim(queue.register())
    queue.finish(claim)
    assert queue.state(held) == "delayed"


def test_a_held_job_whose_key_was_freed_unseen_is_found_by_promote(queue: QueueSession, other: QueueSession) -> None:
    """The enqueue committed after the job before it had ended.

    Nobody let it go, so maintain does.
    """
    _, first = enqueue(queue, "again")
    [claim] = queue.claim(queue.register())
    with other.connection.transaction():
        _, held = enqueue(other, "again")  # sees the running job
        queue.finish(claim)  # sees no held job
    assert queue.state(held) == "held"
    queue.rows("SELECT livewell.maintain(0, 0, 1)")  # makes its row
    queue.rows("SELECT livewell.maintain(0, 0, 1)")
    assert queue.states([first, held]) == ["succeeded", "ready"]


def test_many_keys_in_one_call_are_answered_one_by_one(queue: QueueSession) -> None:
    """The same key twice in one call is one job."""
    first, second, third, fourth = queue.ids(4)
    jobs = [
        {"id": job, "unique_key": key, "policy": "again"}
        for job, key in ((first, "a"), (second, "b"), (third, "a"), (fourth, "a"))
    ]
    answers = {row[0]: (row[1], row[2]) for row in queue.enqueue_given(jobs)}
    assert answers == {third: ("held", third), fourth: ("dropped", third)}
    assert queue.states([first, second, third]) == ["ready", "ready", "held"]


@pytest.mark.parametrize("policy", ["replace", "again"])
def test_a_repeated_call_finds_its_held_job(queue: QueueSession, policy: str) -> None:
    """The answer of the first was lost: nothing is inserted or changed twice."""
    enqueue(queue, "keep")
    queue.claim(queue.register())
    [job] = queue.ids(1)
    jobs = [{"id": job, "unique_key": "k", "policy": policy}]
    assert queue.enqueue_given(jobs)[0][1:] == ("held", job)
    assert queue.enqueue_given(jobs, again=True)[0][1:] == ("known", job)


def test_an_unknown_policy_is_refused(queue: QueueSession) -> None:
    """Not taken for some other."""
    enqueue(queue, "keep")
    with pytest.raises(Exception, match="policy"):
        enqueue(queue, "perhaps")
