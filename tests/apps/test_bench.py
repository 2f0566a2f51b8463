"""The comparison runs from end to end, on tiny numbers.

Nothing here looks at how fast anything was.

Each line starts servers and processes of its own, so `make test` runs some of them, and `make
faults` all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import operations, push, queue, refresh, report
from bench.line import BEST, Check, Lab, Line
from bench.measure import Figures
from bench.operations.sizes import Sizes as OperationsSizes
from bench.peers import npm
from bench.peers.found import find
from bench.push.sizes import Sizes as PushSizes
from bench.refresh.sizes import Sizes as RefreshSizes
from bench.runner import Measured
from bench.sizes import Sizes

_TINY = Sizes(
    jobs=60,
    paced=60,
    samples=4,
    singles=5,
    bulk=60,
    crowd=50,
    grouped=50,
    processed=50,
    in_flight=20,
    snapshot_seconds=1,
)
_TINY_REFRESH = RefreshSizes(
    samples=3,
    sessions=50,
    keys=100,
    checks=1,
    overload_seconds=2,
    overload_keys=100,
    refreshes=120,
    hot_seconds=1,
)


def _paces(*values: float) -> list[Figures]:
    return [{"pace": value} for value in values]


def _line(*checks: Check) -> Line[Lab]:
    return Line("line", "a line", checks, lambda _: [])


def _met(check: Check, measured: Measured) -> bool | None:
    met: bool | None = report.report([_line(check)], {"line": measured}, {})["met"][check.name]
    return met


@pytest.mark.parametrize(
    "lines",
    [
        ("drain",),
        pytest.param(("drain", "full-group", "in-flight", "old-snapshot"), marks=pytest.mark.campaign),
    ],
    ids=" ".join,
)
def test_the_comparison_runs(lines: tuple[str, ...]) -> None:
    """One pair of a few lines, beside a peer that needs no Node; what is not measured says why."""
    said: list[str] = []

    document = queue.run(pairs=1, say=said.append, lines=lines, peers=("pgqueuer",), sizes=_TINY)

    assert set(document["not_measured"]) <= {"full-group"}
    assert set(document["results"]) == set(lines) - set(document["not_measured"])
    assert set(document["peers"]["drain"]) == {"pgqueuer"}
    assert document["met"]["drain/graphile"] is None
    assert document["ratios"]["drain/graphile"]["each"] is None
    assert document["limit"]["jobs_per_second"] > 0
    assert document["results"]["drain"]["calls_per_job"] > 0
    assert document["results"]["drain"]["wal_bytes_per_life"] > 0
    assert any("graphile is SKIPPED" in line for line in said)
    assert len(queue.table(document)) == len(document["met"]) + len(document["not_measured"])


@pytest.mark.campaign
def test_the_refresh_engine_is_measured() -> None:
    """One pair of every kind of line.

    What the simulator's log, the old way's queue and the stages say is there.
    """
    lines = ("latency", "due", "overload", "pace", "hot-key")

    document = refresh.run(pairs=1, say=lambda _: None, lines=lines, sizes=_TINY_REFRESH)

    assert document["not_measured"] == {}
    assert set(document["results"]) == set(lines) < set(refresh.LINE_NAMES)
    assert document["met"].keys() >= {"latency/p50", "due", "due/old-way", "pace", "hot-key/lock-wait"}
    assert document["met"]["overload/above"] is True
    assert document["results"]["hot-key"]["subscriptions"] > 2000
    assert document["results"]["overload"]["calls"] > 0
    assert document["peers"]["due"]["the old way"]["due"] == document["results"]["due"]["due"] == 1
    assert document["limit"]["refreshes_per_second"] > 0
    assert document["ratios"]["pace/bare"]["median"] > 0
    assert {line.partition(",")[0] for line in refresh.stages(document)} == {"latency", "pace"}
    assert len(refresh.table(document)) == len(document["ratios"])


def test_some_of_the_refresh_engine_is_measured() -> None:
    """The due check, and the queue of the old way."""
    lines = ("due",)

    document = refresh.run(pairs=1, say=lambda _: None, lines=lines, sizes=_TINY_REFRESH)

    assert document["not_measured"] == {}
    assert set(document["results"]) == set(lines) < set(refresh.LINE_NAMES)
    assert document["met"].keys() >= {"due", "due/old-way"}
    assert document["peers"]["due"]["the old way"]["due"] == document["results"]["due"]["due"] == 1
    assert len(refresh.table(document)) == len(document["ratios"])


@pytest.mark.campaign
def test_streams_are_measured() -> None:
    """Every line, with a few streams.

    What is stored is what clients end with, and whoever never reads is gone.
    """
    sizes = PushSizes(
        samples=3, streams=6, stream_keys=5, keys=1500, fan_out_seconds=2, silent=2, silent_keys=1500, silent_seconds=13
    )

    document = push.run(pairs=1, say=lambda _: None, sizes=sizes)

    assert document["not_measured"] == {}
    assert set(document["results"]) == set(push.LINE_NAMES)
    assert document["met"]["fan-out/wrong"] is True
    assert document["met"]["silent/left"] is True
    assert document["results"]["fan-out"]["deliveries"] > 0
    assert len(push.table(document)) == len(document["ratios"])


@pytest.mark.campaign
def test_schedules_are_measured() -> None:
    """Both lines, with a few slots.

    None is missing and none comes twice, also when one scheduler is frozen.
    """
    lines = ("jitter", "frozen")
    document = operations.run(
        pairs=1, say=lambda _: None, lines=lines, sizes=OperationsSizes(jitter_slots=4, frozen_slots=10)
    )

    assert document["not_measured"] == {}
    assert set(document["results"]) == set(lines)
    assert document["met"]["frozen/twice"] is True
    assert document["met"]["frozen/missing"] is True
    assert document["results"]["jitter"]["earliest_ms"] >= 0


def test_what_says_never_is_met_by_every_pair() -> None:
    """One bad pair of five is one too many; without a bound a ratio is told and not judged."""
    never = Check("c", "pace", 3.0, at_most=True, never=True)
    told = Check("t", "pace", None)

    assert _met(never, {"livewell": _paces(1, 1, 1, 1, 3)}) is True
    assert _met(never, {"livewell": _paces(1, 1, 1, 1, 4)}) is False
    assert report.report([_line(told)], {"line": {"livewell": _paces(1, 2)}}, {})["met"] == {}


def test_a_demand_is_met_by_the_quartile_on_its_bad_side() -> None:
    """Four good pairs do not hide that the worse ones are below the bound."""
    check = Check("c", "pace", 2.0, against="peer")

    assert _met(check, {"livewell": _paces(4, 4, 4, 4, 2), "peer": _paces(1, 1, 1, 1, 1)}) is True
    assert _met(check, {"livewell": _paces(4, 4, 4, 2, 1), "peer": _paces(1, 1, 1, 1, 1)}) is False


def test_what_shall_be_low_is_judged_by_its_upper_quartile() -> None:
    """A latency is met when even the worse pairs are below the bound."""
    check = Check("c", "pace", 3.0, at_most=True)

    assert _met(check, {"livewell": _paces(1, 1, 1, 2, 3)}) is True
    assert _met(check, {"livewell": _paces(1, 1, 1, 3, 9)}) is False


def test_the_best_peer_is_the_one_with_the_best_median() -> None:
    """A single lucky run makes nobody the best; and with a peer missing nobody knows."""
    check = Check("c", "pace", 1.0, against=BEST, among=("lucky", "steady"))
    measured = {"livewell": _paces(5, 5, 5), "lucky": _paces(1, 1, 90), "steady": _paces(4, 4, 4)}

    assert report.report([_line(check)], {"line": measured}, {})["ratios"]["c"]["against"] == "steady"
    assert _met(check, {"livewell": _paces(5, 5, 5), "lucky": _paces(1, 1, 1)}) is None


def test_without_npm_the_node_peers_are_skipped_loudly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The run goes on without them, and says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said: list[str] = []

    peers = find(("graphile", "pgboss"), said.append)

    assert peers.systems == {}
    assert peers.skipped["graphile"] == peers.skipped["pgboss"] == "npm is not on the path"
    assert sum("SKIPPED" in line for line in said) == 4


def test_no_registry_is_named_in_the_list_of_packages() -> None:
    """Packages are known by name and version, wherever they come from."""
    folder = Path(npm.__file__).parent / "node"

    assert "://" not in (folder / "package.json").read_text()
    assert not list(folder.glob("*lock*"))
