"""The refresh engine, measured in one run: `livewell bench refresh`.

What each line is: docs/reference/evidence/bench.md.

lab        types, simulator, databases          crowd      who watches what, filled by SQL
latency    from subscribing to seeing           due        the due check, beside the old design's loop
overload   how much of a limit is used          pace       refreshes a second, beside a bare loop
hot_key    one key with a crowd of viewers      child      the program of every measured process
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import report, runner, server
from bench.line import Line
from bench.refresh import due, hot_key, latency, overload, pace
from bench.refresh.lab import Lab
from bench.refresh.sizes import Sizes

LINES: tuple[Line[Lab], ...] = (*latency.LINES, *due.LINES, *overload.LINES, *pace.LINES, *hot_key.LINES)
LINE_NAMES = tuple(line.name for line in LINES)


def run(
    *, pairs: int, say: Callable[[str], None], lines: Sequence[str] = LINE_NAMES, sizes: Sizes | None = None
) -> dict[str, Any]:
    """Measure and judge."""
    sizes = sizes or Sizes()
    chosen = [line for line in LINES if line.name in lines]
    load = os.getloadavg()
    with server.start() as started, tempfile.TemporaryDirectory(prefix="livewell-bench-") as folder:
        measured, failed = runner.run(Lab(started, sizes, Path(folder), say), chosen, pairs)
        version = started.version()
    told = report.report(chosen, measured, {})
    return {
        **told,
        "limit": told["peers"].get("pace", {}).get(pace.BARE, {}),
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


def stages(document: dict[str, Any]) -> list[str]:
    """Where the time goes, a sentence for each line that says."""
    found = []
    for line, figures in document["results"].items():
        parts = [
            f"{name.removeprefix('stage_').removesuffix('_ms').replace('_', ' ')} {value:.3g}"
            for name, value in figures.items()
            if name.startswith("stage_")
        ]
        if parts:
            found.append(f"{line}, where the time goes (ms): {', '.join(parts)}")
    return found
