"""What the scenarios about HTTP share.

A real `livewell serve` on a database of its own, people who come to it, and every operation that
its OpenAPI document names.

    async with open_site(scale) as site:
        ann = site.visitor("ann", site.key("view", "subscribe").text)
        for operation in await site.operations():
            answer = await ann.call(operation, session=…)

The operations come from the document, never from a list: a route, a parameter or a body that nobody
thought of here stops the scenario until somebody has.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import httpx2
import jwt

import livewell
from livewell.exports.artifacts.folder import FolderStore
from livewell.server.auth.api_keys import NewKey
from livewell.settings import Settings
from livewell.testing.processes import ChildProcess
from livewell.testing.sse_client import EventStream
from tests.faults.fleet import START_SECONDS_MAX, Fleet, open_fleet
from tests.faults.scenario import Scale
from tests.support.exports_made import Maker
from tests.support.http import Web, addresses, logins
from tests.support.market import CREDENTIAL
from tests.support.web_types import STORED, apply_types

ISSUER, AUDIENCE, JWT_SECRET = "https://idp.example", "livewell", "LIVEWELL_TEST_JWT_SECRET"
PAIRS = {"subscriptions": [{"type": "quote", "key": "AAPL"}]}
RESUME = {"basics": {"name": "Ann Lee"}}
NOWHERE = uuid.UUID(int=2**61)  # of no document and no export
LINK_KEY = "k1:" + "k" * 64
PDF = b"%PDF-1.7 one page"
# One right body for each that the document has; a body without a name goes by its operation.
BODIES: dict[str, Any] = {
    "NewSession": None,
    "Pairs": PAIRS,
    "Change": {"paused": False},
    "Universe": {"add": ["AAPL"]},
    "OwnTtl": {"ttl": "5m"},
    "Redrive": {"ids": [2**62]},
    "Discard": {"ids": [2**62]},
    "Mend": {"payload": {}},
    "Count": {"action": "cancel", "filter": {"queue": "nobodys"}},
    "Ask": {"action": "cancel", "filter": {"queue": "nobodys"}, "expected": 0},
    "Silence": {"rule": "queue_deep", "seconds": 60},
    "OneCredential": {"credential": "nobody"},
    "Take": {"force": False},
    "Letters": {"ids": [f"{2**62}"]},
    "NewEvent": {"topic": "nobodys.topic", "payload": {}},
    "NewReplay": {"sink": "nobody", "start": "2026-01-01T00:00:00Z"},
    "Resolve": {"identities": [{"type": "email", "value": "ann@example.com"}]},
    "Find": {"type": "email", "value": "nobody@example.com"},
    "Decide": {"decision": "apart"},
    "Policy": {"limit": 5},
    "Link": {"token": "lw_0123456789abcdef_0123456789012345678901234567890"},
    "NewExport": {"document": str(NOWHERE)},
    "NewBatch": {"documents": [{"document": str(NOWHERE)}]},
    "NewResume": {"document": RESUME, "name": "For Acme"},
    "ChangedResume": {"document": RESUME, "version": 1},
    "PreviewOf": {"document": RESUME},
    "POST /v1/resumes/import": RESUME,
}
PARAMETERS = frozenset({"session", "id", "job_id", "type", "name", "key", "signed"})
_SCHEMA = re.compile(r"#/components/schemas/(\w+)")
_MOVING = frozenset({"date"})
QUIET = {
    "session_requests_per_second": 100_000,
    "read_requests_per_second": 100_000,
    "requests_per_second": 100_000,
    "key_cache_seconds": 0,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    body: str | None  # the name of its schema

    @property
    def parameters(self) -> list[str]:
        """Of the path, in order."""
        return re.findall(r"\{(\w+)\}", self.path)

    def address(self, **values: object) -> str:
        """The path with values in it, encoded."""
        return self.path.format(**{name: quote(str(values[name]), safe="") for name in self.parameters})

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer; of a stream only that it began."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float = field(compare=False)

    @property
    def accepted(self) -> bool:
        """The server did what was asked."""
        return self.status < 400

    @property
    def seen(self) -> tuple[int, bytes, dict[str, str]]:
        """All that a caller can see and compare, but for the time of day."""
        return self.status, self.body, {name: value for name, value in self.headers.items() if name not in _MOVING}


@dataclass(slots=True)
class Visitor:
    """Somebody with a key or a token."""

    name: str
    bearer: str
    base: str
    client: httpx2.AsyncClient
    streams: list[EventStream] = field(default_factory=list)

    async def ask(self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any) -> Said:
        """One request; a stream is left as soon as it has begun."""
        begun = time.monotonic()
        async with self.client.stream(method, path, headers=headers, **options) as answer:
            streams = answer.headers.get("content-type", "").startswith("text/event-stream")
            body = b"" if streams else await answer.aread()
            return Said(answer.status_code, dict(answer.headers), body, time.monotonic() - begun)

    async def call(self, operation: Operation, **values: object) -> Said:
        """One operation with a right body."""
        body = BODIES[operation.body] if operation.body else None
        return await self.ask(operation.method, operation.address(**values), json=body)

    async def made(self, path: str, body: Any) -> str:
        """The id of what was made there."""
        answer = await self.ask("POST", path, json=body)
        assert answer.status in {201, 202}, answer
        made: str = json.loads(answer.body)["id"]
        return made

    async def session(self) -> str:
        """A session of theirs that looks at AAPL."""
        opened = await self.ask("POST", "/v1/sessions")
        session: str = json.loads(opened.body)["session"]
        watched = await self.ask("PUT", f"/v1/sessions/{session}/subscriptions", json=PAIRS)
        assert (opened.status, watched.status) == (201, 200), (opened, watched)
        return session

    async def stream(self, session: str) -> EventStream:
        """A stream that stays open until the site is closed."""
        stream = await EventStream.open(self.base, f"/v1/sessions/{session}/stream", key=self.bearer)
        assert stream.status == 200, stream.body
        await stream.until("ready")
        self.streams.append(stream)
        return stream


@dataclass(frozen=True, slots=True)
class Shelf:
    """What a user of documents has: a résumé, exports that came to different ends, a batch, a link."""

    resume: str
    finished: str
    waiting: str
    cancelled: str
    deleted: str
    batch: str
    signed: str  # what the link of the finished one ends with

    @property
    def exports(self) -> tuple[str, ...]:
        """All of them."""
        return self.finished, self.waiting, self.cancelled, self.deleted

    def values(self, operation: Operation) -> dict[str, object]:
        """What stands in the path where it is about documents and exports; the owner is answered 200."""
        if operation.path.startswith("/v1/download/"):
            return {"signed": self.signed}
        if "id" not in operation.parameters:
            return {}
        if operation.path.startswith("/v1/resumes/"):
            return {"id": self.resume}
        if operation.path.startswith("/v1/exports/batch/"):
            return {"id": self.batch}
        if operation.path.startswith("/v1/exports/"):
            return {"id": self.waiting if operation.path.endswith("/cancel") else self.finished}
        return {}


@dataclass(slots=True)
class Site:
    """The server, its database, and who has been there."""

    fleet: Fleet
    base: str
    files: Path  # the store of its exports
    server: ChildProcess
    logins: dict[str, tuple[str, str]]  # role → name and password
    jwt_secret: str
    visitors: list[Visitor] = field(default_factory=list)

    def key(
        self,
        *scopes: str,
        types: list[str] | None = None,
        public: bool = False,
        kind: str = "key",
        seconds: float = 3600,
    ) -> NewKey:
        """Make a key in the database; view and subscribe, unless told otherwise."""
        made = NewKey.make()
        row = (made.id, made.hash, kind, "fault", list(scopes or ("view", "subscribe")), types, public, seconds)
        self.fleet.rows("SELECT livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)", row)
        return made

    def token(self, subject: str, **claims: Any) -> str:
        """A token of the issuer that this server trusts."""
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "exp": int(time.time()) + 3600, **claims}
        return jwt.encode(said, self.jwt_secret, algorithm="HS256")

    def visitor(self, name: str, bearer: str | None) -> Visitor:
        """Somebody who comes with this key or token, or with none."""
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        # A connection for each request: one that was answered 401 or 429 is not read for a second,
        # and a thousand such answers in turn took eight minutes.
        single = httpx2.Limits(max_keepalive_connections=0)
        client = httpx2.AsyncClient(base_url=self.base, headers=headers, timeout=30, limits=single)
        self.visitors.append(Visitor(name, bearer or "", self.base, client))
        return self.visitors[-1]

    async def shelf(self, owner: Visitor) -> Shelf:
        """Documents and exports of somebody who may export; a worker's part is done here."""
        exports = SimpleNamespace(store=FolderStore(self.files))
        web = SimpleNamespace(dsn=self.fleet.dsn, state=SimpleNamespace(exports=exports))
        with Maker(cast("Web", web)) as maker:
            first = await owner.made("/v1/resumes", {"document": RESUME})
            finished = await owner.made("/v1/exports", {"document": first})
            assert await maker.make(PDF) == finished
            deleted = await owner.made("/v1/exports", {"document": first, "options": {"template": "modern"}})
            assert await maker.make(PDF) == deleted
            resume = {"document": await owner.made("/v1/resumes", {"document": RESUME})}
            batch = await owner.made("/v1/exports/batch", {"documents": [resume]})
            await maker.make(PDF)
        waiting = await owner.made("/v1/exports", resume)
        cancelled = await owner.made("/v1/exports", {"document": first})  # last: its job stays until a worker sees it
        ends = [
            await owner.ask("DELETE", f"/v1/exports/{deleted}"),
            await owner.ask("POST", f"/v1/exports/{cancelled}/cancel"),
        ]
        link = await owner.ask("POST", f"/v1/exports/{finished}/link")
        assert [one.status for one in (*ends, link)] == [200, 200, 200], (ends, link)
        signed = json.loads(link.body)["url"].rsplit("/", 1)[-1]
        return Shelf(first, finished, waiting, cancelled, deleted, batch, signed)

    async def operations(self) -> list[Operation]:
        """Everything that the document names.

        Fails on a parameter or a body that is not known here.
        """
        document = (await self.visitor("stranger", None).client.get("/v1/openapi.json")).json()
        found = [
            Operation(method.upper(), path, _body(f"{method.upper()} {path}", operation))
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        ]
        strange = {
            str(one) for one in found if not set(one.parameters) <= PARAMETERS or one.body not in {None, *BODIES}
        }
        assert not strange, f"tell http_support.py what to send to {sorted(strange)}"
        return found

    async def close(self) -> None:
        """Everybody goes."""
        for visitor in self.visitors:
            for stream in visitor.streams:
                stream.close()
            await visitor.client.aclose()


