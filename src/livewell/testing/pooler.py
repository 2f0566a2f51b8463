"""PgBouncer in transaction mode before a database.

It serves to prove that we hold nothing in a session (T7, F-B13).

The clients' user names are ignored and every server connection logs in as the DSN's user (auth_type
= any), so nothing is asked of the server but its DSN, and one pooler serves every database of that
server.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from livewell.errors import LivewellError
from livewell.testing.processes import ChildFailed, ChildProcess, free_port

__all__ = ["PgBouncer", "PoolerUnavailable", "ensure_pgbouncer", "find_pgbouncer"]

START_ATTEMPTS_MAX = 3  # free_port is a race with the rest of the machine
START_SECONDS_MAX = 10.0
KEY_VALUE = re.compile(r"\s*(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))")


class PoolerUnavailable(LivewellError):
    """PgBouncer is not on this machine, or did not start; the message says what mends it."""


def find_pgbouncer() -> Path | None:
    """Look for the binary on PATH and where Debian puts it."""
    found = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    return Path(found) if found else None


def ensure_pgbouncer() -> Path:
    """Give the binary, or raise PoolerUnavailable with the command that installs it; nothing is
    installed from here.
    """
    found = find_pgbouncer()
    if found is None:
        msg = (
            "pgbouncer was not found on PATH nor at /usr/sbin/pgbouncer. Install it with: apt-get install -y pgbouncer"
        )
        raise PoolerUnavailable(msg)
    return found


@dataclass(frozen=True, slots=True)
class _Server:
    """Where a DSN points, as far as a pooler needs to know."""

    host: str
    port: int
    user: str
    password: str | None
    database: str


class PgBouncer:
    """A pooler before the server of a DSN (URL or key=value).

    `with PgBouncer(dsn) as pooler: connect(pooler.dsn)`.

    pool_size is the number of server connections per database: with 1, every client shares the same
    one. settings are added to the [pgbouncer] section. When we are root it runs as account
    (PgBouncer refuses root), by default postgres where there is one, else nobody.
    """

    def __init__(
        self,
        dsn: str,
        *,
        pool_size: int = 5,
        pool_mode: Literal["transaction", "session", "statement"] = "transaction",
        clients_max: int = 200,
        settings: Mapping[str, str] | None = None,
        binary: Path | None = None,
        account: str | None = None,
    ) -> None:
        self._server = _parse(dsn)
        self._binary = binary or ensure_pgbouncer()
        self._account = (account or _account()) if os.geteuid() == 0 else None
        self._settings = {
            "auth_type": "any",
            "pool_mode": pool_mode,
            "default_pool_size": str(pool_size),
            "max_client_conn": str(clients_max),
            "server_tls_sslmode": "prefer",
            "ignore_startup_parameters": "extra_float_digits",
            **(settings or {}),
        }
        self._child: ChildProcess | None = None
        self.port = 0

    @property
    def dsn(self) -> str:
        """The pooled address of the database."""
        return self.dsn_for(self._server.database)

    @property
    def admin_dsn(self) -> str:
        """The console: SHOW POOLS, PAUSE, RECONNECT, … (autocommit and the simple protocol only)."""
        return self.dsn_for("pgbouncer")

    def dsn_for(self, database: str) -> str:
        """The pooled address of another database of the same server."""
        return f"postgresql://{quote(self._server.user, safe='')}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    @property
    def process(self) -> ChildProcess:
        """The pooler's process, to kill or freeze."""
        if self._child is None:
            msg = "the pooler is not running: use it inside `with PgBouncer(dsn) as pooler:`"
            raise PoolerUnavailable(msg)
        return self._child

    def __enter__(self) -> Self:
        for attempts_left in reversed(range(START_ATTEMPTS_MAX)):
            try:
                self._child = self._start(free_port())
            except ChildFailed as error:
                if not attempts_left:
                    msg = f"pgbouncer did not start; its words should say why. {error}"
                    raise PoolerUnavailable(msg) from error
            else:
                break
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            error.add_note(self.process.describe())
        self.process.close()

    def _start(self, port: int) -> ChildProcess:
        """Start it, and be back when it listens."""
        with tempfile.TemporaryDirectory(prefix="livewell-pgbouncer-") as folder:
            path = Path(folder) / "pgbouncer.ini"
            path.touch(mode=0o600)  # it holds the password
            path.write_text(self._config(port), encoding="utf-8")
            if self._account is not None:
                for owned in (Path(folder), path):
                    shutil.chown(owned, self._account)
            child = ChildProcess([path], program=self._binary, user=self._account).start()
            try:
                child.wait_for(f"listening on 127.0.0.1:{port}", START_SECONDS_MAX)
                child.wait_for("process up", START_SECONDS_MAX)
            except BaseException:
                child.close()
                raise
        self.port = port
        return child

    def _config(self, port: int) -> str:
        server = self._server
        fields = {"host": server.host, "port": str(server.port), "user": server.user, "password": server.password}
        target = " ".join(f"{key}={_quoted(value)}" for key, value in fields.items() if value is not None)
        # stderr is the log (ChildProcess keeps it); no unix socket, so that two poolers never meet
        # in /tmp.
        own = {"listen_addr": "127.0.0.1", "listen_port": str(port), "unix_socket_dir": "", **self._settings}
        settings = "\n".join(f"{key} = {value}" for key, value in own.items())
        return f"[databases]\n* = {target}\n\n[pgbouncer]\n{settings}\n"


def _account() -> str:
    import pwd  # noqa: PLC0415 – absent on Windows

    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _parse(dsn: str) -> _Server:
    """Read a URL or key=value DSN.

    Only livewell.db may import the library that would do it for us.
    """
    if dsn.startswith(("postgresql://", "postgres://")):
        url = urlsplit(dsn)
        fields = {
            "host": unquote(url.hostname or ""),
            "port": str(url.port or ""),
            "user": unquote(url.username or ""),
            "password": unquote(url.password or ""),
            "dbname": unquote(url.path.removeprefix("/")),
            **dict(parse_qsl(url.query)),
        }
    else:
        fields = {key: re.sub(r"\\(.)", r"\1", quoted or plain) for key, quoted, plain in KEY_VALUE.findall(dsn)}
    user = fields.get("user") or "postgres"
    return _Server(
        host=fields.get("host") or "127.0.0.1",
        port=int(fields.get("port") or 5432),
        user=user,
        password=fields.get("password") or None,
        database=fields.get("dbname") or user,
    )
