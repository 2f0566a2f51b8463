"""The migrator: what it installs, what it notices, what it refuses."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import livewell
from livewell.db.migrate import Bundle, Problem, check, migrate, render, require_current
from livewell.errors import DatabaseUnavailable, MigrationError
from tests.support.servers import cluster, new_database, pg_bin

Make = Callable[..., Bundle]

THING = "CREATE TABLE livewell.thing (id bigint PRIMARY KEY, name text DEFAULT 'x');\nCOMMENT ON TABLE livewell.thing IS 'For a test.';\n"
DOUBLE = "CREATE OR REPLACE FUNCTION livewell.double(p_n integer) RETURNS integer LANGUAGE sql SET search_path = '' AS $$ SELECT p_n * 2 $$;\n"


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Give a bundle of db and a package `queue` with the given files.

    A second call adds to the first.
    """
    shutil.copytree(Path(livewell.__file__).parent / "db" / "sql", tmp_path / "db" / "sql")

    def make(files: dict[str, str | None] | None = None, *, version: str = "1.0.0") -> Bundle:
        for name, text in (files or {}).items():
            path = tmp_path / "queue" / "sql" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        return Bundle.load(tmp_path, version=version)

    return make


def run(dsn: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements, each in its own transaction; give the rows of the last."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def kinds(problems: list[Problem]) -> list[str]:
    return [problem.kind for problem in problems]


# ── installing ──


def test_an_empty_database_is_installed_once(fresh_dsn: str) -> None:
    """The real package: everything applies, nothing differs, and the second time no lock is taken and nothing runs."""
    first = migrate(fresh_dsn)
    second = migrate(fresh_dsn)

    assert first.changed
    assert first.applied[0] == "db/001_base.sql"
    assert check(fresh_dsn) == []
    assert (second.changed, second.applied, second.attempts) == (False, (), 0)
    require_current(fresh_dsn)


def test_a_package_runs_tables_then_functions_then_grants(fresh_dsn: str, make: Make) -> None:
    """And packages run in their fixed order."""
    grants = "GRANT SELECT ON livewell.thing TO livewell_readonly;"
    bundle = make({"grants.sql": grants, "functions/double.sql": DOUBLE, "002_b.sql": "SELECT 1;", "001_a.sql": THING})

    applied = migrate(fresh_dsn, bundle=bundle).applied

    assert applied[-4:] == ("queue/001_a.sql", "queue/002_b.sql", "queue/functions/double.sql", "queue/grants.sql")
    assert applied[0] == "db/001_base.sql"
    assert applied.index("db/002_state.sql") < applied.index("db/functions/now.sql")
    assert run(fresh_dsn, "SET ROLE livewell_readonly", "SELECT count(*) FROM livewell.thing") == [(0,)]


def test_functions_need_no_order(fresh_dsn: str, make: Make) -> None:
    """A function may use one whose file comes later."""
    quadruple = DOUBLE.replace("livewell.double", "livewell.a_quadruple").replace("p_n * 2", "livewell.double(p_n) * 2")
    bundle = make({"001_a.sql": THING, "functions/a_quadruple.sql": quadruple, "functions/double.sql": DOUBLE})

    migrate(fresh_dsn, bundle=bundle)

    assert run(fresh_dsn, "SELECT livewell.a_quadruple(2)") == [(8,)]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"001_a.sql": THING + "SELECT 1;\nSELECT 1/0;"}, "queue/001_a.sql: division by zero"),
        ({"001_a.sql": THING + "\nCREATE TABEL x ();"}, 'queue/001_a.sql line 4: syntax error at or near "TABEL"'),
        (
            {"001_a.sql": THING, "functions/double.sql": DOUBLE.replace("p_n * 2", "livewell.nothing(p_n)")},
            "function livewell.nothing(integer) does not exist",
        ),
        ({"001_a.sql": "CREATE TABLE thing ();"}, "no schema has been selected to create in"),
    ],
)
def test_a_file_that_fails_changes_nothing(fresh_dsn: str, make: Make, files: dict[str, str | None], said: str) -> None:
    """One transaction: not even the schema is left, and the error names the file and, for syntax, the line."""
    with pytest.raises(MigrationError) as error:
        migrate(fresh_dsn, bundle=make(files))

    assert said in str(error.value)
    assert kinds(check(fresh_dsn)) == ["missing"]
    assert run(fresh_dsn, "SELECT count(*) FROM pg_namespace WHERE nspname = 'livewell'") == [(0,)]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"001_a.sql": THING + "GRANT SELECT ON livewell.thing TO PUBLIC;"}, "queue/001_a.sql has GRANT or OWNER TO"),
        (
            {"001_a.sql": THING + "ALTER TABLE livewell.thing OWNER TO postgres;"},
            "queue/001_a.sql has GRANT or OWNER TO",
        ),
        ({"001_a.sql": "COMMIT;"}, "queue/001_a.sql ends or begins a transaction"),
        ({"1_a.sql": THING}, "1_a.sql should be named like 001_tables.sql"),
        ({"001_a.sql": THING, "003_c.sql": THING}, "queue/003_c.sql should have the number 002"),
        (
            {"functions/triple.sql": DOUBLE},
            "queue/functions/triple.sql should contain CREATE OR REPLACE FUNCTION livewell.triple(",
        ),
    ],
)
def test_a_bundle_that_breaks_the_rules_is_refused(make: Make, files: dict[str, str | None], said: str) -> None:
    """Before anything touches a database."""
    with pytest.raises(MigrationError) as error:
        make(files)

    assert said in str(error.value)


