"""One ill key among honest ones in a batch call: its illness is told to nobody else (R14, X10).

Seen failing on 0.5.0 with nan, nul and null: all eleven honest keys were told the ill one's reason.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from urllib.parse import parse_qs, urlsplit

import pytest

from livewell.telemetry.measures import LENGTHLESS
from livewell.testing.processes import eventually_async
from tests.integration.outbound.hostile import HostileServer, Visit
from tests.support.market import Market

HONEST = [f"K{number}" for number in range(11)]
ILL = "ILL"
ROUNDS = 3

UPSTREAM = """
[upstream]
name = "clinic"
base_url = "{url}"
vocabulary = "plain"
"""

TYPE = """
[type]
name = "pulse"
upstream = "clinic"
ttl = "1s"
negative_ttl = "1h"
strategy = "on_demand"
size_estimate = 300

[fetch]
path = "/pulse"
query = { symbol = "{key}" }
key_pattern = "[A-Z0-9]{1,20}"
body_bytes_max = 10000
batch = { path = "/pulses", query = { symbols = "{keys}" }, keys_max = 50, separator = "," }

[answer]
rows = "@"
kind = "one"
key = "symbol"
rule = "age"

[columns]
rate = { type = "numeric", min = 0, max = 1000000 }
note = { type = "text", max_length = 50 }

[sample]
key = "K0"
recorded = "2026-07-22"
body = '''[{"symbol": "K0", "rate": 60, "note": "well"}]'''
"""

WELL = '{"symbol": "%s", "rate": %d, "note": "well"}'
ROWS = {  # what the row of the ill key looks like: told apart, so it fails alone in the same call
    "nan": ('{"symbol": "ILL", "rate": NaN, "note": ""}', "bad_number"),
    "infinity": ('{"symbol": "ILL", "rate": -Infinity, "note": ""}', "bad_number"),
    "1e400": ('{"symbol": "ILL", "rate": 1e400, "note": ""}', "bad_number"),
    "digits": ('{"symbol": "ILL", "rate": ' + "9" * 500 + ', "note": ""}', "bad_number"),
    "nul": ('{"symbol": "ILL", "rate": 1, "note": "\\u0000"}', "bad_text"),
    "surrogate": ('{"symbol": "ILL", "rate": 1, "note": "\\ud800"}', "bad_text"),
    "twice": ('{"symbol": "ILL", "rate": 1, "rate": 2, "note": ""}', "not_json"),
    "text": ('{"symbol": "ILL", "rate": "many", "note": ""}', "wrong_type"),
    "gone": ('{"symbol": "ILL", "note": ""}', "missing_field"),
}
DOCUMENTS = {  # and what nobody can tell apart: the whole answer is refused, and everybody asked alone, once
    "key_twice": ('{"symbol": "K0", "symbol": "ILL", "rate": 1, "note": ""}', "not_json"),
    "garbage": ('{"symbol": "ILL", oops}', "not_json"),
    "deep": ('{"symbol": "ILL", "rate": 1, "note": "", "x": ' + "[" * 40 + "]" * 40 + "}", "too_deep"),
    "null": ("null", "wrong_shape"),
    "status": ("", "status"),
}


class Clinic:
    """Answers batches and single questions; the ill key's row is what it is told to be.

    A row of "" is a 422 for the whole call.
    """

    def __init__(self, row: str) -> None:
        self._row = row
        self._given = 0
        self.asked: list[tuple[str, ...]] = []

    async def serve(self, visit: Visit) -> None:
        """One connection."""
        while head := await visit.request():
            found = re.match(rb"GET (\S+) ", head)
            assert found is not None
            query = parse_qs(urlsplit(found[1].decode()).query)
            keys = tuple((query.get("symbols") or query["symbol"])[0].split(","))
            self.asked.append(keys)
            self._given += 1
            rows = [self._row if key == ILL else WELL % (key, self._given) for key in keys]
            status, body = (200, f"[{','.join(rows)}]") if all(rows) else (422, "[]")
            await visit.send(
                f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )

    def rounds(self, key: str) -> int:
        """How often it was asked for."""
        return sum(key in keys for keys in self.asked)


@pytest.mark.parametrize("kind", [*ROWS, *DOCUMENTS])
async def test_one_ill_key_is_ill_alone(market: Market, kind: str) -> None:
    """Twelve watched keys, one ill, three rounds.

    The honest ones never fail, the ill one has its own reason, and is at most once in a refused
    call with others.
    """
    row, reason = (ROWS | DOCUMENTS)[kind]
    clinic = Clinic(row)
    honest_failures: list[tuple[object, ...]] = []
    async with HostileServer(clinic.serve) as server:
        await market.apply(UPSTREAM.format(url=server.url), TYPE)
        async with market.working(slots=4):

            async def watching() -> None:
                async with aclosing(market.app.watch("pulse", [*HONEST, ILL])) as readings:
                    async for reading in readings:
                        failed = reading.key != ILL and reading.reason is not None
                        honest_failures.extend([(reading.key, reading.verdict, reading.reason)] if failed else [])

            watch = asyncio.create_task(watching())

            async def told() -> bool:
                [(found,)] = await market.rows("SELECT max(reason) FROM livewell.ledger WHERE key = %s", ILL)
                return bool(found == reason) and min(map(clinic.rounds, HONEST)) >= ROUNDS

            try:
                await eventually_async(told, timeout=40, what=f"{kind}: {reason}")
            finally:
                watch.cancel()
                await asyncio.wait([watch])

    assert honest_failures == []
    together = [keys for keys in clinic.asked if ILL in keys and len(keys) > 1]
    assert len(together) <= 1
    singly = (await market.counts()).get("singly", 0)
    assert (singly > 0) == (kind in DOCUMENTS and together != [])
    assert singly <= len(HONEST) + 1


async def test_answers_without_a_length_are_counted(market: Market) -> None:
    """R16: an answer whose size nobody states is a metric of its upstream.

    In 0.5.0 it was known, and told to nobody.
    """
    before = LENGTHLESS.values.get(("clinic",), 0)
    body = (WELL % ("K0", 1)).encode()

    async def serve(visit: Visit) -> None:
        if await visit.request():
            await visit.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[" + body + b"]"
            )

    async with HostileServer(serve) as server:
        await market.apply(UPSTREAM.format(url=server.url), TYPE)
        async with market.working(slots=1):
            await market.app.get("pulse", "K0", wait="20s")

    assert LENGTHLESS.values[("clinic",)] == before + 1
