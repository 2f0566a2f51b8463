"""Every released version, with rows in it, becomes the current one.

Nothing is lost, and what was there goes on.

A version's folder has schema.sql (`livewell migrate --print` of that release) and data.sql (rows of
every kind). Both are never edited. The latest has its wheel, too: F-A10 runs it through the
migration.
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


def test_a_session_of_somebody_anonymous_goes_on_under_the_hash_of_its_id(livewell_server: str) -> None:
    """L4: its client has the id, the tables have not.

    A server of the version before may go on with it, too.
    """
    session = "22222222-2222-4222-8222-222222222222"
    with new_database(livewell_server) as dsn, QueueSession(dsn) as queue:
        install("0.5.0", dsn)
        queue.rows("SELECT livewell.open_session(%s, NULL)", session)
        queue.rows("SELECT livewell.subscribe(%s, NULL, '{quote}', '{AAPL}')", session)
        migrate(dsn)

        assert [
            queue.value("SELECT livewell.heartbeat_session(%s, %s)", session, who)
            for who in (None, "public:K@x", "eve")
        ] == ["alive", "alive", "unknown"]
        assert queue.rows(
            "SELECT session::text, user_id, keys FROM livewell.session_keys(ARRAY[%s]::uuid[], '{-1}')", session
        ) == [(session, f"session:{session}", ["AAPL"])]
        assert (
            queue.value(
                "SELECT count(*) FROM (SELECT v::text FROM livewell.viewer v UNION ALL SELECT "
                "s::text FROM livewell.viewer_session s UNION ALL SELECT b::text FROM "
                "livewell.subscription b) x (told) WHERE told ~ '2222-4222|1111-4111'"
            )
            == 0
        )
        assert queue.value("SELECT livewell.close_session(%s, NULL)", session) == "closed"
        assert (
            queue.value("SELECT count(*) FROM livewell.viewer WHERE user_id LIKE 'session:%%' AND subscriptions > 0")
            == 0
        )


def test_a_key_that_is_bound_to_types_operates_no_more(livewell_server: str) -> None:
    """M2: it loses the scope, and one that had no other is revoked; a key of all types keeps it.

    Each can be used and revoked afterwards.
    """
    made = "SELECT livewell.create_key(%s, decode(repeat('00', 32), 'hex'), 'key', 'x', %s, %s, false, NULL)"
    with new_database(livewell_server) as dsn, QueueSession(dsn) as queue:
        install("0.5.0", dsn)
        for name, scopes, types in (
            ("OperatesOnly", ["operate"], ["quote"]),
            ("SeesAndOperates", ["view", "operate"], ["quote"]),
            ("OfEverything", ["operate", "view"], None),
        ):
            queue.rows(made, name, scopes, types)
        migrate(dsn)

        found = {
            name: queue.rows("SELECT scopes FROM livewell.find_api_key(%s)", name)
            for name in ("OperatesOnly", "SeesAndOperates", "OfEverything")
        }
        assert found == {"OperatesOnly": [], "SeesAndOperates": [(["view"],)], "OfEverything": [(["operate", "view"],)]}
        for name in found:
            queue.rows("SELECT livewell.touch_key(%s), livewell.revoke_key(%s)", name, name)


def test_a_key_opens_still_and_what_was_revoked_does_not(old: str) -> None:
    """From the version on that has them; what is bound to types operates no more (M2)."""
    with QueueSession(old) as queue:
        if not queue.value("SELECT to_regclass('livewell.api_key') IS NOT NULL"):
            pytest.skip("a version before keys")
        migrate(old)
        assert queue.rows("SELECT scopes, types FROM livewell.find_key('KeyOfAMachine')") == [(["view"], ["quote"])]
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
    """Every function of its schema can be called as before.

    A breaking change is a new name, and the old one stays for one minor version.

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


def test_runs_and_alerts_are_there_still(old: str) -> None:
    """From the version on that has them: a run that was under way, and an alert that had fired."""
    with QueueSession(old) as queue:
        if not queue.value("SELECT to_regclass('livewell.alert') IS NOT NULL"):
            pytest.skip("a version before alerts")
        kept = """
            SELECT (SELECT count(*) FROM livewell.schedule), (SELECT count(*) FROM livewell.run WHERE state = 'running'), (SELECT count(*) FROM livewell.alert WHERE state = 'fired')
        """
        assert queue.rows(kept) == [(1, 1, 1)]
        migrate(old)
        assert queue.rows(kept) == [(1, 1, 1)]


