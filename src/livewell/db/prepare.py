"""Find the server, and bring its schema up to date."""

from __future__ import annotations

from livewell.db import embedded, migrate
from livewell.settings import Settings


def database_address(settings: Settings) -> str:
    """The configured server's address; without one, the embedded server is started or found."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return embedded.start(settings.data_dir or embedded.default_data_dir(), bin_dir=settings.postgres_bin).dsn


def prepare_schema(conninfo: str, settings: Settings, *, apply: bool) -> None:
    """Bring the schema up to date, or insist that it is."""
    if apply:
        migrate.migrate(conninfo, roles=settings.roles)
    else:
        migrate.require_current(conninfo)
