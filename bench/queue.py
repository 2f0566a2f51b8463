"""The queue beside its peers, in one run on one machine: `livewell bench queue --json`.

Pairs alternate, each drain in a process and a database of its own, on an embedded server with fsync and synchronous_commit on. Only ratios within one run mean
anything: a line is met when the lower quartile of the ratios is at or above its bound.
"""

from __future__ import annotations

import json
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from livewell.db import embedded, scratch

BOUND_PGQUEUER = 3.0
_CHILD_SECONDS_MAX = 300


def run(*, jobs: int, pairs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure and compare."""
    with tempfile.TemporaryDirectory(prefix="livewell-bench-") as folder:
        Path(folder).chmod(0o755)
        server = embedded.start(Path(folder) / "server", parameters={"max_wal_size": "4GB"})
        try:
            return _compare(server.dsn, jobs, pairs, say)
        finally:
            embedded.stop(Path(folder) / "server", mode="immediate")


def _compare(dsn: str, jobs: int, pairs: int, say: Callable[[str], None]) -> dict[str, Any]:
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    for pair in range(pairs):
        order = [("drain_livewell", ours), ("drain_pgqueuer", theirs)]
        for module, results in order if pair % 2 == 0 else reversed(order):
            results.append(_drain(dsn, module, jobs))
            say(f"pair {pair + 1} of {pairs}: {module[6:]:9} {results[-1]['jobs_per_second']:>9,.0f} jobs/s")
    limit = _drain(dsn, "drain_limit", jobs)
    say(f"limit: the SQL alone, one connection {limit['jobs_per_second']:>9,.0f} jobs/s")
    ratios = [a["jobs_per_second"] / b["jobs_per_second"] for a, b in zip(ours, theirs, strict=True)]
    quartile = statistics.quantiles(ratios, n=4)[0] if len(ratios) > 1 else ratios[0]
    return {
        "results": _medians(ours),
        "peers": {"pgqueuer": _medians(theirs)},
        "limit": limit,
        "ratios": {
            "pgqueuer": {
                "each": ratios,
                "median": statistics.median(ratios),
                "lower_quartile": quartile,
                "bound": BOUND_PGQUEUER,
            }
        },
        "met": {"drain_vs_pgqueuer": quartile >= BOUND_PGQUEUER},
        "jobs": jobs,
        "pairs": pairs,
    }


def _drain(dsn: str, module: str, jobs: int) -> dict[str, Any]:
    name = f"bench_{secrets.token_hex(4)}"
    child_dsn = scratch.create(dsn, name)
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"bench.{module}", child_dsn, str(jobs)],
            capture_output=True,
            text=True,
            timeout=_CHILD_SECONDS_MAX,
            check=False,
            cwd=Path(__file__).parent.parent,
        )
        if done.returncode != 0:
            raise RuntimeError(f"bench.{module} failed:\n{done.stderr[-2000:]}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        if answer["jobs"] != jobs:
            raise RuntimeError(f"bench.{module} finished {answer['jobs']} of {jobs} jobs")
        return answer
    finally:
        scratch.drop(dsn, name)


def _medians(results: list[dict[str, Any]]) -> dict[str, float]:
    return {key: round(statistics.median(result[key] for result in results), 3) for key in results[0]}
