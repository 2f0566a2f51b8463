"""Jobs that sleep 5 ms, 50 at once: how much of what 50 sleepers could do is reached."""

from __future__ import annotations

from collections.abc import Sequence

from bench.line import Check, Contender, Lab, Line
from bench.measure import Figures, drain

_SLEEP_MS = 5
_AT_ONCE = 50
_IDEAL_PER_SECOND = _AT_ONCE * 1000 / _SLEEP_MS


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [_contender(lab, name) for name in ("livewell", *lab.found("pgqueuer", "graphile", "pgboss"))]


def _contender(lab: Lab, name: str) -> Contender:
    def measure() -> Figures:
        figures = drain(lab.server, lab.system(name), jobs=lab.sizes.paced, sleep_ms=_SLEEP_MS, slots=_AT_ONCE)
        return {
            "percent_of_ideal": 100 * figures["jobs_per_second"] / _IDEAL_PER_SECOND,
            "jobs_per_second": figures["jobs_per_second"],
            "calls_per_job": figures["calls_per_job"],
        }

    return Contender(name, measure, every_pair=name == "livewell")


LINES = (Line("paced", "5 ms jobs, 50 at once", (Check("paced", "percent_of_ideal", 85.0),), _contenders),)
