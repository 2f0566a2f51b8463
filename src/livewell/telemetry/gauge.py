"""A gauge: a name for Prometheus, and where in the system state its figures are.

Each package describes its own gauges; operations/metrics.py asks for all of them. A gauge whose
figure is not known now has no sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from livewell.telemetry.system_state import Document, part

__all__ = ["Gauge", "Sample", "each", "figure"]

Sample = tuple[Sequence[str], float | None]


@dataclass(frozen=True, slots=True)
class Gauge:
    """One gauge: its name, what it says, its labels, and where in the state it is."""

    name: str
    about: str
    labels: tuple[str, ...]
    samples: Callable[[Document], Iterable[Sample]]


def each(name: str, where: str, labels: Sequence[str], item: str) -> Callable[[Document], Iterator[Sample]]:
    """A figure of every item of a list in a part of the state."""

    def samples(document: Document) -> Iterator[Sample]:
        for one in part(document, name).get(where, ()):
            yield [_label(one[label]) for label in labels], _number(one[item])

    return samples


def figure(name: str, item: str) -> Callable[[Document], Iterator[Sample]]:
    """A figure of a part of the state."""

    def samples(document: Document) -> Iterator[Sample]:
        yield (), _number(part(document, name).get(item))

    return samples


def _label(value: object) -> str:
    return "" if value is None else str(value)


def _number(value: Any) -> float | None:
    """Numbers as they are; true is 1, false is 0, and what is not known stays unknown."""
    return None if value is None else float(value)
