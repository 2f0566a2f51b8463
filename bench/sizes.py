"""How much of everything is measured; the defaults are the sizes the bounds are stated for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of jobs, unless the name says otherwise."""

    jobs: int = 20_000
    paced: int = 10_000
    samples: int = 200
    singles: int = 4_500
    bulk: int = 100_000
    crowd: int = 500_000
    grouped: int = 200_000
    processed: int = 100_000
    in_flight: int = 10_000
    snapshot_seconds: int = 60

    def scaled(self, factor: float) -> Self:
        """The same in small, to try the harness out: figures of a scaled run mean nothing."""
        return scaled(self, factor)


S = TypeVar("S", bound=Any)  # a dataclass of whole numbers


def scaled(sizes: S, factor: float) -> S:
    """Every number × factor, and at least 1."""
    small: S = replace(
        sizes, **{field.name: max(1, round(getattr(sizes, field.name) * factor)) for field in fields(sizes)}
    )
    return small
