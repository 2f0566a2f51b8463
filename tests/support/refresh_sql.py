"""The refresh functions as a test speaks them.

A registry with made-up types, viewers, keys, and the clock.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from livewell.refresh.registry import exchange_calendar as calendar
from tests.support.queue_sql import QueueSession, Row

TABLES = (
    "subscription",
    "viewer_session",
    "session_share",
    "viewer",
    "universe",
    "ledger",
    "data_type",
    "upstream",
    "refresh_count",
    "refresh_event",
    "singleton",
    "schedule",
    "run",
)
UPSTREAM = "api"
TYPE = "quote"
SINGLETON = "refresh.due"


class RefreshSession(QueueSession):
    """One session on one connection, on a database whose refresh tables are ours."""

    def reset(self) -> None:
        """Empty everything; one upstream without limits and one type with a minute to live."""
        self.connection.execute("; ".join(f"DELETE FROM livewell.{table}" for table in TABLES).encode())
        super().reset()
        self.upstream()
        self.type()

    def upstream(self, name: str = UPSTREAM, *, pools: Sequence[str] = (), **limits: Any) -> None:
        """An upstream with its limiter and its queues."""
        self.limiter(name, **limits)
        for queue in (f"refresh.{name}", *(f"refresh.{name}.{pool}" for pool in pools)):
            self.declare(queue, attempts=4, limiter=name)
        self.rows(
            "INSERT INTO livewell.upstream (name, base_url, definition, version, applied_at) VALUES (%s, "
            "'https://example.com', '{}', 1, livewell.now()) ON CONFLICT DO NOTHING",
            name,
        )

    def type(self, name: str = TYPE, **columns: Any) -> None:
        """A type by its columns; ttl a minute, rule age, with a source time."""
        values: dict[str, Any] = {
            "name": name,
            "upstream": UPSTREAM,
            "ttl": "1 minute",
            "negative_ttl": "1 hour",
            "strategy": "on_demand",
            "rule": "age",
            "has_source_time": True,
            "rows_kind": "one",
            "key_pattern": "[A-Z0-9]{1,20}",
            "size_estimate": 700,
            "definition": "{}",
            "columns": "[]",
            "version": 1,
            "applied_at": self.now(),
            **columns,
        }
        self.rows(
            f"INSERT INTO livewell.data_type ({', '.join(values)}) VALUES ({', '.join(['%s'] * len(values))})",
            *values.values(),
        )

    def sessions(self, name: str = "XNYS") -> int:
        """Load an exchange's calendar; answers how many rows changed."""
        return int(self.value(calendar.LOAD, *calendar.read(name).parameters))

    def keep(self, key: str = "AAPL", *, of: str = TYPE, upstream: str = UPSTREAM, **columns: Any) -> None:
        """A ledger row by its columns."""
        values = {"data_type": of, "key": key, "upstream": upstream, "status_at": self.now(), **columns}
        self.rows(
            f"INSERT INTO livewell.ledger ({', '.join(values)}) VALUES ({', '.join(['%s'] * len(values))})",
            *values.values(),
        )

    def ledger(self, key: str = "AAPL", *columns: str, of: str = TYPE) -> Row:
        """Some columns of a ledger row."""
        return self.rows(
            f"SELECT {', '.join(columns)} FROM livewell.ledger WHERE data_type = %s AND key = %s", of, key
        )[0]

    def judge(self, function: str, ledger: Mapping[str, Any], at: Any, *, of: str = TYPE, **columns: Any) -> Any:
        """Ask next_due, is_stale or verdict about rows that need not be stored."""
        return self.value(
            f"SELECT livewell.{function}(jsonb_populate_record(t, %s::jsonb), "
            "jsonb_populate_record(NULL::livewell.ledger, %s::jsonb), %s) FROM livewell.data_type t WHERE t.name = %s",
            json.dumps(columns, default=str),
            json.dumps(dict(ledger), default=str),
            at,
            of,
        )

    # -- viewers ----------------------------------------------------------------------------------

    def open(self, user: str | None = None, *, id: str | None = None) -> str:  # noqa: A002 - the id a client made
        """A viewer session; answers its id."""
        session = id or new_session_id()
        assert self.value("SELECT livewell.open_session(%s, %s)", session, user) == "open"
        return session

    def subscribe(
        self,
        session: str,
        *keys: str,
        user: str | None = None,
        of: str | Sequence[str] = TYPE,
        most: int = 1000,
        cold: int | None = None,
    ) -> dict[tuple[str, str], dict[str, Any]]:
        """Subscribe to keys of one type, or of one type each; answers the rows by pair."""
        types = [of] * len(keys) if isinstance(of, str) else list(of)
        cursor = self.connection.execute(
            "SELECT * FROM livewell.subscribe(%s, %s, %s, %s, %s, %s)", (session, user, types, list(keys), most, cold)
        )
        names = [column.name for column in cursor.description or ()]
        return {(row[0], row[1]): dict(zip(names, row, strict=True)) for row in cursor.fetchall()}

    def unsubscribe(self, session: str, *keys: str, user: str | None = None, of: str = TYPE) -> int:
        return int(
            self.value("SELECT livewell.unsubscribe(%s, %s, %s, %s)", session, user, [of] * len(keys), list(keys))
        )

    def heartbeat(self, session: str, user: str | None = None) -> str:
        return str(self.value("SELECT livewell.heartbeat_session(%s, %s)", session, user))

    def close_session(self, session: str, user: str | None = None) -> str:
        return str(self.value("SELECT livewell.close_session(%s, %s)", session, user))

    def sweep(self, limit: int = 1000) -> int:
        return int(self.value("SELECT livewell.sweep_sessions(%s)", limit))

    def viewers(self, key: str = "AAPL", *, of: str = TYPE) -> int:
        return int(self.value("SELECT livewell.count_viewers(%s, %s)", of, key))

    # -- the due check ----------------------------------------------------------------------------

    def hold(self, name: str = SINGLETON, *, lease: float = 3600) -> int:
        """Take or renew the singleton; answers its fence."""
        answer, fence, *_ = self.rows(
            "SELECT * FROM livewell.acquire_singleton(%s, 'test', (SELECT fence FROM livewell.singleton WHERE "
            "name = %s), %s * interval '1 second')",
            name,
            name,
            lease,
        )[0]
        assert answer == "held"
        return int(fence)

    def dispatch(self, fence: int | None = None, *, upstream: str = UPSTREAM, **options: Any) -> dict[str, Any]:
        """One due check, as the holder; answers its row."""
        if fence is None:
            fence = self.hold()
        named = "".join(f", p_{name} => %s" for name in options)
        cursor = self.connection.execute(
            f"SELECT * FROM livewell.dispatch_due(%s, %s, %s{named})".encode(),
            (SINGLETON, fence, upstream, *options.values()),
        )
        names = [column.name for column in cursor.description or ()]
        [row] = cursor.fetchall()
        return dict(zip(names, row, strict=True))

    def begin_walk(self, name: str) -> None:
        """The slot of a scheduled type has come, and a scheduler has begun its run."""
        self.rows("SELECT livewell.sync_walks()")
        due = self.now()
        self.rows("UPDATE livewell.schedule SET due_at = %s WHERE name = %s", due, f"walk.{name}")
        answer = self.value(
            "SELECT answer FROM livewell.begin_run(%s, 'test', %s, %s, %s, '1 day', 0, NULL, '1 minute')",
            f"walk.{name}",
            due,
            due,
            due + timedelta(days=1),
        )
        assert answer == "begun"

    def jobs(self, *columns: str) -> list[Row]:
        """Live refresh jobs, in the order in which they would be claimed."""
        return self.rows(
            f"SELECT {', '.join(columns or ('unique_key',))} FROM livewell.job WHERE kind = 'livewell.refresh' "
            "ORDER BY lane, rank, id"
        )


def new_session_id() -> str:
    """As a client makes it."""
    return str(uuid.uuid4())
