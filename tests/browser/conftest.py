"""A browser, a server, and tabs in which nothing may go wrong unnoticed.

One browser for all tests of a process; each has a context of its own, which is to a browser what a
person is: no cookie, no storage and no tab is shared. So all tests of this folder run in one event
loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from livewell.settings import Settings
from tests.browser.site import CHROMIUM, Hand, Site, furnish
from tests.support.http import addresses, logins

NETWORK = (
    "Failed to load resource"  # what Chromium says of every answer that is an error, also of those that are expected
)


@pytest.fixture(autouse=True)
def chromium(request: pytest.FixtureRequest) -> str:
    """The browser's program; without one these tests are skipped, and it is said aloud."""
    if CHROMIUM is None:
        manager = request.config.pluginmanager.getplugin("capturemanager")
        with manager.global_and_fixture_disabled():
            print(f"\nNOT TESTED in a browser: {request.node.name} (no Chromium; set LIVEWELL_TEST_CHROMIUM)")
        pytest.skip("there is no Chromium on this machine")
    return CHROMIUM


@pytest.fixture(scope="session")
def browser_logins(livewell_server: str, livewell_template: str) -> Iterator[dict[str, tuple[str, str]]]:
    """Logins of the server's roles."""
    assert livewell_template  # the roles come with it
    with logins(livewell_server) as made:
        yield made


@pytest.fixture
def hand(livewell_dsn: str) -> Iterator[Hand]:
    """Stores values."""
    made = Hand(livewell_dsn)
    yield made
    made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def site(
    livewell_dsn: str, livewell_settings: Settings, browser_logins: dict[str, tuple[str, str]], hand: Hand
) -> AsyncIterator[Site]:
    """The shipped types, and a server that is not started yet."""
    await furnish(livewell_dsn, livewell_settings)
    made = Site(livewell_dsn, addresses(livewell_dsn, browser_logins), hand)
    yield made
    made.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser | None]:
    """Of this process.

    Without a program there is none, and each test is skipped by the fixture above.
    """
    if CHROMIUM is None:
        yield None
        return
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        await opened.close()


class Complaints(list[str]):
    """What consoles and pages complained of.

    Answers that are errors are complaints too, unless the test expects them.
    """

    network_expected = False
    also_expected: tuple[str, ...] = ()  # until the page is closed: it tries again

    def hear(self, page: Page) -> None:
        page.on("console", lambda said: self.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.append(f"uncaught: {error}"))
        page.on("dialog", lambda dialog: self.append(f"dialog: {dialog.message}"))

    @property
    def unexpected(self) -> list[str]:
        words = (*self.also_expected, *((NETWORK,) if self.network_expected else ()))
        return [said for said in self if not any(word in said for word in words)]


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """Checked at the end of every test: no console error, no violation of the policy, no dialog."""
    heard = Complaints()
    yield heard
    assert heard.unexpected == []


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser | None, complaints: Complaints) -> AsyncIterator[BrowserContext]:
    """One person's browser, whose every tab is listened to."""
    assert browser is not None
    opened = await browser.new_context(viewport={"width": 1280, "height": 900})
    opened.set_default_timeout(15_000)
    opened.on("page", complaints.hear)
    yield opened
    await opened.close()


LogIn = Callable[[], Awaitable[Page]]


async def enter(site: Site, context: BrowserContext, *scopes: str) -> Page:
    """A tab of a person who is logged in, with nothing in it yet.

    The page of the link has tests of its own; here only what its button sends is sent.
    """
    token = site.link(*scopes).partition("#")[2]
    answer = await context.request.post(f"{site.base}/v1/login", data={"token": token})
    assert answer.status == 204, await answer.text()
    return await context.new_page()


async def dress(page: Page, *, is_wide: bool) -> None:
    """A window of an operator's desk, or a telephone at night."""
    await page.set_viewport_size({"width": 1600, "height": 1000} if is_wide else {"width": 390, "height": 844})
    await page.emulate_media(color_scheme="light" if is_wide else "dark")


async def arrive(site: Site, context: BrowserContext, path: str = "/") -> Page:
    """The same, at one of the server's pages."""
    page = await enter(site, context)
    await page.goto(site.base + path)
    return page


@pytest.fixture
def log_in(site: Site, context: BrowserContext) -> LogIn:
    """Log in, and open a tab."""

    async def act() -> Page:
        return await enter(site, context)

    return act


@pytest.fixture
def open_market(site: Site, context: BrowserContext) -> LogIn:
    """The same, at the market."""

    async def act() -> Page:
        return await arrive(site, context, "/market")

    return act
