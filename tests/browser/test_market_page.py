"""The market page: values that change by themselves, and what it says when something is wrong."""

from __future__ import annotations

import json
import re
from itertools import product

import pytest
from playwright.async_api import BrowserContext, Page, expect

from livewell.testing.processes import eventually_async
from tests.browser.conftest import Complaints, LogIn, enter
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKUP = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\'"&'


async def watch(page: Page, *symbols: str) -> None:
    """Begin with this list, as if it had been put together before."""
    stored = json.dumps([{"symbol": symbol, "closed": []} for symbol in symbols])
    await page.evaluate("stored => localStorage.setItem('livewell.market', stored)", stored)
    await page.reload()


def card(page: Page, title: str, symbol: str = "AAPL") -> str:
    return f'[aria-label="{title} of {symbol}"]'


async def test_a_value_that_changes_is_seen_to_change(site: Site, hand: Hand, open_market: LogIn) -> None:
    """Without a reload; with verdict, age and source time."""
    hand.put_all("AAPL", "MSFT", "NVDA")
    site.start()
    page = await open_market()
    quote = page.locator(card(page, "Quote"))
    await expect(quote.locator(".big")).to_have_text("231.40")
    await expect(quote.locator(".verdict")).to_have_text("fresh")
    await expect(quote.locator(".from")).to_contain_text("source ")
    await expect(quote.locator("svg")).to_have_count(1)
    await expect(page.locator("h1")).to_have_text("Nothing is stale.")
    await expect(page.locator("#counts")).to_contain_text("3 unverifiable")  # profiles have no time of their own

    hand.put("quote", "AAPL", price=240.5)

    await expect(quote.locator(".big")).to_have_text("240.50")


async def test_a_link_logs_in_once(site: Site, context: BrowserContext, complaints: Complaints) -> None:
    """The token leaves the address at once; used again, the page says how to get another."""
    site.start()
    link = site.link()
    page = await context.new_page()
    await page.goto(link)
    assert page.url == f"{site.base}/login"
    await page.keyboard.press("Enter")  # the button has the focus
    await page.wait_for_url(f"{site.base}/")
    cookies = {cookie["name"]: cookie for cookie in await context.cookies()}
    assert {"livewell", "livewell-form"} == set(cookies)
    assert all((one["httpOnly"], one["sameSite"]) == (True, "Strict") for one in cookies.values())

    complaints.network_expected = True
    await page.goto(link)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.locator("h1")).to_have_text("This link is used up, or too old.")
    await expect(page.locator("#command code")).to_have_text(f"livewell keys login --address {site.base}")

    await page.goto(site.link())  # the same page, but for its fragment: the browser does not load it again
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"{site.base}/")


async def test_a_card_leads_whoever_may_look_to_the_page_of_its_key(
    site: Site, hand: Hand, context: BrowserContext
) -> None:
    """The title of a card, and each source of a card that has several; a slash in a key is escaped."""
    hand.put_all("AAPL")
    site.start()
    page = await enter(site, context, "view", "subscribe", "observe")
    await page.goto(f"{site.base}/market")
    await watch(page, "AAPL", "A/B")
    solvency = page.locator(card(page, "Solvency"))
    await solvency.locator("summary").click()
    await expect(solvency.locator(".sources a")).to_have_text(["Balance sheet", "Income statement"])
    odd = page.locator(card(page, "Quote", "A/B")).locator("h3 a")
    await expect(odd).to_have_attribute("href", "/types/quote/A%2FB")

    await page.locator(card(page, "Quote")).locator("h3 a").click()

    await page.wait_for_url(f"{site.base}/types/quote/AAPL")
    await expect(page.locator("h1")).to_have_text("Why is this value as it is?")


async def test_whoever_may_only_view_sees_no_dead_link(site: Site, hand: Hand, context: BrowserContext) -> None:
    """Seen failing with links for everybody: they led to "You may not do this"."""
    hand.put_all("AAPL")
    site.start()
    page = await enter(site, context, "view", "subscribe")

    await page.goto(f"{site.base}/market")

    await expect(page.locator(card(page, "Quote")).locator(".big")).to_have_text("231.40")
    await expect(page.locator("article a")).to_have_count(0)
    await expect(page.get_by_role("link", name="Overview")).to_be_hidden()


