"""What the pages say: a headline that counts what it names, a way in that works, and a page where there is nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page, expect

from livewell.db import embedded
from livewell.settings import Settings
from livewell.testing.processes import ChildProcess
from tests.browser.conftest import Complaints, LogIn
from tests.browser.site import Hand, Site, furnish
from tests.support.http import addresses

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def show(page: Page, **closed: list[str]) -> None:
    """These symbols, with these cards closed."""
    stored = json.dumps([{"symbol": symbol, "closed": cards} for symbol, cards in closed.items()])
    await page.evaluate("stored => localStorage.setItem('livewell.market', stored)", stored)
    await page.reload()


async def test_the_headline_counts_what_it_says(site: Site, hand: Hand, open_market: LogIn) -> None:
    """X1: not fresh, being fetched and without a value are told apart; what is left is good.

    Seen failing: "1 of 5 cards is not fresh." while three of the others waited or had no value.
    """
    hand.put_all("AAPL")
    hand.fail("quote", "AAPL", "deadline")
    hand.unknown("ZZZZ")
    site.start()
    page = await open_market()
    await show(page, AAPL=["profile", "solvency", "cash"], ZZZZ=[], NEWER=["quote", "revenue", "cash"])
    await expect(page.locator("h1")).to_have_text("1 of 5 cards is not fresh, 2 are being fetched, 1 has no value.")
    await expect(page.locator("#counts")).to_have_text("1 fresh2 waiting1 missing1 failing")
    await expect(page.locator("article:visible")).to_have_count(5)


async def test_nothing_is_stale_only_if_nothing_is(site: Site, hand: Hand, open_market: LogIn) -> None:
    """X1: what is being refreshed is not fresh at that instant.

    In 0.5.0: green "Nothing is stale." while a quote was stale.
    """
    hand.put_all("AAPL")
    site.start()
    page = await open_market()
    await show(page, AAPL=[])
    await expect(page.locator("h1")).to_have_text("Nothing is stale.")
    hand.rows("UPDATE livewell.data_type SET ttl = interval '2 seconds' WHERE name = 'quote'")
    hand.put("quote", "AAPL", price=240.5)
    await expect(page.locator("h1")).to_have_text("1 of 5 cards is being fetched.")
    await expect(page.locator("h1")).to_have_attribute("data-tone", "none")


async def test_an_unknown_symbol_is_one_sentence_whichever_card_is_open(
    site: Site, hand: Hand, open_market: LogIn
) -> None:
    """Seen failing: with the quote closed, a reload brought four cards that were "missing"."""
    hand.unknown("ZZZZ")
    site.start()
    page = await open_market()
    await show(page, ZZZZ=["quote"])
    row = page.get_by_role("region", name="ZZZZ")
    await expect(row.locator("article:visible")).to_have_count(1)
    await expect(row.locator(".nothing:visible")).to_contain_text("The source knows nothing of this")
    await expect(page.locator("h1")).to_have_text("1 of 1 card has no value.")
    await expect(row.locator(".close:visible")).to_have_count(0)
    width = await row.locator("article:visible").evaluate("one => one.offsetWidth")
    assert width <= 480  # not a page's width for one sentence
    hand.put("profile", "ZZZZ")
    await expect(row.locator("article:visible")).to_have_count(4)


async def test_a_message_moves_nothing(site: Site, hand: Hand, open_market: LogIn) -> None:
    """In 0.5.0 the row grew when a card began to fail."""
    hand.put_all("AAPL")
    site.start()
    page = await open_market()
    for width in (1600, 390):
        hand.put("quote", "AAPL")
        await page.set_viewport_size({"width": width, "height": 900})
        await show(page, AAPL=[])
        quote = page.locator('[aria-label="Quote of AAPL"]')
        await expect(quote.locator(".verdict")).to_have_text("fresh")
        before = await page.locator("section.symbol").evaluate("one => one.offsetHeight")
        hand.fail("quote", "AAPL", "entitlement_type")
        await expect(quote).to_have_attribute("data-broken", "")
        await expect(quote.locator(".problem")).to_be_visible()
        assert await page.locator("section.symbol").evaluate("one => one.offsetHeight") == before


async def test_what_never_came_was_not_confirmed(site: Site, hand: Hand, open_market: LogIn) -> None:
    """In 0.5.0: the same sentence three times, and "Confirmed" with a time for a value that never came."""
    hand.unknown("ZZZZ")
    site.start()
    page = await open_market()
    await show(page, ZZZZ=[])
    shown = page.locator("article:visible")
    await expect(shown).to_have_count(1)
    await shown.locator("summary").click()
    await expect(shown.locator("dt").first).to_have_text("Asked")
    text = await shown.inner_text()
    assert text.count("The source knows nothing of this") == 1
    assert "Confirmed" not in text


async def test_the_form_answers_itself(site: Site, open_market: LogIn) -> None:
    """In 0.5.0: the browser's own bubble, in the browser's own language."""
    site.start()
    page = await open_market()
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator("#add-note")).to_have_text("Type a symbol first, for example TSLA.")


async def test_a_person_who_finds_nothing_sees_a_page(
    site: Site, context: BrowserContext, complaints: Complaints
) -> None:
    """In 0.5.0: raw JSON. Its links lead somewhere."""
    complaints.network_expected = True
    site.start()
    page = await context.new_page()
    answer = await page.goto(f"{site.base}/nowhere")
    assert answer is not None
    assert answer.status == 404
    await expect(page.locator("h1")).to_have_text("There is nothing here.")
    for link in await page.locator("main a").all():
        address = await link.get_attribute("href")
        assert (await context.request.get(f"{site.base}{address}")).ok, address


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for an embedded Postgres, which nothing in the environment names."""
    for name in ("LIVEWELL_DATABASE_URL", "DATABASE_URL", "LIVEWELL_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    folder = Path(tempfile.mkdtemp(prefix="livewell way in-"))
    yield folder
    embedded.stop(folder, mode="immediate")
    shutil.rmtree(folder, ignore_errors=True)


async def test_the_command_of_the_login_page_works(
    context: BrowserContext, complaints: Complaints, elsewhere: Path, tmp_path: Path
) -> None:
    """On the embedded Postgres, from any folder.

    In 0.5.0 the command began a second Postgres and said "Run: livewell migrate"; its link was
    "used already, or too old".
    """
    complaints.network_expected = True
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    env = {"LIVEWELL_DATA_DIR": str(elsewhere)}
    with ChildProcess(["-m", "livewell.cli", "up", "--port=0", "--json"], env=env) as server:
        told = await asyncio.to_thread(server.wait_for, '"address"', timeout=90)
        base = json.loads(told)["address"]
        page = await context.new_page()
        await page.goto(f"{base}/login")
        await page.get_by_role("button", name="Copy").click()
        await expect(page.get_by_role("button", name="Copied")).to_be_visible()
        command = await page.evaluate("navigator.clipboard.readText()")
        assert command == await page.locator("#command code").inner_text()
        await page.goto(await _typed(command, tmp_path))
        await expect(page.locator("#words")).to_have_text(re.compile(r" until .*[0-9]{2}:[0-9]{2}\.$"))
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_url(f"{base}/")
        await page.goto(f"{base}/market")
        await expect(page.locator("h1")).to_have_text("No type of data is applied yet.")
        server.terminate()


async def _typed(command: str, folder: Path) -> str:
    """Into a shell, in another folder."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = await asyncio.create_subprocess_shell(
        command, cwd=folder, env={**os.environ, "PATH": path}, stdout=PIPE, stderr=PIPE
    )
    out, err = await shell.communicate()
    assert shell.returncode == 0, err.decode()
    return out.decode().strip()


async def test_a_server_without_the_market_says_what_it_keeps(
    livewell_dsn: str,
    livewell_settings: Settings,
    browser_logins: dict[str, tuple[str, str]],
    hand: Hand,
    context: BrowserContext,
) -> None:
    """In 0.5.0: a "Livewell market" of cards that said "The server has no such type of data."."""
    await furnish(livewell_dsn, livewell_settings, "earnings")
    site = Site(livewell_dsn, addresses(livewell_dsn, browser_logins), hand)
    try:
        site.start()
        page = await context.new_page()
        await page.goto(site.link())
        await page.get_by_role("button", name="Log in").click()
        await expect(page.locator("h1")).to_have_text("Is everything fresh?")
        await page.get_by_role("link", name="Market").click()
        await expect(page.locator("h1")).to_have_text("This server keeps data of your own.")
        await expect(page.locator("#others-words")).to_contain_text("Applied: earnings.")
        await expect(page.locator("#others pre")).to_have_text("livewell watch earnings KEY")
        await expect(page.locator("article")).to_have_count(0)
        await expect(page.locator("header .brand")).to_have_text("Livewell")
        await page.close()
    finally:
        site.close()
