"""Exports under races: one export for one request (E1), quotas that are never overshot (E10), and ends that meet.

Two kinds of proof: every interleaving of a few transactions, and sixteen connections at once. What
must never be is one query (tests/support/exports_sql.py). Broken on purpose: without the lock on
the user's row quotas are overshot; a settling that looks for the job before its lock ends what is
finished; a cleaner that believes its first look removes files that are stored.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.support.exports_sql import ESTIMATE, FINISH, LIMITS, ExportSession, item, path, result
from tests.support.interleave import Given, Outcome, Session, session, violations
from tests.support.variants import Change, variant

CONNECTIONS = 16
ASK = "SELECT livewell.request_exports(%(user)s, %(items)s::jsonb, %(limits)s::jsonb)"
CANCEL = "SELECT livewell.cancel_export('ann', %(export)s)"
DELETE = "SELECT livewell.delete_export('ann', %(export)s)"
SETTLE = "SELECT livewell.settle_exports(100)"
CLAIM_FILES = "SELECT * FROM livewell.claim_export_files(100, 0)"
EXPIRE = "SELECT livewell.expire_exports(100)"
FINISH_BOTH = (
    "SELECT livewell.finish_export(%(job)s, %(fence)s, %(export)s, %(path)s, %(result)s::jsonb, 7)",
    "SELECT * FROM livewell.finish_jobs(%(worker)s, ARRAY[%(job)s]::bigint[], ARRAY[%(fence)s]::bigint[])",
)
PLAN = "SELECT livewell.plan_export_file(%(worker)s, %(job)s, %(fence)s, %(export)s, %(path)s, 500, 1000000)"
FAIL = "SELECT livewell.fail_export(%(worker)s, %(job)s, %(fence)s, %(export)s, 'died', true)"
NO_LOCK: Change = ("FOR NO KEY UPDATE;\n    IF NOT FOUND", ";\n    IF NOT FOUND")


@pytest.fixture
def exports(livewell_dsn: str) -> Iterator[ExportSession]:
    """A database of this test's own: a broken function must not be met by others."""
    with ExportSession(livewell_dsn) as opened:
        opened.reset()
        yield opened


def at_once(dsn: str, work: Callable[[ExportSession, int], Any], connections: int = CONNECTIONS) -> list[Any]:
    """The same work on so many connections, begun together; the answers, or the SQLSTATE of a failure."""
    start = threading.Barrier(connections, timeout=60)

    def client(number: int) -> Any:
        with ExportSession(dsn) as mine:
            mine.rows("SET deadlock_timeout = '20ms'")
            start.wait()
            try:
                return work(mine, number)
            except psycopg.Error as error:
                return error.sqlstate

    with ThreadPoolExecutor(connections) as pool:
        return [one.result() for one in [pool.submit(client, number) for number in range(connections)]]


def test_sixteen_that_ask_for_the_same_get_the_same(exports: ExportSession, livewell_dsn: str) -> None:
    """E1: one export, one job, one reservation, one of the day's number; in each of twenty rounds."""
    for turn in range(20):
        wanted = (f"d{turn % 4}", str(turn))

        def ask(mine: ExportSession, _: int, wanted: tuple[str, str] = wanted) -> Any:
            return mine.ask("ann", item(*wanted), bytes_max=10**9)

        answers = at_once(livewell_dsn, ask)
        said = [one["items"][0]["answer"] for one in answers]
        assert sorted(said) == ["made", *["same"] * (CONNECTIONS - 1)]
        assert len({one["items"][0]["id"] for one in answers}) == 1
    assert exports.value("SELECT count(*) FROM livewell.job") == 20
    assert exports.usage() == {"stored": 0, "reserved": 20 * ESTIMATE, "today": 20}
    assert exports.wrong() == []


def test_sixteen_that_ask_for_different_ones_never_overshoot(exports: ExportSession, livewell_dsn: str) -> None:
    """E10: room for five, allowance for eight; of sixteen five are made, and after deletes three more."""
    answers = at_once(
        livewell_dsn, lambda mine, n: mine.ask("ann", item(f"d{n}"), bytes_max=5 * ESTIMATE, day_max=8)["answer"]
    )
    assert sorted(answers) == [*["full"] * 11, *["made"] * 5]

    for export in exports.column("SELECT id::text FROM livewell.export"):
        exports.cancel_export(export)
    again = at_once(
        livewell_dsn, lambda mine, n: mine.ask("ann", item(f"e{n}"), bytes_max=5 * ESTIMATE, day_max=8)["answer"]
    )
    assert again.count("made") == 3
    assert exports.wrong() == []


def test_without_the_lock_of_the_user_quotas_are_overshot(exports: ExportSession, livewell_dsn: str) -> None:
    """Broken on purpose: each connection reads the numbers from before the others."""
    exports.one("ann", "first")
    with variant(livewell_dsn, "lock_export_usage", NO_LOCK):
        at_once(livewell_dsn, lambda mine, n: mine.ask("ann", item(f"d{n}"), bytes_max=3 * ESTIMATE)["answer"])
    assert exports.usage()["reserved"] > 3 * ESTIMATE