def _body(name: str, operation: Mapping[str, Any]) -> str | None:
    asked = operation.get("requestBody")
    names = _SCHEMA.findall(json.dumps(asked))
    return names[0] if names else name if asked else None


@asynccontextmanager
async def open_site(
    scale: Scale,
    *,
    jwt_secret: str = "s" * 40,
    credential: str = "none",
    descriptors_max: int | None = None,
    **settings: object,
) -> AsyncIterator[Site]:
    """A database with types, one fresh quote and jobs that nobody runs; a server process.

    Nobody asks too often, unless settings say otherwise. descriptors_max: the server's `ulimit -n`.
    """
    issuer = {"name": "idp", "issuer": ISSUER, "audience": AUDIENCE, "algorithm": "HS256", "key": f"env:{JWT_SECRET}"}
    async with open_fleet(scale) as fleet:
        await apply_types(fleet.dsn, Settings.model_validate({"database_url": fleet.dsn}))
        for statement in STORED.strip().split(";\n"):
            fleet.rows(statement)
        await fleet.enqueue("effect", 3)
        with ExitStack() as stack:
            made = stack.enter_context(logins(fleet.dsn))
            where = addresses(fleet.dsn, made)
            files = scale.folder / "files"
            given = {
                "api_url": where.api,
                "operate_url": where.operate,
                "hub_url": where.hub,
                "export_store": files,
                "export_link_keys": LINK_KEY,
                **QUIET,
                **settings,
            }
            environment = {
                "PYTHONPATH": str(Path(livewell.__file__).parents[1]),
                "DATABASE_URL": fleet.dsn,
                "LIVEWELL_JWT": json.dumps([issuer]),
                JWT_SECRET: jwt_secret,
                CREDENTIAL: credential,
                **{f"LIVEWELL_{name.upper()}": str(value) for name, value in given.items()},
            }
            command = ["-m", "livewell.cli", "serve", "--port", "0", "--json"]
            if descriptors_max is None:
                server = ChildProcess(command, cwd=scale.folder, env=environment)
            else:  # exec: the process keeps its number
                limited = ["-c", f'ulimit -n {descriptors_max} && exec "$@"', "sh", sys.executable, *command]
                server = ChildProcess(limited, program="/bin/sh", cwd=scale.folder, env=environment)
            stack.enter_context(server)
            line = await asyncio.to_thread(server.wait_for, '"address"', START_SECONDS_MAX)
            site = Site(fleet, json.loads(line)["address"], files, server, made, jwt_secret)
            try:
                yield site
            finally:
                await site.close()
                await asyncio.to_thread(server.terminate)
                await asyncio.to_thread(server.wait, 30)
