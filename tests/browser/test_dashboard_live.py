"""Live pages under a reader's hands: what a repaint leaves alone, and what the page says when it is not live."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import BrowserContext, Locator, Page, Request, expect

from livewell.testing.processes import eventually_async
from livewell.testing.proxy.threaded import ThreadedProxy
from tests.browser.conftest import Complaints, LogIn
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAINTED_MS = 15_000  # a painting is at most a few seconds away
OLD = "nothing here is newer than its time says"
HOLD_MS = 6000  # more than repaint.js holds a panel for a hand
STEP_MS = 100
SHIFT_MAX = 0.05
LETTERS = """
INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload)
SELECT n, now(), now(), 1, 1, 0, 0, 1, 'mail', 'send', 'attempts', '{}' FROM generate_series(%s::bigint, %s::bigint) n
"""
# Counts the panels that are put in place of others after the page was loaded.
COUNT_REPAINTS = """
window.repaints = 0;
addEventListener("DOMContentLoaded", () => new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const one of addedNodes) if (one.matches?.(".panel")) window.repaints += 1;
}).observe(document.querySelector(".panels"), { childList: true }));
"""
# The tab is hidden, or shown again, as the browser would say it.
SHOW = """(hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
# Hands new HTML of a panel to repaint.js, so many times, each with another title.
ARRIVE = """async ([id, times, from]) => {
    const { arrived } = await import(document.querySelector("script[type=module]").src.replace("dashboard.js", "repaint.js"));
    const text = await (await fetch(location.pathname)).text();
    const made = new DOMParser().parseFromString(text, "text/html").getElementById(id);
    for (let n = from; n < from + times; n++) {
        made.querySelector("h2").textContent = `Repaint ${n}`;
        arrived(id, made.outerHTML);
    }
}"""


def said(page: Page) -> Locator:
    """What the page says of itself."""
    return page.locator("#live-words")


def held(page: Page, panel: str) -> Locator:
    """What a panel says that waits."""
    return page.locator(f"#{panel} .held")


async def live(page: Page, address: str) -> None:
    """Open it, and wait until it follows."""
    await page.goto(address)
    await expect(said(page)).to_have_text("Live")


async def pause_clock(page: Page) -> None:
    """From here on the time of the page moves only with page.clock."""
    now = await page.evaluate("Date.now()")
    await page.clock.pause_at((now + 500) / 1000)


async def dead(hand: Hand) -> set[int]:
    return {number for (number,) in hand.rows("SELECT id FROM livewell.dead_job")}


@pytest.fixture
def letters(site: Site, hand: Hand) -> Site:
    """Five dead letters, 100 to 104; the server runs."""
    hand.rows("INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now())")
    hand.rows(LETTERS, 100, 104)
    site.start()
    return site


async def test_a_new_row_never_takes_the_focus_of_another(letters: Site, hand: Hand, log_in: LogIn) -> None:
    """Enter redrives the letter that had the focus. With the focus at a place, it was the one above it."""
    page = await log_in()
    await page.clock.install()
    await live(page, f"{letters.base}/dead")
    redrive = page.locator('form[action="/dead/102/redrive"] button')
    await redrive.focus()

    hand.rows(LETTERS, 200, 202)
    await expect(held(page, "letters")).to_have_text("· newer data waits", timeout=PAINTED_MS)
    assert await page.locator('form[action="/dead/202/redrive"]').count() == 0
    await page.clock.run_for(HOLD_MS)
    await expect(page.locator('form[action="/dead/202/redrive"]')).to_be_visible(timeout=PAINTED_MS)
    await expect(redrive).to_be_focused()
    await page.keyboard.press("Enter")

    await expect(page.locator(".said")).to_be_visible()
    assert await dead(hand) == {100, 101, 103, 104, 200, 201, 202}


async def test_the_focus_is_dropped_when_its_act_is_gone(letters: Site, hand: Hand, log_in: LogIn) -> None:
    """Another row's button would be pressed by mistake."""
    page = await log_in()
    await page.clock.install()
    await live(page, f"{letters.base}/dead")
    redrive = page.locator('form[action="/dead/102/redrive"] button')
    await redrive.focus()
    hand.rows("DELETE FROM livewell.dead_job WHERE id = 102")
    await expect(held(page, "letters")).to_be_visible(timeout=PAINTED_MS)
    await page.clock.run_for(HOLD_MS)
    await expect(redrive).to_have_count(0)
    assert await page.evaluate("document.activeElement === document.body")


async def test_rows_do_not_move_while_the_pointer_is_on_an_act(letters: Site, hand: Hand, log_in: LogIn) -> None:
    """A click goes where it was aimed; after the bound the rows move, and a click that came too soon does nothing."""
    page = await log_in()
    await page.clock.install()
    await live(page, f"{letters.base}/dead")
    await page.locator('form[action="/dead/102/redrive"] button').hover()

    hand.rows(LETTERS, 200, 200)
    await expect(held(page, "letters")).to_have_text("· newer data waits", timeout=PAINTED_MS)
    await pause_clock(page)
    moved = page.locator('form[action="/dead/200/redrive"]')
    waited = 0
    while not await moved.count():
        await page.clock.run_for(STEP_MS)
        waited += STEP_MS
        assert waited <= HOLD_MS
    await page.mouse.down()
    await page.mouse.up()
    await expect(held(page, "letters")).to_have_text("· the rows moved: nothing was done")
    assert await dead(hand) == {100, 101, 102, 103, 104, 200}

    await page.clock.run_for(1000)  # the reader has seen it
    aimed = page.locator('form[action="/dead/101/redrive"] button')
    await aimed.hover()
    hand.rows(LETTERS, 201, 201)
    await page.clock.resume()
    await expect(held(page, "letters")).to_have_text("· newer data waits", timeout=PAINTED_MS)
    await page.mouse.down()
    await page.mouse.up()
    await expect(page.locator(".said")).to_be_visible()
    assert await dead(hand) == {100, 102, 103, 104, 200, 201}


async def test_what_is_typed_chosen_opened_and_scrolled_stays(letters: Site, log_in: LogIn) -> None:
    """A panel with typing or a selection waits and says so; open rows and scroll are carried over."""
    page = await log_in()
    await page.set_viewport_size({"width": 390, "height": 600})
    await live(page, f"{letters.base}/ui")
    opened = page.locator("details", has_text="Traceback")
    await opened.locator("summary").click()
    await opened.locator("summary").blur()
    await page.mouse.move(0, 0)
    await page.evaluate("() => { scrollTo(0, 300); document.querySelector('.scroll').scrollLeft = 40; }")
    before = await page.evaluate("scrollY")
    await page.evaluate(ARRIVE, ["components", 1, 1])
    await expect(page.locator("#components-title")).to_have_text("Repaint 1")
    assert await opened.evaluate("(one) => one.open")
    assert await page.evaluate("[scrollY, document.querySelector('.scroll').scrollLeft]") == [before, 40]

    await page.evaluate("getSelection().selectAllChildren(document.querySelector('#components td.text'))")
    await page.evaluate(ARRIVE, ["components", 1, 2])
    await expect(held(page, "components")).to_have_text("· held back")
    await expect(page.locator("#components-title")).to_have_text("Repaint 1")
    await page.evaluate("getSelection().removeAllRanges()")
    await expect(page.locator("#components-title")).to_have_text("Repaint 2")
    await expect(held(page, "components")).to_have_count(0)


async def test_an_abandoned_field_holds_its_panel_and_the_time_stays_old(
    letters: Site, hand: Hand, log_in: LogIn
) -> None:
    """What is on the screen is as old as it says, though the page is live."""
    page = await log_in()
    await live(page, f"{letters.base}/dead/102")
    await page.locator("summary", has_text="Edit the payload").click()
    await page.locator("textarea").fill('{"typed": 1}')
    await page.locator("textarea").blur()
    panel = page.locator("section.panel", has=page.locator("textarea"))
    hand.rows("UPDATE livewell.dead_job SET payload = '{\"other\": 2}' WHERE id = 102")
    await expect(panel.locator(".held")).to_have_text("· held back", timeout=PAINTED_MS)
    at = await panel.locator("header time").get_attribute("datetime")
    other = page.locator("section.panel").first.locator("header time")
    seen = await other.get_attribute("datetime")
    await expect(other).not_to_have_attribute("datetime", str(seen), timeout=PAINTED_MS)

    assert await panel.locator("header time").get_attribute("datetime") == at
    await expect(page.locator("textarea")).to_have_value('{"typed": 1}')


async def test_a_thousand_events_are_four_repaints_a_second(site: Site, log_in: LogIn) -> None:
    """Counted in the time of the page, which the test moves; the newest is what is shown."""
    site.start()
    page = await log_in()
    await page.add_init_script(COUNT_REPAINTS)
    await page.clock.install()
    await live(page, f"{site.base}/ui")
    await pause_clock(page)
    await page.evaluate("window.repaints = 0")
    for step in range(20):
        await page.evaluate(ARRIVE, ["components", 50, step * 50])
        await page.clock.run_for(50)
    assert 1 <= await page.evaluate("window.repaints") <= 4
    await page.clock.run_for(1000)
    await expect(page.locator("#components-title")).to_have_text("Repaint 999")
    assert await page.evaluate("window.repaints") <= 5


async def test_a_panel_that_comes_or_goes_is_in_its_place(site: Site, log_in: LogIn) -> None:
    """Below the one before it; one that the page has no more is taken away."""
    site.start()
    page = await log_in()
    await live(page, f"{site.base}/ui")
    await page.locator("#pause").click()
    script = """async () => {
        const { arrange, arrived } = await import(document.querySelector("script[type=module]").src.replace("dashboard.js", "repaint.js"));
        arrange(["components", "new", "empty"]);
        const made = document.getElementById("data").cloneNode(true);
        made.id = "new";
        arrived("new", made.outerHTML);
    }"""
    await page.evaluate(script)
    await expect(page.locator("#stale")).to_have_count(0)
    ids = await page.locator(".panels > .panel").evaluate_all("(all) => all.map((one) => one.id)")
    assert ids == ["components", "new", "empty"]


async def test_connecting_replaces_nothing_that_is_shown_already(letters: Site, hand: Hand, log_in: LogIn) -> None:
    """The server sends what differs: at first nothing, then the one panel that changed."""
    page = await log_in()
    await page.add_init_script(COUNT_REPAINTS)
    await live(page, f"{letters.base}/audit")
    time = page.locator("#audit header time")
    at = await time.get_attribute("datetime")
    await expect(time).not_to_have_attribute("datetime", str(at), timeout=PAINTED_MS)
    assert await page.evaluate("window.repaints") == 0

    hand.rows("SELECT livewell.record_act('ann', 'queue.pause', 'mail', '{}', 'done')")
    await expect(page.locator("#audit")).to_contain_text("queue.pause", timeout=PAINTED_MS)
    assert await page.evaluate("window.repaints") == 1
    await page.get_by_role("button", name="Pause").click()
    await page.get_by_role("button", name="Go on").click()
    at = await time.get_attribute("datetime")
    await expect(time).not_to_have_attribute("datetime", str(at), timeout=PAINTED_MS)
    assert await page.evaluate("window.repaints") == 1


async def test_a_repaint_moves_nothing_else(letters: Site, log_in: LogIn) -> None:
    """The same panel anew, at both widths: no layout shift."""
    page = await log_in()
    for width, height in ((1600, 1000), (390, 844)):
        await page.set_viewport_size({"width": width, "height": height})
        await live(page, f"{letters.base}/ui")
        await page.evaluate("""() => {
            window.moved = 0;
            window.moves = new PerformanceObserver((list) => { for (const one of list.getEntries()) window.moved += one.value; });
            window.moves.observe({ type: "layout-shift" });
        }""")
        await page.evaluate(ARRIVE, ["components", 1, 1])
        await expect(page.locator("#components-title")).to_have_text("Repaint 1")
        await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        moved = await page.evaluate(
            "() => { for (const one of window.moves.takeRecords()) window.moved += one.value; return window.moved; }"
        )
        assert moved <= SHIFT_MAX, f"at {width}"


class OpenStreams(set[Request]):
    """The streams of a browser that have not ended."""

    def __init__(self, context: BrowserContext) -> None:
        super().__init__()
        context.on("request", lambda one: self.add(one) if "/v1/pages/stream" in one.url else None)
        for ended in ("requestfailed", "requestfinished"):
            context.on(ended, lambda one: self.discard(one))  # noqa: PLW0108 - playwright marks its handlers

    async def settle(self, n: int) -> None:
        """Until there are so many. Playwright tells no end of those whose tab is closed."""

        def count() -> int:
            return sum(not one.frame.page.is_closed() for one in self)

        await eventually_async(lambda: count() == n, timeout=15, what=f"{n} streams")


async def test_tabs_of_one_browser_share_a_stream(
    letters: Site, hand: Hand, context: BrowserContext, log_in: LogIn
) -> None:
    """Of different pages and of the same; each is told its own. Seen failing: three streams."""
    streams = OpenStreams(context)
    audit, dead_letters, twin = await log_in(), await log_in(), await log_in()
    await live(audit, f"{letters.base}/audit")
    await live(dead_letters, f"{letters.base}/dead")
    await live(twin, f"{letters.base}/audit")
    await streams.settle(1)

    hand.rows("SELECT livewell.record_act('ann', 'queue.pause', 'mail', '{}', 'done')")
    hand.rows("DELETE FROM livewell.dead_job WHERE id = 102")
    for tab in (audit, twin):
        await expect(tab.locator("#audit")).to_contain_text("queue.pause", timeout=PAINTED_MS)
    await expect(dead_letters.locator('form[action="/dead/102/redrive"]')).to_have_count(0, timeout=PAINTED_MS)
    for tab in (audit, dead_letters, twin):
        await expect(said(tab)).to_have_text("Live")


async def test_when_the_tab_with_the_stream_goes_another_takes_it(
    letters: Site, hand: Hand, context: BrowserContext, log_in: LogIn
) -> None:
    """Hidden, it lets go; closed, as well. The others stay live, and nobody else is told of the hidden one's page."""
    streams = OpenStreams(context)
    first, second, third = await log_in(), await log_in(), await log_in()
    await live(first, f"{letters.base}/dead")
    await live(second, f"{letters.base}/audit")
    await live(third, f"{letters.base}/work")
    await first.evaluate(SHOW, True)
    await expect(said(first)).to_have_text("")
    await streams.settle(1)
    await eventually_async(
        lambda: [sorted(parse_qs(urlsplit(one.url).query)["page"]) for one in streams] == [["/audit", "/work"]],
        timeout=15,
        what="a stream without the hidden page",
    )

    await second.close()
    hand.rows("UPDATE livewell.queue SET paused_at = now() WHERE name = 'mail'")
    await expect(third.locator("#queues")).to_contain_text("paused", timeout=PAINTED_MS)
    await expect(said(third)).to_have_text("Live")
    await streams.settle(1)


async def test_a_browser_that_cannot_share_has_a_stream_for_each_tab(
    letters: Site, context: BrowserContext, log_in: LogIn
) -> None:
    """Without locks, as on a page that came by plain http from elsewhere."""
    await context.add_init_script("Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })")
    streams = OpenStreams(context)
    for path in ("/audit", "/dead"):
        await live(await log_in(), letters.base + path)
    await streams.settle(2)


async def test_a_hidden_tab_lets_go_and_comes_back(letters: Site, hand: Hand, log_in: LogIn) -> None:
    """Its stream ends; what changed meanwhile is there when it is shown."""
    page = await log_in()
    await live(page, f"{letters.base}/audit")
    async with page.expect_event("requestfailed", lambda one: "/v1/pages/stream" in one.url):
        await page.evaluate(SHOW, True)
    await expect(said(page)).to_have_text("")
    hand.rows("SELECT livewell.record_act('ann', 'queue.pause', 'mail', '{}', 'done')")
    await page.evaluate(SHOW, False)
    await expect(said(page)).to_have_text("Live")
    await expect(page.locator("#audit")).to_contain_text("queue.pause", timeout=PAINTED_MS)


async def test_a_server_that_is_started_again_is_followed_again(
    letters: Site, hand: Hand, log_in: LogIn, complaints: Complaints
) -> None:
    """The page says so meanwhile, and goes on by itself with what happened."""
    letters.start_process()
    page = await log_in()
    await live(page, f"{letters.base}/audit")
    complaints.network_expected = True
    letters.kill()
    await expect(said(page)).to_have_text(f"Not connected: {OLD}")
    hand.rows("SELECT livewell.record_act('ann', 'queue.pause', 'mail', '{}', 'done')")
    letters.start_process()
    await expect(said(page)).to_have_text("Live", timeout=30_000)
    await expect(page.locator("#audit")).to_contain_text("queue.pause", timeout=PAINTED_MS)


@asynccontextmanager
async def behind(site: Site, context: BrowserContext) -> AsyncIterator[tuple[Page, str, ThreadedProxy]]:
    """A page whose network can be cut, its address, and the network."""
    with ThreadedProxy("127.0.0.1", site.port) as network:
        base = f"http://127.0.0.1:{network.port}"
        page = await context.new_page()
        await page.goto(site.link().replace(site.base, base))
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_url(f"{base}/")
        yield page, base, network
        await page.close()


async def test_a_stream_that_is_dropped_comes_back(
    letters: Site, hand: Hand, context: BrowserContext, complaints: Complaints
) -> None:
    """Cut in mid-stream, with the server still there."""
    async with behind(letters, context) as (page, base, network):
        await live(page, f"{base}/audit")
        complaints.network_expected = True
        network.refuse()
        network.reset()
        await expect(said(page)).to_have_text(f"Not connected: {OLD}")
        hand.rows("SELECT livewell.record_act('ann', 'queue.pause', 'mail', '{}', 'done')")
        network.accept()
        await expect(said(page)).to_have_text("Live", timeout=30_000)
        await expect(page.locator("#audit")).to_contain_text("queue.pause", timeout=PAINTED_MS)


async def test_a_silent_stream_is_not_live(letters: Site, context: BrowserContext, complaints: Complaints) -> None:
    """Half open: no end, no error, and no beat either."""
    async with behind(letters, context) as (page, base, network):
        await page.clock.install()
        await live(page, f"{base}/audit")
        complaints.network_expected = True
        network.freeze()
        await page.clock.fast_forward(timedelta(seconds=60) // timedelta(milliseconds=1))
        await expect(said(page)).to_have_text(f"Not connected: {OLD}")
        network.thaw()
        await expect(said(page)).to_have_text("Live", timeout=30_000)


async def test_a_login_that_is_over_is_named_with_a_way_in(
    letters: Site, hand: Hand, log_in: LogIn, complaints: Complaints
) -> None:
    """Not an outage: nothing comes back by itself. The link leads back to this page."""
    page = await log_in()
    await live(page, f"{letters.base}/work/jobs?state=failed")
    complaints.network_expected = True
    hand.rows("UPDATE livewell.api_key SET revoked_at = now(), expires_at = now() WHERE kind = 'login'")
    await page.evaluate(SHOW, False)
    await expect(said(page)).to_contain_text("Your login is over")
    link = said(page).get_by_role("link", name="Log in")
    assert await link.get_attribute("href") == "/login?to=%2Fwork%2Fjobs%3Fstate%3Dfailed"


async def test_too_many_pages_are_named(letters: Site, log_in: LogIn, complaints: Complaints) -> None:
    """With what mends it; when a page is closed the other one follows."""
    letters.close()
    letters.start(LIVEWELL_USER_PAGES_MAX="1")
    first = await log_in()
    second = await log_in()
    await live(first, f"{letters.base}/audit")
    complaints.network_expected = True
    await second.clock.install()
    await second.goto(f"{letters.base}/work")
    await expect(said(second)).to_have_text("Not live: You follow 1 different pages; close or pause one of them.")
    await first.close()

    async def follows() -> bool:
        await second.clock.run_for(5000)
        return await said(second).inner_text() == "Live"

    assert await eventually_async(follows, timeout=30)


async def test_a_page_that_is_gone_says_so(letters: Site, hand: Hand, log_in: LogIn) -> None:
    """It does not stay live with what was."""
    page = await log_in()
    await live(page, f"{letters.base}/dead/102")
    hand.rows("DELETE FROM livewell.dead_job WHERE id = 102")
    await expect(said(page)).to_contain_text("No longer live", timeout=PAINTED_MS)


async def test_a_page_that_cannot_be_read_is_not_live(letters: Site, log_in: LogIn, hand: Hand) -> None:
    """Its first query takes too long; it is live again when it does not."""
    page = await log_in()
    await live(page, f"{letters.base}/dead/102")
    hold: Any = hand._connection
    with hold.transaction():
        hand.rows("LOCK livewell.dead_job IN ACCESS EXCLUSIVE MODE")
        await expect(said(page)).to_contain_text("This page cannot be read now", timeout=PAINTED_MS)
    await expect(said(page)).to_have_text("Live", timeout=PAINTED_MS)
