"""One pool per role of the database, each with a login of its own.

What a request may do is bounded by the role it runs as, whatever a route gets wrong.

    api      sessions, subscriptions, reading through, keys      EXECUTE on a few functions, no table
    operate  operators' requests, and the check of the schema
    hub      what streams read

On the embedded server we make the logins ourselves. On another server they are settings (api_url,
operate_url, hub_url), and without them the server does not start. Where roles cannot be made (roles
= none) one pool serves all three, and says so.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Self

import structlog

from livewell.db import Database, embedded
from livewell.errors import ConfigurationError
from livewell.settings import Settings

log = structlog.get_logger("livewell.server")

ROLES = ("livewell_api", "livewell_operate", "livewell_hub")


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where each pool logs in; with passwords, so not shown."""

    api: str = field(repr=False)
    operate: str = field(repr=False)
    hub: str = field(repr=False)

    @property
    def one(self) -> bool:
        """All three are the same login."""
        return self.api == self.operate == self.hub


def addresses(settings: Settings) -> Addresses:
    """From the settings, or from the embedded server (which must be migrated)."""
    if settings.roles == "none":
        address = _only(settings)
        log.warning("one login for everything: the database cannot hold requests to a role (LIVEWELL_ROLES=none)")
        return Addresses(address, address, address)
    if settings.database_url is None:
        server = embedded.start(settings.data_dir or embedded.default_data_dir(), bin_dir=settings.postgres_bin)
        found = embedded.logins(server, ROLES)
        return Addresses(*(found[role] for role in ROLES))
    given = [settings.api_url, settings.operate_url, settings.hub_url]
    present = [url.get_secret_value() for url in given if url is not None]
    if len(present) < 3:
        raise ConfigurationError(_HOW)
    return Addresses(*present)


def _only(settings: Settings) -> str:
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return embedded.start(settings.data_dir or embedded.default_data_dir(), bin_dir=settings.postgres_bin).dsn


_HOW = """the server needs a login for each of its roles, so that no request can do more than its role may. Run once, as an administrator, with passwords of your own:
  ALTER ROLE livewell_api LOGIN PASSWORD '…';
  ALTER ROLE livewell_operate LOGIN PASSWORD '…';
  ALTER ROLE livewell_hub LOGIN PASSWORD '…';
and set, beside DATABASE_URL:
  LIVEWELL_API_URL=postgresql://livewell_api:…@HOST/NAME
  LIVEWELL_OPERATE_URL=postgresql://livewell_operate:…@HOST/NAME
  LIVEWELL_HUB_URL=postgresql://livewell_hub:…@HOST/NAME
Where roles cannot be made, LIVEWELL_ROLES=none uses DATABASE_URL for everything."""


@dataclass(slots=True)
class Pools:
    """The three pools, all on the same database."""

    api: Database
    operate: Database
    hub: Database

    @classmethod
    def of(cls, where: Addresses, settings: Settings) -> Self:
        """Made, not opened.

        LISTEN goes to the hub's address, or to listen_url where that is another one.
        """
        listen = settings.listen_url.get_secret_value() if settings.listen_url is not None else None
        pooled = (
            listen is not None
            and settings.database_url is not None
            and listen != settings.database_url.get_secret_value()
        )

        def make(address: str) -> Database:
            return Database(address, settings, listen_conninfo=listen if pooled else None)

        if where.one:
            only = make(where.api)
            return cls(only, only, only)
        return cls(make(where.api), make(where.operate), make(where.hub))

    def all(self) -> list[Database]:
        """Each once."""
        return list(dict.fromkeys([self.api, self.operate, self.hub]))

    async def open(self) -> None:
        """Connect all of them; one that fails closes the others."""
        try:
            for pool in self.all():
                await pool.open()
                pool.require_primary()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect."""
        await asyncio.gather(*(pool.close() for pool in self.all()))