def test_a_server_that_does_not_answer_is_said_so(tmp_path: Path) -> None:
    """Not a traceback of the driver."""
    with pytest.raises(DatabaseUnavailable):
        migrate(make_conninfo(host=str(tmp_path)))


# ── upgrading ──


def test_an_upgrade_runs_what_is_new(fresh_dsn: str, make: Make) -> None:
    """A new numbered file, and the functions and grants of its package.

    Other packages are left alone, rows stay.
    """
    migrate(fresh_dsn, bundle=make({"001_a.sql": THING, "functions/double.sql": DOUBLE, "grants.sql": "SELECT 1;"}))
    run(fresh_dsn, "INSERT INTO livewell.thing VALUES (1, 'kept')")
    newer = make({"002_b.sql": "ALTER TABLE livewell.thing ADD COLUMN size bigint;"}, version="1.1.0")

    found = check(fresh_dsn, bundle=newer)
    report = migrate(fresh_dsn, bundle=newer)

    assert kinds(found) == ["older"]
    assert "queue/002_b.sql" in found[0].message
    assert (report.version_before, report.version) == ("1.0.0", "1.1.0")
    assert report.applied == ("queue/002_b.sql", "queue/functions/double.sql", "queue/grants.sql")
    assert check(fresh_dsn, bundle=newer) == []
    assert run(fresh_dsn, "SELECT id, name, size FROM livewell.thing") == [(1, "kept", None)]


def test_a_changed_function_alone_is_applied_again(fresh_dsn: str, make: Make) -> None:
    """Its neighbours are not."""
    triple = DOUBLE.replace("double", "triple").replace("* 2", "* 3")
    migrate(
        fresh_dsn, bundle=make({"001_a.sql": THING, "functions/double.sql": DOUBLE, "functions/triple.sql": triple})
    )
    newer = make({"functions/double.sql": DOUBLE.replace("* 2", "+ p_n")})

    assert migrate(fresh_dsn, bundle=newer).applied == ("queue/functions/double.sql",)
    assert check(fresh_dsn, bundle=newer) == []


def test_a_new_release_without_new_sql_only_moves_the_version(fresh_dsn: str, make: Make) -> None:
    """And a worker of it does not wait for that."""
    migrate(fresh_dsn, bundle=make())
    newer = make(version="1.0.1")

    require_current(fresh_dsn, bundle=newer)
    report = migrate(fresh_dsn, bundle=newer)

    assert (report.changed, report.applied) == (True, ())
    assert run(fresh_dsn, "SELECT version FROM livewell.release") == [("1.0.1",)]


def test_a_function_that_a_migration_drops_leaves_the_books(fresh_dsn: str, make: Make) -> None:
    """Else it would be reported as dropped by hand."""
    migrate(fresh_dsn, bundle=make({"001_a.sql": THING, "functions/double.sql": DOUBLE}))
    newer = make({"002_b.sql": "DROP FUNCTION livewell.double;", "functions/double.sql": None}, version="1.1.0")

    migrate(fresh_dsn, bundle=newer)

    assert check(fresh_dsn, bundle=newer) == []


