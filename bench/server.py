"""The server of one run, its databases, and what they have written.

fsync and synchronous_commit are on, as they come. Checkpoints happen when we say so, before each
measurement: one in the middle would fall on whoever runs just then.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from livewell.db import embedded, scratch

_PARAMETERS = {
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
    "min_wal_size": "1GB",  # used WAL files are kept to be used again
    "shared_preload_libraries": "pg_stat_statements",  # counts the SQL calls, of all systems alike
    "idle_in_transaction_session_timeout": "0",  # the old snapshot is held by us
}
# A deferred foreign key is checked at commit by a statement per row that counts as a call, and that
# nobody called.
_FOREIGN_KEY_CHECK = "SELECT % FROM ONLY % FOR KEY SHARE OF x"


@dataclass(frozen=True, slots=True)
class Reading:
    """What had been written and called at one moment."""

    wal_bytes: int
    calls: int


@dataclass(frozen=True, slots=True)
class Database:
    """One database, and a way to read its meters from outside."""

    dsn: str
    name: str
    admin: str

    def checkpoint(self) -> None:
        """Start clean."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute("CHECKPOINT")

    def read(self) -> Reading:
        """WAL of the whole server, for nothing else runs; statements of this database."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            row = connection.execute(
                "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, (SELECT coalesce(sum(s.calls), "
                "0)::bigint FROM pg_stat_statements s"
                " JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = %s AND s.query NOT LIKE %s)",
                (self.name, _FOREIGN_KEY_CHECK),
            ).fetchone()
        assert row is not None
        return Reading(row[0], row[1])


@dataclass(frozen=True, slots=True)
class Server:
    """Where everything is measured. Templates are made once in a run, by name."""

    dsn: str
    log: Path  # what the server says
    _templates: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def database(self, template: str) -> Iterator[Database]:
        """A fresh copy, with nothing left to write to disk; dropped afterwards."""
        name = f"bench_{secrets.token_hex(4)}"
        address = self._copy(template, name)
        try:
            database = Database(address, name, self.dsn)
            database.checkpoint()
            yield database
        finally:
            scratch.drop(self.dsn, name)

    def template(self, title: str, make: Callable[[str], None]) -> str:
        """The name of a database to copy.

        Made by this function, given its address, when it is asked for first.
        """
        if title not in self._templates:
            name = f"template_{secrets.token_hex(4)}"
            address = scratch.create(self.dsn, name)
            make(address)
            with psycopg.connect(address, autocommit=True) as connection:
                # Else the first readers of each copy mark its catalogs, a full page of WAL each.
                connection.execute("VACUUM")
            self._templates[title] = name
        return self._templates[title]

    def version(self) -> str:
        """Which Postgres."""
        with psycopg.connect(self.dsn) as connection:
            return str(connection.info.parameter_status("server_version"))

    def _copy(self, template: str, name: str) -> str:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{name}"))


def _make_wal_files(connection: psycopg.Connection) -> None:
    """Used ones are used again.

    Without any, whoever needs one has to make it, in the time that is measured.
    """
    connection.execute("CREATE TABLE filling AS SELECT repeat('x', 1000) FROM generate_series(1, 300000)")
    connection.execute("DROP TABLE filling")
    connection.execute("CHECKPOINT")


@contextmanager
def start() -> Iterator[Server]:
    """An embedded server in a folder of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="livewell-bench-") as folder:
        Path(folder).chmod(0o755)
        server = embedded.start(Path(folder) / "server", parameters=_PARAMETERS)
        try:
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION pg_stat_statements")
                _make_wal_files(connection)
            yield Server(server.dsn, Path(folder) / "server" / "server.log")
        finally:
            embedded.stop(Path(folder) / "server", mode="immediate")
