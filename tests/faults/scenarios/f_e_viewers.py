"""F-E6: ten thousand subscriptions of one client. F-E7: a thousand heartbeats a second.

F-E8: viewers who leave without a word.

F-E6: the cap holds in SQL, whatever the number of sessions, and a quiet client's key is refreshed
meanwhile. F-E7: heartbeats are written once a second at most, so spam costs nearly no WAL. F-E8: a
session that was not heard of for five minutes counts for nothing, swept or not: the simulator gets
no call for it, and the sweep takes its rows.

Can it fail? Yes: with a subscribe that lets everything in the cap is passed; a heartbeat that
always writes is found; with a due check that does not look at seen_at, ghosts cost calls for ever.
"""

from __future__ import annotations

import asyncio
import time
import uuid

import psycopg

from livewell.testing.history import percentile
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale, Scenario

CAP = 1000
PAIRS_MAX = 500
SUBSCRIBE = "SELECT answer, count(*)::integer FROM livewell.subscribe(%s, %s, %s, %s) GROUP BY answer"
BEATS = """
CREATE TABLE public.beat (n bigserial);
CREATE FUNCTION public.note_beat() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN INSERT INTO public.beat DEFAULT VALUES; RETURN NULL; END';
CREATE TRIGGER note_beat AFTER UPDATE ON livewell.viewer_session FOR EACH ROW EXECUTE FUNCTION public.note_beat()
"""
WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


async def run_greed(scale: Scale) -> Findings:
    """One user, many sessions, far more keys than anybody may have."""
    findings = Findings()
    async with open_refresh_fleet(
        scale, types=("quote", "profile"), limits='breaker = false\nrate = "200/s"'
    ) as market:
        await market.workers(1)
        quiet = market.symbols(3)
        market.watch("quote", quiet, user="quiet")
        await market.until_fresh(findings, 60)
        before = await _latencies(market, quiet, scale.pick(5, 100))
        answers: dict[str, int] = {}
        asked = scale.pick(2_000, 10_000)
        for start in range(0, asked, PAIRS_MAX):
            session = str(uuid.uuid4())
            market.fleet.rows("SELECT livewell.open_session(%s, 'greedy')", (session,))
            keys = [f"G{number}" for number in range(start, start + PAIRS_MAX)]
            for answer, n in market.fleet.rows(SUBSCRIBE, (session, "greedy", ["profile"] * PAIRS_MAX, keys)):
                answers[answer] = answers.get(answer, 0) + n
        during = await _latencies(market, quiet, scale.pick(5, 100))
        has = market.fleet.value("SELECT count(*)::integer FROM livewell.subscription WHERE user_id = 'greedy'")
        findings.fired = answers.get("capped", 0)
        findings.check(has <= CAP, f"one user has {has} subscriptions")
        findings.check(answers.get("subscribed", 0) == has == CAP, f"answers {answers}, rows {has}")
        ruling = market.judge(findings)
        findings.figures = {
            "asked": asked,
            "subscribed": has,
            "capped": findings.fired,
            "quiet_seconds_p99_before": round(percentile(before, 99), 3),
            "quiet_seconds_p99_during": round(percentile(during, 99), 3),
            **ruling.figures(),
        }
    return findings


async def _latencies(market: RefreshFleet, keys: list[str], n: int) -> list[float]:
    """How long a quiet client waits for a refresh that it demands."""
    found = []
    for number in range(n):
        begun = time.monotonic()
        await market.app.get("quote", keys[number % len(keys)], max_age=0, wait="20s", user="quiet")
        found.append(time.monotonic() - begun)
    return found


async def run_spam(scale: Scale) -> Findings:
    """As fast as one connection can, from a client that is very much alive."""
    findings = Findings()
    async with open_refresh_fleet(scale) as market:
        session = market.watch("quote", market.symbols(2), user="eager")
        market.fleet.rows(BEATS)
        beats, seconds = 0, scale.pick(2, 30)
        with psycopg.connect(market.fleet.dsn, autocommit=True) as client:
            wal, begun = market.fleet.value(WAL), time.monotonic()
            while time.monotonic() - begun < seconds:
                for _ in range(100):
                    client.execute("SELECT livewell.heartbeat_session(%s, 'eager')", (session,))
                beats += 100
                await asyncio.sleep(0)
            elapsed, wal = time.monotonic() - begun, market.fleet.value(WAL) - wal
        findings.fired = beats
        written = market.fleet.value("SELECT count(*)::integer FROM public.beat")
        findings.check(written <= elapsed + 2, f"{written} of {beats} heartbeats in {elapsed:.1f} s were written")
        findings.figures = {
            "heartbeats": beats,
            "written": written,
            "seconds": round(elapsed, 1),
            "wal_bytes_per_second": round(int(wal) / elapsed),  # of the whole server: others may write too
        }
    return findings


async def run_ghosts(scale: Scale) -> Findings:
    """Everybody leaves without goodbye; five minutes later nobody has looked for five minutes."""
    findings, wasted = Findings(), 0
    async with open_refresh_fleet(scale, ttl="1s") as market:
        await market.workers(1)
        for number in range(scale.pick(1, 10)):
            keys = market.symbols(30)[number * 3 % 27 :][:3]
            market.watched.clear()
            session = market.watch("quote", keys, user=f"ghost{number}")
            await market.until_fresh(findings, 60)
            # As if the last sign of life was five minutes ago; nothing else is touched, and nobody
            # has swept.
            market.fleet.rows(
                "UPDATE livewell.viewer_session SET seen_at = livewell.now() - interval '301 seconds' WHERE id "
                "= livewell.session_hash(%s)",
                (session,),
            )
            findings.fired += 1
            await market.until_quiet(findings)
            await asyncio.sleep(0.2)
            before = len(market.calls())
            await asyncio.sleep(3)  # three times the time to live
            wasted += len(market.calls()) - before
            viewers = market.fleet.value("SELECT livewell.count_viewers('quote', %s)", (keys[0],))
            findings.check(viewers == 0, f"{viewers} ghosts are counted")
            # A minute later the sweep takes its rows, too.
            market.fleet.rows(
                "UPDATE livewell.viewer_session SET seen_at = seen_at - interval '61 seconds' WHERE id = "
                "livewell.session_hash(%s)",
                (session,),
            )
            market.fleet.rows("SELECT livewell.sweep_sessions(1000)")
            left = market.fleet.value(
                "SELECT count(*)::integer FROM livewell.subscription WHERE session_id = livewell.session_hash(%s)",
                (session,),
            )
            findings.check(left == 0, f"{left} subscriptions of a ghost are left after the sweep")
        findings.check(wasted == 0, f"{wasted} calls for nobody")
        market.claims.clear()
        ruling = market.judge(findings)
        findings.figures = {"wasted_calls_after_death": wasted, **ruling.figures()}
    return findings


SCENARIOS = (
    Scenario("F-E6", "ten thousand subscriptions of one client", run_greed),
    Scenario("F-E7", "heartbeat spam", run_spam),
    Scenario("F-E8", "viewers who leave without a word", run_ghosts),
)
