"""What the lines of the push benchmark share.

A database with sessions that are subscribed, and a server that streams to them.

The server is `livewell serve` as users run it but for its request limits (all clients come from one
address), in a process of its own; the clients are another one. Values are stored by the clients'
process, by SQL, and each holds the moment it was stored: all stamps are of one clock.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from pydantic import SecretStr

from bench.children import Child
from bench.push.sizes import Sizes
from bench.refresh.lab import HOST, migrate
from bench.refresh.lab import Lab as RefreshLab
from bench.server import Database
from bench.system import python_system
from livewell.server.auth.api_keys import NewKey
from livewell.settings import Settings

SYSTEM = python_system("livewell", "bench.push.child")
TYPE = "quote"

_FILL = """
INSERT INTO livewell.upstream (name, base_url, definition, version, applied_at) VALUES ('sim', 'https://example.com', '{}', 1, livewell.now());
INSERT INTO livewell.data_type (name, upstream, ttl, negative_ttl, strategy, rule, has_source_time, rows_kind, key_pattern, size_estimate, definition, columns, version, applied_at)
VALUES ('quote', 'sim', '1 hour', '1 hour', 'on_demand', 'age', true, 'one', '[A-Z0-9]+', 700, '{}', '[{"name": "at", "type": "numeric", "nullable": false, "key": false, "bounds": {}}]', 1, livewell.now());
CREATE TABLE livewell_data.quote (key text COLLATE "C" PRIMARY KEY, at numeric NOT NULL, text text NOT NULL);
INSERT INTO livewell_data.quote SELECT 'K' || n, extract(epoch FROM livewell.now()), repeat('x', 200) FROM generate_series(1, %(keys)s) AS n;
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, status_at, fetched_at, checked_at, source_at, due_at)
SELECT 'quote', 'K' || n, 'sim', 1, 1, livewell.now(), livewell.now(), livewell.now(), livewell.now(), livewell.now() + interval '1 hour' FROM generate_series(1, %(keys)s) AS n;
INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id)
SELECT livewell.session_hash(md5('s' || n)::uuid), livewell.now() + interval '1 hour', livewell.now(), 'session:' || livewell.session_hash(md5('s' || n)::uuid) FROM generate_series(1, %(sessions)s) AS n;
INSERT INTO livewell.subscription (session_id, data_type, key, user_id)
SELECT livewell.session_hash(md5('s' || n)::uuid), 'quote', 'K' || ((n * 7919 + k * 104729) %% %(keys)s + 1), 'session:' || livewell.session_hash(md5('s' || n)::uuid)
FROM generate_series(1, %(sessions)s) AS n CROSS JOIN LATERAL generate_series(1, CASE WHEN n <= %(streams)s THEN %(stream_keys)s ELSE %(silent_keys)s END) AS k
ON CONFLICT DO NOTHING;
ANALYZE livewell.ledger; ANALYZE livewell.viewer_session; ANALYZE livewell.subscription; ANALYZE livewell_data.quote
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A server and what it stands on."""

    database: Database
    base: str
    key: str
    process: Child

    def rss_mb(self) -> float:
        """What the server's process holds."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        [line] = [line for line in text.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) / 1000


@dataclass(frozen=True, slots=True)
class Lab:
    """What a measurement of streams needs."""

    refresh: RefreshLab
    sizes: Sizes
    say: Callable[[str], None]

    @contextmanager
    def crowd(self, *, streams: int, silent: int = 0) -> Iterator[Served]:
        """Sessions that are subscribed, and a server with nobody on it yet."""
        server, sizes = self.refresh.server, self.sizes
        with server.database(server.template("push", migrate)) as database:
            fill(
                database.dsn,
                keys=sizes.keys,
                sessions=streams + silent,
                streams=streams,
                stream_keys=sizes.stream_keys,
                silent_keys=min(sizes.silent_keys, sizes.keys),
            )
            database.checkpoint()
            with served(database, "view", "subscribe", public=True) as running:
                yield running


def fill(dsn: str, **sizes: int) -> None:
    """Keys with values.

    Sessions, of which the first `streams` look at stream_keys each and the others at silent_keys.
    """
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in _FILL.split(";\n"):
            connection.execute(statement.encode(), sizes if "%(" in statement else None)


@contextmanager
def served(database: Database, *scopes: str, public: bool = False, **changes: float) -> Iterator[Served]:
    """A server with a key for it."""
    key = NewKey.make()
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT livewell.create_key(%s, %s, 'key', 'bench', %s, NULL, %s, NULL)",
            (key.id, key.hash, list(scopes), public),
        )
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    with Child(SYSTEM, "serve", database.dsn, {"port": port, "changes": changes}) as process:
        process.wait_ready()
        process.tell("go")
        yield Served(database, f"http://{HOST}:{port}", key.text, process)


def settings(dsn: str, port: int, **changes: Any) -> Settings:
    """The defaults, but that everybody comes from one address."""
    plain = Settings(
        database_url=SecretStr(dsn),
        roles="none",
        http_port=port,
        session_requests_per_second=100_000,
        read_requests_per_second=100_000,
        requests_per_second=100_000,
        user_streams_max=10_000,
        user_pages_max=100,
        client_keys_max=1_000_000,
        requests_max=50_000,
        connections_max=60_000,
        address_connections_max=60_000,
    )
    return plain.model_copy(update=changes)
