"""Asking for exports: the same one twice (E1), quotas (E10), batches (E3), whose it is (E12)."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from tests.support.exports_sql import ESTIMATE, ExportSession, item


def test_the_same_version_and_options_twice_is_one_export(exports: ExportSession) -> None:
    """E1: while it is unfinished. Nothing is reserved a second time."""
    first = exports.ask("ann", item("cv", "1", template="minimal"))["items"][0]
    again = exports.ask("ann", item("cv", "1", template="minimal"))["items"][0]

    assert (again["id"], again["answer"]) == (first["id"], "same")
    assert exports.usage() == {"stored": 0, "reserved": ESTIMATE, "today": 1}
    assert exports.value("SELECT count(*) FROM livewell.job") == 1


@pytest.mark.parametrize(
    "other",
    [item("cv", "2"), item("cv", "1", template="modern"), item("letter", "1")],
    ids=["version", "options", "document"],
)
def test_what_differs_is_another_export(exports: ExportSession, other: dict[str, object]) -> None:
    """E1: another version, other options, another document."""
    first = exports.one("ann", "cv", "1")

    assert exports.ask("ann", other)["items"][0]["id"] != first


def test_the_same_of_another_user_is_another_export(exports: ExportSession) -> None:
    """E12: nobody is given what is somebody else's."""
    assert exports.one("ann") != exports.one("bob")


def test_a_finished_one_is_made_again(exports: ExportSession) -> None:
    """E1 ends with the export."""
    first = exports.one()
    exports.make(first)

    assert exports.one() != first


def test_the_same_call_again_is_answered_as_the_first_time(exports: ExportSession) -> None:
    """An answer that was lost: the caller's id is known, also when the export has ended."""
    asked = item()
    first = exports.ask("ann", asked)["items"][0]
    exports.make(first["id"])
    again = exports.ask("ann", asked)["items"][0]

    assert (again["id"], again["answer"], again["state"]) == (first["id"], "known", "finished")
    assert exports.value("SELECT count(*) FROM livewell.export") == 1


def test_the_payload_of_the_job_is_the_id_alone(exports: ExportSession) -> None:
    """E15: nothing of the document is in a queue."""
    export = exports.one("ann", "secret-document", "v9")
    [(payload, key, group)] = exports.rows("SELECT payload, unique_key, group_key FROM livewell.job")

    assert payload == {"export": export}
    assert key == export
    assert "ann" not in group
    assert len(group) == 32


def test_beyond_the_bytes_of_the_user_nothing_is_made(exports: ExportSession) -> None:
    """E10: 507, with the numbers."""
    exports.one("ann", "a")
    answer = exports.ask("ann", item("b"), bytes_max=2 * ESTIMATE - 1)

    assert answer == {
        "answer": "full",
        "stored": 0,
        "reserved": ESTIMATE,
        "needs": ESTIMATE,
        "allowed": 2 * ESTIMATE - 1,
    }
    assert exports.value("SELECT count(*) FROM livewell.export") == 1
    assert exports.wrong() == []


def test_beyond_the_number_of_the_day_nothing_is_made(exports: ExportSession) -> None:
    """E10: 429, and when the next day begins. The same one again is not one more."""
    first = item("a")
    exports.ask("ann", first, day_max=1)
    refused = exports.ask("ann", item("b"), day_max=1)

    assert {key: refused[key] for key in ("answer", "used", "asked", "allowed")} == {
        "answer": "daily",
        "used": 1,
        "asked": 1,
        "allowed": 1,
    }
    assert refused["resets_at"].endswith("00:00:00+00:00")
    assert exports.ask("ann", item("a"), day_max=1)["items"][0]["answer"] == "same"
    exports.advance(86400)
    assert exports.ask("ann", item("b"), day_max=1)["answer"] == "made"


def test_one_user_spends_nothing_of_another(exports: ExportSession) -> None:
    """E10, E12."""
    exports.ask("ann", item("a"), bytes_max=ESTIMATE)

    assert exports.ask("bob", item("a"), bytes_max=ESTIMATE)["answer"] == "made"


def test_an_unknown_kind_and_an_unknown_template_are_named(exports: ExportSession) -> None:
    """With what there is."""
    exports.kind("resume", templates=["minimal", "modern"])

    assert exports.ask("ann", item() | {"kind": "poem"}) == {"answer": "kind", "kind": "poem", "allowed": ["resume"]}
    assert exports.ask("ann", item(template="gold")) == {
        "answer": "template",
        "template": "gold",
        "allowed": ["minimal", "modern"],
    }


def test_a_batch_has_at_most_ten(exports: ExportSession) -> None:
    """E3: the eleventh is refused, and so are the others."""
    with pytest.raises(psycopg.Error, match="11 documents: 1 to 10"):
        exports.ask("ann", *(item(f"d{n}") for n in range(11)), batch=str(uuid.uuid4()))
    assert exports.value("SELECT count(*) FROM livewell.export") == 0


