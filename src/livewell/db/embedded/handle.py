"""What a caller holds: the addresses of a running server, and the proof that they work.

    described (from files) ──login──▶ proven          refused password ──▶ error at once; anything else ──▶ try again

A process that exists is no proof: a stopped or broken server has one too.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg

from livewell.db.embedded.cluster import NAME
from livewell.db.embedded.folder import Folder
from livewell.errors import EmbeddedPostgresError


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A running server. The addresses hold the password, so they are not shown."""

    data_dir: Path
    dsn: str = field(repr=False)
    socket_dsn: str | None = field(repr=False)  # None where the path cannot be a socket's
    port: int
    pid: int
    version: str
    attached: bool  # it was running before we came


def describe(folder: Folder, pid: int, port: int, *, attached: bool) -> EmbeddedServer:
    """The server of this folder, as its files tell."""
    password = folder.read("password")
    if password is None:
        raise EmbeddedPostgresError(
            f"embedded Postgres: {folder.password} is missing, so nobody can log in. Put it back from a copy."
        )
    dsn = f"postgresql://{NAME}:{password}@127.0.0.1:{port}/{NAME}"
    local = f"postgresql://{NAME}:{password}@/{NAME}?host={quote(str(folder.run), safe='')}&port={port}"
    return EmbeddedServer(
        data_dir=folder.root,
        dsn=dsn,
        socket_dsn=local if folder.has_socket() else None,
        port=port,
        pid=pid,
        version=folder.read("version") or "",
        attached=attached,
    )


def refusal(server: EmbeddedServer, deadline: float) -> str | None:
    """Log in once: None when that worked, else the reason, which may pass."""
    seconds = max(2, int(deadline - time.monotonic()))  # libpq knows no shorter one
    try:
        psycopg.connect(server.dsn, connect_timeout=seconds, application_name="livewell start").close()
    except psycopg.OperationalError as error:
        reason = str(error).strip()
        if "password authentication failed" in reason:
            raise EmbeddedPostgresError(
                f"embedded Postgres: the server on port {server.port} refuses the password in "
                f"{server.data_dir}/password. Put the file back from a copy."
            ) from error
        return None if "too many clients" in reason else reason  # full, so it is alive, and ours
    return None
