"""One run of some lines: a server, a folder, the measurements, and the document that says it all."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bench import report, runner, server
from bench.line import Line, Says
from bench.server import Server

L = TypeVar("L", bound=Says)


def run(
    lines: Sequence[Line[L]],
    make_lab: Callable[[Server, Path], L],
    *,
    pairs: int,
    sizes: Any,
    skipped: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Measure and judge.

    sizes: a dataclass with slots, as the document states it; skipped: peers that are not there, and
    why.
    """
    load = os.getloadavg()
    with server.start() as started, tempfile.TemporaryDirectory(prefix="livewell-bench-") as folder:
        measured, failed = runner.run(make_lab(started, Path(folder)), lines, pairs)
        version = started.version()
    return {
        **report.report(lines, measured, skipped or {}),
        "limit": {},
        "not_measured": failed,
        "peers_skipped": dict(skipped or {}),
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


def table(lines: Sequence[Line[Any]], document: dict[str, Any]) -> list[list[str]]:
    """The rows to print: line, ours, peer, ratio, bound, met."""
    known = document["results"] | document["not_measured"]
    return report.rows([line for line in lines if line.name in known], document)
