"""Attempts: progress (E2), retries and losses (E4), quotas settled and refunded (E10), redriven jobs."""

from __future__ import annotations

import pytest

from tests.support.exports_sql import ESTIMATE, ExportSession, item


def steps(exports: ExportSession, export: str, after: int = 0) -> list[tuple[int, int, str]]:
    found = exports.show("ann", export, after)
    assert found is not None
    return [(one["seq"], one["progress"], one["state"]) for one in found["steps"]]


def test_the_steps_of_a_life_are_numbered_and_a_poll_gives_those_after_a_number(exports: ExportSession) -> None:
    """E2: 0, 25, 50, 75, 90, 100; what a stream sends a poll answers as well."""
    export = exports.one()
    claim = exports.take()
    exports.begin(claim, export)
    for progress in (25, 50):
        assert exports.step(claim, export, progress) == "stepped"
    exports.plan(claim, export)
    exports.step(claim, export, 90)
    exports.finish_export(claim, export)

    told = steps(exports, export)
    assert [progress for _, progress, _ in told] == [0, 0, 25, 50, 75, 90, 100]
    assert [number for number, _, _ in told] == list(range(1, 8))
    assert [state for _, _, state in told] == ["waiting", *["running"] * 5, "finished"]
    assert steps(exports, export, 5) == told[5:]


def test_progress_never_goes_down_within_an_attempt(exports: ExportSession) -> None:
    """E2."""
    export = exports.one()
    claim = exports.take()
    exports.begin(claim, export)
    exports.step(claim, export, 50)

    assert exports.step(claim, export, 25) == "stepped"
    assert exports.seen(export)["progress"] == 50


def test_only_the_owner_of_the_job_writes(exports: ExportSession) -> None:
    """E2, Q4: a worker that slept past its lease changes nothing, whatever it tries."""
    export = exports.one()
    zombie = exports.take()
    exports.begin(zombie, export)
    exports.plan(zombie, export)
    exports.expire(zombie.worker)
    exports.recover(exports.steady())
    owner = exports.take()
    exports.begin(owner, export)
    before = exports.seen(export)

    assert exports.begin(zombie, export) == {"answer": "fenced"}
    assert exports.step(zombie, export, 90) == "fenced"
    assert exports.plan(zombie, export) == "fenced"
    assert exports.fail(zombie, export, again=False) == "fenced"
    assert exports.finish_export(zombie, export) == "fenced"
    assert exports.seen(export) == before
    exports.plan(owner, export)
    assert exports.finish_export(owner, export) == "finished"
    assert exports.wrong() == []


def test_a_hundred_is_never_a_step_of_its_own(exports: ExportSession) -> None:
    """E2: 100 comes with the end of the job, in one transaction."""
    export = exports.one()
    claim = exports.take()
    exports.begin(claim, export)

    with pytest.raises(Exception, match="progress 100"):
        exports.step(claim, export, 100)


def test_a_finish_that_is_rolled_back_leaves_nothing(exports: ExportSession) -> None:
    """E2, E11: the job is ready for somebody else, who has not begun yet."""
    export = exports.one()
    claim = exports.take()
    exports.begin(claim, export)
    exports.plan(claim, export)
    exports.expire(claim.worker)
    exports.recover(exports.steady())

    assert exports.finish_export(claim, export) == "fenced"
    assert exports.seen(export)["state"] == "running"
    assert exports.wrong() == []


def test_what_was_reserved_becomes_what_is_stored(exports: ExportSession) -> None:
    """E10: settled at the end with the bytes that were counted."""
    export = exports.one()
    exports.make(export, 700)

    assert exports.usage() == {"stored": 700, "reserved": 0, "today": 1}
    seen = exports.seen(export)
    assert {key: seen[key] for key in ("bytes", "pages", "sha256", "crc32", "downloads")} == {
        "bytes": 700,
        "pages": 1,
        "sha256": "ab" * 32,
        "crc32": 7,
        "downloads": 0,
    }


def test_a_file_that_is_larger_than_the_room_fails_before_it_is_written(exports: ExportSession) -> None:
    """E10: what was reserved by others stays theirs."""
    exports.one("ann", "other")
    big = exports.one("ann", "big")
    claims = {claim.id: claim for claim in (exports.take(), exports.take())}
    claim = claims[exports.job_of(big)]
    exports.begin(claim, big)

    assert exports.plan(claim, big, 9 * ESTIMATE + 1) == "full"
    assert exports.value("SELECT count(*) FROM livewell.export_file") == 0
    seen = exports.seen(big)
    assert (seen["state"], seen["reason"]) == ("failed", "quota")
    assert exports.usage()["reserved"] == ESTIMATE
    assert exports.wrong() == []


def test_a_failed_attempt_is_tried_again_and_says_why(exports: ExportSession) -> None:
    """E4: what was reserved stays reserved; the next attempt begins at 0."""
    export = exports.one()
    claim = exports.take()
    exports.begin(claim, export)
    exports.step(claim, export, 50)
    assert exports.fail(claim, export, "store_unreachable") == "failed"
    exports.settle(claim, "retry", error="export: store_unreachable")
    seen = exports.seen(export)

    assert (seen["state"], seen["reason"], seen["progress"]) == ("waiting", "store_unreachable", 0)
    assert seen["retry_at"] is not None
    assert exports.usage()["reserved"] == ESTIMATE
    exports.advance(100)
    exports.promote()
    exports.make(export)
    assert exports.seen(export)["reason"] is None
    assert exports.seen(export)["attempt"] == 2


