"""`livewell schedules`, `livewell runs` and `livewell health` as people and cron meet them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from livewell.cli import cli
from livewell.settings import Settings
from tests.support.http import listening
from tests.support.schedule_sql import ScheduleSession

Command = Callable[..., Result]


@pytest.fixture
def livewell(livewell_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command on the test's database."""
    monkeypatch.setenv("DATABASE_URL", livewell_dsn)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, arguments, prog_name="livewell")

    return run


def test_schedules_are_listed_asked_for_paused_and_removed(livewell: Command, rows: ScheduleSession) -> None:
    """In words and in JSON; 1 when something is late, and an unknown one is named with those there are."""
    assert "Nothing runs by the clock yet" in livewell("schedules", "list").stdout
    rows.every("nightly")
    rows.tick("nightly")
    rows.close_run(rows.begin(), ok=False, error="boom")
    listed = livewell("schedules", "list")
    told = [json.loads(line) for line in livewell("schedules", "list", "--json").stdout.splitlines()]

    assert listed.exit_code == 0
    assert "every minute" in listed.stdout
    assert "boom" in listed.stdout
    assert {row["name"]: row["last_state"] for row in told} == {"nightly": "failed", "schedule.loop": None}
    assert "was asked for" in livewell("schedules", "run", "nightly").stdout
    assert livewell("schedules", "pause", "nightly").exit_code == 0
    assert "paused" in livewell("schedules", "resume", "nightly", "--json").stdout
    rows.rows("UPDATE livewell.schedule SET due_at = due_at - interval '1 hour', seen_at = seen_at - interval '1 hour'")
    late = livewell("schedules", "list")
    assert (late.exit_code, "LATE" in late.stdout, "livewell schedules remove nightly" in late.stdout) == (
        1,
        True,
        True,
    )
    assert livewell("schedules", "remove", "nightly").exit_code == 0
    wrong = livewell("schedules", "run", "nihgtly")
    assert wrong.exit_code == 1
    assert "schedule 'nihgtly' is not there" in wrong.stderr


def test_the_history_is_read_page_by_page(livewell: Command, rows: ScheduleSession) -> None:
    """Newest first; skipped slots with their reason and number."""
    rows.every("nightly")
    rows.close_run(rows.begin(), rows=12)
    rows.rows("SELECT livewell.skip_slots('nightly', livewell.now(), livewell.now(), 3, 'paused', 'me')")
    first = livewell("runs", "list", "--limit", "1")

    assert "paused, 3 slots" in first.stdout
    before = first.stdout.rsplit("--before ", 1)[1].strip()
    assert "succeeded" in livewell("runs", "history", "nightly", "--before", before).stdout
    assert json.loads(livewell("runs", "list", "--json").stdout.splitlines()[1])["rows_affected"] == 12
    assert "succeeded" in livewell("runs", "list", "--outcome", "succeeded").stdout
    assert "ended so" in livewell("runs", "history", "nightly", "--outcome", "failed").stdout


async def test_health_says_what_is_late_and_nothing_else(
    livewell: Command,
    rows: ScheduleSession,
    livewell_dsn: str,
    livewell_settings: Settings,
    server_logins: dict[str, tuple[str, str]],
) -> None:
    """0 and silence, or 1 and one line; a server that is not there is a problem too (R24)."""
    async with listening(livewell_dsn, server_logins, livewell_settings) as web:
        late = await asyncio.to_thread(livewell, "health", web.base)
        rows.tick()
        web.state.lateness._asked = float("-inf")
        good = await asyncio.to_thread(livewell, "health", web.base)
        told = await asyncio.to_thread(livewell, "health", f"{web.base}/health/schedules", "--json")
        other = await asyncio.to_thread(livewell, "health", f"{web.base}/healthz")
    gone = await asyncio.to_thread(livewell, "health", web.base)

    assert (late.exit_code, late.stdout) == (1, "")
    assert "late: schedule.loop" in late.stderr
    assert (good.exit_code, good.output) == (0, "")
    assert json.loads(told.stdout)["ok"] is True
    assert (other.exit_code, "no answer of Livewell's" in other.stderr) == (1, True)
    assert (gone.exit_code, gone.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize("url", ["livewell.example.com", "ftp://x/", "https://me:hunter2@x/", "https://[", "https://"])
def test_what_is_no_address_is_wrong_usage(livewell: Command, url: str) -> None:
    """And no password is repeated."""
    said = livewell("health", url)
    assert said.exit_code == 2
    assert "hunter2" not in said.output


def test_the_history_of_a_name_that_never_was_is_a_slip_of_the_pen(livewell: Command, rows: ScheduleSession) -> None:
    """It is named with those there are; a schedule without runs, and one that is gone, are none."""
    rows.every("nightly")
    wrong = livewell("runs", "history", "nihgtly")
    assert wrong.exit_code == 1
    assert "schedule 'nihgtly' is not there; there are: nightly" in wrong.stderr
    assert "There are no runs yet" in livewell("runs", "history", "nightly").stdout
    rows.close_run(rows.begin(), rows=12)
    rows.rows("DELETE FROM livewell.schedule")
    assert "succeeded" in livewell("runs", "history", "nightly").stdout
