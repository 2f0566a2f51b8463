"""Every page of the dashboard, with something on it, at two sizes, in two colour schemes.

axe-core finds nothing, nothing is wider than the screen, nothing moves by itself, no panel has
failed, and what a stranger wrote is text. A view that is added without an address here fails.
"""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import quote

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, ViewportSize, expect
from starlette.routing import compile_path

from livewell.capability import capabilities
from tests.browser.conftest import Complaints, LogIn
from tests.browser.contact_cases import GIVEN as PEOPLE
from tests.browser.contact_cases import HOSTILE_CONTACT, page_of
from tests.browser.outbox_rows import HOSTILE_EVENT, OUTBOX
from tests.browser.site import Hand, Site
from tests.browser.test_dashboard_types import HOSTILE, furnish_trouble
from tests.support.listed_rows import FILL

in_one_loop = pytest.mark.asyncio(loop_scope="session")

VIEWS = [view.path for one in capabilities() for view in one.views]
SHIFT_MAX = 0.05
Scheme = Literal["light", "dark"]
Size = ViewportSize
WIDE, NARROW = Size(width=1600, height=1000), Size(width=390, height=844)
# Charts are drawn anew a moment after the window has another width.
FITS = """() => new Promise((done) => {
    const root = document.documentElement;
    const look = (left) => {
        if (root.scrollWidth <= root.clientWidth) done(true);
        else if (left === 0) done(false);
        else setTimeout(look, 20, left - 1);
    };
    look(100);
})"""
# One address for each view whose path alone shows nothing.
ADDRESSES = [
    "/types/quote",
    "/types/quote?show=failing",
    "/types/quote/AAPL",
    f"/types/quote/{quote(HOSTILE, safe='')}",
    "/upstreams/fmp/close?credential=FMP_API_KEY",
    "/work/jobs/9001",
    "/work/jobs/9002",
    "/work/jobs?queue=hostile",
    "/work/jobs?state=failed",
    "/work/batches/77",
    "/work/workers/1",
    "/dead/9101",
    "/acts/new?action=cancel&queue=a.b",
    "/acts/1",
    "/schedules/nightly",
    "/alerts/1",
    "/runs?outcome=failed",
    "/runs/1",
    "/outbox/sinks/shop",
    "/outbox/sinks/shop?state=parked",
    "/outbox/sinks/books",
    "/outbox/dead?sink=shop&reason=lost",
    "/outbox/dead/shop/9011",
    "/outbox/dead/shop/9099",
    "/outbox/events/9008",
    "/outbox/events/9099",
    page_of(1),
    page_of(5),
    page_of(8),
]
REDIRECTS = {"/work/look", "/outbox/look", "/acts/new"}  # they lead to another address
MORE = """
INSERT INTO livewell.batch (id, created_at, sealed_at, remaining) VALUES (77, now(), now(), 3);
UPDATE livewell.job SET batch_id = 77 WHERE id BETWEEN 9001 AND 9003;
INSERT INTO livewell.worker (id, started_at, renewed_at, expires_at, steady_since, lease, slots, queues, kinds, name, version, lacks)
VALUES (1, now() - interval '3 hours', now(), now() + interval '1 hour', now(), '1 hour', 8, '{mail}', '{}', 'web-7f9c (pid 4711)', '0.7.0', '{"fmp FMP_KEY"}');
UPDATE livewell.job SET state = 'running', worker = 1, started_at = now(), attempt = 1, fence = id, progress = 42, progress_note = 'page 42 of 100' WHERE id = 9002;
UPDATE livewell.run SET state = 'failed', error = 'it failed' WHERE fence = 1;
INSERT INTO livewell.queue (name, created_at) VALUES ('hostile', now());
INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, payload, last_error, unique_key, group_key)
VALUES (9500, 1, now(), now(), 'ready', 5, 'hostile', %(text)s, jsonb_build_object('said', %(text)s), %(text)s, %(text)s, %(text)s);
INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload, error)
VALUES (9501, now(), now(), 1, 1, 0, 0, 1, 'hostile', %(text)s, 'attempts', jsonb_build_object('said', %(text)s), %(text)s);
INSERT INTO livewell.alert_channel (name, kind, source, level, repeats, since) VALUES ('pager', 'webhook', 'env:PAGER', 'P2', false, now());
INSERT INTO livewell.alert_silence (rule, subject, since, until, silenced_by) VALUES ('queue_deep', 'queue 1', now(), now() + interval '1 hour', 'ann')
"""


