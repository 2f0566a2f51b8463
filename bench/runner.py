"""Run lines in alternating pairs.

In every second pair the contenders come in the opposite order, so that what drifts hits both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import psycopg

from bench.children import ChildFailed
from bench.line import Contender, Line, Says
from bench.measure import Figures

L = TypeVar("L", bound=Says)
Measured = dict[str, list[Figures]]  # by contender, in the order of the pairs


def run(lab: L, lines: Sequence[Line[L]], pairs: int) -> tuple[dict[str, Measured], dict[str, str]]:
    """Measure them all, by line.

    A line in which a process failed has its reason in the second answer, and the others go on.
    """
    plans = [(line, list(line.contenders(lab))) for line in lines]
    progress = Progress(lab, sum(len(_turn(contenders, pair)) for _, contenders in plans for pair in range(pairs)))
    measured: dict[str, Measured] = {}
    failed: dict[str, str] = {}
    for line, contenders in plans:
        try:
            measured[line.name] = _measure(line, contenders, pairs, progress)
        except (ChildFailed, psycopg.Error) as error:
            failed[line.name] = f"failed: {error}"
            lab.say(f"!!! {line.name}: {failed[line.name]}")
    return measured, failed


class Progress:
    """Says what has been measured, and how much there is to come."""

    def __init__(self, lab: Says, total: int) -> None:
        self._say = lab.say
        self._total = total
        self._n = 0

    def step(self, title: str, figures: Figures) -> None:
        """One measurement is done."""
        self._n += 1
        shown = "  ".join(f"{name} {_short(value)}" for name, value in figures.items())
        self._say(f"[{self._n}/{self._total}] {title} {shown}")


def _measure(line: Line[Any], contenders: Sequence[Contender], pairs: int, progress: Progress) -> Measured:
    results: Measured = {contender.name: [] for contender in contenders}
    for pair in range(pairs):
        for contender in _turn(contenders, pair):
            figures = contender.measure()
            results[contender.name].append(figures)
            progress.step(f"{line.name}, pair {pair + 1} of {pairs}: {contender.name:9}", figures)
    return results


def _turn(contenders: Sequence[Contender], pair: int) -> list[Contender]:
    turn = [contender for contender in contenders if pair == 0 or contender.every_pair]
    return turn if pair % 2 == 0 else turn[::-1]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
