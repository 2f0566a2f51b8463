"""A server for tests: logins of its roles, the state, and a client that speaks to it.

The client speaks in this process or through a socket.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import httpx2
import psycopg
from fastapi import FastAPI
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell.capability import Capability, capabilities
from livewell.server.app import create_app, gated
from livewell.server.auth.api_keys import NewKey
from livewell.server.pools import Addresses
from livewell.server.process import ServerProcess
from livewell.server.serve import HttpServer, address_of, bind
from livewell.settings import Settings

BASE = "http://127.0.0.1:8484"
ROLES = ("livewell_api", "livewell_operate", "livewell_hub")


@contextmanager
def logins(dsn: str) -> Iterator[dict[str, tuple[str, str]]]:
    """Logins that are members of the server's roles, as a DBA would make them.

    Roles belong to the whole server.
    """
    made = {role: (f"livewell_test_{role[9:]}_{secrets.token_hex(4)}", secrets.token_hex(16)) for role in ROLES}
    with psycopg.connect(dsn, autocommit=True) as admin:
        if admin.info.server_version >= 160000:
            admin.execute("SET scram_iterations = 1")  # random passwords need no more, and tests connect often
        for role, (name, password) in made.items():
            admin.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}").format(
                    sql.Identifier(name), sql.Literal(password), sql.Identifier(role)
                )
            )
    try:
        yield made
    finally:
        with psycopg.connect(dsn, autocommit=True) as admin:  # another one: a test may have killed the server meanwhile
            for name, _ in made.values():
                admin.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))


def addresses(dsn: str, made: dict[str, tuple[str, str]]) -> Addresses:
    """Where those logins find this database."""
    parts = conninfo_to_dict(dsn)
    return Addresses(
        *(make_conninfo("", **{**parts, "user": made[role][0], "password": made[role][1]}) for role in ROLES)
    )


class Web:
    """A server under test. `client` has no key; `as_key` gives one that has."""

    def __init__(self, dsn: str, state: ServerProcess, transport: httpx2.AsyncBaseTransport | None, base: str) -> None:
        self.dsn = dsn
        self.state = state
        self.base = base
        self.application: Any = None  # the gated application, where there is no socket
        self.gate: Any = None  # the same, where there is one
        self.server: Any = None  # that listens there
        self._transport = transport
        self._administrator: psycopg.Connection | None = None
        self.client = self.client_with({})

    def client_with(self, headers: dict[str, str]) -> httpx2.AsyncClient:
        """A client that sends these headers."""
        return httpx2.AsyncClient(transport=self._transport, base_url=self.base, headers=headers, timeout=20)

    def key(
        self,
        *scopes: str,
        types: Sequence[str] | None = None,
        public: bool = False,
        seconds: float | None = None,
    ) -> NewKey:
        """Make a key in the database; view and subscribe, unless told otherwise."""
        made = NewKey.make()
        given = list(scopes or ("view", "subscribe"))
        row = (made.id, made.hash, "key", "test", given, None if types is None else list(types), public, seconds)
        self.rows("SELECT livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)", *row)
        return made

    def as_key(self, *scopes: str, **options: Any) -> httpx2.AsyncClient:
        """A client with a new key."""
        return self.bearer(self.key(*scopes, **options).text)

    def bearer(self, text: str) -> httpx2.AsyncClient:
        """A client that sends this as its key or token."""
        return self.client_with({"Authorization": f"Bearer {text}"})

    def rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        """Look into the database, or change it, as its administrator."""
        cursor = self._admin().execute(query.encode(), params)
        return cursor.fetchall() if cursor.description else []

    def _admin(self) -> psycopg.Connection:
        """One connection for the whole test; another one, if the test has cut it."""
        if self._administrator is not None:
            with suppress(psycopg.OperationalError):
                self._administrator.execute("")
                return self._administrator
            self._administrator.close()
        self._administrator = psycopg.connect(self.dsn, autocommit=True)
        return self._administrator

    def close(self) -> None:
        """Leave the database."""
        if self._administrator is not None:
            self._administrator.close()


def application() -> FastAPI:
    """One for all tests of a process that see the same capabilities: to make it takes a quarter of a second."""
    seen = capabilities()
    for capabilities_of, made in _applications:
        if capabilities_of == seen:
            return made
    _applications.append((seen, create_app()))
    return _applications[-1][1]


_applications: list[tuple[tuple[Capability, ...], FastAPI]] = []


@asynccontextmanager
async def in_process(dsn: str, made: dict[str, tuple[str, str]], settings: Settings) -> AsyncIterator[Web]:
    """Without a socket: requests go straight into the application.

    An answer is complete before it is seen, so not for streams.
    """
    async with ServerProcess(addresses(dsn, made), settings) as state:
        gate = gated(application(), state)
        web = Web(dsn, state, httpx2.ASGITransport(app=gate, raise_app_exceptions=False), BASE)
        web.application = gate
        try:
            yield web
        finally:
            web.close()


@asynccontextmanager
async def listening(dsn: str, made: dict[str, tuple[str, str]], settings: Settings) -> AsyncIterator[Web]:
    """With a socket, for streams and for what only shows on the wire."""
    async with ServerProcess(addresses(dsn, made), settings) as state:
        bound = bind("127.0.0.1", 0)
        gate = gated(application(), state)
        server = HttpServer(gate, state, bound)
        running = asyncio.create_task(server.run())
        web = Web(dsn, state, None, address_of(bound))
        web.gate, web.server = gate, server
        try:
            yield web
        finally:
            web.close()
            server.stop()
            await running