def stage(hand: Hand) -> None:
    """Rows for every list, and text that would be obeyed if it were not text."""
    furnish_trouble(hand)
    for statement in FILL.strip().split(";\n"):
        hand.rows(statement.replace("%", "%%"))
    text = "'" + HOSTILE.replace("'", "''").replace("%", "%%") + "'"
    for statement in (*OUTBOX.strip().split(";\n"), *PEOPLE.strip().rstrip(";").split(";\n")):
        hand.rows(statement.replace("%", "%%"))
    for several in (MORE, HOSTILE_EVENT, HOSTILE_CONTACT):
        for statement in several.strip().split(";\n"):
            hand.rows(statement.replace("%(text)s", text))


def everything() -> list[str]:
    """Every address that is opened."""
    plain = [path for path in VIEWS if "{" not in path and path not in REDIRECTS]
    return [*plain, *ADDRESSES]


async def shift(page: Page) -> float:
    """How far the page has moved under its reader since it was loaded."""
    script = """() => new Promise((done) => {
        let sum = 0;
        new PerformanceObserver((list) => { for (const one of list.getEntries()) sum += one.value; })
            .observe({ type: "layout-shift", buffered: true });
        setTimeout(() => done(sum), 50);
    })"""
    return float(await page.evaluate(script))


def test_every_view_is_opened() -> None:
    """Whoever adds a view says at which address it shows something."""
    opened = [path.partition("?")[0] for path in everything()]
    missing = [
        view
        for view in VIEWS
        if view not in ("/work/look", "/outbox/look")
        and not any(compile_path(view)[0].fullmatch(one) for one in opened)
    ]
    assert missing == []


@in_one_loop
@pytest.mark.parametrize(
    "look",
    [
        pytest.param(("light", WIDE, NARROW), id="wide in the light"),
        pytest.param(("dark", NARROW, WIDE), id="narrow in the dark"),
    ],
)
async def test_every_page_is_accessible_fits_and_stands_still(
    site: Site, hand: Hand, log_in: LogIn, complaints: Complaints, look: tuple[Scheme, Size, Size]
) -> None:
    """Loaded, looked at by axe-core, then made wide or narrow under the reader's eyes."""
    scheme, size, other = look
    stage(hand)
    site.start()
    page = await log_in()
    await page.emulate_media(color_scheme=scheme)
    wrong: list[str] = []
    for path in everything():
        await page.set_viewport_size(size)
        await page.goto(site.base + path)
        await expect(page.locator("h1")).to_have_count(1)
        if await page.locator("#live").count():
            await expect(page.locator("#live-words")).to_have_text("Live")
        where = f"{path} at {size['width']}, {scheme}"
        wrong += [f"{where}: {name} failed" for name in await _failed(page) if path != "/ui"]
        if (moved := await shift(page)) > SHIFT_MAX:
            wrong.append(f"{where}: moved by {moved:.2f}")
        if "\u202e" in await page.inner_text("main"):
            wrong.append(f"{where}: a bidirectional control is obeyed")
        found = await Axe().run(page, options={"resultTypes": ["violations"]})
        if found.violations_count:
            wrong.append(f"{where}: {found.generate_report()}")
        for shown in (size, other):
            await page.set_viewport_size(shown)
            if not await page.evaluate(FITS):
                wrong.append(f"{path} is wider than {shown['width']}, {scheme}")
    assert wrong == []


async def _failed(page: Page) -> list[str]:
    return [str(await one.get_attribute("id")) for one in await page.locator('section[data-state="failed"]').all()]


@in_one_loop
async def test_pages_that_are_no_views_are_accessible_too(
    site: Site, hand: Hand, log_in: LogIn, complaints: Complaints
) -> None:
    """What is not there, a secret that is shown once, and the login."""
    stage(hand)
    site.start()
    page = await log_in()
    complaints.network_expected = True
    for path in ("/dead/123456789", "/nothing/here"):
        await page.goto(site.base + path)
        await expect(page.locator("h1")).to_have_count(1)
        assert (await Axe().run(page, options={"resultTypes": ["violations"]})).violations_count == 0, path
    await page.goto(f"{site.base}/access")
    await page.get_by_label("Name, for people").fill("robot")
    await page.get_by_role("button", name="Make the key").click()
    await expect(page.locator("#secret")).to_contain_text(re.compile("^lw_"))
    assert (await Axe().run(page, options={"resultTypes": ["violations"]})).violations_count == 0
    await page.goto(f"{site.base}/login")
    assert (await Axe().run(page, options={"resultTypes": ["violations"]})).violations_count == 0
