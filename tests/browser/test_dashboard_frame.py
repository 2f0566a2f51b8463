"""The frame of the dashboard in a browser: every page at every size, live panels, and outages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import BrowserContext, Page, expect
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell import words
from livewell.capability import capabilities
from livewell.testing.proxy.threaded import ThreadedProxy
from tests.browser.conftest import Complaints, LogIn
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = [*(view.path for one in capabilities() for view in one.views if view.nav), "/ui"]
SIZES = [(1600, 1000), (390, 844)]
SHIFT_MAX = 0.05


async def _fits(page: Page) -> bool:
    return bool(await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


async def _shift(page: Page) -> float:
    """How far the page has moved under its reader since it was loaded."""
    script = """() => new Promise((done) => {
        let sum = 0;
        new PerformanceObserver((list) => { for (const one of list.getEntries()) sum += one.value; })
            .observe({ type: "layout-shift", buffered: true });
        setTimeout(() => done(sum), 50);
    })"""
    return float(await page.evaluate(script))


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_is_accessible_and_fits(site: Site, hand: Hand, log_in: LogIn, scheme: str) -> None:
    """axe-core finds nothing, nothing is wider than the screen, and nothing moves by itself."""
    site.start()
    hand.put("quote", "AAPL")
    page = await log_in()
    await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two
    for width, height in SIZES:
        await page.set_viewport_size({"width": width, "height": height})
        for path in PAGES:
            await page.goto(site.base + path)
            await expect(page.locator("h1")).to_have_count(1)
            await expect(page.locator("#live-words")).to_have_text("Live")
            found = await Axe().run(page)
            assert found.violations_count == 0, f"{path} at {width}: {found.generate_report()}"
            assert await _fits(page), f"{path} is wider than {width} px"
            assert await _shift(page) <= SHIFT_MAX, f"{path} at {width} moves"


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


async def test_a_repaint_leaves_open_rows_scroll_and_typing_alone(site: Site, log_in: LogIn) -> None:
    """What the reader did stays; a panel in which somebody types waits."""
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/ui")
    await page.locator("details summary", has_text="Traceback").click()
    await page.locator("details summary", has_text="Discard").click()
    script = """async (address) => {
        const { arrived } = await import(address);
        const text = await (await fetch(location.pathname)).text();
        const made = new DOMParser().parseFromString(text, "text/html").getElementById("components");
        made.querySelector("h2").textContent = "Repainted";
        arrived("components", made.outerHTML);
    }"""
    address = await page.locator("script[type=module]").get_attribute("src")
    assert address is not None
    await page.evaluate(script, address.replace("dashboard.js", "repaint.js"))
    await expect(page.locator("#components-title")).to_have_text("Repainted")
    assert await page.locator("details").evaluate_all("(all) => all.map((one) => one.open)") == [True, True]


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
