"""Real processes: killed in the middle of a run, frozen past the lease, stopped and started under a watchdog."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import livewell
from livewell.db.scratch import TestClock
from livewell.testing.history import AppendLog
from livewell.testing.processes import ChildProcess, eventually
from tests.integration.schedule.scheduled_app import EVERY, HOLD, LOG
from tests.support.http import Web, in_process
from tests.support.schedule_sql import ScheduleSession

ROOT = Path(__file__).parents[3]
START_SECONDS = 60.0
LEASE_SECONDS = 2.0


class Field:
    """Workers of the scheduled app on one database, and the log their handlers append to."""

    def __init__(self, dsn: str, folder: Path, rows: ScheduleSession) -> None:
        self.rows = rows
        self.log, self.hold = folder / "log", folder / "hold"
        self.environment = {
            "DATABASE_URL": dsn,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(livewell.__file__).parents[1])]),
            LOG: str(self.log),
            HOLD: str(self.hold),
            EVERY: "300ms",
            "LIVEWELL_LEASE_SECONDS": str(LEASE_SECONDS),
            "LIVEWELL_HEARTBEAT_SECONDS": "0.2",
            "LIVEWELL_LOG_LEVEL": "info",
        }

    @contextmanager
    def worker(self) -> Iterator[ChildProcess]:
        """One process, until the block ends."""
        command = ["-m", "livewell.cli", "worker", "tests.integration.schedule.scheduled_app:app"]
        with ChildProcess(command, cwd=ROOT, env=self.environment) as child:
            child.wait_for("worker started", START_SECONDS)
            yield child

    def lines(self, event: str) -> list[tuple[int, int]]:
        """(slot, pid) of what handlers said."""
        words = [line.split() for line in AppendLog(self.log).read()]
        return [(int(slot), int(pid)) for what, slot, pid, _ in words if what == event]

    def livewell(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "livewell.cli", *arguments],
            env={**os.environ, **self.environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def until(self, true: Callable[[], object], seconds: float = 30.0) -> None:
        eventually(true, seconds)


@pytest.fixture
def field(livewell_dsn: str, tmp_path: Path, rows: ScheduleSession) -> Field:
    return Field(livewell_dsn, tmp_path, rows)


def tick_runs(field: Field) -> list[tuple[Any, ...]]:
    return field.rows.rows("SELECT state::text, holder FROM livewell.run WHERE schedule = 'tick' ORDER BY id")


def test_a_run_that_was_killed_is_crashed_and_the_next_one_happens(field: Field) -> None:
    """kill -9 in the middle; after a restart `livewell runs list` shows both (S4)."""
    field.hold.touch()
    with field.worker() as first:
        field.until(lambda: field.lines("start"))
        first.kill()
        first.wait(10)
    assert [state for state, _ in tick_runs(field)] == ["running"]
    field.hold.unlink()
    with field.worker():
        field.until(lambda: field.lines("end"))
        field.until(lambda: [state for state, _ in tick_runs(field)][:2] == ["crashed", "succeeded"])
        listed = [
            json.loads(line)
            for line in field.livewell("runs", "history", "tick", "--limit", "1000", "--json").stdout.splitlines()
        ]
    assert {"crashed", "succeeded"} <= {row["state"] for row in listed}
    slots = field.lines("start")
    assert len({slot for slot, _ in slots}) == len(slots)
    assert "crashed" in field.livewell("runs", "list", "--limit", "1000").stdout


def test_a_frozen_holder_is_replaced_and_its_old_term_writes_nothing(field: Field) -> None:
    """SIGSTOP in the middle of a run, longer than the lease: the other goes on with the next slot.

    Thawed, the first can end nothing (F-A9).
    """
    field.hold.touch()
    with field.worker() as first:
        field.until(lambda: field.lines("start"))
        first.freeze()
        field.hold.unlink()
        with field.worker() as second:
            field.until(lambda: any(pid == second.pid for _, pid in field.lines("end")))
            assert tick_runs(field)[0][0] == "crashed"
            first.thaw()
            before = len(field.lines("end"))
            field.until(lambda: len(field.lines("end")) >= before + 20)
            assert tick_runs(field)[0][0] == "crashed"
            starts = field.lines("start")
            assert len({slot for slot, _ in starts}) == len(starts)
            gaps = {b - a for (a, _), (b, _) in zip(sorted(starts), sorted(starts)[1:], strict=False)}
            assert gaps == {300_000}


async def test_a_watchdog_sees_the_scheduler_stop_and_start_again(
    field: Field, livewell_dsn: str, server_logins: dict[str, tuple[str, str]], livewell_settings: Any
) -> None:
    """200, then 503 with the names within the stated time, then 200.

    `livewell schedules list` exits with 1 meanwhile (R24).
    """
    clock = TestClock(livewell_dsn)
    async with in_process(livewell_dsn, server_logins, livewell_settings) as web:

        async def told(web: Web = web) -> tuple[int, list[str]]:
            web.state.lateness._asked = float("-inf")
            answer = await web.client.get("/health/schedules")
            return answer.status_code, [one["name"] for one in answer.json()["late"]]

        assert await told() == (503, ["schedule.loop"])
        with field.worker() as child:
            field.until(lambda: field.lines("end"))
            assert await told() == (200, [])
            assert field.livewell("schedules", "list").returncode == 0
            # A worker that ends within its first second may have promoted and recovered nothing yet.
            field.until(
                lambda: field.rows.rows("SELECT 1 FROM livewell.tick WHERE name = 'maintain' AND last_at IS NOT NULL")
            )
            child.terminate()
            child.wait(30)
        clock.advance(50)
        assert await told() == (200, [])
        clock.advance(30)  # two intervals of the scheduler's own pulse, 5 s each, and a minute
        assert await told() == (
            503,
            ["livewell.exports.settle", "queue.maintain", "refresh.due", "schedule.loop", "tick"],
        )
        assert field.livewell("schedules", "list").returncode == 1
        with field.worker():
            mark = len(field.lines("end"))
            field.until(lambda: len(field.lines("end")) > mark)
            field.until(lambda: field.rows.late() == [])
            assert await told() == (200, [])
