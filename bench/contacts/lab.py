"""What the lines share: a database with contacts of one tenant, copied for each measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.contacts.sizes import Sizes
from bench.refresh.lab import migrate
from bench.server import Server

TENANT = "bench"

# Rows as resolve_contact leaves them, without its events: a million calls would take half an hour.
_FILL = (
    """
    INSERT INTO livewell.contact (tenant, id, created_at)
    SELECT %(tenant)s, md5(n::text)::uuid, livewell.now() FROM generate_series(1, %(contacts)s) n
    """,
    """
    INSERT INTO livewell.contact_identity (tenant, type, value, original, added_at, contact_id)
    SELECT %(tenant)s, k.type, k.before || n || k.behind, k.before || n || k.behind, livewell.now(), md5(n::text)::uuid
    FROM generate_series(1, %(contacts)s) n
    CROSS JOIN (VALUES ('email', 'person', '@example.com'), ('external_id', 'acct_', ''), ('phone', '+49 30 ', '')) AS k (type, before, behind)
    """,
    "VACUUM (ANALYZE) livewell.contact",
    "VACUUM (ANALYZE) livewell.contact_identity",
)


@dataclass(frozen=True, slots=True)
class Lab:
    """What a measurement needs."""

    server: Server
    sizes: Sizes
    folder: Path
    say: Callable[[str], None]

    def crowded(self) -> str:
        """The database that is copied for every measurement; made when it is asked for first."""

        def make(dsn: str) -> None:
            self.say(f"making a database with {self.sizes.contacts:,} contacts …")
            migrate(dsn)
            with psycopg.connect(dsn, autocommit=True) as connection:
                for query in _FILL:
                    filled = {"tenant": TENANT, "contacts": self.sizes.contacts}
                    connection.execute(query.encode(), filled if "%(" in query else None)

        return self.server.template("contacts", make)
