"""The example of docs/howto/write_a_capability.md plugs in, with no edit anywhere else.

By entry point, and by the one list.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from livewell import Livewell, Settings
from livewell.alerts.rules import evaluate
from livewell.db.migrate import check, migrate
from livewell.errors import MigrationError
from livewell.operations.doctor import examine
from livewell.operations.state import read_state, stuck
from livewell.schedule.housekeeping import Housekeeping
from livewell.server.dashboard import form
from livewell.testing import InlineWorker
from livewell.testing.processes import eventually_async
from livewell.testing.sse_client import EventStream
from tests.integration.capability.conftest import forget
from tests.support.http import in_process, listening, logins

SILENT = "INSERT INTO livewell.beacon VALUES ('backup', 60, livewell.now() - interval '1 hour')"


@pytest.fixture
def dsn(beacons: Path, livewell_dsn: str) -> str:
    """A database with the capability's own tables."""
    assert beacons
    migrate(livewell_dsn)
    return livewell_dsn


@pytest.fixture
async def app(dsn: str, livewell_settings: Settings) -> AsyncIterator[Livewell]:
    """An app that says nothing about beacons."""
    assert dsn
    async with Livewell(livewell_settings) as opened:
        yield opened


def run(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_its_files_run_after_ours_and_are_recorded_like_ours(beacons: Path, livewell_dsn: str) -> None:
    """Only its own files are left to run; then the schema is what migrate would leave."""
    assert beacons
    applied = migrate(livewell_dsn).applied
    assert applied[0] == "beacons/001_tables.sql"
    assert {label.partition("/")[0] for label in applied} == {"beacons"}
    assert check(livewell_dsn) == []
    assert run(livewell_dsn, "SELECT number, name FROM livewell.migration WHERE package = 'beacons'") == [(1, "tables")]
    assert migrate(livewell_dsn).applied == ()


def test_where_its_package_is_not_installed_nothing_is_migrated(
    dsn: str, beacons: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are named as drift, which stops nobody.

    Migrate says what to install, and what to do if it shall go.
    """
    monkeypatch.undo()
    assert str(beacons) not in sys.path
    forget()
    [problem] = check(dsn)
    assert (problem.kind, "Capability beacons has tables here" in problem.message) == ("drift", True)
    with pytest.raises(MigrationError, match=r"no package on this machine offers it. Install the package"):
        migrate(dsn)


async def test_its_attribute_is_on_the_app(app: Livewell) -> None:
    """Made at the first use; an unknown one is an AttributeError."""
    await app.beacons.see("backup", 60)  # type: ignore[attr-defined] # known to capabilities, not to type checkers
    assert [one["name"] for one in await app.beacons.all()] == ["backup"]  # type: ignore[attr-defined] # see above
    assert not hasattr(app, "lighthouses")


async def test_its_task_is_declared_and_its_queue_is_worked(app: Livewell) -> None:
    """A program enqueues it by name; a worker that was not told its queues works its queue."""
    await app.enqueue("beacons.see", name="nightly", every_seconds=60)
    assert [one.kind for one in await InlineWorker(app).run()] == ["beacons.see"]
    assert run(app.database.conninfo, "SELECT name FROM livewell.beacon") == [("nightly",)]
    assert "beacons" in app.worker()._queues


async def test_its_duty_runs_in_a_worker(app: Livewell) -> None:
    """It shows in the list of schedules, and its run in the history."""
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    try:
        found = await eventually_async(lambda: app.schedule_admin.runs("beacons.look"), timeout=60)
        assert found[0]["schedule"] == "beacons.look"
    finally:
        worker.stop()
        await running


async def test_whoever_is_on_call_sees_it(dsn: str, app: Livewell, livewell_settings: Settings) -> None:
    """A finding of the doctor, a line of what is stuck, an alert of its own rule."""
    run(dsn, SILENT)
    [finding] = [one for one in await examine(dsn, livewell_settings) if one.word == "beacon_silent"]
    assert finding.subject == "backup"
    assert "beacon backup is silent" in stuck(await read_state(app.database))
    await evaluate(app.database)
    assert ("beacon_silent", "backup") in {(one["rule"], one["subject"]) for one in await app.alerts.alerts()}


async def test_housekeeping_prunes_it(dsn: str, app: Livewell) -> None:
    """What was not seen for 90 days goes, the rest stays."""
    run(dsn, SILENT)
    run(dsn, "INSERT INTO livewell.beacon VALUES ('gone', 60, livewell.now() - interval '91 days')")
    await Housekeeping(app.database).run()
    assert run(dsn, "SELECT name FROM livewell.beacon") == [("backup",)]


async def test_the_server_has_its_routes_its_gauge_and_its_page(dsn: str, livewell_settings: Settings) -> None:
    """Routes behind the gate, as the server's own roles; the page without a login.

    The OpenAPI document knows the routes.
    """
    with logins(dsn) as made:
        async with in_process(dsn, made, livewell_settings) as web:
            operator = web.as_key("operate", "view")
            assert (await operator.put("/v1/beacons/backup?every=60")).status_code == 204
            assert (await operator.get("/v1/beacons")).json()["items"][0]["name"] == "backup"
            assert (await web.client.get("/v1/beacons")).status_code == 401
            assert (await web.as_key("view").get("/v1/beacons")).status_code == 403
            assert 'livewell_beacon_silent_seconds{beacon="backup"}' in (await operator.get("/v1/metrics")).text
            assert (await operator.get("/v1/system/state")).json()["beacons"]["how"] == "exact"
            assert "/v1/beacons/{name}" in (await web.client.get("/v1/openapi.json")).json()["paths"]
            page = await web.client.get("/beacons")
            assert (page.status_code, "<title>Who has fallen silent?</title>" in page.text) == (200, True)
            assert "default-src 'none'" in page.headers["content-security-policy"]
            assert "{static}" not in page.text
            listed = (await web.client.get("/pages.json")).json()["pages"]
            assert {"path": "/beacons", "nav": "Beacons", "title": "Who has fallen silent?"} in listed


async def test_the_dashboard_has_its_page_its_panel_and_its_form(dsn: str, livewell_settings: Settings) -> None:
    """A page with an entry in the navigation, a panel on the first page, a live stream, an act with its audit row."""
    run(dsn, SILENT)
    with logins(dsn) as made:
        async with listening(dsn, made, livewell_settings) as web:
            key = web.key("operate", "view")
            operator = web.bearer(key.text)
            page = (await operator.get("/beacons/all")).text
            assert "Which programs report?" in page
            assert '<a href="/beacons/all" aria-current="page">Programs</a>' in page
            assert "backup" in page
            assert "Silent programs" in (await operator.get("/")).text

            async with await EventStream.open(web.base, "/v1/pages/stream?page=/beacons/all", key=key.text) as stream:
                _, panel = await stream.next("panel", seconds=20)
            assert "backup" in panel["html"]

            fields = {"token": form.token("a" * 32)}
            cookie = {"Cookie": f"{form.TOKEN_COOKIE}={'a' * 32}"}
            done = await operator.post("/beacons/backup/forget", data=fields, headers=cookie)
            assert (done.status_code, done.headers["location"]) == (303, "/beacons/all")
            assert "No program has reported yet." in (await operator.get("/beacons/all")).text
            assert run(dsn, "SELECT action, subject FROM livewell.audit") == [("beacon.forget", "backup")]


@pytest.mark.parametrize("beacons", ["entry point"], indirect=True)
def test_its_command_is_on_the_command_line(dsn: str, beacons: Path) -> None:
    """In a process of its own, as pip would have installed it: in the help, and at work."""
    run(dsn, SILENT)
    environment = {**os.environ, "DATABASE_URL": dsn, "PYTHONPATH": f"{beacons}:{os.environ.get('PYTHONPATH', '')}"}

    def livewell(*words: str) -> str:
        command = [sys.executable, "-m", "livewell.cli", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    assert "\n  beacons " in livewell("--help")
    assert "operations/alerts/beacon_silent\n" in livewell("docs")
    assert "# beacon_silent" in livewell("docs", "operations/alerts/beacon_silent")
    [item] = json.loads(livewell("beacons", "--json"))["items"]
    assert (item["name"], item["late"]) == ("backup", True)
    assert "backup" in livewell("beacons")
    assert "No beacon" in livewell("beacons", "--forget", "backup")


def test_the_page_prints_the_example_as_it_is() -> None:
    """What is read in docs/howto/write_a_capability.md is what the tests run."""
    example = Path(__file__).parents[3] / "examples" / "capability"
    page = (Path(__file__).parents[3] / "docs/howto/write_a_capability.md").read_text()
    printed = re.findall(r"^`([\w/.]+)`\n\n```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(printed) >= 10
    assert [name for name, text in printed if (example / name).read_text() != text] == []
