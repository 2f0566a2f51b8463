"""The benchmark of exports runs, on tiny numbers.

Nothing here looks at how fast it was. Each line starts a server and a worker, so `make test` runs
one, and `make faults` all.
"""

from __future__ import annotations

import pytest

from bench import exports
from bench.exports.sizes import Sizes

_TINY = Sizes(accept_seconds=1, samples=4, batches=2, zips=2, renders=50, member_kb=2_000)
_SOME = ("one-page",)


@pytest.mark.parametrize(
    "lines", [_SOME, pytest.param(exports.LINE_NAMES, marks=pytest.mark.campaign)], ids=("one line", "all lines")
)
def test_exports_are_measured(lines: tuple[str, ...]) -> None:
    """Every document is downloaded; each demand has a verdict, and each line a row (E13)."""
    document = exports.run(pairs=1, say=lambda _: None, lines=lines, sizes=_TINY)

    assert document["not_measured"] == {}
    assert set(document["results"]) == set(lines)
    assert all(verdict is not None for verdict in document["met"].values())
    assert len(exports.table(document)) == len(document["ratios"])
