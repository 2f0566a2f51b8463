"""Two thousand documents as fast as they go, and the memory of the worker and its children meanwhile.

They are asked for while they are made, through the server, so the pace is that of the whole. Flat
is: between the first fifth, when everything is warm, and the end the worker's own memory grows by
no more than a tenth.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle

from bench.children import ChildFailed
from bench.exports.documents import ONE_PAGE
from bench.exports.lab import Lab, Stage, User
from bench.line import Check, Contender, Line
from bench.measure import Figures

_USERS = 20
_BACKLOG_MAX = 200
_LEFT = "SELECT count(*)::integer FROM livewell.export WHERE state IN ('waiting', 'running')"
_FAILED = "SELECT count(*)::integer FROM livewell.export WHERE state NOT IN ('waiting', 'running', 'finished')"
_PACE = """
SELECT count(*) / greatest(extract(epoch FROM max(e.finished_at) - min(e.started_at)), 0.001)::float8
FROM livewell.export e WHERE e.created_at > '{since}'
"""
_LOOK_SECONDS = 0.2
_LONGEST_SECONDS = 900.0


@dataclass(slots=True)
class Peak:
    """The most memory that was seen."""

    child: int = 0
    all: int = 0


def _measure(lab: Lab) -> Figures:
    with lab.stage() as stage:
        assert stage.worker is not None
        users, peak = [stage.user(ONE_PAGE) for _ in range(_USERS)], Peak()
        _work(stage, users, max(_USERS, lab.sizes.renders // 5), peak)
        warm, since = stage.worker.rss_bytes(), stage.value("SELECT clock_timestamp()::text")
        _work(stage, users, max(_USERS, lab.sizes.renders - lab.sizes.renders // 5), peak)
        after = stage.worker.rss_bytes()
        return {
            "documents_per_second": stage.value(_PACE.format(since=since)),
            "parent_mb": after / 1e6,
            "memory_growth": after / warm,
            "child_mb": peak.child / 1e6,
            "worker_mb": peak.all / 1e6,
        }


def _work(stage: Stage, users: Sequence[User], documents: int, peak: Peak) -> None:
    """Ask for so many, never too many at a time, until all have finished."""
    assert stage.worker is not None
    give_up = time.monotonic() + _LONGEST_SECONDS
    turn, asked = cycle(users), 0
    with ThreadPoolExecutor(len(users)) as pool:
        while True:
            left = stage.value(_LEFT)
            if asked == documents and not left:
                break
            some = min(documents - asked, _BACKLOG_MAX - left, len(users))
            list(pool.map(User.ask, [next(turn) for _ in range(some)]))
            asked += max(0, some)
            sizes = stage.children_bytes()
            peak.child = max([peak.child, *sizes])
            peak.all = max(peak.all, sum(sizes) + stage.worker.rss_bytes())
            if time.monotonic() > give_up:
                raise ChildFailed(f"bench: exports: {left} of {documents} were not made within {_LONGEST_SECONDS:g} s")
            if some <= 0:
                time.sleep(_LOOK_SECONDS)
    if failed := stage.value(_FAILED):
        raise ChildFailed(f"bench: exports: {failed} exports failed")


LINES: tuple[Line[Lab], ...] = (
    Line(
        "pace",
        "documents of one page a second, 2,000 of them",
        (
            Check("pace", "documents_per_second", 15.0),
            Check("pace/parent", "memory_growth", 1.1, at_most=True),
            Check("pace/child", "child_mb", 300.0, at_most=True),
            Check("pace/worker", "worker_mb", 1_000.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: _measure(lab))],
    ),
)
