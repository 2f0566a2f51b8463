"""F-G2: many workers race for the rest of a byte budget, and are killed and frozen over it.

What they used is booked exactly once.

Two limiters. `race` has room for so many answers of one size. Claims stop in time, so that used and
reserved bytes never pass the stop (95 %), looked at all the while from outside; the bytes in the
upstream's log stay below it too. `meter` has room enough and answers of many sizes. Every call
whose answer a handler measured is booked with exactly the bytes that the upstream sent. That holds
also when the job was taken away meanwhile because its worker stood still past its lease: it is
first charged by estimate, and the late report books the difference. What a killed worker had
claimed stays charged by estimate.

Can it fail? Yes: with claim_limited blind to reservations, 145,236 bytes were used and reserved
under a stop of 131,586, and the upstream sent 143,052; with the late reports of buried workers
dropped (as they once were), calls of 60,093 bytes stood charged with 10,000.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from livewell.testing import Behaviour, Call, HistoryChecker
from livewell.testing.http import Request
from livewell.testing.upstream.answer import compose
from livewell.testing.upstream.values import Values
from tests.faults.fleet import Worker
from tests.faults.limited_fleet import LimitedFleet, open_limited_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-G2"
TITLE = "Workers race for a byte budget; usage is booked once"

SLOTS = 4
LEASE_SECONDS = 1.0
STOP = 0.95
BODY_BYTES = 1000
SIZES = (300, 4_000, 20_000, 60_000)  # of metered answers
METER_ESTIMATE = 10_000
METER_BACKLOG = 40
TAIL_BYTES = 65_536
LINGER_SECONDS = 0.2  # between an answer and the end of its handler: what kills and freezes hit
LOOK = """
SELECT (SELECT coalesce(sum(units), 0) FROM livewell.limiter_usage WHERE limiter = 'race')::bigint,
       (SELECT coalesce(sum(reserved_units), 0) FROM livewell.job WHERE queue = 'race' AND state = 'running')::bigint
