"""livewell.warn() counts tolerated failures: bounded, redacted, and nobody waits for it."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from livewell.db.migrate import migrate
from tests.support.servers import new_database

Connection = psycopg.Connection[Any]

# The virtual clock of these tests: an instant in a setting of the session.
CLOCK = """
CREATE OR REPLACE FUNCTION livewell.now() RETURNS timestamptz LANGUAGE sql SET search_path = ''
AS $$ SELECT coalesce(nullif(current_setting('test.now', true), '')::pg_catalog.timestamptz, clock_timestamp()) $$
"""

BASE = {"integer": "int4", "boolean": "bool"}


@pytest.fixture(scope="module")
def dsn(admin_dsn: str) -> Iterator[str]:
    with new_database(admin_dsn) as dsn:
        migrate(dsn)
        with psycopg.connect(dsn) as connection:
            connection.execute(CLOCK)
        yield dsn


@pytest.fixture
def db(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("TRUNCATE livewell.warning")
        set_clock(connection, "2030-01-01 10:15+00")
        yield connection


def set_clock(connection: Connection, instant: str) -> None:
    connection.execute("SELECT set_config('test.now', %s, false)", (instant,))


def warn(connection: Connection, where: str | None, what: str | None, sample: str | None = None) -> None:
    connection.execute("SELECT livewell.warn(%s, %s, %s)", (where, what, sample))


def rows(connection: Connection, columns: str = "place, what, n, sample") -> list[tuple[Any, ...]]:
    return connection.execute(f"SELECT {columns} FROM livewell.warning ORDER BY id").fetchall()


def test_the_same_warning_counts_up_in_one_row(db: Connection) -> None:
    """The first and the last instant are kept, and the latest sample."""
    warn(db, "queue.claim", "no limiter", "first")
    set_clock(db, "2030-01-01 10:59:59+00")
    warn(db, "queue.claim", "no limiter", "second")
    warn(db, "queue.claim", "no limiter")

    assert rows(db) == [("queue.claim", "no limiter", 3, "second")]
    db.execute("SET timezone = 'UTC'")
    assert rows(db, "first_at::text, last_at::text") == [("2030-01-01 10:15:00+00", "2030-01-01 10:59:59+00")]


def test_each_hour_and_each_kind_has_its_own_row(db: Connection) -> None:
    """A new hour, a new place and a new text each begin a row."""
    warn(db, "a", "x")
    warn(db, "a", "y")
    warn(db, "b", "x")
    set_clock(db, "2030-01-01 11:00+00")
    warn(db, "a", "x")

    assert rows(db, "place, what, n") == [("a", "x", 1), ("a", "y", 1), ("b", "x", 1), ("a", "x", 1)]


def test_the_hour_does_not_depend_on_the_callers_time_zone(db: Connection) -> None:
    """Nepal is 45 minutes off; its sessions count in the same row."""
    warn(db, "a", "x")
    db.execute("SET timezone = 'Asia/Kathmandu'")
    warn(db, "a", "x")

    assert rows(db, "n") == [(2,)]


@pytest.mark.parametrize(
    ("where", "what", "sample", "expected"),
    [
        (None, None, None, ("(none)", "(none)", 1, None)),
        ("", "", "", ("(none)", "(none)", 1, "")),
        ("w" * 9_000, "ü" * 9_000, "😀" * 9_000, ("w" * 100, "ü" * 200, 1, "😀" * 500)),
        (
            "a\nb",
            "it's \\ %s {}",
            "'; DROP TABLE livewell.warning; --",
            ("a\nb", "it's \\ %s {}", 1, "'; DROP TABLE livewell.warning; --"),
        ),
        ("token=abc", "Bearer abc", "password=abc", ("token=***", "Bearer ***", 1, "password=***")),
    ],
)
def test_odd_input_is_tamed_not_refused(
    db: Connection, where: str | None, what: str | None, sample: str | None, expected: tuple[Any, ...]
) -> None:
    """Nothing a caller passes makes it fail; texts are cut and redacted."""
    warn(db, where, what, sample)

    assert rows(db) == [expected]


def test_an_hour_has_a_bounded_number_of_rows(db: Connection) -> None:
    """A thousand kinds, then everything new is one more row that says so, with the latest as its sample."""
    db.execute("SELECT livewell.warn('flood ' || i, 'kind ' || i) FROM generate_series(1, 1500) AS i")
    warn(db, "flood 7", "kind 7")

    assert db.execute("SELECT count(*), sum(n) FROM livewell.warning").fetchall() == [(1001, 1501)]
    more = "SELECT n, sample FROM livewell.warning WHERE place = '(more)' AND what = '(more)'"
    assert db.execute(more).fetchall() == [(500, "flood 1500: kind 1500")]
    assert db.execute("SELECT n FROM livewell.warning WHERE place = 'flood 7'").fetchall() == [(2,)]


def test_even_the_row_for_more_is_bounded(dsn: str, db: Connection) -> None:
    """Under REPEATABLE READ nothing can be counted up, only added: at 1,100 rows it stops."""
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    db.execute("SELECT livewell.warn('a', 'x') FROM generate_series(1, 1300)")
    db.execute("COMMIT")

    assert db.execute("SELECT count(*) FROM livewell.warning").fetchall() == [(1100,)]


def test_nobody_waits_for_a_warning(dsn: str, db: Connection) -> None:
    """An open transaction that warned does not hold up the next with the same warning.

    The counts add up. (Proven without SKIP LOCKED: 55P03.)
    """
    warn(db, "a", "seen before")
    with psycopg.connect(dsn) as slow, psycopg.connect(dsn) as other:
        for connection in (slow, other):
            set_clock(connection, "2030-01-01 10:20+00")
            connection.execute("SET lock_timeout = '50ms'")
        for what in ("seen before", "new"):
            warn(slow, "a", what)
        for what in ("new", "seen before"):
            warn(other, "a", what)

    totals = "SELECT what, sum(n) FROM livewell.warning GROUP BY what ORDER BY what"
    assert db.execute(totals).fetchall() == [("new", 2), ("seen before", 3)]


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_warning_does_not_break_a_stricter_transaction(dsn: str, db: Connection, level: str) -> None:
    """A row that was counted in since our snapshot is not touched, so there is no 40001."""
    warn(db, "a", "x")
    with psycopg.connect(dsn, autocommit=True) as strict:
        set_clock(strict, "2030-01-01 10:20+00")
        strict.execute("BEGIN ISOLATION LEVEL " + level)
        strict.execute("SELECT 1 FROM livewell.warning")
        warn(db, "a", "x")
        warn(strict, "a", "x")
        strict.execute("COMMIT")

    assert db.execute("SELECT sum(n) FROM livewell.warning").fetchall() == [(3,)]


def test_a_read_only_transaction_survives_its_warning(db: Connection) -> None:
    """There is nowhere to write it, and the reader did nothing wrong."""
    db.execute("BEGIN READ ONLY")
    warn(db, "a", "x")
    db.execute("COMMIT")

    assert rows(db) == []


@pytest.mark.parametrize("role", ["livewell_api", "livewell_operate", "livewell_hub", "livewell_worker"])
def test_every_process_may_warn(db: Connection, role: str) -> None:
    """Also livewell_api, which has no table rights."""
    db.execute("SET ROLE " + role)
    warn(db, "a", "x")
    db.execute("RESET ROLE")

    assert rows(db, "n") == [(1,)]


def test_the_api_cannot_write_a_warning_past_the_function(db: Connection) -> None:
    """What is in the table was redacted and bounded, whoever wrote it."""
    db.execute("SET ROLE livewell_api")

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute(
            "INSERT INTO livewell.warning (hour, first_at, last_at, place, what) VALUES (now(), now(), now(), 'a', 'x')"
        )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute("SELECT FROM livewell.warning")


def test_a_callers_own_types_are_not_run_with_the_owners_rights(db: Connection) -> None:
    """Even with search_path = '' Postgres looks for a type in pg_temp first.

    (Proven with `v_what text`: the trap was run as livewell_owner.)
    """
    db.execute("SET ROLE livewell_api")
    db.execute("CREATE TEMP TABLE caught (who name)")
    db.execute("GRANT ALL ON caught TO PUBLIC")
    db.execute(
        "CREATE FUNCTION pg_temp.trap(name) RETURNS boolean LANGUAGE sql AS "
        "$$ INSERT INTO pg_temp.caught VALUES (current_user); SELECT true $$"
    )
    for type_name in ("text", "timestamptz", "bool", "int4", "integer", "boolean"):
        db.execute(
            f'CREATE DOMAIN pg_temp."{type_name}" AS pg_catalog."{BASE.get(type_name, type_name)}" CHECK '
            "(pg_temp.trap(NULL))"
        )
    warn(db, "a", "x", "sample")

    assert db.execute("SELECT who FROM pg_temp.caught").fetchall() == []
    db.execute("DISCARD TEMP")
    db.execute("RESET ROLE")
    assert rows(db) == [("a", "x", 1, "sample")]


def test_pruning_is_bounded_and_takes_the_oldest(db: Connection) -> None:
    """Two old hours and one of today; one row at a time."""
    for instant in ("2029-11-01 00:00+00", "2029-11-02 00:00+00", "2029-12-31 00:00+00"):
        set_clock(db, instant)
        warn(db, "a", instant)
    set_clock(db, "2030-01-01 00:00+00")
    prune = "SELECT livewell.prune_warnings(30, 1)"

    assert db.execute(prune).fetchall() == [(1,)]
    assert rows(db, "what") == [("2029-11-02 00:00+00",), ("2029-12-31 00:00+00",)]
    assert db.execute(prune).fetchall() == [(1,)]
    assert db.execute(prune).fetchall() == [(0,)]
    assert db.execute("SELECT livewell.prune_warnings(0, -5), livewell.prune_warnings(NULL, NULL)").fetchall() == [
        (0, 0)
    ]


def test_a_worker_may_prune(db: Connection) -> None:
    """The cleanup runs in workers."""
    db.execute("SET ROLE livewell_worker")

    assert db.execute("SELECT livewell.prune_warnings(30, 100)").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://app:s3cret@db:5432/x?sslmode=require", "postgresql://app:***@db:5432/x?sslmode=require"),
        ("postgresql://app:p@ss/w:rd@db/x", "postgresql://app:***@db/x"),
        ("amqp://:s3cret@mq", "amqp://:***@mq"),
        ("https://ghp_s3cret@github.com/x", "https://***@github.com/x"),
        (
            "https://api.example.com/v3/quote/AAPL?apikey=s3cret&limit=5",
            "https://api.example.com/v3/quote/AAPL?apikey=***&limit=5",
        ),
        ("host=db password=s3cret user=app", "host=db password=*** user=app"),
        ("host=db password='s3 cret' user=app", "host=db password=*** user=app"),
        ('{"api_key": "s3\\"cret", "n": 1}', '{"api_key": ***, "n": 1}'),
        ("X-Api-Key: s3cret", "X-Api-Key: ***"),
        ("client_secret=s3cret;x=1", "client_secret=***;x=1"),
        ("ACCESS_TOKEN = s3cret", "ACCESS_TOKEN = ***"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: ***"),
        ("sent Bearer s3cret.x-y_z to it", "sent Bearer *** to it"),
        ("key lw_abcdefgh12345 refused", "key lw_*** refused"),
        ("got eyJhbGciOi.eyJzdWIiOi.s3cret here", "got *** here"),
        ("http://host:8080/path is down at 10:15", "http://host:8080/path is down at 10:15"),
        ("the tokens of 3 keys were passed", "the tokens of 3 keys were passed"),
    ],
)
def test_secrets_are_masked(db: Connection, text: str, expected: str) -> None:
    """And what is no secret stays readable."""
    assert db.execute("SELECT livewell.redact(%s)", (text,)).fetchall() == [(expected,)]


def test_a_secret_on_the_cut_does_not_survive(db: Connection) -> None:
    """An address that is cut before its @ lies beyond what is kept."""
    text = "x" * 7_980 + "postgresql://app:s3cret@db"

    answer = db.execute("SELECT livewell.redact(%s)", (text,)).fetchone()

    assert answer == ("x" * 4_000,)
