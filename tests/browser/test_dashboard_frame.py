"""The frame of the dashboard in a browser: without JavaScript, live panels, and outages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import BrowserContext, expect
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell import words
from livewell.capability import capabilities
from livewell.testing.proxy.threaded import ThreadedProxy
from tests.browser.conftest import Complaints, LogIn
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = [*(view.path for one in capabilities() for view in one.views if view.nav), "/ui"]


async def test_reading_works_without_javascript(site: Site, hand: Hand, log_in: LogIn, context: BrowserContext) -> None:
    """Every page has its question and its panels, with times in UTC."""
    site.start()
    hand.put("quote", "AAPL")
    await log_in()
    state = await context.storage_state()
    assert context.browser is not None
    plain = await context.browser.new_context(java_script_enabled=False, storage_state=state)
    page = await plain.new_page()
    for path in PAGES:
        await page.goto(site.base + path)
        assert await page.locator("section.panel").count() >= 1, path
        assert "UTC" in await page.locator(".as-of").first.inner_text()
    await plain.close()


async def test_the_two_languages_write_the_same(site: Site, log_in: LogIn) -> None:
    """words.js and words.py, letter by letter."""
    site.start()
    page = await log_in()
    await page.goto(site.base)
    values: list[Any] = [None, 0, 0.04, 0.5, 1, 59, 59.6, 60, 89.9, 3599, 3600, 5400, 86399, 90000, 12345, 1e6]
    values += [0.004, 0.0099, 0.01, 0.5, 0.99, 0.995, 1.0, 999, 1000, 1050, 1_500_000, 20_000_000_000, 3.5e12]
    values += [2.5, 1.25, 1250, 1750, 0.25, 12.5, 1234.5, -5, -90.5, 0.125, 0.0004]
    fingerprint = await page.locator("link[rel=stylesheet]").first.get_attribute("href")
    assert fingerprint is not None
    module = fingerprint.rsplit("/", 1)[0] + "/words.js"
    script = """async ([address, values]) => {
        const words = await import(address);
        return values.map((value) => [words.number(value), words.span(value), words.size(value), words.share(value)]);
    }"""
    theirs = await page.evaluate(script, [module, values])
    numbers = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    ours = [[words.number(v), words.span(v), words.size(v), words.share(v)] for v in numbers]
    assert ours == theirs


async def test_a_panel_changes_by_itself_and_can_be_paused(site: Site, hand: Hand, log_in: LogIn) -> None:
    """Without a reload; a paused page stays as it is, and goes on when told."""
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/audit")
    await expect(page.locator("#live-words")).to_have_text("Live")
    hand.rows("SELECT livewell.record_act('ann', 'queue.pause', 'mail', '{}', 'done')")
    await expect(page.locator("#audit")).to_contain_text("queue.pause", timeout=10_000)

    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator("#live-words")).to_have_text("Paused")
    hand.rows("SELECT livewell.record_act('ben', 'queue.resume', 'mail', '{}', 'done')")
    await page.get_by_role("button", name="Go on").click()
    await expect(page.locator("#audit")).to_contain_text("queue.resume", timeout=10_000)


async def test_a_dead_database_shows_failed_and_never_zero(
    site: Site, hand: Hand, log_in: LogIn, complaints: Complaints
) -> None:
    """Cut in mid-visit: what was known stays with its time; a page that is opened then says failed."""
    where = json.loads(json.dumps(hand._connection.info.get_parameters()))
    with ThreadedProxy(str(where["host"]), int(str(where.get("port", 5432)))) as database:
        for name in ("LIVEWELL_DATABASE_URL", "LIVEWELL_API_URL", "LIVEWELL_OPERATE_URL", "LIVEWELL_HUB_URL"):
            site.env[name] = _through(site.env[name], database.port)
        site.start()
        page = await log_in()
        await page.goto(f"{site.base}/work")
        await expect(page.locator("#live-words")).to_have_text("Live")
        complaints.network_expected = True
        database.freeze()
        await expect(page.locator("#queues")).to_have_attribute("data-state", "stale", timeout=20_000)
        await page.goto(f"{site.base}/audit")
        await expect(page.locator("[data-state=failed]").first).to_be_visible()
        database.heal()
        await page.goto(f"{site.base}/audit")
        await expect(page.locator("[data-state=failed]")).to_have_count(0, timeout=20_000)


def _through(address: str, port: int) -> str:
    return make_conninfo("", **{**conninfo_to_dict(address), "host": "127.0.0.1", "port": str(port)})
