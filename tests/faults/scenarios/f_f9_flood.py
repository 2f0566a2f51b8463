"""F-F9: three clients ask for the dearest things there are, many times more often than they may.

Subscriptions to a thousand keys, and reads that demand a refresh.

The server runs with its limits as shipped. Each client is let through as often as the limits say
(requests, and keys, in a second) and no more often, and is told by Retry-After when to come back;
503 may answer the first burst only. Meanwhile jobs are claimed as a worker does it, timed inside
the database, before and during the flood; and somebody who did nothing wrong asks now and then, and
is answered.

The ratio of the claims' p99 is a figure. It is a violation only beside an absolute bound: server,
clients and database share the cores of this machine.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import psycopg

from bench.push.child import percentile
from livewell.settings import Settings
from tests.faults.http_support import Site, Visitor, open_site
from tests.faults.scenario import Findings, Scale

CODE = "F-F9"
TITLE = "request flood"

CLIENTS, KEYS = 3, 1000
CONNECTIONS = {"session": 100, "read": 30}  # of each client: more than the burst that is let in at once
CLAIM_MS_MAX = 100.0
DEFAULTS = Settings.model_fields
SHIPPED = ("session_requests_per_second", "read_requests_per_second", "requests_per_second", "key_cache_seconds")
BUSY_SHARE_MAX = 0.05  # of the refusals: the flood is stopped by its own limits, not by taking everybody's places
FILL = """
INSERT INTO livewell_data.quote (key, price, "timestamp") SELECT 'K' || n, 1, 1784750401 FROM generate_series(1, %s) AS n;
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, fetched_at, checked_at, changed_at, source_at, status_at)
SELECT 'quote', 'K' || n, 'fmp', 1, 1, now(), now(), now(), now(), now() FROM generate_series(1, %s) AS n
"""
TIMED = """
CREATE FUNCTION public.timed_claim(p_worker bigint, p_queue text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    v_begun timestamptz := clock_timestamp();
BEGIN
    PERFORM livewell.claim_jobs(p_worker, ARRAY[p_queue], 1);
    RETURN extract(epoch FROM clock_timestamp() - v_begun);
END
$$
"""
ACTIVE = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND usename "
    "LIKE 'livewell_test_%%'"
)


@dataclass(slots=True)
class Flood:
    """What one client got: by kind and status, and the answers that did not say when to come back."""

    bearer: str
    session: str
    got: Counter[tuple[str, int]] = field(default_factory=Counter)
    mute: int = 0
    cut: int = 0

    def requests(self, host: str) -> dict[str, bytes]:
        """As they go over the wire."""
        pairs = {"subscriptions": [{"type": "quote", "key": f"K{n + 1}"} for n in range(KEYS)]}
        body = json.dumps(pairs).encode()
        head = f"Host: {host}\r\nAuthorization: Bearer {self.bearer}\r\n"
        put = f"PUT /v1/sessions/{self.session}/subscriptions HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        get = f"GET /v1/data/quote/K1?max_age=0 HTTP/1.1\r\n{head}\r\n"
        return {"session": put.encode() + body, "read": get.encode()}


async def run(scale: Scale) -> Findings:
    """Claims alone, then beside the flood."""
    findings = Findings()
    seconds, pace = scale.pick(4, 60), 1000
    limits = {name: DEFAULTS[name].default for name in SHIPPED}
    async with open_site(scale, **limits) as site:
        for statement in FILL.strip().split(";\n"):
            site.fleet.rows(statement, (KEYS,))
        site.fleet.rows(TIMED)
        for _ in range(scale.pick(1, 12)):
            await site.fleet.enqueue("effect", 2000)
        floods = [await _client(site) for _ in range(CLIENTS)]
        innocent = site.visitor("innocent", site.key().text)
        before, _, _ = await _beside(site, innocent, seconds)
        storm = asyncio.create_task(_storm(site, floods, seconds, pace))
        during, active, waits = await _beside(site, innocent, seconds)
        sent = await storm
        findings.fired = sum(n for flood in floods for (_, status), n in flood.got.items() if status == 429)
        _judge(floods, seconds, findings)
        calm, stormy = percentile(before, 99), percentile(during, 99)
        ratio = stormy / calm
        findings.check(
            ratio <= 2 or stormy <= CLAIM_MS_MAX,
            f"a claim's p99 is {stormy:.1f} ms beside the flood, {calm:.1f} before",
        )
        findings.check(len(waits) > seconds / 3, f"somebody else was answered {len(waits)} times in {seconds} s")
        got = sum((flood.got for flood in floods), Counter[tuple[str, int]]())
        full = sum(n for (_, status), n in got.items() if status == 503)
        findings.check(
            full <= BUSY_SHARE_MAX * (full + findings.fired), f"{full} answers 503, {findings.fired} answers 429"
        )
        findings.figures = {
            "claim_p99_ms": round(stormy, 2),
            "claim_p99_ms_before": round(calm, 2),
            "ratio": round(ratio, 2),
            "requests_per_second": round(sent / seconds),
            "answers": {f"{kind} {status}": n for (kind, status), n in sorted(got.items())},
            "claims": len(during),
            "database_active_max": max(active),
            "bystander_p99_ms": round(percentile(waits, 99), 1),
            "connections_cut": sum(flood.cut for flood in floods),
        }
    return findings


async def _client(site: Site) -> Flood:
    bearer = site.key().text
    return Flood(bearer, await site.visitor("flood", bearer).session())


def _judge(floods: list[Flood], seconds: float, findings: Findings) -> None:
    """Each was let in as often as the limit says, and told when to come back."""
    for flood in floods:
        strange = {status for _, status in flood.got if status not in (200, 429, 503)}
        findings.check(not strange, f"answers of the flood: {dict(flood.got)}")
        findings.check(flood.mute == 0, f"{flood.mute} refusals do not say when to come back")
        for kind in CONNECTIONS:
            rate = DEFAULTS[f"{kind}_requests_per_second"].default
            cost = 1 + len(flood.requests("")[kind]) // 1024
            most = (
                rate / cost * (seconds + 2) * 1.2 + 2
            )  # a burst of two seconds; the flood ends a little after its time
            findings.check(flood.got[kind, 200] <= most, f"{kind}: {flood.got[kind, 200]} let in, {most:g} are allowed")
            findings.check(flood.got[kind, 200] > 0, f"{kind}: nothing was let in at all")
            findings.check(flood.got[kind, 429] > 0, f"{kind}: nothing was refused: there was no flood")


async def _storm(site: Site, floods: list[Flood], seconds: float, pace: float) -> int:
    """All connections together ask `pace` times a second, or as often as they are answered."""
    until, sent = time.monotonic() + seconds, 0
    begun = time.monotonic()

    async def ask(flood: Flood, kind: str) -> None:
        nonlocal sent
        parts = urlsplit(site.base)
        request = flood.requests(parts.netloc)[kind]
        reader = writer = None
        while time.monotonic() < until:
            ahead = sent / pace - (time.monotonic() - begun)
            if ahead > 0:
                await asyncio.sleep(ahead)
            sent += 1
            try:
                if reader is None or writer is None:
                    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
                writer.write(request)
                await writer.drain()
                status, told, stays = await _answer(reader)
            except (OSError, asyncio.IncompleteReadError):
                flood.cut += 1
                reader = writer = None
                continue
            flood.got[kind, status] += 1
            flood.mute += status in (429, 503) and not told
            if not stays:
                writer.close()
                reader = writer = None
        if writer is not None:
            writer.close()

    await asyncio.gather(
        *(ask(flood, kind) for flood in floods for kind in CONNECTIONS for _ in range(CONNECTIONS[kind]))
    )
    return sent


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bool, bool]:
    """Status, whether it says when to come back, and whether the connection stays."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
    await reader.readexactly(int(headers.get("content-length", "0")))
    told = headers.get("retry-after", "0")
    return int(head[0].split(" ")[1]), told.isdigit() and int(told) >= 1, headers.get("connection") != "close"


async def _beside(site: Site, innocent: Visitor, seconds: float) -> tuple[list[float], list[int], list[float]]:
    """Seconds of each claim; how many connections of the server were at work.

    Seconds that somebody else waited.
    """
    claiming = asyncio.create_task(asyncio.to_thread(_claim, site, seconds))
    waits: list[float] = []
    while not claiming.done():
        answer = await innocent.ask("GET", "/v1/types")
        assert answer.status in (200, 503), answer
        waits.append(answer.seconds)
        await asyncio.sleep(0.2)
    return *await claiming, waits


def _claim(site: Site, seconds: float) -> tuple[list[float], list[int]]:
    took: list[float] = []
    active: list[int] = []
    until = time.monotonic() + seconds
    with psycopg.connect(site.fleet.dsn, autocommit=True) as connection:
        [(queue,)] = connection.execute("SELECT queue FROM livewell.job LIMIT 1").fetchall()
        register = "SELECT livewell.register_worker('flood', '0', ARRAY[%s], ARRAY['effect'], 10, 3600)"
        [(worker,)] = connection.execute(register, (queue,)).fetchall()
        while time.monotonic() < until:
            [(seconds_taken,)] = connection.execute("SELECT public.timed_claim(%s, %s)", (worker, queue)).fetchall()
            took.append(seconds_taken)
            if len(took) % 10 == 1:
                active += [n for (n,) in connection.execute(ACTIVE.replace("%%", "%")).fetchall()]
            time.sleep(0.005)
    return took, active
