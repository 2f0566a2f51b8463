"""The benchmark of the outbox runs, on tiny numbers.

Nothing here looks at how fast it was. Each line starts processes of its own, so `make test` runs
one, and `make faults` all.
"""

from __future__ import annotations

import pytest

from bench import outbox
from bench.outbox.sizes import Sizes

_TINY = Sizes(
    drained=300,
    keys=100,
    transactions=5,
    samples=3,
    backlog=3000,
    fair_seconds=1,
    fair_event_us=4000,
    failing=300,
    snapshot=200,
    snapshot_seconds=1,
    lives=50,
    published=200,
)
_SOME = ("drain",)


@pytest.mark.parametrize(
    "lines", [_SOME, pytest.param(outbox.LINE_NAMES, marks=pytest.mark.campaign)], ids=("one line", "all lines")
)
def test_the_outbox_is_measured(lines: tuple[str, ...]) -> None:
    """Every event is delivered, beside the peer; each demand has a verdict, and each line a row."""
    document = outbox.run(pairs=1, say=lambda _: None, lines=lines, sizes=_TINY)

    assert document["not_measured"] == {}
    assert set(document["results"]) == set(lines)
    assert all(verdict is not None for verdict in document["met"].values())
    assert document["peers"]["drain"]["faststream-outbox"]["events_per_second"] > 0
    assert len(outbox.table(document)) == len(document["ratios"])
