"""The database is gone, then the server: no page of the dashboard shows anything as new, or as nothing.

live ──database gone──▶ stale since, failed with why ──opened anew──▶ failed with why
  ▲                                                                        │
  └──────────────────────────────database back─────────────────────────────┘ ──server gone──▶ said
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Error, Page, expect
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell.capability import capabilities
from livewell.server import looks
from livewell.server.dashboard import live
from livewell.server.dashboard.page_stream import PAGES_MAX
from livewell.testing.processes import eventually_async
from livewell.testing.proxy.threaded import ThreadedProxy
from tests.browser.conftest import Complaints, enter
from tests.browser.look import violations
from tests.browser.site import Hand, Site
from tests.browser.test_dashboard_every_page import VIEWS, everything, stage, view_at

LIVE = [view.path for one in capabilities() for view in one.views if view.live]
QUESTIONS = [view for view in VIEWS if view not in LIVE]
FULL = "This browser follows 16 pages of the dashboard; close or pause one of them."
OLD = "nothing here is newer than its time says"
OPENED_MAX = 3  # on a busy machine a page can fail that asks no longer than this server does
TOGETHER = 8  # more only wait for each other: the server paints two pages of a person at a time
WAIT_SECONDS = 30
# Panels that say nothing of the database: forms, the manual, and what is kept in the server with
# its time.
UNREAD = {
    "/ui": {"components", "data", "empty", "stale", "failed"},
    "/access": {"create"},
    "/audit": {"filters"},
    "/dead": {"filters"},
    "/work": {"look"},
    "/work/jobs": {"filter"},
    "/outbox": {"look"},
    "/outbox/dead": {"filters"},
    "/contacts": {"search"},
}
KEPT = {"/limits": {"slow"}, "/doctor": {"findings"}}
PANELS = """() => [...document.querySelectorAll(".panel[id]")].map((one) => ({
    id: one.id,
    state: one.dataset.state,
    at: one.querySelector("header time")?.dateTime ?? "",
    as_of: one.querySelector(".as-of")?.textContent.trim() ?? "",
    reason: one.querySelector(":scope > .reason")?.innerText.trim() ?? "",
    tables: one.querySelectorAll("table, .figures").length,
}))"""


@dataclass(slots=True)
class Tab:
    """A page that is followed, and the view that it shows."""

    page: Page
    view: str
    address: str

    async def panels(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.page.evaluate(PANELS)
        return found

    def is_free(self, panel: str) -> bool:
        """True if a panel needs no database to be right."""
        return panel in UNREAD.get(self.view, ())

    def is_kept(self, panel: str) -> bool:
        """True if the server keeps what a panel shows, with its time."""
        return panel in KEPT.get(self.view, ())

    def is_as_a_whole(self, panel: dict[str, Any], cut: datetime) -> bool:
        """True if the page says for all of its panels that it cannot be read, and this one has the time of before."""
        return "{" in self.view and datetime.fromisoformat(panel["at"]) <= cut


def addresses_of(views: list[str]) -> dict[str, str]:
    """One address of each view that shows something."""
    found: dict[str, str] = {}
    for address in everything():
        view = view_at(address)
        if view in views and "%" not in address:
            found.setdefault(view, address)
    return found


def said_of(panel: dict[str, Any]) -> str:
    """What is wrong with the words of a panel that is stale or has failed; nothing if they are right."""
    if panel["state"] == "failed":
        return "" if panel["reason"].startswith("Failed: ") and not panel["tables"] else "shows more than why"
    dated = panel["as_of"].startswith(("since ", "tried ")) and panel["at"]
    return "" if panel["reason"].startswith("Stale: ") and dated else "does not say since when"


async def of_each(tabs: list[Tab], look: Callable[[Tab], Awaitable[list[str]]]) -> list[str]:
    """What is wrong with all of them; some are looked at together."""
    some = asyncio.Semaphore(TOGETHER)

    async def one(tab: Tab) -> list[str]:
        async with some:
            try:
                return await look(tab)
            except (AssertionError, Error, TimeoutError) as error:
                return [str(error)]

    found = await asyncio.gather(*(one(tab) for tab in tabs))
    return [f"{tab.address}: {each}" for tab, several in zip(tabs, found, strict=True) for each in several]


async def is_live(tab: Tab) -> list[str]:
    """Everything is well, at the latest when the page is painted again; a page that is none is opened again."""
    for _ in range(OPENED_MAX):
        if await tab.page.locator("#live").count():
            break
        await tab.page.goto(tab.address)
    await expect(tab.page.locator("#live-words")).to_have_text("Live", timeout=WAIT_SECONDS * 1000)
    failed: list[str] = []

    async def nothing_has_failed() -> bool:
        panels = await tab.panels() if tab.view != "/ui" else []
        failed[:] = [f"{one['id']} has failed" for one in panels if one["state"] == "failed"]
        return not failed

    with suppress(AssertionError, TimeoutError):
        await eventually_async(nothing_has_failed, timeout=WAIT_SECONDS, interval=0.5)
    return failed


def goes_stale(cut: datetime) -> Callable[[Tab], Awaitable[list[str]]]:
    """The page says so, and each panel is stale, has failed, or has the time of before."""

    async def look(tab: Tab) -> list[str]:
        await expect(tab.page.locator("#live-words")).to_contain_text(OLD, timeout=WAIT_SECONDS * 1000)
        new: list[str] = []

        async def nothing_is_new() -> bool:
            found = [one for one in await tab.panels() if not tab.is_free(one["id"])]
            calm = [one for one in found if one["state"] in ("data", "empty") and not tab.is_kept(one["id"])]
            new[:] = [
                f"{one['id']} is {one['state']} {one['as_of']}" for one in calm if not tab.is_as_a_whole(one, cut)
            ]
            new.extend(f"{one['id']} {said_of(one)}" for one in found if one["reason"] and said_of(one))
            return not new

        with suppress(AssertionError, TimeoutError):
            await eventually_async(nothing_is_new, timeout=WAIT_SECONDS, interval=0.5)
        return [*new, *await violations(tab.page)]

    return look


async def fails(tab: Tab) -> list[str]:
    """Opened now: the page as a whole says why, or each panel does."""
    await tab.page.goto(tab.address)
    wrong = await violations(tab.page)
    if await tab.page.locator("section[data-state=failed]:not([id]) .reason").count():
        return wrong
    found = [one for one in await tab.panels() if not tab.is_free(one["id"])]
    kept = KEPT.get(tab.view, set())
    wrong += [
        f"{one['id']} is {one['state']}" for one in found if one["state"] in ("data", "empty") and one["id"] not in kept
    ]
    return wrong + [
        f"{one['id']} {said_of(one)}" for one in found if one["state"] in ("stale", "failed") and said_of(one)
    ]


async def is_left(tab: Tab) -> list[str]:
    """The server is gone: nothing on the page looks new."""
    await expect(tab.page.locator("#live-words")).to_have_text(f"Not connected: {OLD}", timeout=WAIT_SECONDS * 1000)
    return [f"{one['id']} has no time" for one in await tab.panels() if not one["at"]]


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that waits for the database half as long, and paints all pages of one person at once.

    Its own bounds are for a person who follows six pages.
    """
    monkeypatch.setitem(looks._BOUNDS, "pool_wait_seconds", 1.0)
    monkeypatch.setattr(looks, "_PAINTINGS", 8)
    monkeypatch.setattr(looks, "_PAINTINGS_OF_A_CLIENT", 8)
    monkeypatch.setattr(live, "PAINT_RESTS", 1)