def test_a_batch_is_made_whole_or_not_at_all(exports: ExportSession) -> None:
    """E10: three documents, and room for two."""
    answer = exports.ask("ann", *(item(f"d{n}") for n in range(3)), batch=str(uuid.uuid4()), bytes_max=2 * ESTIMATE)

    assert (answer["answer"], answer["needs"]) == ("full", 3 * ESTIMATE)
    assert exports.value("SELECT count(*) FROM livewell.export") == 0


def test_an_unfinished_export_belongs_to_both_batches(exports: ExportSession) -> None:
    """E1 and E3: the document that is asked for twice is made once, and counts in both."""
    one, two = str(uuid.uuid4()), str(uuid.uuid4())
    exports.ask("ann", item("a"), item("b"), item("a"), batch=one)
    exports.ask("ann", item("b"), item("c"), batch=two)

    assert exports.value("SELECT count(*) FROM livewell.export") == 3
    seen = exports.batch("ann", one), exports.batch("ann", two)
    assert [[e["document"] for e in batch["exports"]] for batch in seen if batch] == [["a", "b"], ["b", "c"]]


def test_batches_of_what_is_unfinished_are_counted_too(exports: ExportSession) -> None:
    """E10: they make no export, and each of them is a row."""
    for _ in range(3):
        assert exports.ask("ann", item("a"), batch=str(uuid.uuid4()), day_max=3)["answer"] == "made"

    assert exports.ask("ann", item("a"), batch=str(uuid.uuid4()), day_max=3)["answer"] == "daily"
    assert exports.value("SELECT count(*) FROM livewell.export_batch") == 3


def test_a_batch_that_is_over_enqueues_its_follow_up_once(exports: ExportSession) -> None:
    """E3: whatever became of its exports; the same request again is the same batch."""
    exports.declare("mail")
    batch, items = str(uuid.uuid4()), [item("a"), item("b")]
    follow = {"queue": "mail", "kind": "tell", "payload": {"batch": batch}}
    a, b = (one["id"] for one in exports.ask("ann", *items, batch=batch, follow=follow)["items"])
    exports.ask("ann", *items, batch=batch, follow=follow)
    exports.make(a)
    assert exports.column("SELECT kind FROM livewell.job WHERE queue = 'mail'") == []

    exports.cancel_export(b)

    assert exports.rows("SELECT kind, payload FROM livewell.job WHERE queue = 'mail'") == [("tell", {"batch": batch})]
    seen = exports.batch("ann", batch)
    assert seen is not None
    assert (seen["state"], seen["finished"], seen["cancelled"], seen["complete"]) == ("ended", 1, 1, False)
    assert seen["progress"] == 100


def test_the_progress_of_a_batch_is_the_mean_and_its_number_grows(exports: ExportSession) -> None:
    """E2: a poll after n is told whether anything came after n."""
    batch = str(uuid.uuid4())
    a, b = (one["id"] for one in exports.ask("ann", item("a"), item("b"), batch=batch)["items"])
    before = exports.batch("ann", batch)
    claim = exports.take()
    exports.begin(claim, {exports.job_of(e): e for e in (a, b)}[claim.id])
    exports.step(claim, {exports.job_of(e): e for e in (a, b)}[claim.id], 50)
    after = exports.batch("ann", batch, before["seq"] if before else 0)

    assert before is not None
    assert after is not None
    assert (before["progress"], after["progress"]) == (0, 25)
    assert (after["seq"], after["changed"]) == (before["seq"] + 2, True)
    assert exports.batch("ann", batch, after["seq"])["changed"] is False  # type: ignore[index]


def test_nobody_sees_cancels_deletes_or_fetches_what_is_anothers(exports: ExportSession) -> None:
    """E12: a guessed id is answered as one that does not exist, on every function."""
    batch = str(uuid.uuid4())
    mine = str(exports.ask("ann", item(), batch=batch)["items"][0]["id"])
    exports.make(mine)
    [path] = exports.column("SELECT path FROM livewell.export_file")

    assert exports.show("bob", mine) is None
    assert exports.cancel_export(mine, "bob") is None
    assert exports.delete(mine, "bob") is None
    assert exports.batch("bob", batch) is None
    assert exports.value("SELECT livewell.read_export_file('bob', %s, true)", mine) is None
    assert exports.value("SELECT livewell.read_export_files('bob', %s)", batch) is None
    assert exports.column("SELECT livewell.list_exports('bob', NULL, 50)") == []
    assert exports.column("SELECT livewell.list_exports('bob', %s, 50)", mine) == []
    assert exports.forget(path, "bob") is False
    exports.rows("SELECT livewell.count_downloads('bob', %s)", [uuid.UUID(mine)])
    rows = exports.rows(
        "SELECT document FROM livewell.follow_exports(ARRAY['bob', 'bob'], %s, ARRAY[0, 0], ARRAY[false, true])",
        [uuid.UUID(mine), uuid.UUID(batch)],
    )
    assert rows == [(None,), (None,)]
    assert exports.seen(mine)["downloads"] == 0
