"""F-D18: the upstream is down for a while, then back. F-D19: keys that would be more than keys.

F-D18: nothing that is watched is called fresh for longer than its time to live, the breaker keeps
the fleet from calling, and after the recovery there is no storm: in no window are there more calls
than the rate allows, and every key is fresh again.

F-D19: keys with line ends, slashes, question marks, percent signs and quotes are subscribed to past
every check of Python, put past the check of SQL too, read by strangers, and asked for with a type
whose pattern lets them in. The simulator's log shows each key as it was asked for, or not at all;
no request is malformed, and no request has a header or a path that was not ours.

Can it fail? Yes: F-D19, with the key put into the address as it is ("A&symbol=MSFT" then asks for
another symbol, and "A#B" loses its end).
"""

from __future__ import annotations

import asyncio

from livewell.apps.market.simulator.oracle.judge import calls
from livewell.errors import InvalidOption
from livewell.testing.call_windows import busiest_window
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale, Scenario

RATE, WINDOW_SECONDS = 20, 1.0
LIMITS = (
    f'rate = "{RATE}/s"\nreserve = "0%"\n'
    'breaker = { failures = 5, share = 0.2, within = "1m", in_row = 3, open_for = "1s", open_max = "2s" }'
)
KEYS = 30
SUBSCRIBE = "SELECT DISTINCT answer FROM livewell.subscribe(%s, NULL, %s, %s)"
SMUGGLE = (
    (
        "INSERT INTO livewell.subscription SELECT s.id, 'quote', k, s.user_id FROM livewell.viewer_session s, "
        "unnest(%s::text[]) AS k WHERE s.id = livewell.session_hash(%s)"
    ),
    (
        "INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at) SELECT 'quote', k, 'fmp', "
        "livewell.now(), livewell.now() FROM unnest(%s::text[]) AS k WHERE %s <> ''"
    ),
)
HOSTILE = (
    "A\r\nX-Evil: 1",
    "A\nB",
    "../../etc/passwd",
    "A?apikey=x",
    "A&symbol=MSFT",
    "A#B",
    "A%0d%0aX-Evil:%201",
    "A B",
    "A'; DROP TABLE x; --",
    "A\tB",
    "\u202eAAPL",
    "AAPL,MSFT",
    "A/B",
    "{key}",
    "A\x7fB",
)
WIDE = "[A-Za-z0-9_:/,@=~#%&! .+$*^-]{1,60}"


async def run_outage(scale: Scale) -> Findings:
    """Down, back, and every call after that counted."""
    findings = Findings()
    async with open_refresh_fleet(scale, types=(), ttl="2s", limits=LIMITS, limit=(RATE, WINDOW_SECONDS)) as market:
        await market.apply("quote", fetch={"batch": None})
        await market.workers(scale.pick(1, 3))
        market.watch("quote", market.symbols(KEYS))
        await market.until_fresh(findings, 60)
        recoveries, peaks, down_seconds = [], [], scale.pick(3, 60)
        for _ in range(scale.pick(1, 5)):
            market.stay()
            async with market.without_upstream():
                findings.fired += 1
                await asyncio.sleep(down_seconds)
                verdicts = set(market.look().values())
                findings.check("fresh" not in verdicts, f"after {down_seconds} s without an upstream: {verdicts}")
                before = len(market.calls())
            took = await market.until_fresh(findings, scale.pick(60, 150), anew=True)
            recoveries += [took] if took is not None else []
            peaks.append(busiest_window(calls(market.simulator.log)[before:], WINDOW_SECONDS).calls)
        counts = market.counts()
        findings.check(counts["connection"] > 0, f"no failure was counted: {dict(counts)}")
        # While nobody answers only probes go out: far fewer than there are keys, and none is logged
        # anywhere but here.
        findings.check(
            counts["connection"] <= findings.fired * (KEYS // 2 + down_seconds),
            f"{counts['connection']} calls while down",
        )
        ruling = market.judge(findings)
        findings.figures = {
            "peak_calls_per_second_after": max(peaks, default=0),
            "rate_per_second": RATE,
            "failed_calls_while_down": counts["connection"],
            "recovered_seconds_max": round(max(recoveries, default=0.0), 1),
            **ruling.figures(),
        }
    return findings


async def run_keys(scale: Scale) -> Findings:
    """By every way in."""
    findings = Findings()
    async with open_refresh_fleet(scale, types=(), limits="breaker = false") as market:
        await market.apply("quote", fetch={"batch": None})
        await market.workers(1)
        keys = market.symbols(3)
        market.watch("quote", keys)
        await market.until_fresh(findings, 40)
        for key in HOSTILE:
            findings.fired += await _refused(market, findings, key)
        before = len(market.calls())
        strange = [key for key in HOSTILE if "\x00" not in key]
        session = market.watch("quote", keys[:1])
        answers = market.fleet.rows(SUBSCRIBE, (session, ["quote"] * len(strange), strange))
        findings.check(answers == [("bad_key",)], f"subscribed to past Python's checks: {answers}")
        # Past every pattern, as if the type's had been narrowed since: the worker looks for itself.
        for statement in SMUGGLE:
            market.fleet.rows(statement, (strange, session))
        await market.fleet.until("(SELECT count(*) FROM livewell.refresh_count WHERE outcome = 'wrong_key') > 0", 20)
        await _until_counted(market, findings, "wrong_key", len(strange))
        market.fleet.rows("SELECT livewell.close_session(%s, NULL)", (session,))
        asked = market.calls()[before:]
        findings.check(not asked, f"calls for keys that do not fit: {[call['keys'] for call in asked[:3]]}")
        # A type that lets them in: each arrives as it was asked for, and says nothing else.
        await market.apply("quote", fetch={"batch": None, "key_pattern": WIDE})
        before = len(market.calls())
        let_in = [key for key in HOSTILE if not set(key) - set(_characters())]
        for key in let_in:
            reading = await market.app.get("quote", key, wait="20s")
            findings.check(reading.verdict == "missing", f"{key!r} is {reading.verdict} ({reading.reason})")
        arrived = [key for call in market.calls()[before:] for key in call["keys"]]
        findings.check(set(arrived) == set(let_in), f"asked for {let_in}, arrived {arrived}")
        findings.check(all(set(call["query"]) <= {"symbol"} for call in market.calls()), "a key became a parameter")
        malformed = market.fired("malformed", "no_such_path", "missing_parameter", "method")
        findings.check(malformed == 0, f"{malformed} malformed requests were seen")
        await market.until_quiet(findings)
        ruling = market.judge(findings)
        findings.figures = {
            "malformed_requests": malformed,
            "refused_by_pattern": findings.fired,
            "refused_by_worker": market.counts()["wrong_key"],
            "arrived_encoded": len(let_in),
            **ruling.figures(),
        }
    return findings


async def _refused(market: RefreshFleet, findings: Findings, key: str) -> int:
    try:
        await market.app.get("quote", key)
    except InvalidOption:
        return 1
    findings.check(False, f"{key!r} was let in")
    return 0


async def _until_counted(market: RefreshFleet, findings: Findings, reason: str, n: int) -> None:
    for _ in range(400):
        if market.counts()[reason] >= n:
            return
        await asyncio.sleep(0.05)
    findings.check(False, f"{reason} was counted {market.counts()[reason]} times, {n} were wanted")


def _characters() -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:/,@=~#%&! .+$*^-"


SCENARIOS = (
    Scenario("F-D18", "the upstream is down, then back", run_outage),
    Scenario("F-D19", "keys that would be more than keys", run_keys),
)
