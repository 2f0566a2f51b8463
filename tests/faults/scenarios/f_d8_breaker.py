"""F-D8: the upstream flaps, then fails.

The breaker of the whole fleet opens, probes, and closes when the upstream is well.

The test drives the phases and knows from the database only when the breaker opened and until when;
what was called is read from the upstream's log:

    half of the calls fail ──▶ open: no call ──▶ one probe, answered 500 ──▶ open, twice as long: no call ──▶ one probe, hanging
       ──prober killed──▶ no call until its lease is over ──▶ one probe, slow and well: no call beside it ──▶ closed: calls flow

A call that was claimed before the opening may still be made while its permit lasts; after that an
open breaker means silence.

Can it fail? Yes: with limiter_room blind to the probe in flight, 15, 8 and 2 calls came at
half-open instead of one.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from livewell.testing import Call, HistoryChecker
from livewell.testing.call_windows import calls_between
from livewell.testing.processes import eventually_async
from tests.faults.fleet import Worker
from tests.faults.limited_fleet import LimitedFleet, open_limited_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-D8"
TITLE = "A flapping upstream: breaker, probes, killed probers"

CREW = 4
LEASE_SECONDS = 1.0
PERMIT_SECONDS = 0.3
STAMP_SECONDS = 0.1  # from the check of a permit to the upstream's stamp, on a busy machine
OPEN_SECONDS = 1.0
HANG_SECONDS = 0.7  # how long a hanging probe is watched before its worker is killed
SLOW_SECONDS = 0.5  # how long the good probe takes
PHASE_SECONDS_MAX = 30.0
BACKLOG = 40
LIMITS = {
    "rate": "60/s",
    "permit": PERMIT_SECONDS,
    "reserve": 0,
    "concurrency": 8,
    "breaker": {
        "failures": 10,
        "share": 0.2,
        "within": 60,
        "in_row": 5,
        "open_for": OPEN_SECONDS,
        "open_max": 2 * OPEN_SECONDS,
    },
}
BREAKER = (
    "SELECT breaker, opened, extract(epoch FROM open_until - clock_timestamp())::float8 FROM "
    "livewell.limiter_credential WHERE limiter = 'api'"
)


@dataclass(frozen=True, slots=True)
class Opening:
    """When the breaker was seen open, and until when it stays so.

    Nanoseconds of the clock that the upstream stamps with.
    """

    seen_ns: int
    until_ns: int


@dataclass(slots=True)
class Score:
    """What happened in all rounds."""

    openings: int = 0
    silent_seconds: float = 0.0
    calls_while_open: int = 0
    probes: int = 0
    beside_probes: int = 0  # calls beside a probe, or instead of it
    probers_killed: int = 0


async def run(scale: Scale) -> Findings:
    """Round after round with the same fleet; the killed are replaced."""
    findings, score = Findings(), Score()
    async with open_limited_fleet(scale, {"api": LIMITS}, lease_seconds=LEASE_SECONDS, worker_slots=4) as limited:
        await limited.workers(CREW)
        enough = asyncio.Event()
        feeding = asyncio.create_task(_feed(limited, enough))
        try:
            for _ in range(scale.pick(1, 20)):
                await _round(limited, findings, score)
        finally:
            enough.set()
            await feeding
        took = await limited.fleet.converge(findings, PHASE_SECONDS_MAX)
        finished = limited.fleet.rows("SELECT id, fence FROM livewell.job_history WHERE outcome = 'succeeded'")
        for violation in HistoryChecker(limited.upstream.log.read()).check_calls(finished):
            findings.check(False, violation)
        limited.fleet.audit(findings)
        findings.fired = score.probers_killed
        findings.figures = {
            "openings": score.openings,
            "calls_while_open": score.calls_while_open,
            "probes": score.probes,
            "calls_beside_probes": score.beside_probes,
            "probers_killed": score.probers_killed,
            "silent_seconds": round(score.silent_seconds, 1),
            "calls": len(limited.upstream.log.read()),
            "converged_seconds": round(took, 2) if took is not None else None,
        }
    return findings


async def _feed(limited: LimitedFleet, enough: asyncio.Event) -> None:
    while not enough.is_set():
        if limited.fleet.live() < BACKLOG:
            await limited.enqueue("api", BACKLOG)
        await asyncio.sleep(0.1)


async def _round(limited: LimitedFleet, findings: Findings, score: Score) -> None:
    upstream = limited.upstream
    await upstream.behave(status=500, share=0.5)
    first = await _opened(limited, 1)
    await upstream.behave(status=500)
    second = await _opened(limited, 2)
    await upstream.forget()
    await upstream.behave(fault="hang")
    _judge_silence(limited, findings, score, first)
    probe = _judge_probe(limited, findings, score, first.until_ns, second.seen_ns)
    findings.check(probe is None or probe.status == 500, "the first probe was not answered with 500")

    await _until(second.until_ns)
    hanging = await _next_call(limited, second.until_ns)
    _judge_silence(limited, findings, score, second)
    await asyncio.sleep(HANG_SECONDS)
    await upstream.forget()
    await upstream.behave(delay_seconds=SLOW_SECONDS)
    killed_ns = await _kill_prober(limited, hanging)
    score.probers_killed += 1

    good = await _next_call(limited, killed_ns)
    _judge_probe(limited, findings, score, second.until_ns, killed_ns)
    findings.check(
        good.at_ns - killed_ns > (LEASE_SECONDS / 2) * 1e9, "the next probe did not wait for the dead prober's lease"
    )
    ended = await _ended(limited, good)
    _judge_probe(limited, findings, score, killed_ns, ended.ended_ns or 0)
    await upstream.forget()
    closed = await limited.fleet.until(
        "breaker = 'closed' FROM livewell.limiter_credential WHERE limiter = 'api'", PHASE_SECONDS_MAX
    )
    findings.check(closed is not None, "the breaker did not close after a good probe")
    flowing = len(upstream.log.read())
    await eventually_async(lambda: len(upstream.log.read()) >= flowing + 10, PHASE_SECONDS_MAX)


async def _opened(limited: LimitedFleet, times: int) -> Opening:
    """Wait until the breaker has opened so many times in a row."""
    for _ in range(int(PHASE_SECONDS_MAX / 0.02)):
        before_ns = time.monotonic_ns()
        breaker, opened, left = limited.fleet.rows(BREAKER)[0]
        if breaker == "open" and opened == times:
            return Opening(time.monotonic_ns(), before_ns + int(left * 1e9))  # not later than it truly is
        await asyncio.sleep(0.02)
    raise AssertionError(f"the breaker did not open for the {times}. time within {PHASE_SECONDS_MAX} s")


def _judge_silence(limited: LimitedFleet, findings: Findings, score: Score, opening: Opening) -> None:
    """Once permits given before it have run out, an open breaker lets nothing through."""
    begin_ns = opening.seen_ns + int((PERMIT_SECONDS + STAMP_SECONDS) * 1e9)
    loud = calls_between(limited.upstream.log.read(), begin_ns, opening.until_ns)
    findings.check(not loud, f"{len(loud)} calls while the breaker was open")
    findings.check(begin_ns < opening.until_ns, "the breaker was seen open too late to judge its silence")
    score.openings += 1
    score.calls_while_open += len(loud)
    score.silent_seconds += max(0.0, (opening.until_ns - begin_ns) / 1e9)


def _judge_probe(limited: LimitedFleet, findings: Findings, score: Score, begin_ns: int, end_ns: int) -> Call | None:
    """Exactly one call between these instants."""
    probes = calls_between(limited.upstream.log.read(), begin_ns, end_ns)
    findings.check(len(probes) == 1, f"{len(probes)} calls reached the upstream at half-open, 1 is right")
    score.probes += 1
    score.beside_probes += abs(len(probes) - 1)
    return probes[0] if probes else None


async def _next_call(limited: LimitedFleet, after_ns: int) -> Call:
    """Wait for the first call after an instant."""

    def found() -> list[Call]:
        return [call for call in limited.upstream.log.read() if call.at_ns > after_ns]

    return (await eventually_async(found, PHASE_SECONDS_MAX))[0]


async def _ended(limited: LimitedFleet, call: Call) -> Call:
    """Wait until it is over."""

    def found() -> list[Call]:
        return [one for one in limited.upstream.log.read() if one.number == call.number and one.ended_ns]

    return (await eventually_async(found, PHASE_SECONDS_MAX))[0]


async def _kill_prober(limited: LimitedFleet, probe: Call) -> int:
    """kill -9 the process that made this call; answers the instant before it.

    Another one takes its place.
    """
    fence = probe.jobs[0][1]
    [pid] = {line.pid for line in limited.fleet.events() if line.event == "sent" and line.key == fence}
    prober: Worker = next(worker for worker in limited.fleet.children if worker.pid == pid)
    killed_ns = time.monotonic_ns()
    prober.kill()
    await prober.ended()
    limited.start()
    return killed_ns


async def _until(instant_ns: int) -> None:
    await asyncio.sleep(max(0.0, (instant_ns - time.monotonic_ns()) / 1e9))
