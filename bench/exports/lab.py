"""What the lines share: a database, a folder for the files, a server, a worker, and users with keys.

Server and worker are `livewell serve` and `livewell worker`, as users run them, but for what one
user may ask for in a day. The clients are threads of this process, each with a connection of its
own; time is taken here.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from bench.children import ChildFailed
from bench.exports.documents import options, resume
from bench.exports.sizes import Sizes
from bench.refresh.lab import migrate
from bench.server import Database, Server
from livewell.apps.resumes.demo.client import Client, ServerAway
from livewell.apps.resumes.demo.kills import find_children
from livewell.server.auth.api_keys import NewKey
from livewell.testing import processes
from livewell.testing.processes import ChildProcess

_ROOT = Path(__file__).parents[2]
_START_SECONDS = 60.0
_END_SECONDS = 60.0
_POLL_SECONDS = 0.004
_OVER = ("finished", "failed", "cancelled", "deleted", "expired")
_WARM_UP = 5


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a key and a document."""

    client: Client
    document: str

    def ask(self) -> str:
        """Ask for an export of the document that nobody has asked for yet; answers its id."""
        answer = self.client.ask("POST", "/v1/exports", {"document": self.document, "options": options()})
        if answer.status != 202:
            raise ChildFailed(f"bench: exports: a request was answered {answer.status}: {answer.body[:300]!r}")
        key: str = answer.json["id"]
        return key

    def write(self, document: dict[str, Any]) -> str:
        """One document more; answers its id."""
        created = self.client.ask("POST", "/v1/resumes", {"document": document})
        if created.status != 201:
            raise ChildFailed(f"bench: exports: a document was answered {created.status}: {created.body[:300]!r}")
        key: str = created.json["id"]
        return key

    def wait(self, path: str) -> dict[str, Any]:
        """Poll an export or a batch until it has ended; it has to have finished."""
        give_up = time.monotonic() + _END_SECONDS
        while time.monotonic() < give_up:
            told: dict[str, Any] = self.client.ask("GET", path).json
            if told["state"] in ("finished", "ended"):
                return told
            if told["state"] in _OVER:
                raise ChildFailed(f"bench: exports: {path} ended as {told['state']}, {told['reason']}")
            time.sleep(_POLL_SECONDS)
        raise ChildFailed(f"bench: exports: {path} did not end within {_END_SECONDS:g} s")

    def load(self, export: str) -> bytes:
        """The file, by a link."""
        link = self.client.ask("POST", f"/v1/exports/{export}/link")
        file = self.client.follow_link(link.json["url"])
        if file.status != 200:
            raise ChildFailed(f"bench: exports: a link answered {file.status}")
        return file.body


@dataclass(slots=True)
class Stage:
    """Everything that runs."""

    database: Database
    store: Path
    address: str
    server: ChildProcess
    worker: ChildProcess | None
    users: list[User] = field(default_factory=list)

    def user(self, positions: int) -> User:
        """Somebody new, with a document of so many positions."""
        made = NewKey.make()
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            row = (made.id, made.hash, "key", "bench", ["export"], None, False, None)
            connection.execute("SELECT livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)", row)
        user = User(Client(self.address, made.text), "")
        self.users.append(replace(user, document=user.write(resume(positions))))
        return self.users[-1]

    def value(self, query: str) -> Any:
        """The first column of the first row."""
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]

    def children_bytes(self) -> list[int]:
        """The memory of each rendering child now."""
        assert self.worker is not None
        found = []
        for child in find_children(self.worker.pid):
            try:
                pages = int(Path(f"/proc/{child}/statm").read_text(encoding="ascii").split()[1])
            except OSError:  # it was replaced meanwhile
                continue
            found.append(pages * os.sysconf("SC_PAGE_SIZE"))
        return found


@dataclass(frozen=True, slots=True)
class Lab:
    """What a measurement needs."""

    postgres: Server
    sizes: Sizes
    folder: Path
    say: Callable[[str], None]

    @contextmanager
    def stage(self, *, renders: int = 3, works: bool = True) -> Iterator[Stage]:
        """An empty database and store, a server, and a worker that has rendered a few documents."""
        try:
            with self._stage(renders, works=works) as stage:
                yield stage
        except (ServerAway, processes.ChildFailed) as error:
            raise ChildFailed(f"bench: exports: {error}") from error

    @contextmanager
    def _stage(self, renders: int, *, works: bool) -> Iterator[Stage]:
        with self.postgres.database(self.postgres.template("exports", migrate)) as database:
            store = self.folder / f"exports-{secrets.token_hex(4)}"
            env = _environment(database.dsn, store, renders)
            with _process(["worker", "livewell.apps.plain:app", "--queue", "exports"], env) as worker:
                worker.wait_for("worker started", _START_SECONDS)  # it says what can be exported
                with _process(["serve", "--port", "0", "--json"], env) as server:
                    address = json.loads(server.wait_for('"address"', _START_SECONDS))["address"]
                    stage = Stage(database, store, address, server, worker)
                    if not works:
                        worker.kill()
                        worker.wait()
                        stage.worker = None
                    else:
                        _warm_up(stage)
                    yield stage
                    for user in stage.users:
                        user.client.close()


def _warm_up(stage: Stage) -> None:
    user = stage.user(1)
    for _ in range(_WARM_UP):
        user.wait(f"/v1/exports/{user.ask()}")


def _process(command: list[str], env: dict[str, str]) -> ChildProcess:
    return ChildProcess(["-m", "livewell.cli", *command], cwd=_ROOT, env=env)


def _environment(dsn: str, store: Path, renders: int) -> dict[str, str]:
    return {
        "LIVEWELL_DATABASE_URL": dsn,
        "LIVEWELL_LISTEN_URL": dsn,
        "LIVEWELL_ROLES": "none",
        "LIVEWELL_LOG_LEVEL": "info",
        "LIVEWELL_EXPORT_STORE": str(store),
        "LIVEWELL_EXPORT_RENDERS_MAX": str(renders),
        "LIVEWELL_EXPORT_DAILY_MAX": "1000000",
        "LIVEWELL_EXPORT_USER_BYTES_MAX": "9000000000",
        "LIVEWELL_REQUESTS_PER_SECOND": "100000",
        "LIVEWELL_READ_REQUESTS_PER_SECOND": "100000",
    }
