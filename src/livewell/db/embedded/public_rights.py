"""What every login of the embedded cluster may do: less than PUBLIC may by default (L11).

Temporary tables and large objects are ways to fill the disk, and no role of ours needs them. The
cluster and its database are ours alone, so PUBLIC loses these rights here. On a server of somebody
else nothing is touched; docs/reference/roles.md has the statements.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from livewell.db.embedded.cluster import NAME

# By name: which there are differs between versions of Postgres. Large objects are opened, read and
# written by these alone.
_LARGE_OBJECTS = """
SELECT p.oid::regprocedure::text FROM pg_catalog.pg_proc p
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND (p.proname LIKE 'lo\\_%' OR p.proname IN ('loread', 'lowrite')) AND has_function_privilege('public', p.oid, 'EXECUTE')
ORDER BY 1
"""


def restrict(connection: psycopg.Connection) -> None:
    """Take from PUBLIC what is left of it; costs one query when nothing is."""
    found = connection.execute("SELECT has_database_privilege('public', current_database(), 'TEMP')").fetchone()
    if found == (True,):
        connection.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(sql.Identifier(NAME)))
    for (signature,) in connection.execute(_LARGE_OBJECTS).fetchall():
        # A name from the catalog, as regprocedure prints it: quoted where that is needed.
        connection.execute(f"REVOKE EXECUTE ON FUNCTION {signature} FROM PUBLIC".encode())
