"""The live table of `livewell watch`, without a terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from livewell.cli.commands.watch import as_table
from livewell.refresh.reading import Reading

NOW = datetime(2026, 7, 22, 15, 0, tzinfo=UTC)
ORDER = ["name", "price", "change_percentage", "change", "volume", "day_low"]
VALUE = {
    "name": "Apple Inc.",
    "price": 231.4,
    "change_percentage": 0.85,
    "change": 1.95,
    "volume": 41237893,
    "day_low": 229.12,
}


def reading(key: str, verdict: str, value: object, reason: str | None = None) -> Reading:
    at = NOW - timedelta(seconds=4)
    return Reading("quote", key, value, verdict, at, at, at, 1, reason)


def drawn(width: int, **latest: Reading) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    out.print(as_table(latest, list(latest), ORDER, now=NOW, width=width))
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_key_verdict_and_times_are_never_cut(width: int) -> None:
    """Values give way, from the right (in 80 columns the keys were "…")."""
    heading, _, first, second = drawn(
        width, AAPL=reading("AAPL", "fresh", VALUE), MSFT=reading("MSFT", "unverifiable", None)
    )

    assert "…" not in "".join((heading, first, second))
    assert first.startswith("AAPL  fresh")
    assert second.startswith("MSFT  unverifiable")
    assert first.endswith("4 s ago  4 s ago")


def test_values_stand_in_the_order_of_the_file() -> None:
    """As many as there is room for, five at most; of many rows the last one."""
    rows = [{"name": "old"}, VALUE]

    heading, *_, line = drawn(200, AAPL=reading("AAPL", "failing", rows, "wrong_key"))

    assert heading.split() == ["key", "verdict", *ORDER[:5], "source", "checked", "reason"]
    assert "Apple Inc.  231.4" in line
    assert line.endswith("wrong_key")
