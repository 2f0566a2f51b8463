"""Every released version, with rows in it, becomes the current one: nothing is lost, and what was there goes on.

A version's folder has schema.sql (`livewell migrate --print` of that release) and data.sql (rows of every kind). Both are never edited. The latest has its wheel, too: F-A10
runs it through the migration.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from livewell.db.migrate import check, migrate
from tests.support.queue_sql import QueueSession
from tests.support.servers import new_database

VERSIONS = sorted(path.parent.name for path in Path(__file__).parent.glob("*/schema.sql"))
BEFORE = max(VERSIONS, key=lambda version: tuple(map(int, version.split("."))))

COUNTS = """
    SELECT (SELECT count(*) FROM livewell.job), (SELECT count(*) FROM livewell.job_history), (SELECT count(*) FROM livewell.dead_job), (SELECT count(*) FROM livewell.worker),
           (SELECT count(*) FROM livewell.queue), (SELECT count(*) FROM livewell.stat), (SELECT count(*) FROM livewell.warning)
"""
WATCHED = """
    SELECT (SELECT count(*) FROM livewell.viewer_session), (SELECT count(*) FROM livewell.subscription), (SELECT count(*) FROM livewell.ledger),
           (SELECT count(*) FROM livewell.ledger WHERE ttl_override IS NOT NULL), (SELECT count(*) FROM livewell.universe), (SELECT count(*) FROM livewell.data_type), (SELECT count(*) FROM livewell.upstream)
"""
# A function's name, how many arguments it needs, and the types of all it takes.
CALLS = """
    SELECT p.proname::text, p.pronargs - p.pronargdefaults, ARRAY(SELECT a::regtype::text FROM unnest(p.proargtypes) WITH ORDINALITY AS t (a, n) ORDER BY n)
    FROM pg_proc p WHERE p.pronamespace = 'livewell'::regnamespace
"""


def install(version: str, dsn: str) -> None:
    """The schema and the rows of that version."""
    for part in ("schema.sql", "data.sql"):
        with psycopg.connect(dsn) as connection:
            connection.execute((Path(__file__).parent / version / part).read_bytes())


@pytest.fixture(params=VERSIONS)
def old(request: pytest.FixtureRequest, livewell_server: str) -> Iterator[str]:
    """A database as that version left it."""
    with new_database(livewell_server) as dsn:
        install(request.param, dsn)
        yield dsn


def test_nothing_is_lost_and_nothing_drifts(old: str) -> None:
    """The same rows, and a schema as a new installation has it."""
    with QueueSession(old) as queue:
        before = queue.rows(COUNTS)
        assert before in ([(4, 2, 1, 1, 2, 1, 1)], [(4, 2, 1, 1, 3, 1, 1)])  # from 0.3.0 on with a queue of an upstream
        migrate(old)
        assert queue.rows(COUNTS) == before
    assert check(old) == []


def test_what_was_watched_is_watched_still(old: str) -> None:
    """Sessions, subscriptions, times to live and the registry, from the version on that has them."""
    with QueueSession(old) as queue:
        if not queue.value("SELECT to_regclass('livewell.ledger') IS NOT NULL"):
            pytest.skip("a version before refreshes")
        before = queue.rows(WATCHED)
        assert before == [(1, 2, 2, 1, 1, 1, 1)]
        migrate(old)
        assert queue.rows(WATCHED) == before
        assert (
            queue.value("SELECT livewell.heartbeat_session('11111111-1111-4111-8111-111111111111', 'ann')") == "alive"
        )


def test_a_key_opens_still_and_what_was_revoked_does_not(old: str) -> None:
    """From the version on that has them."""
    with QueueSession(old) as queue:
        if not queue.value("SELECT to_regclass('livewell.api_key') IS NOT NULL"):
            pytest.skip("a version before keys")
        migrate(old)
        assert queue.rows("SELECT scopes, types FROM livewell.find_key('KeyOfAMachine')") == [
            (["view", "operate"], ["quote"])
        ]
        assert queue.rows("SELECT scopes FROM livewell.find_key('LoginOfAnn')") == []


def test_what_ran_then_is_finished_now(old: str) -> None:
    """The old worker's job ends by the old call, and what waited is claimed by the new code."""
    migrate(old)
    with QueueSession(old) as queue:
        fence = queue.value("SELECT fence FROM livewell.job WHERE id = 69")
        assert (
            queue.rows("SELECT * FROM livewell.finish_jobs(1, ARRAY[69]::bigint[], ARRAY[%s]::bigint[])", fence) == []
        )
        assert queue.state(69) == "succeeded"
        assert [claim.id for claim in queue.claim(1)] == [65, 64]
        assert queue.redrive([68]) == (1, 0)
        queue.declare(group_limit=1)  # the same call as before, with more to say


def test_what_the_version_before_calls_is_there_still(livewell_server: str) -> None:
    """Every function of its schema can be called as before: a breaking change is a new name, and the old one stays for one minor version.

    Broken once on purpose: by renaming a function, and by an argument more without a default.
    """
    with new_database(livewell_server) as dsn, QueueSession(dsn) as queue:
        install(BEFORE, dsn)
        before = queue.rows(CALLS)
        migrate(dsn)
        after = queue.rows(CALLS)
    gone = [
        (name, takes)
        for name, _, takes in before
        if not any(name == now and takes == types[: len(takes)] and needs <= len(takes) for now, needs, types in after)
    ]

    assert len(before) > 100
    assert gone == []
