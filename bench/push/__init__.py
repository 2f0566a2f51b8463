"""Streams, measured in one run: `livewell bench push`.

What each line is: docs/reference/evidence/bench.md.

lab        sessions, the server             lines      what is measured
child      the server and its clients       sizes      how much
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import report, runner, server
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
    sizes = sizes or Sizes()
    chosen = [line for line in LINES if line.name in lines]
    load = os.getloadavg()
    with server.start() as started, tempfile.TemporaryDirectory(prefix="livewell-bench-") as folder:
        refresh = RefreshLab(started, RefreshSizes(), Path(folder), say)
        measured, failed = runner.run(Lab(refresh, sizes, say), chosen, pairs)
        version = started.version()
    return {
        **report.report(chosen, measured, {}),
        "limit": {},
        "not_measured": failed,
        "pairs": pairs,
        "sizes": {name: getattr(sizes, name) for name in sizes.__slots__},
        "machine": {
            "cores": os.cpu_count(),
            "load": load,
            "load_after": os.getloadavg(),
            "postgres": version,
            "python": platform.python_version(),
        },
    }


def table(document: dict[str, Any]) -> list[list[str]]:
    """The rows to print: line, ours, peer, ratio, bound, met."""
    return report.rows(
        [line for line in LINES if line.name in document["results"] | document["not_measured"]], document
    )