def test_users_do_not_wait_for_each_other(exports: ExportSession, livewell_dsn: str) -> None:
    """One row is locked, and it is the user's own."""
    with ExportSession(livewell_dsn) as slow, slow.connection.transaction():
        slow.ask("ann", item())
        exports.rows("SET lock_timeout = '2s'")
        assert exports.ask("bob", item())["answer"] == "made"


def test_a_whole_life_on_sixteen_connections_keeps_the_sums(exports: ExportSession, livewell_dsn: str) -> None:
    """Users ask, cancel and delete, workers make, fail and die, cleaners clean: all at once, without a deadlock."""
    exports.declare("exports", base=0.01, cap=0.02, group_limit=3)
    users = ["ann", "bob", "cy"]

    def client(mine: ExportSession, number: int) -> list[str]:
        dice, errors = random.Random(number), []
        worker = mine.worker()
        for _ in range(60):
            try:
                act(mine, dice, worker, users)
            except psycopg.Error as error:
                errors.append(f"{error.sqlstate} {error}")
        return errors

    answers = at_once(livewell_dsn, client)
    assert [one for one in answers if one] == []
    assert exports.wrong() == []
    # What is left is ended, cleaned and nothing remains of it.
    for export, user in exports.rows("SELECT id::text, user_id FROM livewell.export"):
        exports.delete(export, user)
        exports.delete(export, user)
    exports.rows("UPDATE livewell.worker SET expires_at = livewell.now() - interval '1 hour'")
    exports.recover(exports.steady())
    exports.clean()
    assert exports.wrong() == []
    assert exports.column("SELECT state FROM livewell.export_file") == []
    assert exports.rows("SELECT stored_bytes, reserved_bytes FROM livewell.export_usage") == [(0, 0)] * len(users)


def act(mine: ExportSession, dice: random.Random, worker: int, users: list[str]) -> None:
    """One thing that somebody does."""
    user = dice.choice(users)
    own = mine.column("SELECT id::text FROM livewell.export WHERE user_id = %s", user)
    match dice.randrange(10):
        case 0 | 1 | 2:
            mine.ask(user, item(f"d{dice.randrange(6)}"), bytes_max=8 * ESTIMATE, day_max=10_000)
        case 3 | 4 | 5 | 6:
            work_one(mine, dice, worker)
        case 7 if own:
            mine.cancel_export(dice.choice(own), user)
        case 8 if own:
            mine.delete(dice.choice(own), user)
        case _:
            mine.settle_all()
            mine.promote()
            mine.clean()


def work_one(mine: ExportSession, dice: random.Random, worker: int) -> None:
    for claim in mine.claim_limited(worker, 1, queue="exports"):
        export = mine.value("SELECT payload ->> 'export' FROM livewell.job WHERE id = %s", claim.id)
        if mine.begin(claim, export, bytes_max=8 * ESTIMATE)["answer"] != "begun":
            mine.finish(claim)
            return
        end = dice.randrange(5)
        if end == 0:
            mine.fail(claim, export, again=True)
            mine.settle(claim, "retry", error="no")
        elif end == 1:
            mine.fail(claim, export, "bad_image", again=False)
            mine.finish(claim)
        elif mine.plan(claim, export, 700, bytes_max=8 * ESTIMATE) == "planned":
            mine.finish_export(claim, export, 700)
        else:
            mine.finish(claim)


# -- every interleaving ------------------------------------------------------------------------------


async def every_order(
    exports: ExportSession,
    dsn: str,
    sessions: list[Session],
    prepare: Callable[[], Given],
    allowed: set[str],
) -> list[str]:
    """What is wrong after any interleaving: errors, broken sums, or an end that cannot be."""

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors {outcome.errors}"
        if wrong := exports.wrong():
            return str(wrong)
        state = exports.value("SELECT state FROM livewell.export WHERE id = %s", outcome.given["export"])
        return None if state in allowed else f"state {state}"

    return await violations(dsn, sessions, prepare=prepare, judge=judge)


def stored_soon(exports: ExportSession) -> Given:
    """An export whose file is written, and not finished yet."""
    exports.reset()
    export = exports.one()
    claim = exports.take()
    exports.begin(claim, export)
    exports.plan(claim, export)
    return {
        "export": export,
        "job": claim.id,
        "fence": claim.fence,
        "worker": claim.worker,
        "path": path(export, claim),
        "result": result(),
        "user": "ann",
        "items": json.dumps([item()]),
        "limits": json.dumps(LIMITS),
    }


def finished(exports: ExportSession) -> Given:
    """An export that is finished."""
    given = stored_soon(exports)
    with exports.connection.transaction():
        exports.connection.execute(FINISH_BOTH[0].encode(), given)
        exports.connection.execute(FINISH_BOTH[1].encode(), given)
    return given