async def test_the_page_survives_kill_9_of_the_server(
    site: Site, hand: Hand, open_market: LogIn, complaints: Complaints
) -> None:
    """It says so, greys what it shows, comes back by itself, and shows what changed meanwhile."""
    hand.put_all("AAPL")
    site.start_process()
    page = await open_market()
    await watch(page, "AAPL")
    quote = page.locator(card(page, "Quote"))
    await expect(quote.locator(".big")).to_have_text("231.40")
    complaints.network_expected = True

    site.kill()
    await expect(page.locator("h1")).to_contain_text("Offline since")
    await expect(page.locator("#banner-words")).to_have_text(
        re.compile(r"^The (connection to the server was lost|server cannot be reached)\. What you see is from ")
    )
    await expect(quote.locator(".verdict")).to_have_text("was fresh")
    await expect(page.locator("#counts")).to_have_text("4 were fresh1 was unverifiable")
    hand.put("quote", "AAPL", price=250)
    site.start_process()

    await expect(page.locator("#link")).to_have_attribute("data-state", "live", timeout=40_000)
    await expect(quote.locator(".big")).to_have_text("250.00")
    await expect(page.locator("#banner")).to_be_hidden()


async def test_three_cards_share_one_subscription(site: Site, hand: Hand, open_market: LogIn) -> None:
    """Closing one leaves the others alive; closing the last ends it."""
    hand.put_all("AAPL")
    site.start()
    page = await open_market()
    await watch(page, "AAPL")
    cover = page.locator(card(page, "Solvency")).locator("dd").last
    await expect(page.locator(card(page, "Revenue")).locator(".big")).to_contain_text("B")
    await expect(cover).not_to_have_text("–")
    assert hand.subscriptions("income_statement") == 1

    await page.get_by_role("button", name="Close Revenue of AAPL").click()
    await expect(page.locator(card(page, "Revenue"))).to_have_count(0)
    await page.wait_for_timeout(1_500)  # longer than a key lingers
    assert hand.subscriptions("income_statement") == 1
    hand.put("income_statement", "AAPL", ebit=500_000_000_000, interest_expense=10_000_000_000)
    await expect(cover).to_have_text("50.00")

    await page.get_by_role("button", name="Close Solvency of AAPL").click()
    await page.get_by_role("button", name="Close Cash use of AAPL").click()
    await eventually_async(
        lambda: hand.subscriptions("income_statement") == 0, timeout=10, what="the subscription to end"
    )
    assert hand.subscriptions("quote") == 1
    await page.reload()
    await expect(page.locator("article")).to_have_count(2)  # closed cards stay closed
    await page.get_by_role("button", name="Show Revenue of AAPL").click()
    await expect(page.locator(card(page, "Revenue")).locator(".big")).to_contain_text("B")


async def test_the_keyboard_is_enough(site: Site, hand: Hand, open_market: LogIn) -> None:
    """Add, be refused, look closer, remove: without a mouse, and the focus is never lost."""
    hand.put_all("AAPL", "TSLA")
    site.start()
    page = await open_market()
    await watch(page, "AAPL")
    await expect(page.locator("article")).to_have_count(5)

    await page.keyboard.press("/")
    await expect(page.locator("#symbol")).to_be_focused()
    await page.keyboard.type("tsla")
    await page.keyboard.press("Enter")
    await expect(page.locator(card(page, "Quote", "TSLA")).locator(".big")).to_have_text("231.40")
    await page.keyboard.type("TSLA")
    await page.keyboard.press("Enter")
    await expect(page.locator("#add-note")).to_have_text("TSLA is in the list already.")
    await page.keyboard.press("Escape")
    await expect(page.locator("#symbol")).to_have_value("")
    await page.keyboard.type("a b")
    await page.keyboard.press("Enter")
    await expect(page.locator("#add-note")).to_contain_text("A symbol has letters, digits")
    await page.keyboard.press("Escape")

    summary = page.locator(card(page, "Solvency", "TSLA")).locator("summary")
    await summary.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(card(page, "Solvency", "TSLA")).locator(".sources b")).to_have_text(
        ["Balance sheet", "Income statement"]
    )

    await page.get_by_role("button", name="Remove TSLA").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Remove AAPL")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#symbol")).to_be_focused()
    await expect(page.locator("#empty")).to_be_visible()
    await expect(page.locator("h1")).to_have_text("Nothing is watched.")
    await eventually_async(lambda: hand.subscriptions("quote") == 0, timeout=10, what="nobody to watch")
    await page.get_by_role("button", name="AAPL").press("Enter")  # a suggestion
    await expect(page.locator(card(page, "Quote")).locator(".big")).to_have_text("231.40")


