"""Streams, measured in one run: `livewell bench push`.

What each line is: docs/reference/evidence/bench.md.

lab        sessions, the server             lines      what is measured
child      the server and its clients       sizes      how much
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench import whole_run
from bench.push.lab import Lab
from bench.push.lines import LINES
from bench.push.sizes import Sizes
from bench.refresh import stages
from bench.refresh.lab import Lab as RefreshLab
from bench.refresh.sizes import Sizes as RefreshSizes

__all__ = ["LINE_NAMES", "Sizes", "run", "stages", "table"]

LINE_NAMES = tuple(line.name for line in LINES)


def run(
    *, pairs: int, say: Callable[[str], None], lines: Sequence[str] = LINE_NAMES, sizes: Sizes | None = None
) -> dict[str, Any]:
    """Measure and judge."""
    given = sizes or Sizes()
    chosen = [line for line in LINES if line.name in lines]
    return whole_run.run(
        chosen,
        lambda started, folder: Lab(RefreshLab(started, RefreshSizes(), folder, say), given, say),
        pairs=pairs,
        sizes=given,
    )


def table(document: dict[str, Any]) -> list[list[str]]:
    """The rows to print: line, ours, peer, ratio, bound, met."""
    return whole_run.table(LINES, document)