"""


@dataclass(slots=True)
class Watch:
    """Usage and reservations of the race, read again and again from outside, each time in one snapshot."""

    most: int = 0
    looks: int = 0
    killed: set[int] = field(default_factory=set)  # pids
    lost: set[int] = field(default_factory=set)  # fences that were measured by one that was killed over them
    late: set[int] = field(default_factory=set)  # fences that were charged by estimate before their report came


async def run(scale: Scale) -> Findings:
    """The race with kills, then the meter with kills and freezes, with the same workers."""
    findings, chance, watch = Findings(), scale.random(), Watch()
    size = _wire_bytes()
    answers, crew_size = scale.pick(120, 1500), scale.pick(4, 20)
    stop = answers * size + size // 2
    limiters = {
        "race": {"budget": f"{-(-stop * 100 // 95)}B/24h", "budget_stop": STOP, "estimate": size},
        "meter": {"budget": "1GB/24h", "estimate": METER_ESTIMATE},
    }
    async with open_limited_fleet(scale, limiters, lease_seconds=LEASE_SECONDS, worker_slots=SLOTS) as limited:
        await limited.upstream.behave(credential="fake-race", content=b"x" * BODY_BYTES)
        for share, length in zip((1.0, 0.5, 0.4, 0.3), SIZES, strict=True):  # the newest that fits answers
            await limited.upstream.behave(credential="fake-meter", body="huge", size_bytes=length, share=share)
        await limited.workers(crew_size)
        await _race(limited, watch, chance, findings, stop=stop, size=size, jobs=2 * answers)
        frozen = await _meter(limited, watch, findings, rounds=scale.pick(2, 20))
        _audit(limited, watch, findings, silent_max=SLOTS * (len(watch.killed) + frozen))
        calls = Counter(call.credential for call in limited.upstream.log.read())
        findings.fired = len(watch.killed) + frozen
        findings.check(bool(watch.killed), "nobody was killed")
        findings.check(bool(watch.late), "no report came late")
        findings.figures = {
            "workers": crew_size,
            "stop_bytes": stop,
            "used_and_reserved_most": watch.most,
            "looks": watch.looks,
            "calls_race": calls["fake-race"],
            "calls_meter": calls["fake-meter"],
            "workers_killed": len(watch.killed),
            "workers_frozen": frozen,
            "late_reports": len(watch.late),
            "reports_killed": len(watch.lost),
        } | findings.figures
    return findings


def _wire_bytes() -> int:
    """What an answer of the race weighs, head and body."""
    answer = compose(Request(0, "GET", "/quote", {}, keep_alive=False), Behaviour(content=b"x" * BODY_BYTES), Values())
    return len(answer.head) + sum(len(piece.data) for piece in answer.body)


async def _race(
    limited: LimitedFleet, watch: Watch, chance: random.Random, findings: Findings, *, stop: int, size: int, jobs: int
) -> None:
    """Kill and replace until the budget is used up.

    Then nothing runs, and not even one more would fit.
    """
    await limited.enqueue("race", jobs, linger_seconds=LINGER_SECONDS)
    looking = asyncio.create_task(_look(limited, watch))
    try:
        for _ in range(600):
            await asyncio.sleep(chance.uniform(0.3, 0.6))
            used, reserved = limited.fleet.rows(LOOK)[0]
            if used + reserved > stop - 10 * size:
                break
            await _replace_one(limited, watch, chance)
        spent = (
            "(SELECT sum(units) FROM livewell.limiter_usage WHERE limiter = 'race') > %s AND NOT EXISTS (SELECT "
            "FROM livewell.job WHERE state = 'running')"
        )
        done = await limited.fleet.until(spent, 30, (stop - size - 1,))
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
    used, reserved = limited.fleet.rows(LOOK)[0]
    heard = sum(call.wire_bytes for call in limited.upstream.log.read() if call.credential == "fake-race")
    findings.check(done is not None, f"the budget was not used up: {used} used, {reserved} reserved of {stop}")
    findings.check(watch.most <= stop, f"{watch.most} bytes used and reserved, the stop is at {stop}")
    findings.check(heard <= stop, f"the upstream sent {heard} bytes, the stop is at {stop}")
    findings.figures["upstream_bytes_race"] = heard
    limited.fleet.rows("DELETE FROM livewell.job WHERE queue = 'race'")


async def _look(limited: LimitedFleet, watch: Watch) -> None:
    while True:
        watch.most = max(watch.most, sum(limited.fleet.rows(LOOK)[0]))
        watch.looks += 1
        await asyncio.sleep(0.01)


async def _meter(limited: LimitedFleet, watch: Watch, findings: Findings, *, rounds: int) -> int:
    """Kill one worker each round, and let one stand still; return how many stood still.

    The killed one has measured answers in hand. The other stands still until its jobs belong to
    somebody else.
    """
    frozen = 0
    for _ in range(rounds):
        victim, _ = await _catch(limited)
        await _kill(limited, watch, victim)
        zombie, measured = await _catch(limited)
        frozen += 1
        settled = "(SELECT count(*) FROM livewell.usage_settled WHERE fence = ANY (%s)) = %s"
        in_time = await limited.fleet.until(settled, 20, (list(measured), len(measured)))
        findings.check(in_time is not None, "what the frozen worker held was not taken over within 20 s")
        watch.late |= _charged_otherwise(limited, measured)
        zombie.thaw()
        await limited.fleet.converge(findings, 40)
        await asyncio.sleep(LINGER_SECONDS)
    return frozen


async def _catch(limited: LimitedFleet) -> tuple[Worker, set[int]]:
    """Freeze a worker that has measured answers in hand; answers it and their fences.

    There is always work meanwhile.
    """
    for _ in range(500):
        if limited.fleet.live() < METER_BACKLOG:
            await limited.enqueue("meter", METER_BACKLOG, linger_seconds=LINGER_SECONDS)
        await asyncio.sleep(0.01)
        working = {worker.pid: worker for worker in _working(limited)}
        pids = [pid for pid, _ in _heard(limited) if pid in working]
        if not pids:
            continue
        caught = working[pids[-1]]  # who heard last has it in hand for the longest time to come
        caught.freeze()
        measured = _in_hand(limited, caught.pid)
        if measured:
            return caught, measured
        caught.thaw()
    raise AssertionError("no worker was caught with a measured answer in hand")


def _charged_otherwise(limited: LimitedFleet, fences: set[int]) -> set[int]:
    """Those of these claims that stand charged with something else than what the upstream sent.

    The report is still to come.
    """
    sent = {call.jobs[0][1]: call.wire_bytes for call in limited.upstream.log.read()}
    charged = limited.fleet.rows(
        "SELECT fence, units FROM livewell.usage_settled WHERE fence = ANY (%s)", (list(fences),)
    )
    return {fence for fence, units in charged if units != sent[fence]}


def _in_hand(limited: LimitedFleet, pid: int) -> set[int]:
    """Fences whose answer this process has measured and not yet handed in, as far as the database knows."""
    heard = [fence for by, fence in _heard(limited) if by == pid]
    running = limited.fleet.rows(
        "SELECT fence FROM livewell.job WHERE fence = ANY (%s) AND state = 'running'", (heard,)
    )
    return {fence for (fence,) in running}


def _heard(limited: LimitedFleet) -> list[tuple[int, int]]:
    """(pid, fence) of the answers that were measured last, oldest first.

    The end of the log will do, and reading it all would take longer than an answer is in hand.
    """
    with limited.fleet.log.path.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
        words = [line.split() for line in log.read().decode(errors="replace").split("\n")[1:-1]]
    return [(int(line[2]), int(line[1])) for line in words if len(line) == 4 and line[0] == "heard"]


def _working(limited: LimitedFleet) -> list[Worker]:
    return [
        worker
        for worker in limited.fleet.children
        if worker.alive and any("worker started" in line for line in worker.child.lines())
    ]


async def _replace_one(limited: LimitedFleet, watch: Watch, chance: random.Random) -> None:
    """Kill one that works; not while fewer than three do."""
    working = _working(limited)
    if len(working) >= 3:
        await _kill(limited, watch, chance.choice(working))


async def _kill(limited: LimitedFleet, watch: Watch, victim: Worker) -> None:
    """kill -9, and start another in its place.

    What it had measured and not handed in died with it.
    """
    victim.kill()
    await victim.ended()
    watch.killed.add(victim.pid)
    watch.lost |= _in_hand(limited, victim.pid)
    limited.start()


def _audit(limited: LimitedFleet, watch: Watch, findings: Findings, *, silent_max: int) -> None:
    """Compare what was booked, fence by fence and in sum, with what the upstream sent."""
    fleet = limited.fleet
    settled = dict(fleet.rows("SELECT fence, units FROM livewell.usage_settled"))
    booked = dict(fleet.rows("SELECT credential, sum(units)::bigint FROM livewell.limiter_usage GROUP BY 1"))
    calls = limited.upstream.log.read()
    by_fence: dict[int, Call] = {call.jobs[0][1]: call for call in calls}
    measured = {line.key for line in fleet.events() if line.event == "heard"} - watch.lost
    total = sum(settled.values())
    findings.check(
        sum(booked.values()) == total, f"booked are {sum(booked.values())} bytes, by claims it should be {total}"
    )
    for fence in sorted(measured):
        sent, charged = by_fence[fence].wire_bytes, settled.get(fence)
        findings.check(
            charged == sent,
            f"fence {fence}{' (late)' if fence in watch.late else ''}: charged are {charged} bytes, the "
            f"upstream sent {sent}",
        )
    uncharged = [fence for fence in by_fence if fence not in settled]
    findings.check(not uncharged, f"{len(uncharged)} calls were made and never charged")
    # What nobody measured is charged by estimate; with that taken out, both histories agree to the
    # byte.
    unheard = [call for fence, call in by_fence.items() if fence not in measured]
    silent = [fence for fence in settled if fence not in by_fence]
    findings.check(len(silent) <= silent_max, f"{len(silent)} claims were charged without a call")
    by_estimate = sum(settled[fence] for fence in silent)
    by_estimate += sum(settled.get(call.jobs[0][1], 0) - call.wire_bytes for call in unheard)
    checker = HistoryChecker([replace(call, credential="all") for call in calls])
    for violation in checker.check_usage({"all": sum(booked.values()) - by_estimate}, unit="wire_bytes"):
        findings.check(False, violation)
    findings.figures |= {
        "charges_by_estimate": len(unheard) + len(silent),
        "charges_exact": len(measured),
        "bytes_booked": sum(booked.values()),
        "bytes_sent": sum(call.wire_bytes for call in calls),
    }
