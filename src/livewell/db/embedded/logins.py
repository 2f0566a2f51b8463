"""Logins of the server's roles on the embedded cluster.

Each has a random password, kept in the data folder (0600).

    no file, or a role that cannot log in ──▶ new passwords, in the cluster, then in the file ──▶ addresses
    otherwise ────────────────────────────────────────────────────────────────────────────────▶ addresses

The schema must be there: the roles come with it. From here on not only the superuser can log in, so
PUBLIC loses the rights that no login needs.
"""

import json
import secrets
import time
from collections.abc import Sequence

import psycopg
from psycopg import sql

from livewell.db.embedded.cluster import NAME
from livewell.db.embedded.handle import EmbeddedServer
from livewell.db.embedded.placement import make_folder
from livewell.db.embedded.public_rights import restrict
from livewell.errors import EmbeddedPostgresError

_FILE = "logins.json"
_WAIT_SECONDS = 30.0


def logins(server: EmbeddedServer, roles: Sequence[str]) -> dict[str, str]:
    """The address of each role; made when there is none yet."""
    folder, account = make_folder(server.data_dir)
    with folder.locked(time.monotonic() + _WAIT_SECONDS):
        passwords = _read(folder.read(_FILE))
        with psycopg.connect(server.dsn, autocommit=True, connect_timeout=5) as connection:
            restrict(connection)
            able = {
                name
                for (name,) in connection.execute(
                    "SELECT rolname::text FROM pg_catalog.pg_roles WHERE rolcanlogin AND rolname = ANY (%s)",
                    (list(roles),),
                )
            }
            missing = [role for role in roles if role not in able or role not in passwords]
            for role in missing:
                passwords[role] = secrets.token_urlsafe(32)
                _allow(connection, role, passwords[role])
        if missing:
            folder.write(_FILE, json.dumps(passwords), account)
    return {role: f"postgresql://{role}:{passwords[role]}@127.0.0.1:{server.port}/{NAME}" for role in roles}


def _allow(connection: psycopg.Connection, role: str, password: str) -> None:
    statement = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(password))
    try:
        connection.execute(statement)
    except psycopg.errors.UndefinedObject:
        raise EmbeddedPostgresError(
            f"embedded Postgres: role {role} does not exist, so nobody can log in as it. Run: livewell migrate"
        ) from None


def _read(text: str | None) -> dict[str, str]:
    """What was written last time; a file that cannot be read is made anew."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return {str(role): str(password) for role, password in found.items()} if isinstance(found, dict) else {}
