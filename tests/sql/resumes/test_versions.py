"""Documents and their versions: written once, never changed, never lost to two editors (E16)."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.exports_sql import ExportSession
from tests.support.resumes_sql import VERSIONS_MAX, ResumeSession, text


def test_a_change_is_a_new_version_and_the_old_one_stays(resumes: ResumeSession) -> None:
    """E16: an export of version 1 can still be read."""
    made = resumes.create(text("Ann"))
    assert resumes.change(made["id"], text("Anna")) == {"answer": "changed", "version": 2}

    latest, first = resumes.show(made["id"]), resumes.show(made["id"], version=1)
    assert latest is not None
    assert first is not None
    assert (latest["content"], first["content"]) == (text("Anna"), text("Ann"))
    assert (latest["version"], first["version"], first["latest"]) == (2, 1, 2)
    assert resumes.versions(made["id"]) == [2, 1]


def test_a_version_cannot_be_changed_by_anybody(resumes: ResumeSession) -> None:
    """E16: a trigger, so that a function of tomorrow cannot either. Seen failing without the trigger."""
    resumes.create()
    with pytest.raises(psycopg.DatabaseError, match="cannot be changed"):
        resumes.rows("UPDATE livewell.resume_version SET content = '{}', bytes = 2")


def test_the_second_of_two_editors_is_told_and_nothing_is_written(resumes: ResumeSession) -> None:
    """E16: with the version that it has by now."""
    made = resumes.create()
    resumes.change(made["id"], text("Ben"), expected=1)

    assert resumes.change(made["id"], text("Cid"), expected=1) == {"answer": "conflict", "version": 2}
    assert resumes.versions(made["id"]) == [2, 1]


def test_an_editor_whose_answer_was_lost_sends_the_same_again(resumes: ResumeSession) -> None:
    """What it wanted is there already: that is no conflict, and no third version."""
    made = resumes.create()
    resumes.change(made["id"], text("Ben"), expected=1)

    assert resumes.change(made["id"], text("Ben"), expected=1) == {"answer": "same", "version": 2}


def test_another_name_is_no_new_version(resumes: ResumeSession) -> None:
    """An export pins the content, and that is the same."""
    made = resumes.create(text("Ann"), name="CV")
    assert resumes.change(made["id"], text("Ann"), name="For Acme") == {"answer": "changed", "version": 1}
    shown = resumes.show(made["id"])
    assert shown is not None
    assert shown["name"] == "For Acme"


def test_a_request_that_is_asked_again_answers_the_same_document(resumes: ResumeSession) -> None:
    """Whoever lost the answer asks again. With another content the key was used for something else."""
    made = resumes.create(request="r1")

    assert resumes.create(request="r1") == {"answer": "same", "id": made["id"], "version": 1}
    assert resumes.create(text("Ben"), request="r1")["answer"] == "reused"
    assert len(resumes.listed()) == 1


def test_an_id_that_is_sent_again_answers_the_same_document(resumes: ResumeSession) -> None:
    """A statement that is repeated after a lost connection has the same id."""
    made = resumes.create()
    assert resumes.create(key=made["id"])["answer"] == "same"


def test_requests_of_two_users_do_not_meet(resumes: ResumeSession) -> None:
    """E12: a key is the user's own."""
    made = resumes.create(request="r1")
    assert resumes.create(request="r1", user="ben")["id"] != made["id"]


def test_documents_and_bytes_have_bounds_with_numbers(resumes: ResumeSession) -> None:
    """As many as one user may have, and no more; deleting one makes room at once."""
    ids = [resumes.create()["id"] for _ in range(3)]
    assert resumes.create() == {"answer": "documents", "used": 3, "allowed": 3}

    resumes.delete(ids[0])
    assert resumes.create(text(size=950)) == {"answer": "bytes", "used": 2 * len(text()), "allowed": 1000}
    assert resumes.create()["answer"] == "made"
    assert resumes.counted() == resumes.true_counts()


def test_old_versions_go_but_for_the_latest_ones(resumes: ResumeSession) -> None:
    """The counters follow."""
    made = resumes.create()
    for n in range(1, 8):
        resumes.change(made["id"], text(f"Ben {n}"), expected=n)

    assert resumes.versions(made["id"]) == list(range(8, 8 - VERSIONS_MAX, -1))
    assert resumes.counted() == resumes.true_counts()


def test_a_change_that_has_no_room_drops_nothing(resumes: ResumeSession) -> None:
    """Seen failing: the oldest version went although no new one came."""
    made = resumes.create()
    for n in range(1, VERSIONS_MAX):
        resumes.change(made["id"], text(f"Ben {n}"), expected=n)
    kept = resumes.versions(made["id"])

    assert resumes.change(made["id"], text(size=2000), expected=VERSIONS_MAX)["answer"] == "bytes"
    assert resumes.versions(made["id"]) == kept
    assert resumes.counted() == resumes.true_counts()


def test_a_deleted_document_is_gone_with_its_versions(resumes: ResumeSession) -> None:
    """And its counters; a second time there is nothing."""
    made = resumes.create()
    resumes.change(made["id"])

    assert resumes.delete(made["id"])
    assert not resumes.delete(made["id"])
    assert resumes.show(made["id"]) is None
    assert resumes.counted() == resumes.true_counts() == (0, 0)


def test_documents_are_listed_with_the_latest_change_first(resumes: ResumeSession) -> None:
    """Without their content."""
    ids = [resumes.create()["id"] for _ in range(3)]
    resumes.change(ids[0])
    assert resumes.listed() == [ids[0], ids[2], ids[1]]


def test_a_version_that_is_to_be_exported_stays_until_that_has_ended(resumes: ResumeSession, queue_dsn: str) -> None:
    """E16: an export waits for hours, and its document is edited meanwhile."""
    made = resumes.create()
    with ExportSession(queue_dsn) as exports:
        exports.reset()
        export = exports.one("ann", made["id"])
        for n in range(1, 8):
            resumes.change(made["id"], text(f"Ben {n}"), expected=n)
        assert resumes.versions(made["id"])[-1] == 1

        exports.cancel_export(export)
        resumes.change(made["id"], text("Cid"), expected=8)
        assert resumes.versions(made["id"])[-1] == 9 - VERSIONS_MAX + 1
        exports.reset()
    assert resumes.counted() == resumes.true_counts()