def test_a_function_whose_file_is_gone_stays_for_old_workers(fresh_dsn: str, make: Make) -> None:
    """A breaking change is a new name; the old function works until a migration drops it."""
    migrate(fresh_dsn, bundle=make({"001_a.sql": THING, "functions/double.sql": DOUBLE}))
    newer = make(
        {"functions/double.sql": None, "functions/twice.sql": DOUBLE.replace("double", "twice")}, version="1.1.0"
    )

    migrate(fresh_dsn, bundle=newer)

    assert check(fresh_dsn, bundle=newer) == []
    assert run(fresh_dsn, "SELECT livewell.double(2) + livewell.twice(2)") == [(8,)]


def test_an_edited_file_is_refused(fresh_dsn: str, make: Make) -> None:
    """A numbered file is history."""
    migrate(fresh_dsn, bundle=make({"001_a.sql": THING}))
    edited = make({"001_a.sql": THING + "-- only a comment\n"}, version="1.1.0")

    with pytest.raises(MigrationError, match=r"queue/001_a\.sql was edited after it ran here"):
        migrate(fresh_dsn, bundle=edited)
    assert kinds(check(fresh_dsn, bundle=edited)) == ["drift"]


def test_an_older_package_never_changes_a_newer_schema(fresh_dsn: str, make: Make) -> None:
    """Even if its files differ."""
    older = make({"001_a.sql": THING, "functions/double.sql": DOUBLE}, version="1.9.0")
    migrate(fresh_dsn, bundle=make({"functions/double.sql": DOUBLE.replace("* 2", "+ p_n")}, version="1.10.0"))

    with pytest.raises(MigrationError, match=r"release 1\.10\.0, this package is 1\.9\.0"):
        migrate(fresh_dsn, bundle=older)
    assert kinds(check(fresh_dsn, bundle=older)) == ["newer"]


def test_another_build_of_the_same_version_is_noticed(fresh_dsn: str, make: Make) -> None:
    """Two branches, one number: who lacks a file that ran must not go on."""
    ours = make({"001_a.sql": THING})
    migrate(fresh_dsn, bundle=make({"002_b.sql": "SELECT 1;"}))

    with pytest.raises(MigrationError, match=r"queue/002_b\.sql ran here"):
        migrate(fresh_dsn, bundle=ours)
    assert kinds(check(fresh_dsn, bundle=ours)) == ["newer"]


# ── starting a worker ──


def test_a_worker_refuses_a_database_without_schema(fresh_dsn: str) -> None:
    """And says what to run."""
    with pytest.raises(MigrationError, match="livewell migrate"):
        require_current(fresh_dsn)


def test_a_worker_refuses_an_older_schema(fresh_dsn: str, make: Make) -> None:
    """Its functions may not be there yet."""
    migrate(fresh_dsn, bundle=make({"001_a.sql": THING}))

    with pytest.raises(MigrationError, match=r"queue/functions/double\.sql.*livewell migrate"):
        require_current(fresh_dsn, bundle=make({"functions/double.sql": DOUBLE}, version="1.1.0"))


@pytest.mark.parametrize(
    ("schema", "fine"), [("1.4.9", True), ("1.5.0", True), ("1.6.0", False), ("2.0.0", False), ("2.4.0", False)]
)
def test_an_old_worker_goes_on_for_one_minor_version(fresh_dsn: str, make: Make, schema: str, fine: bool) -> None:
    """GU12: worker 1.4.2 on newer schemas."""
    worker = make({"001_a.sql": THING}, version="1.4.2")
    migrate(fresh_dsn, bundle=make({"002_b.sql": "SELECT 1;", "functions/double.sql": DOUBLE}, version=schema))

    if fine:
        require_current(fresh_dsn, bundle=worker)
    else:
        with pytest.raises(MigrationError, match=f"release {schema}"):
            require_current(fresh_dsn, bundle=worker)


def test_a_worker_starts_in_spite_of_an_index_made_by_hand(fresh_dsn: str) -> None:
    """Someone's help at night must not stop the morning."""
    migrate(fresh_dsn)
    run(fresh_dsn, "CREATE INDEX by_hand ON livewell.warning (last_at)")

    require_current(fresh_dsn)


