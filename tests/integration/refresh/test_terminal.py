"""M6: `get` and `watch` in a real terminal, with an upstream whose texts are escape sequences."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import sys
from urllib.parse import parse_qs, urlsplit

from livewell import Settings
from tests.integration.outbound.hostile import HostileServer, Visit
from tests.support.market import Market

HOSTILE = "\x1b]0;PWNED\x07\x1b[31mRED\x1b[2J\u009b2J\u202eevil\u2066x"
UPSTREAM = '[upstream]\nname = "evil"\nbase_url = "{url}"\nvocabulary = "plain"\n'
TYPE = """
[type]
name = "name"
upstream = "evil"
ttl = "1m"
negative_ttl = "1h"
strategy = "on_demand"
size_estimate = 300

[fetch]
path = "/name"
query = { symbol = "{key}" }
key_pattern = "[A-Z0-9]{1,20}"
body_bytes_max = 10000

[answer]
rows = "@"
kind = "one"
key = "symbol"
rule = "age"

[columns]
name = { type = "text", max_length = 200 }

[sample]
key = "K0"
recorded = "2026-07-22"
body = '''[{"symbol": "K0", "name": "well"}]'''
"""


async def serve(visit: Visit) -> None:
    """Every name is hostile."""
    while head := await visit.request():
        found = re.match(rb"GET (\S+) ", head)
        assert found is not None
        [key] = parse_qs(urlsplit(found[1].decode()).query)["symbol"]
        body = json.dumps([{"symbol": key, "name": HOSTILE}])
        await visit.send(
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )


async def in_terminal(settings: Settings, *arguments: str) -> str:
    """Run a command whose output is a terminal, and give what that was sent."""
    assert settings.database_url is not None
    ours, theirs = pty.openpty()
    environment = {**os.environ, "DATABASE_URL": settings.database_url.get_secret_value(), "TERM": "xterm"}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "livewell.cli", *arguments, env=environment, stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    sent = bytearray()

    def read() -> None:
        try:
            while part := os.read(ours, 65_536):
                sent.extend(part)
        except OSError:  # Linux's way to say that the other end is closed
            return

    async with asyncio.timeout(60):
        await asyncio.to_thread(read)
        await child.wait()
    os.close(ours)
    return sent.decode()


async def test_get_and_watch_show_a_hostile_text_and_obey_nothing(market: Market, livewell_settings: Settings) -> None:
    """The text is there to be read, without what a terminal would do."""
    async with HostileServer(serve) as server:
        await market.apply(UPSTREAM.format(url=server.url), TYPE)
        async with market.working(slots=2):
            assert (await market.app.get("name", "K1", wait="20s")).value == {"name": HOSTILE}
            got = await in_terminal(livewell_settings, "get", "name", "K1")
            as_json = await in_terminal(livewell_settings, "get", "name", "K1", "--json")
            watched = await in_terminal(livewell_settings, "watch", "name", "K1", "--changes", "1")

    for sent in (got, as_json, watched):
        assert "RED" in sent
        assert "\x1b]" not in sent
        assert not re.search("\x07|\x1b\\[31m|\x1b\\[2J|\u009b|\u202e|\u2066", sent)
    assert json.loads(as_json)["value"] == {"name": HOSTILE}
