"""M3: an upstream that repeats our credential, in whatever way, gets it into no row and no log line.

Seen failing on 0.6.0: 133 places of livewell.ledger, job, dead_job and warning, and of the column
of the type.
"""

from __future__ import annotations

import asyncio
import base64
import html
import json
import os
import re
import tomllib
from collections.abc import Callable
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
import structlog.testing

from livewell.refresh.definition.document import read_row
from livewell.refresh.registry.apply import apply
from livewell.testing.processes import eventually_async
from tests.integration.outbound.hostile import HostileServer, Visit
from tests.support import canary
from tests.support.market import Market

SECRET = 'Canary/7f3A&9c="1d+Zq'  # noqa: S105 - of nobody
OTHER = "Canary-2-of-the-same-upstream"

UPSTREAM = """
[upstream]
name = "parrot"
base_url = "{url}"
credential_in = "query:apikey"
credentials = ["PARROT_KEY", "PARROT_KEY_2"]
vocabulary = "plain"
breaker = false
"""

TYPE = """
[type]
name = "word"
upstream = "parrot"
ttl = "1m"
negative_ttl = "1h"
strategy = "on_demand"
size_estimate = 300

[fetch]
path = "/word"
query = { symbol = "{key}" }
key_pattern = "[A-Z0-9]{1,20}"
body_bytes_max = 100000

[answer]
rows = "@"
kind = "one"
key = "symbol"
rule = "age"

[columns]
rate = { type = "numeric", min = 0, max = 1000000 }
note = { type = "text", max_length = 5000 }

[sample]
key = "K0"
recorded = "2026-07-22"
body = '''[{"symbol": "K0", "rate": 60, "note": "well"}]'''
"""

FORMS: tuple[Callable[[str], str], ...] = (
    lambda secret: secret,
    str.upper,
    str.lower,
    lambda secret: quote(secret, safe=""),
    lambda secret: quote(quote(secret, safe=""), safe=""),
    lambda secret: base64.b64encode(secret.encode()).decode(),
    lambda secret: base64.urlsafe_b64encode(b"u:" + secret.encode()).decode().rstrip("="),
    lambda secret: "".join(f"\\u{ord(one):04x}" for one in secret),
    html.escape,
    lambda secret: "".join(f"&#{ord(one)};" for one in secret),
    lambda secret: "".join(f"&#x{ord(one):x};" for one in secret),
)


def _row(key: str, **fields: object) -> str:
    return json.dumps([{"symbol": key, "rate": 1, "note": "well"} | fields])


# By what the key begins with: how the answer is made of the key and of what is repeated.
BODIES: dict[str, Callable[[str, str], str]] = {
    "ERROBJ": lambda _, said: json.dumps({"error": f"Invalid API KEY {said}. Upgrade your plan"}),
    "ERRCUT": lambda _, said: json.dumps({"Error Message": f"{'x' * 50} {said} {'y' * 500}"}),
    "ERRHTML": lambda _, said: f"<html><title>No</title><body>{'.' * 40} {said} {'.' * 4000}</body></html>",
    "ERRTYPE": lambda key, said: _row(key, rate=said),
    "ERRSTR": lambda _, said: json.dumps(said),
    "ERRKEY": lambda _, said: _row(said),
    "ERRNAME": lambda key, said: json.dumps([{"symbol": key, "rate": 1, f"{'z' * 120}{said}": 1}]),
    "ERRTWICE": lambda key, said: f'[{{"symbol": "{key}", {json.dumps(said)}: 1, {json.dumps(said)}: 2}}]',
    "ADDED": lambda key, said: _row(key, **{said: 1}),
    "LEAK": lambda key, said: _row(key, note=f"see https://h/?k={said}"),
    "ESCAPED": lambda key, said: _row(key, note=f"see {said}").replace("c", "\\u0063").replace("C", "\\u0043"),
    "ETAG": lambda key, _: _row(key),
    "ERRCT": lambda key, _: _row(key),
    "ERRENC": lambda key, _: _row(key),
}


