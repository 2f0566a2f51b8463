"""Exports, measured in one run through a real server and a real worker: `livewell bench exports`.

What each line is: docs/reference/evidence/bench.md.

accept  how soon a request is answered       one    from the request to the file: a document, five
pace    many documents, and the memory       zips   a ZIP of ten, small and large
lab     database, store, server, worker, users      documents  what is exported; sizes: how much
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench import whole_run
from bench.exports import accept, one, pace, zips
from bench.exports.lab import Lab
from bench.exports.sizes import Sizes
from bench.line import Line
from bench.refresh import stages

__all__ = ["LINE_NAMES", "Sizes", "run", "stages", "table"]

LINES: tuple[Line[Lab], ...] = (*accept.LINES, *one.LINES, *zips.LINES, *pace.LINES)
LINE_NAMES = tuple(line.name for line in LINES)


def run(
    *, pairs: int, say: Callable[[str], None], lines: Sequence[str] = LINE_NAMES, sizes: Sizes | None = None
) -> dict[str, Any]:
    """Measure and judge."""
    given = sizes or Sizes()
    chosen = [line for line in LINES if line.name in lines]
    return whole_run.run(chosen, lambda started, folder: Lab(started, given, folder, say), pairs=pairs, sizes=given)


def table(document: dict[str, Any]) -> list[list[str]]:
    """The rows to print: line, ours, peer, ratio, bound, met."""
    return whole_run.table(LINES, document)
