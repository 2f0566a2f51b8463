"""What the lines share: databases with a topic and a sink, backlogs, and processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.children import Child
from bench.measure import installed
from bench.outbox.sizes import Sizes
from bench.payload import PAYLOAD
from bench.server import Database, Server
from bench.system import System, python_system

SYSTEM = python_system("livewell", "bench.outbox.child")
TOPIC = "orders.created"
SINK = "bench"
BODY = json.dumps(PAYLOAD, separators=(",", ":"))
_FEED = 1000  # events in one statement
_LAST_SENT = "SELECT extract(epoch FROM max(sent_at))::float8 FROM livewell.event_sent"
_EMIT = """
SELECT livewell.emit_events(array_agg(%(topic)s::text), array_agg(%(body)s::text), array_agg((n %% %(keys)s)::text), array_agg(%(tenant)s::text))
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
"""


@dataclass(frozen=True, slots=True)
class Lab:
    """What a measurement needs."""

    server: Server
    sizes: Sizes
    say: Callable[[str], None]
    peers: dict[str, System]

    @contextmanager
    def database(self, template: str | None = None) -> Iterator[Database]:
        """A database with a topic and a sink, and no event; or a copy of this one."""
        with self.server.database(template or installed(self.server, SYSTEM)) as database:
            yield database


def one(connection: psycopg.Connection[Any], query: str) -> Any:
    """The first value of the first row."""
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def feed(connection: psycopg.Connection[Any], events: int, *, keys: int, tenant: str = "acme") -> None:
    """Emit so many, a thousand in a transaction, of so many keys in turns; the connection commits by itself."""
    for first in range(0, events, _FEED):
        last = min(first + _FEED, events) - 1
        values = {"topic": TOPIC, "body": BODY, "keys": keys, "tenant": tenant, "first": first, "last": last}
        connection.execute(_EMIT.encode(), values)


@contextmanager
def relay(database: Database, **options: Any) -> Iterator[Child]:
    """A worker process with a relay, ready and not begun."""
    with Child(SYSTEM, "work", database.dsn, options) as child:
        child.wait_ready()
        yield child


def work_off(database: Database, events: int, **options: Any) -> dict[str, Any]:
    """Relay so many with one process; its answer, with the moment when the last one was finished."""
    with relay(database, **options) as child:
        child.tell("go")
        child.wait(lambda: child.done >= events)
        child.tell("stop")
        answer = child.answer()
    with psycopg.connect(database.dsn) as connection:
        return answer | {"last": one(connection, _LAST_SENT)}
