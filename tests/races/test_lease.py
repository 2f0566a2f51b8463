"""§4: the lease belongs to the worker.

Claims, heartbeats, burials, reconciliation and release, in every order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import GATE, OPEN, SHUT, Change, gate_before, variant

CLAIM = "SELECT answer, id, fence FROM livewell.claim_jobs(%(worker)s, '{work}', 10, false)"
RECOVER = "SELECT * FROM livewell.recover_jobs(%(undertaker)s, 100, 0)"
RENEW = "SELECT alive FROM livewell.renew_worker(%(worker)s, '{}', '{}', '{}')"
RELEASE = "SELECT livewell.release_worker(%(worker)s)"

KEY_SHARE = "PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;"


def ownerless(queue: QueueSession) -> list[int]:
    """Running jobs whose worker has no lease."""
    return queue.column(
        "SELECT id FROM livewell.job j WHERE state = 'running' AND NOT EXISTS (SELECT FROM livewell.worker w "
        "WHERE w.id = j.worker)"
    )


# -- claim against burial ------------------------------------------------------------------------


async def claim_against_burial(queue: QueueSession, queue_dsn: str) -> list[str]:
    """A worker whose lease has run out claims while another buries it."""

    def prepare() -> Given:
        queue.reset()
        given: dict[str, Any] = {"worker": queue.register(), "undertaker": queue.steady(), "jobs": queue.enqueue(3)}
        queue.expire(given["worker"])
        return given

    def judge(outcome: Outcome) -> str | None:
        claimed = [row[1] for row in outcome.answer("claim") if row[0] == "claimed"]
        if outcome.errors or not outcome.answer("claim"):
            return f"errors: {outcome.errors}"
        if orphans := ownerless(queue):
            return f"jobs {orphans} run under a buried worker"
        if claimed and queue.states(claimed) != ["running"] * 3 and outcome.answer("burial") == [(0, 0, 0)]:
            return "claimed jobs do not run although nobody was buried"
        return None

    return await violations(
        queue_dsn, [session("claim", CLAIM), session("burial", RECOVER)], prepare=prepare, judge=judge
    )


async def test_a_claim_commits_before_its_worker_is_buried_or_finds_the_row_gone(
    queue: QueueSession, queue_dsn: str
) -> None:
    """In no order does a job run under a worker without a lease."""
    assert await claim_against_burial(queue, queue_dsn) == []


async def test_without_the_lock_on_its_own_row_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """A claim that only looks at its row commits jobs under a buried worker."""
    with variant(queue_dsn, "claim_jobs", (KEY_SHARE, KEY_SHARE.replace(" FOR KEY SHARE", ""))):
        assert await claim_against_burial(queue, queue_dsn) != []


async def claim_that_reads_before_burial_is_over(queue: QueueSession, queue_dsn: str) -> list[str]:
    """The burial is under way, uncommitted, when the claim comes.

    Jobs that become ready meanwhile are not to be claimed.
    """

    def prepare() -> Given:
        queue.reset()
        given: dict[str, Any] = {"worker": queue.register(), "undertaker": queue.steady(), "jobs": queue.enqueue(1)}
        queue.expire(given["worker"])
        return given

    def judge(outcome: Outcome) -> str | None:
        if outcome.order.startswith("burial") and "claimed" in [row[0] for row in outcome.answer("claim")]:
            return "a buried worker claimed"
        return None

    return await violations(
        queue_dsn, [session("burial", RECOVER), session("claim", CLAIM)], prepare=prepare, judge=judge
    )


async def test_a_claim_waits_for_a_burial_under_way(queue: QueueSession, queue_dsn: str) -> None:
    """The lock comes first and the reading after it, so the claim sees what the burial did (§3.5)."""
    assert await claim_that_reads_before_burial_is_over(queue, queue_dsn) == []


async def test_a_claim_that_reads_in_the_statement_that_locks_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Skipping a locked row instead of waiting for it.

    The claim takes a burial under way for a living worker.
    """
    unlocked_look = (
        f"{KEY_SHARE}\n    IF NOT FOUND THEN",
        f"{KEY_SHARE.replace('KEY SHARE', 'KEY SHARE SKIP LOCKED')}\n    IF NOT EXISTS (SELECT FROM livewell.worker w WHERE w.id = p_worker) THEN",
    )
    with variant(queue_dsn, "claim_jobs", unlocked_look):
        assert await claim_that_reads_before_burial_is_over(queue, queue_dsn) != []


# -- claim against heartbeat ---------------------------------------------------------------------


