"""A database that was handed on is as a new copy.

Whatever a test did to it, the next one does not see it.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from livewell.db.scratch import TestClock
from tests.support.queue_sql import QueueSession
from tests.support.recycled import Recycler

NAME = "SELECT current_database(), oid FROM pg_database WHERE datname = current_database()"


@pytest.fixture
def own(livewell_server: str, livewell_template: str) -> Iterator[Recycler]:
    made = Recycler(livewell_server, livewell_template)
    yield made
    made.close()


def on(dsn: str, *statements: str) -> list[tuple[object, ...]]:
    """Run these; the rows of the last."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def look(dsn: str) -> dict[str, object]:
    """All that a test could notice."""
    with QueueSession(dsn) as session:
        tables = session.column(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND oid >= 16384 ORDER BY 1"
        )
        return {
            "rows": {table: session.rows(f"SELECT t::text FROM {table} t ORDER BY 1") for table in tables},
            "functions": session.rows("SELECT p::text FROM pg_proc p WHERE oid >= 16384 ORDER BY oid"),
            "fence": session.rows("SELECT last_value, is_called FROM livewell.fence_seq"),
            "statistics": session.value("SELECT count(*) FROM pg_statistic WHERE starelid = 'livewell.job'::regclass"),
        }


def test_what_a_test_wrote_is_gone_and_the_name_is_new(own: Recycler) -> None:
    """Rows, sequences, replaced functions, the clock, tables and functions of its own, statistics.

    Without a copy.
    """
    first = own.take()
    before, (name, oid) = look(first), on(first, NAME)[0]
    TestClock(first).advance(10)
    with QueueSession(first) as session:
        session.declare()
        session.enqueue(3)
        session.finish(*session.claim(session.register(), 1))
    on(
        first,
        "DELETE FROM livewell.migration",
        "CREATE TABLE public.effect (n int); INSERT INTO public.effect VALUES (1)",
        "CREATE TABLE livewell_data.quote (key text PRIMARY KEY)",
        "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ANALYZE livewell.job",
    )
    own.give_back()

    second = own.take()
    assert look(second) == before
    [(new, same)] = on(second, NAME)
    assert (new != name, same) == (True, oid)
    assert own.copied == 1
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first)
    own.give_back()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE livewell.job ADD COLUMN more int",
        "DROP FUNCTION livewell.now() CASCADE",
        "CREATE INDEX ON livewell.job (payload)",
        "GRANT SELECT ON livewell.job TO PUBLIC",
        "ALTER TABLE livewell.job DISABLE TRIGGER USER",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$",
    ],
)
def test_a_change_that_cannot_be_undone_costs_a_copy(own: Recycler, change: str) -> None:
    """It is noticed, whatever it is."""
    first = own.take()
    before = look(first)
    on(first, change)
    own.give_back()

    assert look(own.take()) == before
    assert own.copied == 2
    own.give_back()


def test_whoever_is_still_connected_is_cut_off(own: Recycler) -> None:
    """As by a drop, also in the middle of a transaction."""
    with psycopg.connect(own.take()) as left:
        left.execute("LOCK livewell.job")
        own.give_back()
        own.take()
        with pytest.raises(psycopg.OperationalError):
            left.execute("SELECT 1")
    own.give_back()
