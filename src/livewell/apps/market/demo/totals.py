"""The figures of a whole run, and what the simulator's own log says about them."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livewell.apps.market.demo.figures import Figures, quantile
from livewell.apps.market.demo.scenario import CALLS_PER_MINUTE, Scenario
from livewell.apps.market.simulator.oracle.judge import Judge, Lie, Stored, calls_above_limit, families_fired
from livewell.apps.market.simulator.oracle.verdict_check import Claim, Interval
from livewell.refresh.definition.model import TypeDefinition

_WINDOW_SECONDS = 60.0
_LAST_SECONDS = 15.0  # what share and ages are taken from: the beginning, when nothing is there yet, does not count
_LIES_SHOWN_MAX = 5
DATASETS = {"end_of_day": "history"}


@dataclass(frozen=True, slots=True)
class Totals:
    """What is printed as the JSON line."""

    seconds: float
    refreshes: int
    share_fresh: float
    age_p50_seconds: float | None
    age_p99_seconds: float | None
    calls_per_minute: float
    calls_allowed_per_minute: int
    bytes: int
    rejected: Mapping[str, int]
    viewers: int
    watched: int
    streams: int
    pushes: int
    values_compared: int
    wrong_values_stored: int
    calls_above_limit: int
    verdicts_compared: int
    false_verdicts: int
    lagging_verdicts: int | None  # of the symbols whose source stands still
    faults_fired: Mapping[str, int] | None
    lies: Sequence[str]

    @property
    def good(self) -> bool:
        """Nothing wrong stored, no limit broken, nothing false said."""
        return not (self.wrong_values_stored or self.calls_above_limit or self.false_verdicts)

    def as_json(self) -> dict[str, Any]:
        """Without what does not apply."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value is not None and (name != "lies" or value)}


class Course:
    """How the run went, second by second; bounded to what is needed at the end."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._last: deque[tuple[float, float, list[float]]] = deque(maxlen=100)

    def note(self, figures: Figures) -> None:
        """One look."""
        self._last.append((time.monotonic(), figures.share_fresh, figures.quote_ages()))

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.began

    def lately(self) -> tuple[float, list[float]]:
        """Mean share of fresh rows, and all ages, of the last 15 seconds (or the second half of a
        shorter run).
        """
        since = time.monotonic() - min(_LAST_SECONDS, self.seconds / 2)
        looks = [look for look in self._last if look[0] >= since] or list(self._last)[-1:]
        shares = [share for _, share, _ in looks]
        return statistics.fmean(shares) if shares else 0.0, sorted(age for _, _, ages in looks for age in ages)


def judge(
    log: Path,
    scenario: Scenario,
    types: Sequence[TypeDefinition],
    stored: Sequence[Stored],
    claims: Sequence[Claim],
    *,
    lost: Sequence[Interval],
) -> tuple[list[Lie], list[Lie], int, dict[str, int]]:
    """Wrong values, false verdicts, calls above the limit, and the faults that fired; slow, so call
    it in a thread.
    """
    columns = {one.name: {column.name: column.path[-1] for column in one.columns} for one in types}
    judged = Judge(log, datasets=DATASETS, columns=columns)
    return (
        judged.never_served(stored),
        judged.false_verdicts(claims, lost=lost),
        calls_above_limit(log, CALLS_PER_MINUTE, _WINDOW_SECONDS),
        families_fired(log) if scenario.hostile else {},
    )


def total(
    course: Course,
    scenario: Scenario,
    figures: Figures,
    verdict: tuple[list[Lie], list[Lie], int, dict[str, int]],
    *,
    seconds: float,
    viewers: int,
    compared: tuple[int, int],
    lagging: int,
    pushed: tuple[int, int],
) -> Totals:
    """Put it together."""
    wrong, false, above, fired = verdict
    share, ages = course.lately()
    median, worst = quantile(ages, 0.5), quantile(ages, 0.99)
    return Totals(
        seconds=round(seconds, 1),
        refreshes=figures.refreshes,
        share_fresh=round(share, 4),
        age_p50_seconds=None if median is None else round(median, 2),
        age_p99_seconds=None if worst is None else round(worst, 2),
        calls_per_minute=round(figures.calls / max(seconds, 1.0) * 60, 1),
        calls_allowed_per_minute=scenario.calls_allowed_per_minute,
        bytes=figures.wire_bytes,
        rejected=figures.rejected,
        viewers=viewers,
        watched=len(figures.rows),
        streams=pushed[0],
        pushes=pushed[1],
        values_compared=compared[0],
        wrong_values_stored=len(wrong),
        calls_above_limit=above,
        verdicts_compared=compared[1],
        false_verdicts=len(false),
        lagging_verdicts=lagging if scenario.frozen else None,
        faults_fired=fired or None,
        lies=[f"{lie.type} {lie.key}: {lie.reason}: {lie.detail}" for lie in (*wrong, *false)][:_LIES_SHOWN_MAX],
    )
