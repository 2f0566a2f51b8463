"""The queue beside its peers, in one run on one machine: `livewell bench queue`.

What each line is: docs/reference/evidence/bench.md.

lines/     what is measured, one file per line or small family        peers/    who else, one file each
runner     alternating pairs                                          report    medians, ratios, verdicts
server     the server and its databases                               children  measured processes; stage is their end
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from typing import Any

from bench import report, runner, server
from bench.limit import limit
from bench.line import Lab, Line
from bench.lines import LINES
from bench.peers.found import NAMES, find
from bench.sizes import Sizes

LINE_NAMES = tuple(line.name for line in LINES)
PEER_NAMES = NAMES


def run(
    *,
    pairs: int,
    say: Callable[[str], None],
    lines: Sequence[str] = LINE_NAMES,
    peers: Sequence[str] = PEER_NAMES,
    sizes: Sizes | None = None,
) -> dict[str, Any]:
    """Measure and compare."""
    sizes = sizes or Sizes()
    chosen = [line for line in LINES if line.name in lines]
    missing = {line.name: reason for line in chosen if (reason := line.missing()) is not None}
    for name, reason in missing.items():
        say(f"{name}: not measured: {reason}")
    found = find(peers, say)
    with server.start() as started:
        lab = Lab(started, sizes, found, say)
        measured, failed = runner.run(lab, [line for line in chosen if line.name not in missing], pairs)
        bare = limit(started, sizes.jobs)
        say(f"limit: the SQL alone, one connection {bare['jobs_per_second']:>9,.0f} jobs/s")
        version = started.version()
    return {
        **report.report(chosen, measured, found.skipped),
        "limit": bare,
        "not_measured": missing | failed,
        "peers_skipped": found.skipped,
        "pairs": pairs,
        "sizes": {name: getattr(sizes, name) for name in sizes.__slots__},
        "machine": {
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
            "postgres": version,
            "python": platform.python_version(),
        },
    }


def table(document: dict[str, Any]) -> list[list[str]]:
    """The rows to print: line, ours, peer, ratio, bound, met."""
    lines: list[Line[Lab]] = [
        line for line in LINES if line.name in document["results"] or line.name in document["not_measured"]
    ]
    return report.rows(lines, document)