def test_a_failure_for_good_ends_the_export_and_refunds_it(exports: ExportSession) -> None:
    """E10: the document's fault; the day's number stays used."""
    export = exports.one()
    claim = exports.take()
    exports.begin(claim, export)
    exports.fail(claim, export, "unsupported_character", again=False)
    exports.finish(claim)

    seen = exports.seen(export)
    assert (seen["state"], seen["reason"]) == ("failed", "unsupported_character")
    assert exports.usage() == {"stored": 0, "reserved": 0, "today": 1}


def dead(exports: ExportSession, export: str, reason: str = "store_unreachable") -> None:
    """Let the export's job become a dead letter."""
    exports.rows("UPDATE livewell.job SET max_attempts = 1 WHERE id = %s", exports.job_of(export))
    claim = exports.take()
    exports.begin(claim, export)
    exports.fail(claim, export, reason)
    exports.settle(claim, "retry", error=f"export: {reason}")


def test_an_export_whose_job_died_is_failed_for_whoever_looks(exports: ExportSession) -> None:
    """E4, E10: at once, not when somebody settles; what failed for our fault costs no allowance."""
    export = exports.one()
    dead(exports, export)

    seen = exports.seen(export)
    assert (seen["state"], seen["reason"]) == ("failed", "store_unreachable")
    assert exports.usage() == {"stored": 0, "reserved": 0, "today": 0}
    assert steps(exports, export)[-1][1:] == (0, "failed")


def test_settling_ends_what_nobody_looks_at(exports: ExportSession) -> None:
    """Dead, cancelled by an operator, lost without a trace."""
    died, cancelled, lost = (exports.one("ann", name) for name in ("a", "b", "c"))
    dead(exports, died)
    exports.cancel(exports.job_of(cancelled))
    exports.rows("DELETE FROM livewell.job WHERE id = %s", exports.job_of(lost))

    assert exports.settle_all() == 3
    rows = exports.rows("SELECT state, reason FROM livewell.export ORDER BY document_id")
    assert rows == [("failed", "store_unreachable"), ("cancelled", "cancelled"), ("failed", "lost")]
    assert exports.settle_all() == 0
    assert exports.wrong() == []


def test_a_redriven_job_revives_its_export_and_reserves_again(exports: ExportSession) -> None:
    """Q7: the operator has mended the store."""
    export = exports.one()
    dead(exports, export)
    exports.settle_all()
    exports.redrive([exports.job_of_dead(export)])
    exports.make(export)

    seen = exports.seen(export)
    assert (seen["state"], seen["reason"]) == ("finished", None)
    assert exports.usage()["stored"] == 500
    assert exports.wrong() == []


def test_a_redriven_job_whose_room_is_taken_stays_failed(exports: ExportSession) -> None:
    """E10: nobody is given what is not there. The same if the export was asked for again."""
    export = exports.one("ann", "cv")
    dead(exports, export)
    exports.settle_all()
    job = exports.job_of_dead(export)
    again = exports.one("ann", "cv")
    exports.redrive([job])
    first, second = exports.take(), exports.take()
    claims = {claim.id: claim for claim in (first, second)}

    assert exports.begin(claims[job], export) == {"answer": "over", "state": "failed"}
    exports.cancel_export(again)
    assert exports.begin(claims[job], export, bytes_max=ESTIMATE - 1) == {"answer": "over", "state": "failed"}
    assert exports.wrong() == []


def test_only_so_many_of_a_user_run_at_once_and_the_next_waits(exports: ExportSession) -> None:
    """E3: the fourth waits, another user's does not."""
    mine = [exports.one("ann", f"d{n}") for n in range(4)]
    theirs = exports.one("bob")
    claims = exports.claim_limited(exports.worker(), 10, queue="exports")

    assert sorted(claim.id for claim in claims) == sorted(
        [*(exports.job_of(one) for one in mine[:3]), exports.job_of(theirs)]
    )
    assert exports.seen(mine[3])["state"] == "waiting"


def test_the_last_sixty_four_steps_stay(exports: ExportSession) -> None:
    """Bounded, and numbers go on."""
    export = exports.one()
    claim = exports.take()
    for _ in range(70):
        exports.begin(claim, export)

    told = steps(exports, export)
    assert (len(told), told[-1][0]) == (64, 71)


def test_a_request_is_one_page_of_work(exports: ExportSession) -> None:
    """An id that the job does not belong to is nothing to make."""
    one, two = exports.one("ann", "a"), exports.one("ann", "b")
    claim = exports.take()
    other = two if exports.job_of(one) == claim.id else one

    assert exports.begin(claim, other) == {"answer": "over", "state": None}
    assert exports.ask("ann", item("c"))["answer"] == "made"
