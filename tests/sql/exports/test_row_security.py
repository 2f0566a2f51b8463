"""E12, whatever a function forgets: row security holds the owner's functions to one user, and roles to their rights."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.exports_sql import ExportSession, item

TABLES = ("export", "export_file", "export_usage", "export_batch", "export_member")
FORGETFUL = """
CREATE FUNCTION livewell.forgetful(p_user text) RETURNS bigint[] LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    PERFORM set_config('livewell.user_id', coalesce(p_user, ''), true);
    RETURN ARRAY[(SELECT count(*) FROM livewell.export), (SELECT count(*) FROM livewell.export_file), (SELECT count(*) FROM livewell.export_usage), (SELECT count(*) FROM livewell.export_batch), (SELECT count(*) FROM livewell.export_member)];
END $$;
ALTER FUNCTION livewell.forgetful OWNER TO livewell_owner;
"""
BATCHES = {"ann": "00000000-0000-4000-8000-00000000000a", "bob": "00000000-0000-4000-8000-00000000000b"}


@pytest.fixture
def rows(livewell_dsn: str) -> Iterator[ExportSession]:
    """A finished export of each of two users, each in a batch; a function of the owner without a WHERE."""
    with ExportSession(livewell_dsn) as session:
        session.reset()
        for user, batch in BATCHES.items():
            export = session.ask(user, item("private", file=user), batch=batch)["items"][0]["id"]
            session.make(export)
        session.rows(FORGETFUL)
        yield session


def test_a_function_of_the_owner_without_a_where_sees_one_user(rows: ExportSession) -> None:
    """Proven once with NO FORCE ROW LEVEL SECURITY: everything was seen."""
    assert rows.value("SELECT livewell.forgetful('ann')") == [1, 1, 1, 1, 1]
    assert rows.value("SELECT livewell.forgetful('nobody')") == [0] * 5
    assert rows.value("SELECT livewell.forgetful(NULL)") == [0] * 5


def seen_by(rows: ExportSession, role: str, query: str) -> list[tuple[object, ...]] | None:
    """What a role reads; None if it may not."""
    rows.rows(f"SET ROLE {role}")
    try:
        return rows.rows(query)
    except psycopg.errors.InsufficientPrivilege:
        return None
    finally:
        rows.rows("RESET ROLE")


@pytest.mark.parametrize("table", TABLES)
def test_the_role_of_requests_reads_no_table(rows: ExportSession, table: str) -> None:
    """It goes through functions, each of which enters one user."""
    assert seen_by(rows, "livewell_api", f"SELECT FROM livewell.{table}") is None
    assert seen_by(rows, "livewell_hub", f"SELECT FROM livewell.{table}") is None


@pytest.mark.parametrize("role", ["livewell_operate", "livewell_readonly"])
@pytest.mark.parametrize(
    "column", ["file_name", "document_id", "document_version", "options", "sha256", "steps", "detail"]
)
def test_those_who_look_see_nothing_of_a_document(rows: ExportSession, role: str, column: str) -> None:
    """E15: numbers and states, of all users."""
    assert seen_by(rows, role, f"SELECT {column} FROM livewell.export") is None
    assert seen_by(rows, role, "SELECT path FROM livewell.export_file") is None
    assert seen_by(rows, role, "SELECT follow FROM livewell.export_batch") is None
    seen = seen_by(rows, role, "SELECT user_id, state FROM livewell.find_exports()")
    assert sorted(seen or []) == [("ann", "finished"), ("bob", "finished")]
    assert seen_by(rows, role, "SELECT livewell.state_exports()") is not None


def test_a_worker_serves_everybody(rows: ExportSession) -> None:
    """A worker that saw one user's exports alone would let those of others wait for ever."""
    assert seen_by(rows, "livewell_worker", "SELECT count(*) FROM livewell.export") == [(2,)]
    assert seen_by(rows, "livewell_worker", "SELECT livewell.settle_exports(10)") == [(0,)]


def test_who_a_call_was_for_is_forgotten_with_its_transaction(rows: ExportSession) -> None:
    """The next call on the same connection is somebody else's."""
    rows.ask("ann", item("again"))

    assert rows.value("SELECT coalesce(current_setting('livewell.user_id', true), '')") == ""


def test_the_role_of_requests_can_do_everything_that_a_user_does(rows: ExportSession) -> None:
    """And nothing that a worker does."""
    rows.rows("SET ROLE livewell_api")
    try:
        mine = rows.ask("ann", item("mine"))["items"][0]["id"]
        assert rows.seen(mine)["state"] == "waiting"
        assert rows.cancel_export(mine) == {"answer": "cancelled", "running": False}
        assert len(rows.column("SELECT livewell.list_exports('ann', NULL, 10)")) == 2
        assert rows.batch("ann", BATCHES["ann"]) is not None
        assert rows.usage()["stored"] == 500
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows.settle_all()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows.clean()
    finally:
        rows.rows("RESET ROLE")
