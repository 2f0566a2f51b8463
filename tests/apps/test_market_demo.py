"""The market demo, played as a newcomer plays it.

Real processes, killed by number, and a judge that was not asked by the product.
"""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from livewell.apps.market.demo.figures import Figures, Row, quantile
from livewell.apps.market.demo.scenario import HOST, HOSTILE, QUIET, Scenario, documents
from livewell.apps.market.demo.totals import Totals
from livewell.apps.market.simulator import FAMILIES
from livewell.apps.market.simulator.policy.faults import members
from livewell.db import embedded
from livewell.refresh.definition.document import read
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.testing.processes import ChildProcess, eventually

SHARE = re.compile(r"([\d.]+)% of (\d+) watched rows fresh")
RECOVERED = re.compile(r"are fresh again, ([\d.]+) s after the death|never fell below 95%")
RECOVERY_SECONDS_MAX = 30.0
ALL = ("worker", "server", "simulator", "Postgres")


def demo(*arguments: str, cwd: Path, **env: str) -> ChildProcess:
    # A killed demo leaves its temporary folder: let that be inside the test's own.
    return ChildProcess(["-m", "livewell.cli", "demo", *arguments], env={"TMPDIR": str(cwd), **env}, cwd=cwd)


def pids(child: ChildProcess, stream: str) -> dict[str, int]:
    """The processes as the demo names them, the latest of each."""
    assert stream in ("stdout", "stderr")
    told = [line for line in child.lines("stdout" if stream == "stdout" else "stderr") if "kill -9" in line]
    return {name: int(pid) for pid, name in re.findall(r"kill -9 (\d+)  \((\w+)\)", told[-1])} if told else {}


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def mostly_fresh(line: str) -> bool:
    found = SHARE.search(line)
    return found is not None and float(found[1]) >= 95


def recovered(line: str) -> bool:
    return RECOVERED.search(line) is not None


def test_some_seconds_of_the_market(livewell_dsn: str, tmp_path: Path) -> None:
    """Values arrive, one JSON line is printed, and every value that was stored was served.

    Its database and processes are gone.
    """
    with demo("--for", "4", "--json", cwd=tmp_path, DATABASE_URL=livewell_dsn) as child:
        assert child.wait(timeout=120) == 0, child.describe()
        [line] = child.lines("stdout")
        started = pids(child, "stderr")
    tally = json.loads(line)
    assert {name: tally[name] for name in ("wrong_values_stored", "calls_above_limit", "false_verdicts")} == {
        "wrong_values_stored": 0,
        "calls_above_limit": 0,
        "false_verdicts": 0,
    }
    assert tally["refreshes"] > 0
    assert tally["values_compared"] > 0
    assert tally["calls_allowed_per_minute"] == 300
    assert {"share_fresh", "age_p50_seconds", "age_p99_seconds", "calls_per_minute", "bytes", "rejected"} <= set(tally)
    assert tally["pushes"] > 0
    assert set(started) == {"worker", "server", "simulator"}
    assert not any(map(alive, started.values()))
    assert "livewell_demo" not in "".join(child.lines("stderr"))


def test_a_hostile_upstream_gets_nothing_wrong_stored(livewell_dsn: str, tmp_path: Path) -> None:
    """Every family of faults fires, and none of their answers is stored.

    No limit is broken, and no verdict is false. A source that stands still is lagging, never green
    (R30).
    """
    with demo("--for", "25", "--faults", "--json", cwd=tmp_path, DATABASE_URL=livewell_dsn) as child:
        assert child.wait(timeout=120) == 0, child.describe()
        [line] = child.lines("stdout")
    tally = json.loads(line)
    assert set(tally["faults_fired"]) == set(FAMILIES)
    assert min(tally["faults_fired"].values()) > 0, tally
    assert tally["rejected"]
    assert tally["values_compared"] > 0
    assert (tally["wrong_values_stored"], tally["calls_above_limit"], tally["false_verdicts"]) == (0, 0, 0)
    assert tally["lagging_verdicts"] > 0


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """For an embedded server; root's tmp_path is closed to the server's account."""
    folder = Path("/tmp") / f"livewell-test-demo-{secrets.token_hex(4)}"  # noqa: S108 - see above
    own = folder.with_name(f"{folder.name}-demo")
    yield folder
    embedded.stop(own, mode="immediate")
    shutil.rmtree(own, ignore_errors=True)


