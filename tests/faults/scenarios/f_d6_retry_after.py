"""F-D6: 429 with Retry-After as seconds, as a date, in the past, huge, as garbage, and without it.

One call meets the wall; from then on readers demand every key of two workers, and none of them
calls before the time that was asked for (or, where none was, before our own back-off). The wait is
capped at what the limiter believes (silence_max, a quarter of an hour), costs no attempt, and ends:
the value comes by itself. What was huge is ended by an operator's hand, who clears the limiter.

Can it fail? Yes: with an observe_limiter that writes no silence down, every kind of wall is found
unheard.
"""

from __future__ import annotations

import asyncio

from livewell.apps.market.simulator.knobs import Knobs
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-D6"
TITLE = "429 with Retry-After of every kind"

ASKED_SECONDS = 1
OWN_SECONDS = 4.0  # without a Retry-After that makes sense: 5 s, ± 20 %
BELIEVED_SECONDS = 900  # silence_max, as it is unless a file says otherwise
SILENT_SECONDS = 0.6  # how long a silence is watched that is too long to be waited for
# what is asked → the silence that must follow, in seconds; those of the second group are not waited
# for in the short form
SOON = {"rate_seconds": float(ASKED_SECONDS), "rate_date": 0.0, "rate_past": 0.0}
LATE = {"rate_garbage": OWN_SECONDS, "rate_absent": OWN_SECONDS}
QUIET = "SELECT coalesce(extract(epoch FROM quiet_until - livewell.now())::float8, 0) FROM livewell.limiter_credential"
CLEAR = (
    (
        "UPDATE livewell.limiter_credential SET quiet_until = NULL, breaker = 'closed', open_until = NULL, "
        "opened_at = NULL"
    ),
    # the job that met the wall waits as long
    "UPDATE livewell.job SET run_at = livewell.now() WHERE state = 'delayed'",
)


async def run(scale: Scale) -> Findings:
    """Every kind of 429, one after the other."""
    findings = Findings()
    knobs = Knobs(tick_seconds=1, retry_after_seconds=ASKED_SECONDS)
    silences: dict[str, float] = {}
    async with open_refresh_fleet(scale, knobs=knobs) as market:
        await market.workers(2)
        keys = market.symbols(5)
        market.watch("quote", keys)
        await market.until_fresh(findings, 40)
        for _ in range(scale.pick(1, 10)):
            for kind, seconds in SOON.items():
                silences[kind] = await _meet(market, findings, keys, kind, seconds)
            for kind, seconds in LATE.items():
                silences[kind] = await _meet(market, findings, keys, kind, seconds, wait=scale.full)
            silences["rate_huge"] = await _meet(market, findings, keys, "rate_huge", BELIEVED_SECONDS - 60, wait=False)
        kinds = (*SOON, *LATE, "rate_huge")
        findings.fired = market.fired(*kinds)
        counted = market.counts()["rate_wall"]
        findings.check(counted >= findings.fired, f"{findings.fired} walls, {counted} were counted")
        findings.check(not market.fleet.value("SELECT count(*) FROM livewell.dead_job"), "a wall cost an attempt")
        ruling = market.judge(findings)
        early = sum("early" in violation for violation in findings.violations)
        findings.figures = {
            "early_calls": early,
            "walls": {kind: market.fired(kind) for kind in kinds},
            "silence_seconds_asked": {kind: round(seconds, 2) for kind, seconds in silences.items()},
            "counted": counted,
            **ruling.figures(),
        }
    return findings


async def _meet(
    market: RefreshFleet, findings: Findings, keys: list[str], kind: str, seconds: float, *, wait: bool = True
) -> float:
    """One call meets the wall; answers for how long the limiter is silent then."""
    await market.until_quiet(findings)
    market.fleet.rows(CLEAR[0])
    before, met = len(market.calls()), market.fired(kind)
    await market.simulator.next(kind)
    demanding = [asyncio.create_task(market.app.get("quote", keys[0], max_age=0, wait="20s"))]
    await market.until_fired(findings, 20, met + 1, kind)
    # The wall is heard once it is stored; a past date asks for no silence at all.
    heard = "EXISTS (SELECT FROM livewell.limiter_credential WHERE quiet_until IS NOT NULL)"
    if kind != "rate_past" and await market.fleet.until(heard, 10) is None:
        findings.check(False, f"{kind}: the limiter heard nothing")
    asked = float(market.fleet.value(QUIET))
    findings.check(asked <= BELIEVED_SECONDS, f"{kind}: silent for {asked:.0f} s, which is more than is believed")
    if seconds > ASKED_SECONDS:
        findings.check(asked > seconds - 3, f"{kind}: silent for {asked:.1f} s only")
    demanding += [asyncio.create_task(market.app.get("quote", key, max_age=0, wait="20s")) for key in keys]
    if wait:
        await asyncio.gather(*demanding)
        await market.until_quiet(findings)
    else:
        await asyncio.sleep(SILENT_SECONDS)
    calls = market.calls()[before:]
    wall = next((call for call in calls if call["answer"] == kind), None)
    later = [call for call in calls if wall is not None and call["n"] > wall["n"]]
    if wall is not None and not wait:
        findings.check(not later, f"{kind}: {len(later)} early calls while it was silent for {asked:.1f} s")
    elif wall is not None:
        until = _until(wall, kind, seconds)
        early = [round(call["wall"] - wall["wall"], 3) for call in later if call["wall"] < until]
        findings.check(not early, f"{kind}: early calls {early} s after the wall")
        findings.check(bool(later), f"{kind}: nobody called again")
    if not wait:
        for statement in CLEAR:
            market.fleet.rows(statement)
        await asyncio.gather(*demanding)
        await market.until_quiet(findings)
    return asked


def _until(wall: dict[str, float], kind: str, seconds: float) -> float:
    """The instant before which nobody may call, by the simulator's own clock.

    A date has whole seconds.
    """
    if kind == "rate_date":
        return float(int(wall["wall"] + ASKED_SECONDS)) - 0.05
    return wall["wall"] + seconds - 0.05
