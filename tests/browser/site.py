"""What stands before the browser.

A server, a database, and a hand that stores what a worker would have stored.
"""

from __future__ import annotations

import http.server
import os
import shutil
import threading
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import psycopg

from livewell.apps.market import TYPES, type_files
from livewell.db import Database
from livewell.refresh.definition.document import read_file
from livewell.refresh.registry.apply import apply
from livewell.server.auth.api_keys import NewKey
from livewell.server.pools import Addresses
from livewell.settings import Settings
from livewell.testing.processes import ChildProcess, free_port
from tests.support.server_thread import ServerThread

CHROMIUM = os.environ.get("LIVEWELL_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

# Whatever is in place of a worker's result: the same rows, the same ledger, the same order.
_LEDGER = """
INSERT INTO livewell.ledger AS l (data_type, key, upstream, version, status_version, status_at, fetched_at, checked_at, source_at)
VALUES (%(type)s, %(key)s, 'fmp', 1, 1, livewell.now(), livewell.now(), livewell.now(), livewell.now())
ON CONFLICT (data_type, key) DO UPDATE SET version = l.version + 1, status_version = l.status_version + 1, status_at = excluded.status_at, fetched_at = excluded.fetched_at,
    checked_at = excluded.checked_at, source_at = excluded.source_at, failures = 0, failing_since = NULL, reason = NULL, error = NULL, missing = false
"""
_FAIL = """
UPDATE livewell.ledger SET failures = 1, failing_since = livewell.now(), reason = %(reason)s, error = %(error)s, checked_at = livewell.now() - interval '40 days',
    status_version = status_version + 1, status_at = livewell.now() WHERE data_type = %(type)s AND key = %(key)s
"""
_MISSING = """
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, status_at, checked_at, missing)
VALUES (%(type)s, %(key)s, 'fmp', 0, 1, livewell.now(), livewell.now(), true)
ON CONFLICT (data_type, key) DO UPDATE SET missing = true, checked_at = livewell.now(), status_version = livewell.ledger.status_version + 1, status_at = livewell.now()
"""


class Hand:
    """Stores the samples of the type files, changed as the test wants."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._files = {path.stem: tomllib.loads(path.read_text()) for path in TYPES.glob("*.toml")}

    def close(self) -> None:
        self._connection.close()

    def rows(self, query: str, *params: object) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(query.encode(), params)
        return cursor.fetchall() if cursor.description else []

    def put(self, kind: str, key: str, **changes: Any) -> None:
        """A new value; the changes are those of its last row."""
        document = self._files[kind]
        source = orjson.loads(document["sample"]["body"])[::-1]
        rows = [{name: row.get(spec.get("from", name)) for name, spec in document["columns"].items()} for row in source]
        rows[-1] |= changes
        with self._connection.transaction():
            self.rows(f"DELETE FROM livewell_data.{kind} WHERE key = %s", key)
            for row in rows:
                self.rows(
                    f"INSERT INTO livewell_data.{kind} SELECT "
                    f"(jsonb_populate_record(NULL::livewell_data.{kind}, %s::jsonb)).*",
                    orjson.dumps({**row, "key": key}).decode(),
                )
            self._connection.execute(_LEDGER, {"type": kind, "key": key})

    def put_all(self, *symbols: str) -> None:
        """Everything that the market page shows of these."""
        for symbol in symbols:
            for kind in SHOWN:
                self.put(kind, symbol)

    def fail(self, kind: str, key: str, reason: str, error: str = "") -> None:
        self._connection.execute(_FAIL, {"type": kind, "key": key, "reason": reason, "error": error})

    def unknown(self, key: str) -> None:
        """The source knows nothing of it."""
        for kind in SHOWN:
            self._connection.execute(_MISSING, {"type": kind, "key": key})

    def subscriptions(self, kind: str) -> int:
        return int(self.rows("SELECT count(*) FROM livewell.subscription WHERE data_type = %s", kind)[0][0])

    def sessions(self) -> int:
        return int(self.rows("SELECT count(*) FROM livewell.viewer_session")[0][0])


SHOWN = (
    "quote",
    "end_of_day",
    "profile",
    "income_statement",
    "balance_sheet_statement",
    "cash_flow_statement",
)


async def furnish(dsn: str, settings: Settings, *names: str) -> None:
    """The shipped types that the page shows, or these; and quotes that are fresh at night, too."""
    database = Database(dsn, settings)
    await database.open()
    try:
        for path in type_files():
            if path.stem in ("fmp", *(names or SHOWN)):
                await apply(database, read_file(path.read_bytes(), path.name), path.name)
        await database.call(
            "UPDATE livewell.data_type SET rule = 'age', calendar = NULL WHERE name = 'quote' RETURNING 1"
        )
    finally:
        await database.close()


class Site:
    """The server, which can be killed and started again on its port, and keys for it."""

    def __init__(self, dsn: str, where: Addresses, hand: Hand) -> None:
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.hand = hand
        self.env = {
            "LIVEWELL_DATABASE_URL": dsn,
            "LIVEWELL_API_URL": where.api,
            "LIVEWELL_OPERATE_URL": where.operate,
            "LIVEWELL_HUB_URL": where.hub,
            "LIVEWELL_POLL_SECONDS": "0.1",
            "LIVEWELL_PUSH_BEAT_SECONDS": "1",
            "LIVEWELL_KEY_CACHE_SECONDS": "0",
        }
        self._process: ChildProcess | None = None
        self._thread: ServerThread | None = None

    def start(self, **env: str) -> None:
        """In a thread of this process."""
        self.env |= env
        self._thread = ServerThread(self.env, self.port)
        self._thread.start()

    def start_process(self, **env: str) -> None:
        """A process of its own, which can be killed and frozen."""
        self.close()
        self.env |= env
        command = ["-m", "livewell.cli", "serve", f"--port={self.port}", "--json"]
        self._process = ChildProcess(command, env=self.env).start()
        self._process.wait_for('"address"', timeout=60)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.close()
        self._process = None

    def freeze(self) -> None:
        assert self._process is not None
        self._process.freeze()

    def thaw(self) -> None:
        assert self._process is not None
        self._process.thaw()

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    def key(self, *scopes: str, types: Sequence[str] | None = None, public: bool = True) -> str:
        return self._made("key", list(scopes or ("view", "subscribe")), types, public=public)

    def link(self, *scopes: str) -> str:
        """With these scopes; without any, everything."""
        given = list(scopes or ("view", "subscribe", "export", "operate", "admin"))
        token = self._made("link", given, None, public=False, seconds=600)
        return f"{self.base}/login#{token}"

    def _made(
        self, kind: str, scopes: list[str], types: Sequence[str] | None, *, public: bool, seconds: float | None = None
    ) -> str:
        made = NewKey.make()
        row = (made.id, made.hash, kind, "test", scopes, None if types is None else list(types), public, seconds)
        self.hand.rows("SELECT livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)", *row)
        return made.text


@contextmanager
def elsewhere(folder: Path) -> Iterator[str]:
    """Another origin: a plain file server for this folder, as anybody has one."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, directory=str(folder), **options)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the standard library's
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