@pytest.mark.parametrize(
    ("victims", "judged"),
    [
        pytest.param(("worker", "Postgres"), ("Postgres",), id="one of each kind"),
        pytest.param((*ALL,), (*ALL,), id="all", marks=pytest.mark.campaign),
    ],
)
def test_whatever_is_killed_comes_back_and_everything_is_fresh_again(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victims: tuple[str, ...], judged: tuple[str, ...]
) -> None:
    """One after the other, nothing typed: 95 % fresh within 30 s of those that are judged.

    Then Ctrl-C, and nothing is left.

    Worker, server and simulator are kept by the same code, so `make test` kills one of them, and
    does not wait the 20 s after which the demo says that the share never fell.
    """
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with demo(cwd=tmp_path, LIVEWELL_DATA_DIR=str(data_dir)) as child:
        child.wait_for(mostly_fresh, timeout=90)
        every: set[int] = set()
        for name in victims:
            every |= set(pids(child, "stdout").values())
            victim = pids(child, "stdout")[name]
            mark = child.mark()
            Path(f"/proc/{victim}/stat").read_text()  # it lives: the fault fires
            os.kill(victim, signal.SIGKILL)
            # By its number: a worker that is just starting goes, too, when the database does.
            child.wait_for(f"(pid {victim}) is gone", timeout=15, since=mark)
            came_back = child.mark()
            child.wait_for(lambda line, name=name: f"({name})" in line, timeout=30, since=came_back)  # type: ignore[misc] # mypy cannot infer a lambda with a default
            if name in judged:
                found = RECOVERED.search(child.wait_for(recovered, timeout=60, since=mark))
                assert found is not None
                assert float(found[1] or 0) < RECOVERY_SECONDS_MAX
            assert pids(child, "stdout")[name] != victim
        every |= set(pids(child, "stdout").values())
        asked = time.monotonic()
        child.interrupt()
        assert child.wait(timeout=30) == 130, child.describe()
        assert time.monotonic() - asked < 15
    assert len(every) >= 4 + len(victims)
    eventually(lambda: not any(map(alive, every)), timeout=5, what="every process to be gone")
    assert embedded.status(data_dir.with_name(f"{data_dir.name}-demo")) is None


@pytest.mark.parametrize("scenario", [QUIET, HOSTILE])
def test_the_shipped_files_are_what_the_demo_applies(scenario: Scenario) -> None:
    """With another address and shorter times, and all of them valid.

    No real credential is named with a value.
    """
    found = [
        read(document, path.name, private_hosts=[HOST]) for path, document in documents(scenario, f"http://{HOST}:2/x")
    ]
    assert isinstance(found[0], UpstreamDefinition)
    assert found[0].credentials == scenario.credentials
    names = {one.name for one in found[1:] if isinstance(one, TypeDefinition)}
    assert {"quote", "news", "earnings", "end_of_day", "income_statement"} <= names
    assert all(value.startswith("simulated-") for value in scenario.environment.values())


def test_the_hostile_plan_leaves_no_family_out() -> None:
    """Some for everybody, some for accounts or paths of their own."""
    knobs = HOSTILE.knobs()
    general = set(knobs.faults)
    confined = {member.family for rule in knobs.confined for name in rule.faults for member in members(name)}
    assert general | confined == set(FAMILIES)
    assert QUIET.knobs().faults == {}


def test_shares_ages_and_reasons_are_of_what_is_watched() -> None:
    """Ages are those of quotes; what was taken is not rejected."""
    now = datetime(2026, 11, 16, tzinfo=UTC)
    ages = [random.Random(1).uniform(0, 10) for _ in range(9)]
    rows = [Row("quote", f"Q{place}", 1, "fresh", age, None, now, 60, None) for place, age in enumerate(ages)]
    rows.append(Row("news", "AAPL", 1, "failing", 900.0, "html", now, 60, None))
    figures = Figures(rows, {}, {"stored": 5, "unchanged": 2, "html": 1, "older": 3}, 10, 1, 11)
    figures.verdicts.update(row.verdict for row in rows)
    assert figures.share_fresh == 0.9
    assert figures.quote_ages() == sorted(ages)
    assert figures.refreshes == 7
    assert list(figures.rejected.items()) == [("older", 3), ("html", 1)]
    assert quantile([1.0, 2.0, 3.0], 0.5) == 2.0
    assert quantile([], 0.5) is None


@pytest.mark.parametrize(("wrong", "above", "false"), [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_a_run_is_good_only_if_nothing_was_wrong(wrong: int, above: int, false: int) -> None:
    """One wrong value, one call too many or one false verdict is exit code 1."""
    tally = Totals(8, 9, 1, 1, 2, 60, 300, 1, {}, 3, 3, 10, 99, 9, wrong, above, 9, false, None, None, [])
    assert tally.good is (wrong + above + false == 0)
    assert "faults_fired" not in tally.as_json()
    assert "lies" not in tally.as_json()
