"""Pages with nothing on them: each panel says so in a sentence of its own, and none has failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page
from starlette.routing import compile_path

from livewell.db import Database
from livewell.operations.state import read_state
from livewell.server.dashboard import rendering
from livewell.server.dashboard.visit import Panel, Rights
from livewell.server.findings import Diagnosis, Findings
from livewell.settings import Settings
from tests.browser.act_case import UNFOLLOWED
from tests.browser.conftest import Complaints, dress, enter
from tests.browser.contact_cases import ALONE, BARE, GONE
from tests.browser.look import faults
from tests.browser.outbox_rows import EMPTY_SINK, NOWHERE
from tests.browser.site import Hand, Site, furnish
from tests.browser.test_dashboard_every_page import REDIRECTS, VIEWS
from tests.support.http import addresses

# Something of each kind, and nothing in it.
BARE_THINGS = """
INSERT INTO livewell.queue (name, created_at) VALUES ('idle', now());
SELECT * FROM livewell.enqueue_jobs('[{"id": 1, "queue": "idle", "kind": "work", "payload": {}}]');
INSERT INTO livewell.dead_job
    (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload)
VALUES (2, now(), now(), 1, 1, 0, 0, 1, 'idle', 'work', 'attempts', '{}');
INSERT INTO livewell.batch (id, created_at) VALUES (3, now());
INSERT INTO livewell.bulk_act
    (asked_at, before_at, stepped_at, ended_at, from_id, up_to_id, expected, action, state, asked_by, filter)
VALUES (now(), now(), now(), now(), 0, 0, 0, 'cancel', 'done', 'cli:test', '{}');
INSERT INTO livewell.schedule (name, seen_at, created_at, every, timeout, kind, missed)
VALUES ('never', now(), now(), '1 hour', '1 minute', 'interval', 'skip');
INSERT INTO livewell.run (schedule, due_at, last_due_at, finished_at, state, reason, holder)
VALUES ('never', now(), now(), now(), 'skipped', 'missed', 'nobody'), ('gone', now(), now(), now(), 'skipped', 'missed', 'nobody');
INSERT INTO livewell.job_history (id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind)
VALUES (5, 1, 9, now(), now(), now(), 1, 'succeeded', 'idle', 'done');
INSERT INTO livewell.worker
    (id, started_at, renewed_at, expires_at, steady_since, lease, slots, queues, kinds, name, version)
