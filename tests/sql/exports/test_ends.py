"""Cancel, delete (E5), expiry (E7), cleaning (E11), tombstones and history (E14)."""

from __future__ import annotations

import pytest

from tests.support.exports_sql import ESTIMATE, ExportSession, item, path

WEEK = 7 * 86400


def file(exports: ExportSession, export: str, user: str = "ann") -> dict[str, object] | None:
    found: dict[str, object] | None = exports.value("SELECT livewell.read_export_file(%s, %s, true)", user, export)
    return found


def test_a_waiting_export_is_cancelled_at_once_and_its_job_soon(exports: ExportSession) -> None:
    """E5, E10."""
    export = exports.one()

    assert exports.cancel_export(export) == {"answer": "cancelled", "running": False}
    assert exports.usage()["reserved"] == 0
    assert exports.seen(export)["state"] == "cancelled"
    assert exports.settle_all() == 1
    assert exports.value("SELECT count(*) FROM livewell.job") == 0


def test_a_running_export_is_cancelled_at_once_and_its_worker_is_told(exports: ExportSession) -> None:
    """E5: whatever the worker does then, the export stays cancelled, and its file goes."""
    export = exports.one()
    claim = exports.take()
    exports.begin(claim, export)
    exports.plan(claim, export)

    assert exports.cancel_export(export) == {"answer": "cancelled", "running": True}
    assert exports.job(claim.id, "cancel_requested") == (True,)
    assert exports.step(claim, export, 90) == "over"
    assert exports.finish_export(claim, export) == "over"
    assert exports.clean() == [path(export, claim)]
    assert exports.seen(export)["state"] == "cancelled"
    assert exports.wrong() == []


def test_what_has_ended_cannot_be_cancelled(exports: ExportSession) -> None:
    """E5: the answer says how it ended."""
    export = exports.one()
    exports.make(export)

    assert exports.cancel_export(export) == {"answer": "ended", "state": "finished"}


def test_deleting_frees_the_quota_at_once_and_the_file_is_gone_for_everybody(exports: ExportSession) -> None:
    """E5: quota, link and file, in this order; a second delete finds it deleted."""
    export = exports.one()
    claim = exports.make(export)

    assert exports.delete(export) == {"answer": "deleted", "paths": [path(export, claim)]}
    assert exports.usage()["stored"] == 0
    assert file(exports, export) is not None
    assert file(exports, export)["answer"] == "gone"  # type: ignore[index]
    assert exports.delete(export) == {"answer": "ended", "state": "deleted"}
    assert exports.forget(path(export, claim))
    assert exports.seen(export)["removed_at"] is not None
    assert exports.wrong() == []


def test_deleting_what_has_not_ended_cancels_it(exports: ExportSession) -> None:
    """E5."""
    export = exports.one()

    assert exports.delete(export) == {"answer": "cancelled", "running": False}


def test_a_week_is_counted_from_the_end_and_not_from_the_request(exports: ExportSession) -> None:
    """E7: what waited for a day is not shorter by a day."""
    export = exports.one()
    exports.advance(86400)
    exports.make(export)
    exports.advance(WEEK - 60)
    assert exports.seen(export)["state"] == "finished"

    exports.advance(61)

    assert exports.seen(export)["state"] == "expired"


def test_expiry_is_a_verdict_and_needs_no_cleaner(exports: ExportSession) -> None:
    """E7: nobody is served an expired file, and nobody is refused because of one."""
    export = exports.one()
    exports.make(export, 9 * ESTIMATE)
    exports.advance(WEEK + 1)

    assert file(exports, export)["state"] == "expired"  # type: ignore[index]
    assert exports.usage()["stored"] == 0
    assert exports.ask("ann", item("more"), item("and more"))["answer"] == "made"
    assert exports.wrong() == []


def test_a_cleaner_that_dies_between_file_and_row_leaves_nothing_behind(exports: ExportSession) -> None:
    """E11: it claims, and is not heard of again; a minute later another one does both."""
    export = exports.one()
    claim = exports.make(export)
    exports.delete(export)
    assert exports.files_to_remove() == [(path(export, claim), "ann")]
    assert exports.files_to_remove() == []

    exports.advance(61)

    assert exports.clean() == [path(export, claim)]
    assert exports.value("SELECT count(*) FROM livewell.export_file") == 0


def test_a_file_of_an_attempt_that_is_over_is_an_orphan(exports: ExportSession) -> None:
    """E11: its worker died between row and file, or between file and end."""
    export = exports.one()
    lost = exports.take()
    exports.begin(lost, export)
    exports.plan(lost, export)
    assert exports.clean() == []

    exports.expire(lost.worker)
    exports.recover(exports.steady())

    assert exports.files_to_remove(grace=60) == []
    assert exports.clean() == [path(export, lost)]
    exports.make(export)
    assert exports.wrong() == []


def test_a_stored_file_is_never_claimed_and_cannot_be_forgotten(exports: ExportSession) -> None:
    """E11: only what nothing points to."""
    export = exports.one()
    claim = exports.make(export)

    assert exports.clean() == []
    assert exports.forget(path(export, claim)) is False


def test_unknown_files_of_our_exports_are_named_and_others_are_not(exports: ExportSession) -> None:
    """E11: a process that was stopped while it wrote, and wrote on when its row was gone.

    A file of an export that this database does not know may be another installation's.
    """
    export = exports.one()
    known = path(export, exports.make(export))
    late, foreign = f"u/{export}/77.pdf", "u/c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11/1.pdf"

    assert exports.column("SELECT livewell.find_unknown_files(%s)", [known, late, foreign]) == [late]


@pytest.mark.parametrize("end", ["expired", "deleted", "cancelled"])
def test_a_tombstone_stays_for_thirty_days_without_its_file(exports: ExportSession, end: str) -> None:
    """E14: until then an old link is answered with 410, and the history has it."""
    export = exports.one()
    if end == "cancelled":
        exports.cancel_export(export)
    else:
        exports.make(export)
    if end == "deleted":
        exports.delete(export)
    exports.advance(WEEK + 1 if end == "expired" else 1)
    exports.clean()
    exports.advance(29 * 86400)
    prune = "SELECT livewell.prune_exports(30, 100)"
    assert exports.value(prune) == 0
    assert exports.seen(export)["state"] == end

    exports.advance(2 * 86400)

    assert exports.value(prune) == 1
    assert exports.show("ann", export) is None


def test_a_tombstone_whose_file_is_still_there_stays(exports: ExportSession) -> None:
    """E11: its row is what says that there is a file."""
    export = exports.one()
    exports.make(export)
    exports.delete(export)
    exports.advance(40 * 86400)

    assert exports.value("SELECT livewell.prune_exports(30, 100)") == 0
    exports.clean()
    assert exports.value("SELECT livewell.prune_exports(30, 100)") == 1


def test_downloads_are_counted_and_the_list_is_the_history(exports: ExportSession) -> None:
    """E8, E14."""
    ids = [exports.one("ann", f"d{n}") for n in range(3)]
    exports.make(ids[0])
    file(exports, ids[0])
    page = exports.column("SELECT livewell.list_exports('ann', NULL, 2)")
    rest = exports.column("SELECT livewell.list_exports('ann', %s, 2)", page[-1]["id"])

    assert [one["document"] for one in [*page, *rest]] == ["d2", "d1", "d0"]
    assert rest[-1]["downloads"] == 1
    assert [one["document"] for one in exports.column("SELECT livewell.list_exports('ann', NULL, 9, 'd1')")] == ["d1"]
