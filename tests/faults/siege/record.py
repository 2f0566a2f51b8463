"""What honest people saw, by the clock of their own process.

How long each answer took, what was refused or never answered, which streams were dropped.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.push.child import percentile
from tests.faults.scenario import Findings

READ_P99_MS_MAX = 250.0
HEALTH_MS_MAX = 100.0
SLOW_KEPT = 10

Late = tuple[float, float]  # a process woke at this monotonic second, so many milliseconds late


@dataclass(slots=True)
class Record:
    """One for all of them."""

    seconds: dict[str, list[float]] = field(default_factory=dict)  # kind → of each answer
    refused: Counter[str] = field(default_factory=Counter)  # "read 503" → how often
    unanswered: Counter[str] = field(default_factory=Counter)  # kind → no answer in time, or no connection
    dropped: list[str] = field(default_factory=list)  # streams that ended, and why
    late: list[str] = field(default_factory=list)  # streams that never got the last value
    health: list[tuple[float, float]] = field(default_factory=list)  # health checks: (answered at, ms)
    slow: list[tuple[float, str, float]] = field(default_factory=list)  # (ms, kind, when by the monotonic clock)

    def answered(self, kind: str, status: int, seconds: float) -> None:
        """Note an answer; whatever is no success was refused."""
        now = time.monotonic()
        self.seconds.setdefault(kind, []).append(seconds)
        if kind == "healthz":
            self.health.append((now, seconds * 1000))
        heapq.heappush(self.slow, (round(seconds * 1000, 1), kind, now))
        if len(self.slow) > SLOW_KEPT:
            heapq.heappop(self.slow)
        if status >= 400:
            self.refused[f"{kind} {status}"] += 1

    def figures(self) -> dict[str, Any]:
        """For the report."""
        found: dict[str, Any] = {"honest_answers": sum(map(len, self.seconds.values()))}
        for kind, seconds in sorted(self.seconds.items()):
            found[f"{kind}_p99_ms"] = round(percentile(seconds, 99), 1)
            found[f"{kind}_max_ms"] = round(max(seconds) * 1000, 1)
        return found | {
            "honest_refused": dict(self.refused),
            "honest_unanswered": dict(self.unanswered),
            "honest_streams_dropped": len(self.dropped),
        }

    def judge(self, findings: Findings, machine_late: Sequence[Late] = (), *, quick: bool = False) -> None:
        """Nothing refused, everything answered, no stream dropped.

        Quick: and within the bounds of the siege. What the machine itself was late by in the same
        moment (bystander.py) is not counted for a health check.
        """
        findings.check(bool(self.seconds), "nobody honest asked anything")
        findings.check(not self.refused, f"honest requests were refused: {dict(self.refused)}")
        findings.check(not self.unanswered, f"honest requests were never answered: {dict(self.unanswered)}")
        findings.check(not self.dropped, f"{len(self.dropped)} honest streams were dropped: {self.dropped[:3]}")
        findings.check(not self.late, f"{len(self.late)} honest streams lack the last value: {self.late[:3]}")
        if quick:
            read = percentile(self.seconds.get("read", [0.0]), 99)
            health = max((ms - late_within(at, ms, machine_late) for at, ms in self.health), default=0.0)
            findings.check(read <= READ_P99_MS_MAX, f"reads took {read:.0f} ms (p99), {READ_P99_MS_MAX:g} are allowed")
            findings.check(health <= HEALTH_MS_MAX, f"/healthz took {health:.0f} ms, {HEALTH_MS_MAX:g} are allowed")


def late_within(at: float, ms: float, machine_late: Sequence[Late]) -> float:
    """How long the machine ran nothing while an answer that took so many milliseconds was made."""
    shared = (min(at, woke) - max(at - ms / 1000, woke - late / 1000) for woke, late in machine_late)
    return max((seconds * 1000 for seconds in shared if seconds > 0), default=0.0)