@pytest.mark.parametrize("role", ["livewell_operate", "livewell_hub", "livewell_worker", "livewell_readonly"])
def test_the_check_needs_no_more_than_a_workers_rights(fresh_dsn: str, role: str) -> None:
    """The same answer for a process as for the owner.

    And the search path of a session does not matter.
    """
    migrate(fresh_dsn)
    as_role = make_conninfo(
        fresh_dsn, options=f"-c role={role} -c search_path=livewell,public -c timezone=Asia/Kathmandu"
    )

    require_current(as_role)
    assert check(as_role) == []


def test_a_stranger_is_told_which_right_is_missing(fresh_dsn: str) -> None:
    """livewell_api has no table rights; a server asks with another pool."""
    migrate(fresh_dsn)

    with pytest.raises(MigrationError, match="GRANT livewell_worker TO"):
        require_current(make_conninfo(fresh_dsn, options="-c role=livewell_api"))


# ── changes by hand ──


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("CREATE INDEX by_hand ON livewell.thing (name)", "Index livewell.thing.by_hand"),
        ("ALTER TABLE livewell.thing DROP COLUMN name", "Column livewell.thing.name"),
        ("ALTER TABLE livewell.thing ALTER COLUMN name SET DEFAULT 'y'", "Column livewell.thing.name"),
        ("ALTER TABLE livewell.thing ALTER COLUMN name SET NOT NULL", "Column livewell.thing.name"),
        ("ALTER TABLE livewell.thing ADD CONSTRAINT by_hand CHECK (id > 0)", "Constraint livewell.thing.by_hand"),
        ("ALTER TABLE livewell.thing SET (fillfactor = 70)", "Table livewell.thing"),
        ("ALTER TABLE livewell.thing ENABLE ROW LEVEL SECURITY", "Table livewell.thing"),
        ("DROP TABLE livewell.thing", "Table livewell.thing"),
        ("CREATE TABLE livewell.by_hand ()", "Table livewell.by_hand"),
        ("CREATE POLICY by_hand ON livewell.thing USING (true)", "Policy livewell.thing.by_hand"),
        ("ALTER FUNCTION livewell.double SECURITY DEFINER", "Function livewell.double was changed by hand"),
        ("ALTER FUNCTION livewell.double RESET search_path", "Function livewell.double was changed by hand"),
        ("DROP FUNCTION livewell.double", "Function livewell.double was dropped by hand"),
        (
            "CREATE FUNCTION livewell.by_hand() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "Function livewell.by_hand is not ours",
        ),
    ],
)
def test_a_change_by_hand_is_named(fresh_dsn: str, make: Make, change: str, named: str) -> None:
    """With the object, and what to do."""
    bundle = make({"001_a.sql": THING, "functions/double.sql": DOUBLE})
    migrate(fresh_dsn, bundle=bundle)
    run(fresh_dsn, change)

    found = check(fresh_dsn, bundle=bundle)

    assert set(kinds(found)) == {"drift"}
    assert any(problem.message.startswith(named) for problem in found), found
    assert all(problem.command for problem in found)


def test_partitions_come_and_go_without_being_drift(fresh_dsn: str, make: Make) -> None:
    """Workers make and drop them every day."""
    bundle = make(
        {
            "001_a.sql": "CREATE TABLE livewell.log (at date) PARTITION BY RANGE (at); CREATE INDEX log_at ON "
            "livewell.log (at);"
        }
    )
    migrate(fresh_dsn, bundle=bundle)
    run(
        fresh_dsn,
        "CREATE TABLE livewell.log_1 PARTITION OF livewell.log FOR VALUES FROM ('2030-01-01') TO ('2030-01-02')",
    )

    assert check(fresh_dsn, bundle=bundle) == []


def test_migrate_mends_functions(fresh_dsn: str, make: Make) -> None:
    """Changed or dropped, with their grants."""
    grants = "GRANT EXECUTE ON FUNCTION livewell.double(integer) TO livewell_worker;"
    bundle = make({"001_a.sql": THING, "functions/double.sql": DOUBLE, "grants.sql": grants})
    migrate(fresh_dsn, bundle=bundle)
    run(fresh_dsn, "DROP FUNCTION livewell.double")

    report = migrate(fresh_dsn, bundle=bundle)

    assert report.applied == ("queue/functions/double.sql", "queue/grants.sql")
    assert check(fresh_dsn, bundle=bundle) == []
    assert run(fresh_dsn, "SET ROLE livewell_worker", "SELECT livewell.double(2)") == [(4,)]


