"""F-D21: the upstream asks for silence while the database is away.

A call is under way when Postgres is killed; its answer is a 429 with Retry-After. Nobody can write
that down: the worker keeps it, and says it before it renews its lease and before it claims again.
The database, back after a few seconds, grants no call before every worker of the upstream has
renewed. Judged by the upstream's own log: no call between the wall's answer and the end of the
silence; and calls after it.

Can it fail? Yes: with an observe() that keeps nothing and a limiter_room that does not wait after
the restart, 37 calls came in a silence of 12 s (short form), the first 3.7 s into it, as soon as
the database was back. Without the wait alone, three runs of the short form found nothing;
tests/sql/queue/test_restart_wait.py shows what the wait is for.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import replace

from livewell.apps.market.simulator.knobs import Knobs
from livewell.db import embedded
from tests.faults.database_support import check_alive, eventually, own_server
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-D21"
TITLE = "A wall while the database is away"

LATENCY_SECONDS = 1.5  # the answer comes after the kill
AWAY_SECONDS = 3.0
KEYS = 10


async def run(scale: Scale) -> Findings:
    """A wall, a kill, a restart; once, or several times."""
    findings = Findings()
    silence = scale.pick(8, 30)
    durable = {"fsync": "on", "synchronous_commit": "on", "max_connections": "100"}
    knobs = Knobs(tick_seconds=1, latency_seconds=LATENCY_SECONDS, retry_after_seconds=silence)
    async with (
        own_server(durable, on_disk=scale.full) as first_life,
        open_refresh_fleet(
            replace(scale, server=first_life.dsn),
            types=(),
            ttl="1s",
            knobs=knobs,
            lease_seconds=2,
            heartbeat_seconds=0.3,
            call_timeout_seconds=3,
        ) as market,
    ):
        await market.apply("quote", fetch={"batch": None})
        await market.workers(2)
        market.watch("quote", market.symbols(KEYS))
        await eventually(lambda: len(market.calls()) > 2 * KEYS, 60)  # all of them are asked for again and again
        server, back = first_life, list[float]()
        for _ in range(scale.pick(1, 4)):
            server = await _wall_in_an_outage(market, findings, server, silence, back)
        check_alive(market.fleet, findings)
        findings.figures = {
            "walls_met_in_outages": findings.fired,
            "silence_seconds": silence,
            "first_call_after_silence_seconds_max": max(back, default=None),
            **market.judge(findings).figures(),
        }
    return findings


async def _wall_in_an_outage(
    market: RefreshFleet, findings: Findings, server: embedded.EmbeddedServer, silence: float, back: list[float]
) -> embedded.EmbeddedServer:
    before, met = len(market.calls()), market.fired("rate_seconds")
    await market.simulator.next("rate_seconds")
    await market.until_fired(findings, 20, met + 1, "rate_seconds")
    os.kill(server.pid, signal.SIGKILL)
    down = time.monotonic()
    await asyncio.sleep(AWAY_SECONDS)
    server = await asyncio.to_thread(embedded.start, server.data_dir, wait_seconds=60)
    away = time.monotonic() - down
    wall = next((call for call in market.calls()[before:] if call["answer"] == "rate_seconds"), None)
    if wall is None:
        findings.check(False, "no wall was met")
        return server
    answered = wall["wall"] + LATENCY_SECONDS
    findings.fired += 1
    findings.check(away > LATENCY_SECONDS, "the database was back before the wall was answered")
    until = answered + silence
    market.stay()
    await eventually(lambda: any(call["wall"] >= until - 0.05 for call in market.calls()), silence + 30)
    # What had left before the answer came may still arrive with it.
    early = [
        round(call["wall"] - answered, 2) for call in market.calls() if answered + 0.2 < call["wall"] < until - 0.05
    ]
    findings.check(not early, f"{len(early)} early calls, {early[:5]} s into a silence of {silence} s")
    later = [call["wall"] for call in market.calls() if call["wall"] >= until - 0.05]
    findings.check(bool(later), "nobody called again after the silence")
    back += [round(min(later) - until, 2)] if later else []
    return server