VALUES (4, now(), now(), now() + interval '1 hour', now(), '1 hour', 8, '{}', '{}', 'idle', '0.8.0');
INSERT INTO livewell.job_failure (job_id, fence, failed_at, attempt, outcome, error, worker) VALUES (1, 1, now(), 1, 'lost', '', 6);
INSERT INTO livewell.alert (rule, subject, state, level, summary, fired_at)
VALUES ('a_rule_of_mine', 'mine', 'fired', 'P1', 'it is wrong', now())
"""
BARE_PLACES = [
    "/types/quote",
    "/types/quote?show=failing",
    "/types/quote?show=watched",
    "/types/quote/NEVER",
    "/limits",
    "/upstreams/fmp/close",
    "/work/jobs/1",
    "/work/jobs/5",
    "/work/batches/3",
    "/work/workers/4",
    "/work/workers/6",
    "/dead/2",
    "/acts/1",
    "/acts/new?action=hasten",
    "/schedules",
    "/schedules/never",
    "/schedules/gone",
    "/runs",
    "/runs/1",
    "/alerts/1",
    "/outbox/sinks/idle",
    "/outbox/sinks/quiet",
    "/outbox/sinks/idle?state=parked",
    "/outbox/events/9001",
    "/outbox/dead/idle/9001",
    f"/contacts/{ALONE}",
    f"/contacts/{GONE}",
    # filters that nothing matches
    "/outbox/dead?sink=zzz",
    "/work?name=zzz",
    "/work/pause?act=pause&name=zzz",
    "/work/jobs?queue=zzz",
    "/work/jobs?state=failed&queue=zzz",
    "/dead?queue=zzz",
    "/audit?actor=zzz",
    "/runs?outcome=failed",
    "/warnings?hours=1&type=zzz",
    "/contacts?tenant=zzz",
]
# Panels without rows, values or notices of their own: what is in them besides their title.
PANELS = """() => [...document.querySelectorAll(".panel")].map((one) => {
    const body = one.cloneNode(true);
    body.querySelector("header")?.remove();
    return {
        id: one.id,
        state: one.dataset.state,
        empty: one.querySelector(":scope > .empty")?.innerText.trim() ?? "",
        words: body.textContent.trim(),
        bare: [...one.querySelectorAll("table")].filter((table) => !table.querySelector("tbody tr")).length,
    };
})"""
# A database of which all was judged, and nothing is wrong.
JUDGED = (
    "INSERT INTO livewell.alert_rule (name, level, hysteresis, evaluated_at) VALUES ('one', 'P0', '1 minute', now())"
)
# Panels that have words for being empty and are not here, each with where it is.
ELSEWHERE = {
    "logins": "nowhere: whoever looks with a browser is logged in",
    "slow": "test_dashboard_calm.py: the plan is being made, for a moment",
}
UNWORDED = "There is nothing here."  # of a panel that nobody gave words of its own


@dataclass(slots=True)
class Painted:
    """Panels that the server has painted, by id and template: which have words for being empty, and which were."""

    worded: set[tuple[str, str]] = field(default_factory=set)
    empty: set[tuple[str, str]] = field(default_factory=set)


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> Painted:
    """Nothing is wrong with this server: no loop of a worker that is not there is late, the doctor finds nothing."""
    noted, paint = Painted(), rendering._painted

    def note(panel: Panel, rights: Rights, state: str, *more: Any, **named: Any) -> rendering.Painted:
        which = (panel.id, panel.template)
        if panel.empty != UNWORDED:
            noted.worded.add(which)
        if state == "empty":
            noted.empty.add(which)
        return paint(panel, rights, state, *more, **named)

    async def on_time(database: Database) -> Any:
        document = await read_state(database)
        return {**document, "schedules": {**document["schedules"], "late": []}}

    async def nothing(_: Findings) -> Diagnosis:
        return Diagnosis((), datetime.now(UTC))

    monkeypatch.setattr(rendering, "_painted", note)
    monkeypatch.setattr("livewell.server.state_sampler.read_state", on_time)
    monkeypatch.setattr(Findings, "peek", lambda _: Diagnosis((), datetime.now(UTC)))
    monkeypatch.setattr(Findings, "look", nothing)
    return noted


@pytest_asyncio.fixture(loop_scope="session")
async def bare(
    livewell_dsn: str, browser_logins: dict[str, tuple[str, str]], hand: Hand, painted: Painted
) -> AsyncIterator[Site]:
    """A server on a database in which nothing is."""
    hand.rows(JUDGED)
    made = Site(livewell_dsn, addresses(livewell_dsn, browser_logins), hand)
    made.start()
    yield made
    made.close()


async def wrong_at(page: Page, path: str) -> list[str]:
    """What is wrong with the panels of a page."""
    found: list[dict[str, Any]] = await page.evaluate(PANELS)
    wrong = await faults(page)
    wrong += [] if found else ["it has no panel"]
    for one in found:
        if one["state"] == "failed" and one["id"] and path != "/ui":
            wrong.append(f"{one['id']} has failed: {one['words']}")
        if one["state"] == "empty" and path != "/ui":
            is_sentence = len(one["empty"].split()) >= 3 and one["empty"] != UNWORDED
            wrong += [] if is_sentence else [f"{one['id']} says of itself: {one['empty']!r}"]
        if not one["words"]:
            wrong.append(f"{one['id']} shows nothing at all")
        if one["bare"]:
            wrong.append(f"{one['id']} shows a table without rows")
    return [f"{path}: {one}" for one in wrong]


@pytest.mark.asyncio(loop_scope="session")
async def test_pages_with_nothing_on_them_say_so(  # noqa: PLR0917 - fixtures
    bare: Site,
    livewell_dsn: str,
    livewell_settings: Settings,
    hand: Hand,
    context: BrowserContext,
    complaints: Complaints,
    painted: Painted,
) -> None:
    """First a database as it is made, then one with things that have nothing in them. Each panel that has words for it is empty once."""
    complaints.network_expected = True  # a breaker that is closed is not there
    await context.add_init_script(UNFOLLOWED)  # the plan of limits comes a moment later, and takes more room
    page = await enter(bare, context)
    wrong: list[str] = []
    for place, path in enumerate(one for one in VIEWS if "{" not in one and one not in REDIRECTS):
        await dress(page, is_wide=place % 2 == 0)
        await page.goto(bare.base + path)
        wrong += await wrong_at(page, path)
    await furnish(livewell_dsn, livewell_settings)
    for place, path in enumerate(["/outbox/events/9001", *BARE_PLACES]):
        for several in [NOWHERE] if place == 0 else [BARE_THINGS, EMPTY_SINK, BARE] if place == 1 else []:
            for statement in several.strip().split(";\n"):
                hand.rows(statement)
        await dress(page, is_wide=place % 2 == 0)
        await page.goto(bare.base + path)
        wrong += await wrong_at(page, path)
    assert wrong == [], "\n".join(wrong)
    never = {name for name, _ in painted.worded - painted.empty}
    assert never - set(ELSEWHERE) == set()


def test_every_view_is_looked_at_empty() -> None:
    """Whoever adds a view with parts in its path says where it has nothing on it."""
    parts = [one for one in VIEWS if "{" in one]
    opened = [one.partition("?")[0] for one in BARE_PLACES]
    assert [view for view in parts if not any(compile_path(view)[0].fullmatch(one) for one in opened)] == []
