"""Types and values for tests of the server.

Applied as the command line would, values stored without an upstream.
"""

from __future__ import annotations

from livewell.db import Database
from livewell.refresh.definition.document import read_file
from livewell.refresh.registry.apply import apply
from livewell.settings import Settings
from tests.support.market import PROFILE, UPSTREAM, quote

HOST = "127.0.0.1"


async def apply_types(dsn: str, settings: Settings) -> None:
    """The types quote and profile, and quote again under the name secret_quote."""
    upstream = UPSTREAM.format(url="http://127.0.0.1:9", credential="FMP_TEST_KEY", limits="")
    database = Database(dsn, settings)
    await database.open()
    try:
        for number, content in enumerate([upstream, quote(), PROFILE, quote("secret_quote")]):
            name = f"file-{number}.toml"
            await apply(database, read_file(content.encode(), name, private_hosts=[HOST]), name)
    finally:
        await database.close()


STORED = """
INSERT INTO livewell_data.quote (key, price, "timestamp") VALUES ('AAPL', 231.40, 1784750401);
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, fetched_at, checked_at, changed_at, source_at, status_at)
VALUES ('quote', 'AAPL', 'fmp', 1, 1, now(), now(), now(), now(), now());
"""
