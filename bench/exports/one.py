"""From POST to downloadable: a document of one page, of two, and five together.

Downloadable is what a client sees: the first poll (every 4 ms) that says finished. That the file is
there is checked by loading it, which is a figure of its own.
"""

from __future__ import annotations

import statistics
import time

from bench.children import ChildFailed
from bench.exports.documents import ONE_PAGE, TWO_PAGES, options, resume
from bench.exports.lab import Lab, Stage, User
from bench.line import Check, Contender, Line
from bench.measure import Figures

OLD_BUDGETS_MS = {1: 1_500.0, 2: 2_500.0, 5: 15_000.0}  # E13
_POSITIONS_MAX = 30


def _documents(lab: Lab, pages: int, samples: int) -> Figures:
    with lab.stage() as stage:
        user = _user(stage, pages)
        ready, loaded = [], []
        for _ in range(max(2, samples)):
            begun = time.perf_counter()
            export = user.ask()
            told = user.wait(f"/v1/exports/{export}")
            ready.append(1000 * (time.perf_counter() - begun))
            if told["pages"] != pages or len(user.load(export)) != told["bytes"]:
                raise ChildFailed(f"bench: exports: {told['pages']} pages, or another file than its row says")
            loaded.append(1000 * (time.perf_counter() - begun))
    return _figures(ready, OLD_BUDGETS_MS[pages]) | {"loaded_p95_ms": _p95(loaded)}


def _five(lab: Lab) -> Figures:
    with lab.stage() as stage:
        user = _user(stage, 1)
        documents = [{"document": key} for key in (user.document, *(user.write(resume(ONE_PAGE)) for _ in range(4)))]
        took = []
        for _ in range(max(2, lab.sizes.batches)):
            begun = time.perf_counter()
            asked = user.client.ask("POST", "/v1/exports/batch", {"documents": documents, "options": options()})
            told = user.wait(f"/v1/exports/batch/{asked.json['id']}")
            took.append(1000 * (time.perf_counter() - begun))
            if told["finished"] != len(documents):
                raise ChildFailed(f"bench: exports: {told['finished']} of {len(documents)} finished")
    return _figures(took, OLD_BUDGETS_MS[5])


def _user(stage: Stage, pages: int) -> User:
    """Somebody whose document has exactly so many pages."""
    for positions in range(ONE_PAGE if pages == 1 else TWO_PAGES, _POSITIONS_MAX):
        user = stage.user(positions)
        told = user.wait(f"/v1/exports/{user.ask()}")
        if told["pages"] == pages:
            return user
        if told["pages"] > pages:
            break
    raise ChildFailed(f"bench: exports: no document has {pages} pages; look at documents.py")


def _figures(took: list[float], old_budget_ms: float) -> Figures:
    p95 = _p95(took)
    return {
        "p50_ms": statistics.median(took),
        "p95_ms": p95,
        "latest_ms": max(took),
        "share_of_old_budget": p95 / old_budget_ms,
    }


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[18]


LINES: tuple[Line[Lab], ...] = (
    Line(
        "one-page",
        "one page, from POST to downloadable",
        (
            Check("one-page/p95", "p95_ms", 300.0, at_most=True),
            Check("one-page/p50", "p50_ms", None),
            Check("one-page/old", "share_of_old_budget", 1.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: _documents(lab, 1, lab.sizes.samples))],
    ),
    Line(
        "two-pages",
        "two pages, from POST to downloadable",
        (
            Check("two-pages/p95", "p95_ms", 400.0, at_most=True),
            Check("two-pages/p50", "p50_ms", None),
            Check("two-pages/old", "share_of_old_budget", 1.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: _documents(lab, 2, lab.sizes.samples // 2))],
    ),
    Line(
        "five",
        "five documents of a batch, from POST to all downloadable",
        (
            Check("five/p95", "p95_ms", 2_000.0, at_most=True),
            Check("five/old", "share_of_old_budget", 1.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: _five(lab))],
    ),
)