@asynccontextmanager
async def cuttable(site: Site) -> AsyncIterator[tuple[ThreadedProxy, ThreadedProxy]]:
    """The server runs; its database, and itself as the browser sees it, are behind proxies."""
    where = conninfo_to_dict(site.env["LIVEWELL_DATABASE_URL"])
    with (
        ThreadedProxy(str(where["host"]), int(str(where.get("port", 5432)))) as database,
        ThreadedProxy("127.0.0.1", site.port) as server,
    ):
        for name in ("LIVEWELL_DATABASE_URL", "LIVEWELL_API_URL", "LIVEWELL_OPERATE_URL", "LIVEWELL_HUB_URL"):
            parts = conninfo_to_dict(site.env[name])
            site.env[name] = make_conninfo("", **{**parts, "host": "127.0.0.1", "port": str(database.port)})
        site.start(
            LIVEWELL_KEY_CACHE_SECONDS="60",
            LIVEWELL_USER_PAGES_MAX="100",
            LIVEWELL_USER_STREAMS_MAX="100",
            LIVEWELL_REQUESTS_PER_SECOND="1000",
        )
        site.base = f"http://127.0.0.1:{server.port}"
        yield database, server
        site.close()


@asynccontextmanager
async def live_tabs(site: Site, context: BrowserContext, complaints: Complaints) -> AsyncIterator[list[Tab]]:
    """A tab for each view that follows itself, in as many windows of one person as that takes."""
    first = await enter(site, context)
    state = await context.storage_state()
    await first.close()
    assert context.browser is not None
    windows: list[BrowserContext] = []
    tabs: list[Tab] = []
    for place, (view, path) in enumerate(addresses_of(LIVE).items()):
        if place % PAGES_MAX == 0:
            windows.append(await context.browser.new_context(storage_state=state))
            windows[-1].on("page", complaints.hear)
        tabs.append(Tab(await windows[-1].new_page(), view, site.base + path))
    yield tabs
    for window in windows:
        await window.close()


async def is_one_too_many(tab: Tab) -> None:
    """Its browser follows as many pages as one may: it says that it is not live.

    Seen failing: it said "Live", and was never painted again.
    """
    page = await tab.page.context.new_page()
    await page.goto(f"{tab.address}?one=more")
    await expect(page.locator("#live-words")).to_have_text(f"Not live: {FULL}", timeout=WAIT_SECONDS * 1000)
    await page.close()


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.usefixtures("in_a_hurry")
async def test_an_outage_is_said_on_every_page(
    site: Site, hand: Hand, context: BrowserContext, complaints: Complaints
) -> None:
    """Pages that are open, pages that are opened meanwhile, and all of them when it is over."""
    assert sorted(set(LIVE) - set(addresses_of(LIVE))) == []
    stage(hand)
    complaints.network_expected = True
    async with cuttable(site) as (database, server), AsyncExitStack() as stack:
        tabs = await stack.enter_async_context(live_tabs(site, context, complaints))
        assert await of_each(tabs, is_live) == []
        await is_one_too_many(tabs[0])
        cut = datetime.now(UTC) + timedelta(seconds=1)
        database.refuse()
        database.reset()
        wrong = [f"open, {one}" for one in await of_each(tabs, goes_stale(cut))]
        asked = zip(tabs, addresses_of(QUESTIONS).items(), strict=False)
        questions = [Tab(tab.page, view, site.base + path) for tab, (view, path) in asked]
        wrong += [f"opened, {one}" for one in await of_each(questions, fails) + await of_each(tabs, fails)]
        database.accept()
        wrong += [f"afterwards, {one}" for one in await of_each(tabs, is_live)]
        server.refuse()
        server.reset()
        wrong += [f"left, {one}" for one in await of_each(tabs, is_left)]
        assert wrong == [], "\n".join(wrong)
