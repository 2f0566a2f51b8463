"""R25 for exports: every finding, provoked for real; the doctor names the command that mends it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from livewell.db.scratch import TestClock
from tests.integration.operations.conftest import Examine
from tests.support.exports_sql import ESTIMATE, ExportSession

REPORT = "SELECT livewell.report_renderer('host:1', %s::jsonb)"
USUAL = {
    "rss_bytes": 10**8,
    "children_bytes": 10**8,
    "bytes_max": 10**9,
    "renders": 5,
    "children": 2,
    "spare_deaths": 0,
    "killed": {},
    "store_reason": None,
}


@pytest.fixture
def exports(livewell_dsn: str, livewell_clock: TestClock) -> Iterator[ExportSession]:
    """A session on a database of the test's own."""
    assert livewell_clock
    with ExportSession(livewell_dsn) as session:
        session.reset()
        yield session


async def test_exports_that_are_made_are_no_finding(exports: ExportSession, doctor: Examine) -> None:
    """A worker renders, and one waits."""
    exports.rows(REPORT, json.dumps(USUAL))
    exports.one()
    assert {word for word in await doctor() if word.startswith("export_")} == set()


async def test_a_store_that_does_not_answer_is_named_with_its_reason(exports: ExportSession, doctor: Examine) -> None:
    """As the worker saw it."""
    exports.rows(REPORT, json.dumps(USUAL | {"store_reason": "unreachable: expired_credentials"}))
    found = (await doctor())["export_store_away"]
    assert found.subject == "host:1"
    assert "expired_credentials" in found.seen
    exports.rows(REPORT, json.dumps(USUAL))
    assert "export_store_away" not in await doctor()


async def test_rendering_processes_that_die_at_their_start_are_named(exports: ExportSession, doctor: Examine) -> None:
    """Three within ten minutes."""
    exports.rows(REPORT, json.dumps(USUAL | {"spare_deaths": 2}))
    assert "export_children_dying" not in await doctor()
    exports.rows(REPORT, json.dumps(USUAL | {"spare_deaths": 3}))
    found = (await doctor())["export_children_dying"]
    assert "livewell[exports]" in found.command


async def test_a_user_near_their_quota_is_named(exports: ExportSession, doctor: Examine) -> None:
    """E10: before the first 507."""
    exports.make(exports.one(), 8 * ESTIMATE)
    assert "export_quota_near" not in await doctor()
    exports.one("ann", "more")
    found = (await doctor())["export_quota_near"]
    assert (found.subject, found.level) == ("ann", "P2")


async def test_a_cleanup_that_is_late_is_named(exports: ExportSession, doctor: Examine) -> None:
    """E11: a deleted file that nobody has removed for ten minutes."""
    export = exports.one()
    exports.make(export)
    exports.delete(export)
    assert "export_cleanup_late" not in await doctor()
    exports.advance(700)
    assert "livewell exports cleanup" in (await doctor())["export_cleanup_late"].command
    exports.clean()
    assert "export_cleanup_late" not in await doctor()


async def test_exports_that_nobody_makes_are_named(exports: ExportSession, doctor: Examine) -> None:
    """For a minute, and no worker renders."""
    exports.one()
    assert "export_without_worker" not in await doctor()
    exports.advance(90)
    found = (await doctor())["export_without_worker"]
    assert (found.subject, found.level) == ("exports", "P0")
    exports.rows(REPORT, json.dumps(USUAL))
    assert "export_without_worker" not in await doctor()
