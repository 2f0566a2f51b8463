"""The dashboard, measured in one run: `livewell bench dashboard`.

What each line is: docs/reference/evidence/bench.md.

pages    how long the server takes for every page, how many statements, how many bytes
tabs     what ten open live tabs cost a worker that drains a queue, the due check (tabs-due), and the
         server's memory in half an hour (memory)
browser  how soon the first page is usable in Chromium
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench import whole_run
from bench.dashboard import browser, pages, tabs
from bench.line import Line
from bench.operations.lab import Lab
from bench.operations.sizes import Sizes
from bench.refresh import stages

__all__ = ["LINE_NAMES", "Sizes", "run", "stages", "table"]

LINES: tuple[Line[Lab], ...] = (*pages.LINES, *tabs.LINES, *browser.LINES)
LINE_NAMES = tuple(line.name for line in LINES)


def run(
    *, pairs: int, say: Callable[[str], None], lines: Sequence[str] = LINE_NAMES, sizes: Sizes | None = None
) -> dict[str, Any]:
    """Measure and judge."""
    given = sizes or Sizes()
    chosen = [line for line in LINES if line.name in lines]
    return whole_run.run(chosen, lambda server, folder: Lab(server, given, folder, say), pairs=pairs, sizes=given)


def table(document: dict[str, Any]) -> list[list[str]]:
    """The rows to print: line, ours, peer, ratio, bound, met."""
    return whole_run.table(LINES, document)
