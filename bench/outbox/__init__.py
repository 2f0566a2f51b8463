"""The outbox, measured in one run: `livewell bench outbox`.

What each line is: docs/reference/evidence/bench.md.

drain      a backlog, and the WAL of a life     emit       what emitting costs, and how soon it is at the sink
crowd      who suffers from others              snapshot   while somebody holds an old snapshot
jetstream  a backlog to NATS, acknowledged      peer       the other outbox
lab        databases, backlogs, processes       child      the program of every measured process; sizes: how much
A line of another kind is a module with LINES of its own, added below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench import whole_run
from bench.line import Line
from bench.outbox import crowd, drain, emit, jetstream, peer, snapshot
from bench.outbox.lab import Lab
from bench.outbox.sizes import Sizes
from bench.refresh import stages

__all__ = ["LINE_NAMES", "Sizes", "run", "stages", "table"]

LINES: tuple[Line[Lab], ...] = (*drain.LINES, *emit.LINES, *crowd.LINES, *snapshot.LINES, *jetstream.LINES)
LINE_NAMES = tuple(line.name for line in LINES)


def run(
    *, pairs: int, say: Callable[[str], None], lines: Sequence[str] = LINE_NAMES, sizes: Sizes | None = None
) -> dict[str, Any]:
    """Measure and judge."""
    given = sizes or Sizes()
    chosen = [line for line in LINES if line.name in lines]
    peers, skipped = peer.find(say)
    missing = {line.name: reason for line in chosen if (reason := line.missing()) is not None}
    document = whole_run.run(
        [line for line in chosen if line.name not in missing],
        lambda started, _: Lab(started, given, say, peers),
        pairs=pairs,
        sizes=given,
        skipped=skipped,
    )
    return document | {"not_measured": missing | document["not_measured"]}


def table(document: dict[str, Any]) -> list[list[str]]:
    """The rows to print: line, ours, peer, ratio, bound, met."""
    return whole_run.table(LINES, document)