async def heartbeats_that_waited_for_a_claim(queue: QueueSession, queue_dsn: str) -> list[str]:
    def prepare() -> Given:
        queue.reset()
        queue.enqueue(2)
        return {"worker": queue.register()}

    def judge(outcome: Outcome) -> str | None:
        return f"{outcome.waited} waited" if outcome.waited else None

    return await violations(
        queue_dsn, [session("claim", CLAIM), session("heartbeat", RENEW)], prepare=prepare, judge=judge
    )


async def test_a_claim_does_not_hold_up_its_own_heartbeat(queue: QueueSession, queue_dsn: str) -> None:
    """FOR KEY SHARE and the renewal do not conflict, in either order."""
    assert await heartbeats_that_waited_for_a_claim(queue, queue_dsn) == []


async def test_with_for_share_instead_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """FOR SHARE makes the heartbeat wait for the claim's commit."""
    with variant(queue_dsn, "claim_jobs", (KEY_SHARE, KEY_SHARE.replace("KEY SHARE", "SHARE"))):
        assert await heartbeats_that_waited_for_a_claim(queue, queue_dsn) != []


# -- late heartbeat against burial ---------------------------------------------------------------


async def late_heartbeat_against_burial(queue: QueueSession, queue_dsn: str) -> list[str]:
    """A worker renews after its lease ran out, while another buries."""

    def prepare() -> Given:
        queue.reset()
        given: dict[str, Any] = {"worker": queue.register(), "undertaker": queue.steady(), "jobs": queue.enqueue(1)}
        queue.claim(given["worker"])
        queue.expire(given["worker"])
        return given

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        alive = outcome.answer("heartbeat")[0][0]
        row = queue.column("SELECT 1 FROM livewell.worker WHERE id = %s", outcome.given["worker"]) == [1]
        state = queue.state(outcome.given["jobs"][0])
        if outcome.order.startswith("heartbeat") and not alive:
            return "a worker whose row exists was told that it is buried"
        if (alive, row, state) not in ((True, True, "running"), (False, False, "ready")):
            return f"told alive={alive}, row exists={row}, job is {state}"
        return None

    return await violations(
        queue_dsn, [session("heartbeat", RENEW), session("burial", RECOVER)], prepare=prepare, judge=judge
    )


async def test_a_late_heartbeat_is_valid_while_the_row_exists(queue: QueueSession, queue_dsn: str) -> None:
    """Either it is renewed and keeps its job, or it is buried and told so: never half of each."""
    assert await late_heartbeat_against_burial(queue, queue_dsn) == []


async def test_a_burial_that_does_not_look_again_under_the_lock_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Waiting for the heartbeat and then deleting by id robs a worker that has just renewed."""
    blind = ("ORDER BY d.id FOR UPDATE SKIP LOCKED));", "ORDER BY d.id));")
    with variant(queue_dsn, "recover_jobs", blind):
        assert await late_heartbeat_against_burial(queue, queue_dsn) != []


async def test_a_heartbeat_that_refuses_itself_for_being_late_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Its row exists, so nobody takes its jobs, and it would not run them either."""
    strict = (
        "WHERE w.id = p_worker FOR NO KEY UPDATE",
        "WHERE w.id = p_worker AND w.expires_at > livewell.now() FOR NO KEY UPDATE",
    )
    with variant(queue_dsn, "renew_worker", strict):
        assert await late_heartbeat_against_burial(queue, queue_dsn) != []


# -- burying and taking back are two statements --------------------------------------------------

TWO_STATEMENTS = gate_before("DELETE FROM livewell.worker w\n        WHERE w.id = ANY")
ONE_SNAPSHOT = ("j.worker > g.below AND j.worker < g.above", "j.worker = ANY (v_known)")


