"""The tour, taken as a newcomer takes it.

Real workers, a real kill -9, and a count that could come out badly.
"""

import asyncio
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from livewell import Livewell, Settings
from livewell.apps.tour.ledger import Ledger
from livewell.apps.tour.tasks import count_runs, note_run
from livewell.apps.tour.tour import Tally
from livewell.db import embedded
from livewell.testing.processes import ChildProcess, eventually

T = TypeVar("T")

# Every object a tour makes, beside the schema, which goes as a whole.
TRACES = """
SELECT (SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'livewell_tour')
     + (SELECT count(*) FROM livewell.queue WHERE name = 'tour')
     + (SELECT count(*) FROM livewell.job) + (SELECT count(*) FROM livewell.job_history)
     + (SELECT count(*) FROM livewell.dead_job) + (SELECT count(*) FROM livewell.worker)
"""


def demo(*arguments: str, cwd: Path, **env: str) -> ChildProcess:
    # A killed tour leaves its temporary folder: let that be inside the test's own.
    return ChildProcess(["-m", "livewell.cli", "demo", "tour", *arguments], env={"TMPDIR": str(cwd), **env}, cwd=cwd)


def on(settings: Settings, act: Callable[[Livewell], Coroutine[Any, Any, T]]) -> T:
    """Do something on this test's database."""

    async def run() -> T:
        async with Livewell(settings) as app:
            return await act(app)

    return asyncio.run(run())


def traces(settings: Settings) -> int:
    async def count(app: Livewell) -> int:
        number: int = (await app.database.call(TRACES))[0][0]
        return number

    return on(settings, count)


def test_nothing_is_lost_and_nothing_doubled_when_a_worker_is_killed(
    livewell_settings: Settings, livewell_dsn: str, tmp_path: Path
) -> None:
    """And the fault fired: the worker that was killed held jobs.

    Afterwards there is no trace of the tour.
    """
    with demo("--jobs", "400", "--json", cwd=tmp_path, DATABASE_URL=livewell_dsn) as child:
        assert child.wait(timeout=120) == 0, child.describe()
        tally = json.loads(child.lines("stdout")[-1])
    assert len(child.lines("stdout")) == 1
    assert {name: tally[name] for name in ("jobs", "done", "lost", "effects_doubled")} == {
        "jobs": 400,
        "done": 400,
        "lost": 0,
        "effects_doubled": 0,
    }
    assert tally["killed_worker_held"] > 0
    assert 0 <= tally["runs_repeated"] <= tally["killed_worker_held"]
    assert 0 < tally["recovery_seconds"] < tally["seconds"]
    assert traces(livewell_settings) == 0


def test_a_tour_that_is_interrupted_leaves_nothing_behind(
    livewell_settings: Settings, livewell_dsn: str, tmp_path: Path
) -> None:
    """Neither processes nor rows, and the password is never told."""
    with demo("--jobs", "20000", cwd=tmp_path, DATABASE_URL=livewell_dsn) as child:
        told = child.wait_for("two worker processes", timeout=60)
        pids = [int(pid) for pid in re.findall(r"pid (\d+)", told)]
        child.interrupt()
        assert child.wait(timeout=60) == 130
        assert child.lines("stderr") == ["livewell: interrupted"]
        assert "DATABASE_URL is set" in "\n".join(child.lines("stdout"))
        assert "***" in "\n".join(child.lines("stdout"))
    assert len(pids) == 2
    for pid in pids:
        assert not Path(f"/proc/{pid}").exists()
    assert traces(livewell_settings) == 0


def test_workers_end_by_themselves_when_the_tour_is_killed(
    livewell_settings: Settings, livewell_dsn: str, tmp_path: Path
) -> None:
    """And the next tour cleans up what this one could not."""
    with demo("--jobs", "20000", cwd=tmp_path, DATABASE_URL=livewell_dsn) as child:
        pids = re.findall(r"pid (\d+)", child.wait_for("two worker processes", timeout=60))
        child.kill()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), timeout=30)
    with demo("--jobs", "20", "--json", cwd=tmp_path, DATABASE_URL=livewell_dsn) as child:
        assert child.wait(timeout=120) == 0, child.describe()
    assert traces(livewell_settings) == 0


def test_the_tour_starts_a_server_of_its_own_and_stops_it(tmp_path: Path) -> None:
    """Where no DATABASE_URL is set and nothing runs.

    Told in plain lines where there is no terminal.
    """
    folder = Path("/tmp") / f"livewell-test-tour-{secrets.token_hex(4)}"  # noqa: S108 - root's tmp_path is closed to the server's account
    env = {name: text for name, text in os.environ.items() if name != "DATABASE_URL"}
    env |= {"LIVEWELL_DATA_DIR": str(folder)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "livewell.cli", "demo", "tour", "--jobs", "50"],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "50 done, 0 lost, 0 effects doubled, " in done.stdout
        assert "\x1b" not in done.stdout
        headings = re.findall(r"(?m)^(\d)  (\w+)", done.stdout)
        assert [name for _, name in headings] == ["Postgres", "Schema", "Enqueue", "Work", "Kill", "Recovery", "Count"]
        assert embedded.status(folder) is None
    finally:
        embedded.stop(folder, mode="immediate")
        shutil.rmtree(folder, ignore_errors=True)


def test_the_count_sees_an_effect_that_happened_twice(livewell_settings: Settings) -> None:
    """Else counting none would prove nothing.

    No constraint forbids it, and a count of one ends with exit code 1.
    """

    async def double(app: Livewell) -> tuple[int, int]:
        ledger = Ledger(app.database)
        await ledger.prepare()
        await app.database.call("INSERT INTO livewell_tour.effect VALUES (1, 64), (2, 65), (2, 65)")
        return await ledger.count()

    assert on(livewell_settings, double) == (0, 1)


@pytest.mark.parametrize(("lost", "doubled", "good"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_a_tour_is_good_only_if_nothing_was_lost_or_doubled(lost: int, doubled: int, good: bool) -> None:
    """Repeated runs are no fault."""
    tally = Tally(9, 9 - lost, lost, doubled, runs_repeated=5, killed_worker_held=5, recovery_seconds=1, seconds=1)
    assert tally.good is good


def test_runs_are_counted_from_the_file(tmp_path: Path) -> None:
    """Each run is one record, however often its job ran; no file, no runs."""
    file = tmp_path / "runs"
    assert count_runs(file) == {}
    for number in (1, 2, 2, 4999):
        note_run(file, number)
    assert count_runs(file) == {1: 1, 2: 2, 4999: 1}
