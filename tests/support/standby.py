"""A primary and a streaming standby of it, both real."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell.db.embedded.binaries import find_binaries

_START_SECONDS_MAX = 30.0


def can_make_standby() -> bool:
    """Whether the installed Postgres brings what a standby needs."""
    return Path(find_binaries().program("pg_basebackup")).exists()


@contextmanager
def standby_of(primary: str) -> Iterator[str]:
    """A standby of the server at this address (a superuser's); gives its address."""
    binaries = find_binaries()
    folder = Path(tempfile.mkdtemp(prefix="lw_standby_"))
    account = _account(folder)
    data = folder / "data"
    address = {
        name: str(value)
        for name, value in conninfo_to_dict(primary).items()
        if name in ("host", "port", "user", "password")
    }
    copy = [
        *(binaries.program("pg_basebackup"), "-D", str(data), "-R", "-X", "stream", "-c", "fast", "--no-sync", "-w"),
        *("-d", make_conninfo("", **address)),
    ]
    try:
        subprocess.run(copy, check=True, cwd=folder, capture_output=True, **account)
        settings = [
            *("listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "hot_standby=on", "port=5432"),
            f"max_connections={_max_connections(primary)}",  # a standby with fewer refuses to serve
        ]
        command = [binaries.program("postgres"), "-D", str(data), *(part for s in settings for part in ("-c", s))]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, **account)
        try:
            dsn = make_conninfo(primary, host=str(folder), port=5432)
            _wait_for(dsn)
            yield dsn
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
    finally:
        shutil.rmtree(folder)


def wait_until_replayed(primary: str, standby: str) -> None:
    """Return when the standby has what the primary has now."""
    with psycopg.connect(primary, autocommit=True) as source, psycopg.connect(standby, autocommit=True) as copy:
        row = source.execute("SELECT pg_current_wal_lsn()::text").fetchone()
        deadline = time.monotonic() + _START_SECONDS_MAX
        while copy.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", row).fetchone() != (True,):
            assert time.monotonic() < deadline, "the standby does not catch up"
            time.sleep(0.01)


def cut_off(standby: str) -> None:
    """Let the standby receive nothing more: what its primary does from now on is lost to it."""
    with psycopg.connect(standby, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
        connection.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + _START_SECONDS_MAX
        while connection.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() != (0,):
            assert time.monotonic() < deadline, "the standby goes on receiving"
            time.sleep(0.01)


def promote(standby: str) -> None:
    """Make it the primary."""
    with psycopg.connect(standby, autocommit=True) as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)


def _max_connections(primary: str) -> str:
    with psycopg.connect(primary) as connection:
        row = connection.execute("SHOW max_connections").fetchone()
    assert row is not None
    return str(row[0])


def _account(folder: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")  # Postgres refuses to run as root
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _wait_for(dsn: str) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while True:
        try:
            psycopg.connect(dsn).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