def test_a_walk_that_was_under_way_goes_on_and_slots_that_waited_stay(livewell_server: str) -> None:
    """R19: with the same run and from its cursor; its next slot is planned anew.

    A type that is not scheduled any more leaves the list.
    """
    with new_database(livewell_server) as dsn, QueueSession(dsn) as queue:
        install("0.6.0", dsn)
        for name in ("walking", "waiting"):
            queue.rows(
                """
                INSERT INTO livewell.data_type (name, upstream, ttl, negative_ttl, strategy, cron, zone, cron_due_at, cron_cursor, rule, has_source_time, rows_kind, key_pattern, size_estimate, definition, columns, version, applied_at)
                SELECT %s, upstream, ttl, negative_ttl, 'scheduled', '0 6 * * *', 'UTC', now() + CASE WHEN %s THEN interval '-1 hour' ELSE interval '1 hour' END, CASE WHEN %s THEN 'K2' END,
                       'age', has_source_time, rows_kind, '[A-Z0-9]{1,9}', size_estimate, definition, columns, 1, now()
                FROM livewell.data_type LIMIT 1
                """,
                name,
                name == "walking",
                name == "walking",
            )
            queue.rows("SELECT livewell.show_walk(%s, '1 day')", name)
        queue.rows(
            "INSERT INTO livewell.schedule (name, kind, cron, zone, missed, timeout, internal, seen_at, "
            "created_at) VALUES ('walk.gone', 'cron', '0 6 * * *', 'UTC', 'once', '1 day', true, now(), now())"
        )
        queue.rows(
            "INSERT INTO livewell.universe (data_type, key, added_at) SELECT 'walking', 'K' || n, now() FROM "
            "generate_series(1, 5) AS n"
        )
        queue.rows(
            "INSERT INTO livewell.run (schedule, due_at, last_due_at, state, started_at, fence, holder, "
            "rows_affected) SELECT 'walk.walking', cron_due_at, cron_due_at, 'running', now(), 7, 'old', 2 FROM "
            "livewell.data_type WHERE name = 'walking'"
        )
        migrate(dsn)
        queue.rows("SELECT livewell.sync_walks()")

        assert queue.rows(
            "SELECT name, open_ended, due_at > now() FROM livewell.schedule WHERE name LIKE 'walk.%' ORDER BY name"
        ) == [("walk.waiting", True, True), ("walk.walking", True, None)]
        fence = queue.value("SELECT fence FROM livewell.acquire_singleton('refresh.due', 'new', NULL, '1 minute')")
        page = "SELECT answer, inserted FROM livewell.dispatch_scheduled('refresh.due', %s, 'walking', NULL)"
        assert queue.rows(page, fence) == [("walked", 3)]
        ended = "SELECT state::text, rows_affected, holder FROM livewell.run WHERE schedule = 'walk.walking'"
        assert queue.rows(ended) == [("succeeded", 5, "new")]


def test_jobs_that_the_table_refuses_now_stop_nobody(livewell_server: str) -> None:
    """Contract 8: 0.5.0 accepted any lane, priority and payload by plain INSERT.

    They are brought within the bounds; one that cannot be is a dead letter, and good jobs beside
    them are claimed.
    """
    with new_database(livewell_server) as dsn, QueueSession(dsn) as queue:
        install("0.5.0", dsn)
        queue.rows(
            """
            INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, lane, priority, payload)
            SELECT n, n, now(), now(), 'ready', 1, 'mixed', 'work', CASE n WHEN 9001 THEN -1 ELSE 1 END, CASE n WHEN 9002 THEN 30000 ELSE 0 END,
                   CASE n WHEN 9003 THEN to_jsonb((SELECT string_agg(md5(g::text), '') FROM generate_series(1, 10000) AS g)) ELSE '{}' END
            FROM generate_series(9000, 9003) AS n
            """
        )
        migrate(dsn)

        assert queue.rows("SELECT id, lane, priority FROM livewell.job WHERE queue = 'mixed' ORDER BY id") == [
            (9000, 1, 0),
            (9001, 0, 0),
            (9002, 1, 100),
        ]
        assert queue.rows("SELECT reason FROM livewell.dead_job WHERE id = 9003") == [("payload",)]
        queue.declare("mixed")
        claimed = queue.claim(queue.register(queues=["mixed"]), queues=["mixed"])
        assert {claim.id for claim in claimed} == {9000, 9001, 9002}


def test_events_go_on_where_they_were(old: str) -> None:
    """From the version on that has them: in flight, parked behind a dead letter, or waiting.

    What was delivered does not come back, an effect that was seen is not seen again, and the ids of
    a merged contact still answer.
    """
    with QueueSession(old) as queue:
        if not queue.value("SELECT to_regclass('livewell.event_delivery') IS NOT NULL"):
            pytest.skip("a version before events")
        migrate(old)
        queue.rows("SELECT livewell.release_relay(1)")
        relay = queue.value("SELECT livewell.register_relay('old', 'new', 'now', 45)")
        claim = "SELECT number FROM livewell.exchange_events(%s, %s, %s, '{}', '{}', '{}', 10) WHERE answer = 'event' ORDER BY 1"
        assert queue.rows(claim, relay, [], []) == [(3,), (5,)]
        assert queue.value("SELECT livewell.redrive_dead_events('old', ARRAY[2])") == 1
        assert queue.rows(claim, relay, [3, 5], ["delivered"] * 2) == [(2,), (4,)]
        assert not queue.value("SELECT livewell.see_event('billing', 'an event that was seen')")
        alias, contact = queue.rows("SELECT id, merged_into FROM livewell.contact_alias")[0]
        assert queue.value("SELECT livewell.show_contact('acme', %s) ->> 'merged_into'", alias) == str(contact)