async def burial_while_a_claim_commits(queue: QueueSession, queue_dsn: str) -> list[str]:
    """Recovery stands at the gate just before it buries.

    The expired worker's claim commits meanwhile.
    """

    def prepare() -> Given:
        queue.reset()
        given: dict[str, Any] = {"worker": queue.register(), "undertaker": queue.steady(), "jobs": queue.enqueue(2)}
        queue.expire(given["worker"])
        return given

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        buried = outcome.answer("burial")[0][0]
        running = [job for job in outcome.given["jobs"] if queue.state(job) == "running"]
        return f"worker buried, but its jobs {running} were not taken back" if buried and running else None

    return await violations(
        queue_dsn,
        [
            session("gate", SHUT, OPEN, transaction=False),
            session("burial", RECOVER),
            session("claim", CLAIM, transaction=False),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_recovery_takes_back_what_was_claimed_just_before_the_burial(queue: QueueSession, queue_dsn: str) -> None:
    """The second statement has its own snapshot, so it sees every claim of whom the first has buried."""
    with variant(queue_dsn, "recover_jobs", TWO_STATEMENTS):
        assert await burial_while_a_claim_commits(queue, queue_dsn) == []


async def test_with_holders_read_before_the_burial_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Deciding on the snapshot of the burying statement leaves a job running under a buried worker."""
    read_first = (
        "    SELECT v_now - w.steady_since INTO v_steady",
        (
            "    v_known := ARRAY(SELECT DISTINCT j.worker FROM livewell.job j WHERE j.state = 'running');\n"
            "    SELECT v_now - w.steady_since INTO v_steady"
        ),
    )
    declare = ("    v_n         integer;", "    v_n         integer;\n    v_known     bigint[];")
    with variant(queue_dsn, "recover_jobs", declare, read_first, TWO_STATEMENTS, ONE_SNAPSHOT):
        assert await burial_while_a_claim_commits(queue, queue_dsn) != []


# -- a job that finds a new owner while recovery looks at it -------------------------------------

IN_THE_LOOK = (
    "FROM gap g\n",
    f"FROM (SELECT g.* FROM gap g WHERE pg_advisory_xact_lock({GATE})::text = '' OFFSET 0) g\n",
)
NO_SECOND_LOOK = (
    "AND NOT EXISTS (SELECT FROM livewell.worker w WHERE w.id = j.worker));",
    ");",
)


def claimed_anew_during_the_look(queue: QueueSession, queue_dsn: str, *changes: Change) -> str:
    """Return the state of a job that was claimed anew while a recovery was under way.

    A buried worker's job is taken back, and claimed by a worker younger than the snapshot of that
    recovery.
    """
    undertaker, dying = queue.steady(), queue.register()
    [job] = queue.enqueue()
    [lost] = queue.claim(dying)
    queue.rows("DELETE FROM livewell.worker WHERE id = %s", dying)
    with variant(queue_dsn, "recover_jobs", *changes), QueueSession(queue_dsn) as slow, ThreadPoolExecutor(1) as pool:
        queue.rows(SHUT)
        flight = pool.submit(slow.recover, undertaker)
        pid = slow.connection.info.backend_pid
        while not queue.value(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = %s AND locktype = 'advisory' AND NOT granted)", pid
        ):
            assert not flight.done()
        queue.rows("SELECT livewell.settle_jobs(ARRAY[%s], '{lost}', '{NULL}', '{NULL}', '{NULL}')", lost.id)
        assert [claim.id for claim in queue.claim(queue.register(), empty=True)] == [job]
        queue.rows(OPEN)
        flight.result(20)
    return queue.state(job)


def test_a_job_claimed_anew_during_the_look_is_not_taken_back(queue: QueueSession, queue_dsn: str) -> None:
    """Locking finds its newest version, whose worker the look does not know: a second look does."""
    assert claimed_anew_during_the_look(queue, queue_dsn, IN_THE_LOOK) == "running"


def test_without_the_second_look_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """The young worker is robbed."""
    assert claimed_anew_during_the_look(queue, queue_dsn, IN_THE_LOOK, NO_SECOND_LOOK) == "ready"


# -- reconcile against a claim in flight ---------------------------------------------------------

RECONCILE = "SELECT livewell.reconcile_jobs(%(worker)s, %(known)s::bigint[], %(mark)s)"


async def reconcile_against_a_claim_in_flight(queue: QueueSession, queue_dsn: str) -> list[str]:
    """The keeper reconciles with the mark taken before the claim was sent.

    The claim's answer has not arrived.
    """

    def prepare() -> Given:
        queue.reset()
        worker = queue.register()
        queue.enqueue(1)
        known = queue.claim(worker)
        queue.enqueue(2)
        return {"worker": worker, "known": [claim.fence for claim in known], "mark": queue.mark()}

    def judge(outcome: Outcome) -> str | None:
        claimed = [row[1] for row in outcome.answer("claim")]
        running = [job for job in claimed if queue.state(job) == "running"]
        return None if claimed == running and len(claimed) == 2 else f"claimed {claimed}, of which run {running}"

    return await violations(
        queue_dsn, [session("claim", CLAIM), session("keeper", RECONCILE)], prepare=prepare, judge=judge
    )


async def test_reconciling_leaves_a_claim_in_flight_alone(queue: QueueSession, queue_dsn: str) -> None:
    """Its fences are above the mark."""
    assert await reconcile_against_a_claim_in_flight(queue, queue_dsn) == []


async def test_without_the_mark_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """The keeper hands back jobs whose answer is just on its way."""
    with variant(queue_dsn, "reconcile_jobs", (" AND j.fence <= p_mark", "")):
        assert await reconcile_against_a_claim_in_flight(queue, queue_dsn) != []


def test_a_claim_whose_answer_was_lost_is_handed_back(queue: QueueSession, other: QueueSession) -> None:
    """Unknown to the worker, below the mark: ready again, neither attempt nor loss counted."""
    worker = queue.register()
    known_job, lost_job = queue.enqueue(2)
    known = queue.claim(worker, 1)
    other.claim(worker, 1)  # this answer never arrives
    mark = queue.renew(worker)[1]

    assert other.reconcile(worker, *known, mark=mark) == 1
    assert queue.states([known_job, lost_job]) == ["running", "ready"]
    assert queue.job(lost_job, "attempt", "lost") == (0, 0)


def test_the_mark_of_a_sequence_never_used_is_below_its_first_number(livewell_dsn: str) -> None:
    """The very first claim of a database may be in flight when the first mark is taken."""
    with QueueSession(livewell_dsn) as queue:
        queue.declare()
        worker = queue.register()
        mark = queue.renew(worker)[1]
        job = queue.enqueue()[0]
        queue.claim(worker)

        assert queue.reconcile(worker, mark=mark) == 0
        assert queue.state(job) == "running"


# -- release against a claim, and against an exchange --------------------------------------------


async def release_against_a_claim(queue: QueueSession, queue_dsn: str) -> list[str]:
    def prepare() -> Given:
        queue.reset()
        return {"worker": queue.register(), "jobs": queue.enqueue(2)}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        return f"jobs {orphans} run under nobody" if (orphans := ownerless(queue)) else None

    return await violations(
        queue_dsn, [session("claim", CLAIM), session("release", RELEASE)], prepare=prepare, judge=judge
    )


async def test_no_claim_slips_in_behind_a_release(queue: QueueSession, queue_dsn: str) -> None:
    """The release waits for a claim under way and hands back what it took."""
    assert await release_against_a_claim(queue, queue_dsn) == []


async def test_a_release_that_looks_before_it_locks_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Jobs read before the lease is given up: a claim commits in between and runs under nobody."""
    give_up = "DELETE FROM livewell.worker w WHERE w.id = p_worker;"
    with variant(queue_dsn, "release_worker", (f"    {give_up}\n", ""), ("RETURN v_n;", f"{give_up}\n    RETURN v_n;")):
        assert await release_against_a_claim(queue, queue_dsn) != []


EXCHANGE = (
    "SELECT * FROM livewell.exchange_jobs(%(worker)s, %(ids)s::bigint[], %(fences)s::bigint[], NULL, '{work}', "
    "10, false)"
)


async def release_against_an_exchange(queue: QueueSession, queue_dsn: str) -> list[str]:
    """The worker gave up on an exchange that the server still works on, and releases.

    The gate is between finish and claim.
    """

    def prepare() -> Given:
        queue.reset()
        worker = queue.register()
        queue.enqueue(2)
        done = queue.claim(worker, 1)
        return {"worker": worker, "ids": [claim.id for claim in done], "fences": [claim.fence for claim in done]}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        return f"jobs {orphans} run under nobody" if (orphans := ownerless(queue)) else None

    return await violations(
        queue_dsn,
        [
            session("gate", SHUT, OPEN, transaction=False),
            session("exchange", EXCHANGE, transaction=False),
            session("release", RELEASE, transaction=False),
        ],
        prepare=prepare,
        judge=judge,
    )


BETWEEN_FINISH_AND_CLAIM = (
    "    IF p_limit > 0 THEN\n        RETURN QUERY",
    f"    PERFORM pg_advisory_xact_lock({GATE});\n    IF p_limit > 0 THEN\n        RETURN QUERY",
)


async def test_a_release_and_an_exchange_do_not_deadlock(queue: QueueSession, queue_dsn: str) -> None:
    """Both take the lease first and the jobs second."""
    with variant(queue_dsn, "exchange_jobs", BETWEEN_FINISH_AND_CLAIM):
        assert await release_against_an_exchange(queue, queue_dsn) == []


async def test_an_exchange_that_locks_jobs_before_its_lease_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Job, then lease, against lease, then job: 40P01."""
    late = (
        "        PERFORM FROM livewell.worker w WHERE w.id = p_worker FOR KEY SHARE;\n",
        "        NULL;\n",
    )
    with variant(queue_dsn, "exchange_jobs", late, BETWEEN_FINISH_AND_CLAIM):
        assert [line for line in await release_against_an_exchange(queue, queue_dsn) if "40P01" in line] != []