async def test_what_is_wrong_is_said_in_plain_words(site: Site, hand: Hand, open_market: LogIn) -> None:
    """The old value stays, with its age.

    An unknown symbol is one sentence instead of five cards.
    """
    hand.put_all("AAPL", "MSFT")
    hand.fail("quote", "AAPL", "html", "login page at /var/secret")
    hand.unknown("ZZZZ")
    site.start()
    page = await open_market()
    await watch(page, "AAPL", "MSFT", "ZZZZ", "NEWER")
    quote = page.locator(card(page, "Quote"))
    await expect(quote).to_have_attribute("data-tone", "bad")
    await expect(quote.locator(".big")).to_have_text("231.40")
    await expect(quote.locator(".problem")).to_have_text(
        "Quote: The source answered with something that is not data; this value was confirmed 40 days ago."
    )
    await expect(page.locator("h1")).to_contain_text("1 of ")
    await expect(page.locator("h1")).to_have_attribute("data-tone", "bad")
    assert "secret" not in await page.content()
    unknown = page.get_by_role("region", name="ZZZZ")
    await expect(unknown.locator("article:visible")).to_have_count(1)
    await expect(unknown.locator(".nothing").first).to_contain_text("The source knows nothing of this")
    asked = await unknown.locator(".nothing").first.inner_text()
    await expect(unknown.locator(".nothing").first).not_to_have_text(asked)  # ages grow here, too
    await expect(page.locator(card(page, "Quote", "NEWER")).locator(".nothing")).to_have_text("Not fetched yet.")


async def test_whoever_is_not_let_in_is_told_how(site: Site, context: BrowserContext, complaints: Complaints) -> None:
    """No cookie: no values, and the command that makes a link."""
    complaints.network_expected = True
    site.start()
    page = await context.new_page()
    await page.goto(f"{site.base}/market")
    await expect(page.locator("h1")).to_have_text("You are not logged in.")
    await expect(page.locator("h1")).to_have_attribute("data-tone", "none")  # an ordinary state, and no alarm
    await expect(page.locator("#banner code")).to_have_text(f"livewell keys login --address {site.base}")
    await expect(page.locator("#symbol")).to_be_hidden()
    await expect(page.locator("article:visible")).to_have_count(0)


async def test_whoever_logs_out_is_out(site: Site, open_market: LogIn, complaints: Complaints) -> None:
    """The page says so, and going back shows nothing."""
    site.start()
    page = await open_market()

    complaints.network_expected = True
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.get_by_role("button", name="Log out").click()

    await expect(page.locator("h1")).to_have_text("You are not logged in.")
    await expect(page.get_by_role("button", name="Log out")).to_be_hidden()


async def test_markup_in_keys_and_texts_is_only_text(site: Site, hand: Hand, open_market: LogIn) -> None:
    """F-F8: names, descriptions, reasons and keys of a hostile source are shown, and nothing of them runs."""
    hand.put_all("AAPL")
    hand.put("quote", "AAPL", name=MARKUP, exchange=MARKUP[:50])
    hand.put("profile", "AAPL", company_name=MARKUP, sector=MARKUP, description=MARKUP, ceo=MARKUP, industry=MARKUP)
    hand.fail("cash_flow_statement", "AAPL", MARKUP, MARKUP)
    site.start()
    page = await open_market()
    await watch(page, "AAPL", MARKUP, "../../etc/passwd", "A\r\nX-Evil: 1", "javascript:alert(1)")
    await expect(page.locator(card(page, "Profile")).locator(".prose")).to_have_text(MARKUP)
    await expect(page.locator("h2 small").first).to_contain_text("<img src=x onerror=")
    hostile = page.locator("section.symbol").nth(1)
    await expect(hostile.locator("h2")).to_have_text(MARKUP)
    await expect(hostile.locator(".nothing").first).to_have_text("There can be no such key.")
    await expect(page.locator(card(page, "Cash use")).locator(".problem")).to_contain_text("The last refresh failed")
    await expect(page.locator("section.symbol")).to_have_count(5)
    assert await page.evaluate("window.pwned") is None
    assert await page.locator("main img, main script, main a:not([href^='/types/'])").count() == 0


async def test_nothing_sticks_out_at_any_width(site: Site, hand: Hand, open_market: LogIn) -> None:
    """390 to 1600 px, light and dark.

    No sideways scrolling, and the text can be told from its ground.
    """
    hand.put_all("AAPL", "BRK-B")
    hand.fail("quote", "BRK-B", "deadline")
    site.start()
    page = await open_market()
    for scheme, width in product(("light", "dark"), (390, 820, 1280, 1600)):
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        await page.set_viewport_size({"width": width, "height": 900})
        await watch(page, "AAPL", "BRK-B", "ABCDEFGHIJKLMNOPQRST")
        await expect(page.locator(card(page, "Quote")).locator(".big")).to_have_text("231.40")
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0, (scheme, width)
        ground, ink = await page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        assert (_brightness(ground) > _brightness(ink)) is (scheme == "light"), (scheme, width)


def _brightness(colour: str) -> int:
    return sum(int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(", "))