class Parrot:
    """Answers every question with the credential it was asked with, or with the other one of the account."""

    def __init__(self) -> None:
        self.repeated = 0

    async def serve(self, visit: Visit) -> None:
        """One connection."""
        while head := await visit.request():
            found = re.match(rb"GET (\S+) ", head)
            assert found is not None
            query = parse_qs(urlsplit(found[1].decode()).query)
            [key], [credential] = query["symbol"], query["apikey"]
            kind, number = re.fullmatch(r"([A-Z]+)([0-9]+)", key).groups()  # type: ignore[union-attr] # its keys
            given = FORMS[int(number) // 2]((credential, OTHER)[int(number) % 2])
            self.repeated += 1
            body = BODIES[kind](key, given).encode()
            header = given if given.isascii() and '"' not in given else quote(given)
            more = {"ETAG": f"ETag: {header}\r\n", "ERRENC": f"Content-Encoding: {header}\r\n"}.get(kind, "")
            content_type = f"text/{header}" if kind == "ERRCT" else "application/json"
            await visit.send(
                f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )


def readings(text: str) -> list[str]:
    """The text as it is, and as whoever decodes it would read it."""
    found = [text]
    for _ in range(2):
        unescaped = re.sub(r"\\+u00([0-9a-fA-F]{2})", lambda one: chr(int(one[1], 16)), found[-1])
        found.append(html.unescape(unquote(unescaped)))
    for run in re.findall(r"[A-Za-z0-9+/_-]{16,}", text):
        for start in range(4):
            padded = run[start:].replace("-", "+").replace("_", "/")
            data = base64.b64decode(padded[: len(padded) // 4 * 4])
            found.append(data.decode("latin-1"))
    return [one.lower() for one in found]


def leaks(places: dict[str, str]) -> list[str]:
    """Where one of the credentials can be read, or half of one."""
    looked_for = [secret[start : start + 10].lower() for secret in (SECRET, OTHER) for start in (0, len(secret) - 10)]
    return [
        f"{name}: …{one[max(0, one.index(part) - 60) : one.index(part) + 60]}…"
        for name, text in places.items()
        for one in readings(text)
        for part in looked_for
        if part in one
    ]


async def test_what_an_upstream_repeats_is_in_no_row_and_no_log_line(
    market: Market, monkeypatch: pytest.MonkeyPatch, livewell_dsn: str
) -> None:
    """The credential is in no row and no log line, all the way to the dead letters (M3).

    Fourteen ways to repeat it, eleven ways to write it, the credential of the call and the other
    one.
    """
    monkeypatch.setitem(os.environ, "PARROT_KEY", SECRET)
    monkeypatch.setitem(os.environ, "PARROT_KEY_2", OTHER)
    keys = [f"{kind}{number}" for kind in BODIES for number in range(2 * len(FORMS))]
    parrot = Parrot()
    with structlog.testing.capture_logs() as logged:
        async with HostileServer(parrot.serve) as server:
            await market.apply(UPSTREAM.format(url=server.url), TYPE)
            async with market.working(slots=8):
                await asyncio.gather(*(market.app.get("word", key, max_age="1m") for key in keys))

                async def asked() -> bool:
                    return parrot.repeated >= len(keys)

                await eventually_async(asked, timeout=60, what="every key was asked for")
                # Once more for all that failed, and that was the last time: no waiting for the
                # back-off.
                failed = (
                    "UPDATE livewell.job SET run_at = livewell.now(), max_attempts = attempt + 1 WHERE state = "
                    "'delayed'"
                )

                async def dead() -> bool:
                    await market.rows(f"WITH again AS ({failed} RETURNING 1) SELECT count(*) FROM again")
                    return bool(await market.scalar("SELECT count(*) > 200 FROM livewell.dead_job"))

                await eventually_async(dead, timeout=60, what="dead letters")

    rows = canary.rows(livewell_dsn)
    assert all(rows[f"table livewell.{name}"] for name in ("ledger", "dead_job", "warning"))
    assert leaks(rows | {"log": "\n".join(map(str, logged))}) == []
    # It is told that something was hidden, and what is harmless stays readable.
    assert "Invalid API KEY" in rows["table livewell.ledger"]
    assert await market.scalar("SELECT reason FROM livewell.ledger WHERE key = 'LEAK0'") == "bad_text"
    assert await market.scalar("SELECT count(*) FROM livewell_data.word WHERE key LIKE 'ETAG%%'") == 2 * len(FORMS)


async def test_a_row_that_names_a_variable_of_ours_sends_nothing(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L7: an older release has applied it. Seen failing on 0.6.0, where nothing was said of it."""
    monkeypatch.setitem(os.environ, "PGPASSFILE", SECRET)
    document = UPSTREAM.replace('["PARROT_KEY", "PARROT_KEY_2"]', '["PGPASSFILE"]')
    with structlog.testing.capture_logs() as logged:
        async with HostileServer(Parrot().serve) as server:
            row = json.dumps(tomllib.loads(document.format(url=server.url)))
            await apply(market.app.database, read_row(row, "row"), "row")
            await market.apply(TYPE)
            async with market.working(slots=1):
                await market.app.get("word", "ERROBJ0", max_age="1m")

                async def told() -> bool:
                    return any(line["event"] == "a credential is not used" for line in logged)

                await eventually_async(told, timeout=20, what="the log says why")
            assert server.requests == []

    [line] = [line for line in logged if line["event"] == "a credential is not used"]
    assert line["variable"] == "PGPASSFILE"
    assert "Put the upstream's key into a variable of its own" in line["why"]