def test_an_upgrade_does_not_forget_a_change_by_hand(fresh_dsn: str, make: Make) -> None:
    """Unless it changes the same object, which then is as the release wants it."""
    migrate(fresh_dsn, bundle=make({"001_a.sql": THING}))
    run(
        fresh_dsn,
        "CREATE INDEX by_hand ON livewell.thing (name)",
        "ALTER TABLE livewell.thing ALTER COLUMN name SET DEFAULT 'y'",
        "ALTER TABLE livewell.warning DROP COLUMN sample",
    )
    newer = make(
        {"002_b.sql": "ALTER TABLE livewell.thing ALTER COLUMN name SET DEFAULT 'z', ADD COLUMN size bigint;"},
        version="1.1.0",
    )

    migrate(fresh_dsn, bundle=newer)

    messages = [problem.message.split(" was ")[0] for problem in check(fresh_dsn, bundle=newer)]
    assert messages == ["Column livewell.warning.sample", "Index livewell.thing.by_hand"]


# ── roles ──


def owners(dsn: str) -> set[str]:
    """Everyone who owns anything in the schema."""
    query = """
        SELECT relowner::regrole::text FROM pg_class WHERE relnamespace = 'livewell'::regnamespace
        UNION SELECT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'livewell'::regnamespace
        UNION SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'livewell'
    """
    return {row[0] for row in run(dsn, query)}


@pytest.fixture
def bare() -> Iterator[str]:
    """A server that has never seen our roles."""
    with cluster() as dsn:
        yield dsn


def login(dsn: str, name: str) -> str:
    run(dsn, f"ALTER ROLE {name} PASSWORD 'test'")
    return make_conninfo(dsn, user=name, password="test")  # noqa: S106 - a role of this test alone


def test_a_user_with_createrole_can_install_and_upgrade(bare: str, make: Make) -> None:
    """No superuser anywhere: CREATEROLE and CREATE on the database are enough, on every version."""
    with new_database(bare) as dsn:
        name = conninfo_to_dict(dsn)["dbname"]
        run(dsn, "CREATE ROLE deploy LOGIN CREATEROLE", f"GRANT CREATE ON DATABASE {name} TO deploy")
        deploy = login(dsn, "deploy")

        migrate(deploy, bundle=make({"001_a.sql": THING}))
        newer = make({"002_b.sql": "ALTER TABLE livewell.thing ADD COLUMN size bigint;"}, version="1.1.0")
        migrate(deploy, bundle=newer)

        assert check(deploy, bundle=newer) == []
        assert owners(dsn) == {"livewell_owner"}