async def test_a_cancel_meets_a_finish_in_any_order(exports: ExportSession, livewell_dsn: str) -> None:
    """E5: whoever comes first; never both, and no file is left that nothing points to."""
    sessions = [session("finish", *FINISH_BOTH), session("cancel", CANCEL), session("again", ASK)]

    found = await every_order(exports, livewell_dsn, sessions, lambda: stored_soon(exports), {"finished", "cancelled"})
    assert found == []


async def test_a_settling_meets_a_finish_in_any_order(exports: ExportSession, livewell_dsn: str) -> None:
    """The job is gone and the export is not finished only for those who look too early."""
    sessions = [session("finish", *FINISH_BOTH), session("settle", SETTLE), session("ask", ASK)]

    assert await every_order(exports, livewell_dsn, sessions, lambda: stored_soon(exports), {"finished"}) == []


async def test_a_cleaner_meets_a_finish_in_any_order(exports: ExportSession, livewell_dsn: str) -> None:
    """E11: a file that is about to be stored is no orphan."""
    sessions = [session("finish", *FINISH_BOTH), session("clean", CLAIM_FILES), session("settle", SETTLE)]

    assert await every_order(exports, livewell_dsn, sessions, lambda: stored_soon(exports), {"finished"}) == []


async def test_a_delete_meets_cleaners_in_any_order(exports: ExportSession, livewell_dsn: str) -> None:
    """E5, E11: the quota is given back once."""

    def prepare() -> Given:
        given = finished(exports)
        exports.rows("UPDATE livewell.export SET expires_at = livewell.now(), over_at = livewell.now()")
        return given

    sessions = [session("delete", DELETE), session("expire", EXPIRE, CLAIM_FILES), session("ask", ASK)]

    found = await every_order(exports, livewell_dsn, sessions, prepare, {"finished", "deleted"})
    assert found == []


async def test_a_failure_meets_a_cancel_in_any_order(exports: ExportSession, livewell_dsn: str) -> None:
    """E5: what was cancelled stays so; nothing is refunded twice."""
    sessions = [session("fail", FAIL), session("cancel", CANCEL), session("cancel too", DELETE)]

    assert await every_order(exports, livewell_dsn, sessions, lambda: stored_soon(exports), {"cancelled"}) == []


def lost(exports: ExportSession) -> Given:
    """An export whose worker died after its file was written."""
    given = stored_soon(exports)
    exports.expire(int(given["worker"]))
    exports.recover(exports.steady())
    return given


async def test_a_worker_that_lost_its_job_meets_a_cleaner_in_any_order(
    exports: ExportSession, livewell_dsn: str
) -> None:
    """E11, Q4: it finishes nothing, and its file goes."""
    sessions = [session("clean", CLAIM_FILES), session("zombie", PLAN), session("cancel", CANCEL)]

    assert await every_order(exports, livewell_dsn, sessions, lambda: lost(exports), {"cancelled"}) == []


EARLY_JOB: Change = (
    "CONTINUE WHEN EXISTS (SELECT FROM livewell.job j WHERE j.id = v_export.job_id);",
    "CONTINUE WHEN v_export.state NOT IN ('waiting', 'running');",
)
BLIND_CLEANER: Change = (
    "AND NOT EXISTS ( SELECT FROM livewell.job j WHERE j.id = f.job_id AND j.fence = f.fence AND j.state = 'running' )",
    "",
)


async def test_a_settling_that_trusts_its_first_look_ends_what_is_alive(
    exports: ExportSession, livewell_dsn: str
) -> None:
    """Broken on purpose: one of the user's exports is lost, and another one is made right now."""

    def prepare() -> Given:
        given = stored_soon(exports)
        other = exports.one("ann", "lost one")
        exports.rows("DELETE FROM livewell.job WHERE id = %s", exports.job_of(other))
        return given

    sessions = [session("finish", *FINISH_BOTH), session("settle", SETTLE)]
    assert await every_order(exports, livewell_dsn, sessions, prepare, {"finished"}) == []
    with variant(livewell_dsn, "settle_lost_exports", EARLY_JOB):
        assert await every_order(exports, livewell_dsn, sessions, prepare, {"finished"}) != []


async def test_a_cleaner_that_does_not_ask_for_the_job_takes_files_that_are_written(
    exports: ExportSession, livewell_dsn: str
) -> None:
    """Broken on purpose: the finish is then fenced, although its worker is alive."""
    sessions = [session("finish", *FINISH_BOTH), session("clean", CLAIM_FILES)]

    with variant(livewell_dsn, "claim_export_files", BLIND_CLEANER):
        found = await every_order(exports, livewell_dsn, sessions, lambda: stored_soon(exports), {"finished"})
    assert found != []


def test_a_finish_that_commits_without_its_job_cannot_be(exports: ExportSession) -> None:
    """The two statements of FINISH are one transaction; half of it leaves a job that begins again and is over."""
    given = stored_soon(exports)
    exports.value(FINISH, given["job"], given["fence"], given["export"], given["path"], result())

    assert exports.wrong() == [f"finished, and its job lives: {given['export']}"]
