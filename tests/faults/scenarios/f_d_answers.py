"""F-D1–F-D5, F-D9–F-D14, F-D17.

The upstream answers, and what it answers is not so, not whole, or too much.

Every key has a value. Readers demand keys anew while the simulator spoils some of the answers,
alone and in calls for many keys. Every spoilt answer is counted with its own reason, or as one that
proves nothing and is asked again (ADR 11); every reason is seen. A spoilt answer moves neither the
value nor the check time of its key (false-fresh 0, counted: a key is confirmed no more often than
something true was served for it); and no key is frozen by it: the next good answer is stored.

Can it fail? Yes: with a move_ledger that sets checked_at on every answer, F-D2 finds keys confirmed
more often than anything true was served; with judge_refresh blind to the source's time, F-D10 finds
4 answers that nobody counted and values that are not the newest served. What a lenient validate
lets through: contract 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.oracle.log import read_events
from tests.faults.fleet import Worker
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale, Scenario

KEYS = 6
# faults in a row: the first may prove nothing, the second comes on a connection of its own; a job
# has four attempts
EACH = 2
ASKED_AGAIN = ("singly", "unproven")
SLOW = ("slow_drip", "never_answers")  # each of these takes a whole deadline
TURNS_MAX = 20
SHORT_DEADLINE_SECONDS = 1.0
WARN_MEGABYTES = 150  # what one answer may cost a worker at most; the bodies have hundreds and thousands
BODY_BYTES_MAX = 100_000  # of a quote, by its file


@dataclass(frozen=True, slots=True)
class Case:
    """One code: which faults, and the reasons that each must be counted under."""

    code: str
    title: str
    faults: dict[str, set[str]]
    knobs: Callable[[Scale], dict[str, Any]] = lambda _: {}
    is_failure: bool = True  # False: refused, and nobody's failure


DEADLINE = {"deadline"}
CUT = {"truncated", "connection", "not_json"}
CASES = (
    Case(
        "F-D1",
        "200 with nothing in it, or with an error in it",
        {
            "empty_array": {"empty"},
            "empty_object": {"empty"},
            "error_message": {"error_object", "transient"},
            "error_short": {"error_object", "transient"},
        },
    ),
    Case("F-D2", "200 with a page of HTML", {"html": {"html"}, "html_as_json": {"html"}}),
    Case("F-D3", "answers that are cut off", dict.fromkeys(("truncated", "cut_off", "reset_in_body", "closed"), CUT)),
    Case("F-D4", "an answer that drips", {"slow_drip": DEADLINE}),
    Case("F-D5", "an upstream that never answers", {"never_answers": DEADLINE}),
    Case("F-D9", "an answer about another symbol", {"wrong_symbol": {"wrong_key", "empty"}}),
    Case("F-D10", "an answer older than what is stored", {"stale_answer": {"older"}}, is_failure=False),
    Case("F-D11", "a source time in the future", {"future_time": {"future_source"}}),
    Case(
        "F-D12",
        "numbers, texts and nesting that no table takes",
        {
            "nan": {"bad_number", "not_json"},
            "infinite": {"bad_number", "not_json"},
            "long_number": {"bad_number", "out_of_bounds"},
            "deep": {"too_deep", "not_json"},
            "nul": {"bad_text"},
            "surrogate": {"bad_text", "not_json"},
            "duplicate_key": {"not_json", "wrong_shape", "bad_text", "duplicate_row"},
            "not_utf8": {"not_utf8"},
        },
    ),
    Case(
        "F-D13",
        "a body without end",
        {"huge_body": {"too_large"}},
        lambda scale: {"huge_bytes": scale.pick(200_000_000, 2_000_000_000)},
    ),
    Case(
        "F-D14",
        "a bomb: little on the wire, everything when unpacked",
        {"gzip_bomb": {"bomb", "too_large"}},
        lambda scale: {"bomb_bytes": scale.pick(100_000_000, 300_000_000)},
    ),
    Case(
        "F-D17",
        "schema drift: renamed fields, numbers as text",
        {"renamed_field": {"missing_field"}, "number_as_string": {"wrong_type"}},
    ),
)


async def run(case: Case, scale: Scale) -> Findings:
    """Wave after wave: every fault of the code on calls for one key, then on calls for many."""
    findings, chance = Findings(), scale.random()
    faults = {fault: 1 if fault in SLOW and not scale.full else EACH for fault in case.faults}
    hasty = None if scale.full else SHORT_DEADLINE_SECONDS
    knobs = Knobs(tick_seconds=1, **case.knobs(scale))
    async with open_refresh_fleet(scale, knobs=knobs, deadline_seconds=hasty, types=()) as market:
        await market.apply("quote", fetch={"batch": None})
        workers = await market.workers(scale.pick(1, 3))
        keys = market.symbols(KEYS)
        market.watch("quote", keys)
        await market.until_fresh(findings, 40)
        for _ in range(scale.pick(1, 20)):
            await _wave(market, findings, chance, keys, faults, together=1)
        await market.apply("quote")  # the endpoint for many keys, too
        for _ in range(scale.pick(1, 20)):
            await _wave(market, findings, chance, keys, faults, together=3)
        await _conclude(market, findings, case, keys, workers)
    return findings


async def _wave(
    market: RefreshFleet, findings: Findings, chance: Random, keys: list[str], faults: dict[str, int], *, together: int
) -> None:
    """Each fault, so many times in a row, while so many keys are demanded at once."""
    for fault, each in faults.items():
        wanted = market.fired(fault) + each
        await market.simulator.next(*[fault] * each)
        for _ in range(TURNS_MAX):
            await market.demand(chance.sample(keys, together), wait="30s")
            await market.until_quiet(findings)
            if market.fired(fault) >= wanted:
                break
        findings.check(market.fired(fault) >= wanted, f"{fault} was dealt and did not fire")


async def _conclude(
    market: RefreshFleet, findings: Findings, case: Case, keys: list[str], workers: list[Worker]
) -> None:
    frozen = [one for one in await market.demand(keys) if one.verdict != "fresh" or one.reason is not None]
    findings.check(not frozen, f"the next good answer was not taken: {frozen[:2]}")
    await market.until_quiet(findings)
    counts = market.counts()
    by_fault = {fault: market.fired(fault) for fault in case.faults}
    reasons = sorted(set().union(*case.faults.values()))
    counted = sum(counts[reason] for reason in (*reasons, *ASKED_AGAIN))
    findings.fired = sum(by_fault.values())
    findings.check(counted >= findings.fired, f"{findings.fired} faults fired, {counted} were counted: {dict(counts)}")
    silent = [fault for fault, given in case.faults.items() if not any(counts[reason] for reason in given)]
    findings.check(not silent, f"never counted with a reason of theirs: {silent} in {dict(counts)}")
    strange = sorted(
        set(counts) - {*reasons, *ASKED_AGAIN, "stored", "unchanged", "corrected", "older", "deadline", "type_changed"}
    )
    findings.check(not strange, f"counted under reasons that nobody gave: {strange}")
    if case.is_failure:
        warned = {what for (what,) in market.fleet.rows("SELECT what FROM livewell.warning WHERE place = 'refresh'")}
        findings.check(any(reason in what for reason in reasons for what in warned), f"nobody was warned: {warned}")
    for worker in workers:
        findings.check(worker.alive, f"a worker ended: {worker.child.describe(8)}")
    peak = max(_peak_megabytes(worker.pid) for worker in workers)
    ruling = market.judge(findings)
    findings.figures = {
        "false_fresh": ruling.false_fresh,
        "wrong_values": ruling.wrong_values,
        "faults": by_fault,
        "counted": {reason: counts[reason] for reason in reasons if counts[reason]},
        "peak_megabytes": peak,
        **ruling.figures(),
    }
    if case.code in ("F-D13", "F-D14"):
        _check_size(market, findings, case, peak)
    if case.code == "F-D17":
        named = market.fleet.value("SELECT count(*) FROM livewell.warning WHERE sample LIKE '%%price%%'")
        findings.check(named > 0, "no warning names the field")


def _check_size(market: RefreshFleet, findings: Findings, case: Case, peak: int) -> None:
    """The simulator says how many bytes it got rid of before the worker had enough.

    Kernels buffer some megabytes.
    """
    spoilt = {event["n"] for event in market.calls() if event["answer"] in case.faults}
    sent = [
        event["bytes"]
        for event in read_events(market.simulator.log)
        if event["event"] == "ended" and event["n"] in spoilt
    ]
    findings.figures["bytes_sent_max"] = max(sent, default=0)
    findings.check(max(sent, default=0) < 20_000_000, f"up to {max(sent, default=0):,} bytes of one body were taken")
    findings.check(peak < WARN_MEGABYTES, f"a worker grew to {peak} MB")


def _peak_megabytes(pid: int) -> int:
    """The most memory that a process ever had, by the kernel."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))


SCENARIOS = tuple(Scenario(case.code, case.title, partial(run, case)) for case in CASES)