def test_a_user_without_rights_is_told_what_to_ask_for(bare: str) -> None:
    """And nothing is left behind."""
    with new_database(bare) as dsn:
        run(dsn, "CREATE ROLE nobody_special LOGIN")

        with pytest.raises(MigrationError, match="GRANT livewell_owner TO"):
            migrate(login(dsn, "nobody_special"))
        assert run(dsn, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'livewell\\_%'") == [(0,)]


def test_a_member_of_the_owner_can_upgrade_without_createrole(fresh_dsn: str, make: Make) -> None:
    """The DBA made the roles and the schema; deployments need no more than membership."""
    migrate(fresh_dsn, bundle=make({"001_a.sql": THING}))
    name = "lw_test_member"
    run(fresh_dsn, f"DROP ROLE IF EXISTS {name}", f"CREATE ROLE {name} LOGIN IN ROLE livewell_owner")
    try:
        newer = make({"002_b.sql": "ALTER TABLE livewell.thing ADD COLUMN size bigint;"}, version="1.1.0")
        migrate(make_conninfo(fresh_dsn, options=f"-c role={name}"), bundle=newer)

        assert check(fresh_dsn, bundle=newer) == []
        assert owners(fresh_dsn) == {"livewell_owner"}
    finally:
        run(fresh_dsn, f"DROP ROLE {name}")


def test_a_dbas_own_timeouts_stay(bare: str) -> None:
    """We set what is not set."""
    with new_database(bare) as dsn:
        run(dsn, "CREATE ROLE livewell_worker LOGIN", "ALTER ROLE livewell_worker SET statement_timeout = '7s'")

        migrate(dsn)

        setting = "SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'livewell_worker'::regrole"
        [(configured,)] = run(dsn, setting)
        assert set(configured) == {"statement_timeout=7s", "idle_in_transaction_session_timeout=1min", "jit=off"}
        assert run(login(dsn, "livewell_worker"), "SHOW statement_timeout") == [("7s",)]


def test_an_owner_that_is_a_superuser_is_refused(bare: str) -> None:
    """A definer function of a superuser bypasses row security."""
    with new_database(bare) as dsn:
        run(dsn, "CREATE ROLE livewell_owner SUPERUSER")

        with pytest.raises(MigrationError, match="livewell_owner is a superuser"):
            migrate(dsn)


def test_without_roles_all_belongs_to_the_current_user(bare: str, make: Make) -> None:
    """No role is made, no grant runs, and the check is content."""
    bundle = make({"001_a.sql": THING, "grants.sql": "GRANT SELECT ON livewell.thing TO livewell_readonly;"})
    with new_database(bare) as dsn:
        name = conninfo_to_dict(dsn)["dbname"]
        run(dsn, "CREATE ROLE plain LOGIN", f"GRANT CREATE ON DATABASE {name} TO plain")
        plain = login(dsn, "plain")

        report = migrate(plain, roles="none", bundle=bundle)

        assert not [label for label in report.applied if "grants" in label]
        assert check(plain, bundle=bundle) == []
        assert migrate(plain, roles="none", bundle=bundle).applied == ()
        assert owners(dsn) == {"plain"}
        assert run(dsn, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'livewell\\_%'") == [(0,)]


def test_one_database_is_not_migrated_in_both_ways(fresh_dsn: str) -> None:
    """Else half of it would belong to someone else."""
    migrate(fresh_dsn, roles="none")
    with pytest.raises(MigrationError, match="--roles none"):
        migrate(fresh_dsn)


def test_a_database_with_roles_is_not_migrated_without(fresh_dsn: str) -> None:
    """The other direction."""
    migrate(fresh_dsn)
    with pytest.raises(MigrationError, match="Migrate without --roles none"):
        migrate(fresh_dsn, roles="none")


def test_a_lost_role_is_noticed_and_made_again_with_its_grants(bare: str) -> None:
    """As after a restore into a new cluster."""
    with new_database(bare) as dsn:
        migrate(dsn)
        run(dsn, "DROP OWNED BY livewell_readonly", "DROP ROLE livewell_readonly")
        found = check(dsn)

        migrate(dsn)

        assert "missing" in kinds(found)
        assert check(dsn) == []
        assert run(dsn, "SET ROLE livewell_readonly", "SELECT count(*) FROM livewell.warning") == [(0,)]


# ── the script for a DBA ──


def psql(dsn: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(pg_bin() / "psql"), "-X", "-q", *options, "-d", dsn]
    return subprocess.run(command, input=script, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("roles", ["create", "none"])
def test_the_printed_script_gives_what_migrate_gives(bare: str, roles: Any) -> None:
    """psql -1 as a superuser, then a check that finds nothing, then a migrate that does nothing."""
    with new_database(bare) as dsn:
        done = psql(dsn, render(roles), "-1", "-v", "ON_ERROR_STOP=1")

        assert (done.returncode, done.stderr) == (0, "")
        assert check(dsn) == []
        assert migrate(dsn, roles=roles).applied == ()
        assert owners(dsn) == {"livewell_owner" if roles == "create" else "livewell"}


def test_the_printed_script_outside_a_transaction_leaves_no_schema(fresh_dsn: str) -> None:
    """A DBA who forgets -1 is told, and nothing is half done."""
    done = psql(fresh_dsn, render())

    assert "this script must run as one transaction" in done.stderr
    assert run(fresh_dsn, "SELECT count(*) FROM pg_namespace WHERE nspname = 'livewell'") == [(0,)]


# ── waiting ──


def test_a_migration_that_cannot_have_its_turn_gives_up_in_time(fresh_dsn: str) -> None:
    """It names who is in the way."""
    with psycopg.connect(fresh_dsn, application_name="the other one") as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (int.from_bytes(b"livewell"),))

        with pytest.raises(MigrationError, match=r"another migration of this database is running.*the other one"):
            migrate(fresh_dsn, wait_seconds=0.6)
