"""What the figures say: medians, ratios pair by pair, and whether each demand is met.

A demand is met when the quartile on its bad side (the lower one of what shall be high, the upper
one of what shall be low) is on the right side of the bound. Where a peer was not there, ratio and
verdict are None: nobody knows. What says "never" is met when every pair is on the right side.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.line import BEST, Check, Line
from bench.measure import Figures
from bench.runner import Measured
from bench.system import LIVEWELL

_OURS = LIVEWELL.name


def report(lines: Sequence[Line[Any]], measured: Mapping[str, Measured], skipped: Mapping[str, str]) -> dict[str, Any]:
    """The parts of the document that come from the measurements."""
    run = [line for line in lines if line.name in measured]
    ratios = {check.name: _judge(check, measured[line.name], skipped) for line in run for check in line.checks}
    return {
        "results": {line.name: _medians(measured[line.name][_OURS]) for line in run},
        "peers": {
            line.name: {name: _medians(figures) for name, figures in measured[line.name].items() if name != _OURS}
            for line in run
        },
        "ratios": ratios,
        "met": {name: ratio["met"] for name, ratio in ratios.items() if ratio["bound"] is not None},
    }


def rows(lines: Sequence[Line[Any]], document: Mapping[str, Any]) -> list[list[str]]:
    """The table: line, ours, peer, ratio, bound, met."""
    table = []
    for line in lines:
        if line.name in document["not_measured"]:
            table.append([line.title, "", "", "", "", f"not measured: {document['not_measured'][line.name]}"])
        elif line.name in document["results"]:
            table.extend(_row(line, check, document) for check in line.checks)
    return table


def _row(line: Line[Any], check: Check, document: Mapping[str, Any]) -> list[str]:
    verdict = document["ratios"][check.name]
    ours = document["results"][line.name][check.figure]
    against = verdict["against"]
    peer = document["peers"][line.name].get(against, {}).get(check.figure)
    relation = "≤" if check.at_most else "≥"
    goal = f" (goal {check.goal:g} ×)" if check.goal else ""
    unit = " ×" if check.against else ""
    return [
        line.title,
        f"{_figure(ours)} {_UNITS.get(check.figure, '')}".strip(),
        f"{against}: {_figure(peer)}" if peer is not None else (against or "") and f"{against}: not there",
        ""
        if verdict["median"] is None or not check.against
        else f"{verdict['median']:.2f} ({verdict['quartile']:.2f})",
        "" if check.bound is None else f"{relation} {check.bound:,g}{unit}{goal}",
        "" if check.bound is None else {True: "yes", False: "NO", None: "unknown"}[verdict["met"]],
    ]


def _judge(check: Check, measured: Measured, skipped: Mapping[str, str]) -> dict[str, Any]:
    against, why_not = _opponent(check, measured, skipped)
    each = None if why_not else _each(check, measured, against)
    quartile = None if each is None else _bad_quartile(each, at_most=check.at_most)
    verdict = {
        "figure": check.figure,
        "against": against,
        "each": each and [round(value, 4) for value in each],
        "median": each and round(statistics.median(each), 4),
        "quartile": quartile and round(quartile, 4),
        "bound": check.bound,
        "at_most": check.at_most,
        "met": _met(check, each, quartile),
    }
    return verdict | ({"goal": check.goal} if check.goal else {}) | ({"unknown": why_not} if why_not else {})


def _met(check: Check, each: Sequence[float] | None, quartile: float | None) -> bool | None:
    if check.bound is None or each is None or quartile is None:
        return None
    if check.at_most:
        return (max(each) if check.never else quartile) <= check.bound
    return (min(each) if check.never else quartile) >= check.bound


def _opponent(check: Check, measured: Measured, skipped: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Whom we are compared with, and why that cannot be done."""
    if check.against == BEST:
        absent = [name for name in check.among if name not in measured]
        there = [name for name in check.among if name in measured]
        best = max(there, key=lambda name: _medians(measured[name])[check.figure], default=None)
        return best or BEST, f"not measured: {', '.join(absent)}" if absent else None
    if check.against is not None and check.against not in measured:
        return check.against, skipped.get(check.against, "not measured")
    return check.against, None


def _each(check: Check, measured: Measured, against: str | None) -> list[float]:
    ours = [figures[check.figure] for figures in measured[_OURS]]
    if against is None:
        return ours
    return [a / b[check.figure] for a, b in zip(ours, measured[against], strict=True)]


def _bad_quartile(values: Sequence[float], *, at_most: bool) -> float:
    if len(values) == 1:
        return values[0]
    cuts = statistics.quantiles(values, n=4)
    return cuts[2] if at_most else cuts[0]


def _medians(figures: Sequence[Figures]) -> Figures:
    return {name: round(statistics.median(each[name] for each in figures), 4) for name in figures[0]}


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


_UNITS = {
    "jobs_per_second": "jobs/s",
    "events_per_second": "events/s",
    "percent_of_ideal": "%",
    "p50_ms": "ms p50",
    "p99_ms": "ms p99",
    "wal_bytes_per_life": "B",
    "ratio_to_before": "×",
    "ms": "ms",
    "ratio_to_bare": "×",
    "share_of_bound": "of the bound",
    "checks_per_second": "checks/s",
    "refreshes_per_second": "refreshes/s",
    "subscribes_per_second": "subscribes/s",
    "percent_of_limit": "% of the limit",
    "calls_above_limit": "calls above",
    "lock_wait_ms": "ms",
    "memory_growth": "×",
    "wrong": "old values",
    "left": "left",
    "held_seconds": "s",
    "seconds": "s",
    "queries_per_client": "queries",
    "twice": "slots twice",
    "missing": "slots missing",
    "gap_seconds": "s",
    "p95_ms": "ms p95",
    "share_of_old_budget": "of the old budget",
    "documents_per_second": "documents/s",
    "added_mb": "MB",
    "child_mb": "MB",
    "worker_mb": "MB",
    "mb_per_second": "MB/s",
}
