"""Five questions of somebody on call, each answered within three clicks from the first page."""

from __future__ import annotations

import re
import time

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import LogIn
from tests.browser.site import Hand, Site
from tests.browser.test_dashboard_types import furnish_trouble

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLICKS_MAX = 3
JOBS = """
SELECT livewell.declare_queue('mail', 5, 5, 300, 5);
UPDATE livewell.queue SET paused_at = livewell.now() WHERE name = 'mail';
INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, payload)
SELECT 640 + n, n, livewell.now() - interval '1 hour', livewell.now() - interval '1 hour', 'ready', 5, 'mail', 'welcome', '{}' FROM generate_series(1, 3) AS n;
INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload, error)
VALUES (900, livewell.now(), livewell.now() - interval '8 hours', 5, 5, 0, 0, 1, 'mail', 'welcome', 'attempts', '{"user": 7}', 'the mail server said no');
SELECT livewell.declare_queue('night', 5, 5, 300, 5)
"""


class Story:
    """A reader who begins at the first page; clicks are counted, and the time is told."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0
        self._begun = time.monotonic()

    async def click(self, name: str, *, role: str = "link", within: str = "body") -> None:
        """Follow a link, or press a button."""
        self.clicks += 1
        await self.page.locator(within).get_by_role(role, name=name).first.click()  # type: ignore[arg-type] # link or button

    async def reads(self, *words: str, within: str = "main") -> None:
        """What the page says."""
        for one in words:
            await expect(self.page.locator(within)).to_contain_text(one)

    def ends(self) -> None:
        """How many clicks it took; how long is a figure to look at (pytest -s)."""
        print(f"{self.clicks} clicks, {time.monotonic() - self._begun:.1f} s")
        assert self.clicks <= CLICKS_MAX


@pytest.fixture
def story_rows(hand: Hand) -> None:
    """A queue with jobs, a dead letter, values of every verdict, and a budget that runs out."""
    furnish_trouble(hand)
    for statement in JOBS.strip().split(";\n"):
        hand.rows(statement.replace("%", "%%"))
    hand.fail("quote", "AAPL", "schema_changed", "the field price is gone")


async def begin(site: Site, log_in: LogIn) -> Story:
    """Logged in, at the first page."""
    site.start()
    return await come_back(site, log_in)


async def come_back(site: Site, log_in: LogIn) -> Story:
    """The same where the server runs already."""
    page = await log_in()
    await page.goto(f"{site.base}/")
    return Story(page)


async def test_why_is_aapl_stale(site: Site, log_in: LogIn, story_rows: None) -> None:
    """Its type, then the key."""
    story = await begin(site, log_in)
    await story.click("quote", within="#types")
    await story.page.get_by_label("Look up a key").fill("AAPL")
    story.clicks += 1
    await story.page.keyboard.press("Enter")
    await story.reads("quote AAPL", "failing", "price is gone", within="#why")
    story.ends()


async def test_will_the_budget_last_the_month(site: Site, log_in: LogIn, story_rows: None) -> None:
    """The limits: a share, and what becomes of it at this pace and by plan."""
    story = await begin(site, log_in)
    await story.click("Limits", within="nav")
    await expect(story.page.locator("h1")).to_have_text("Will the limits hold?")
    await story.reads("GB", "At today's pace", "By plan", within="#hold")
    await expect(story.page.locator("#hold")).to_contain_text(re.compile("it lasts|it ends"))
    story.ends()


async def test_what_is_stuck_and_why(site: Site, log_in: LogIn, story_rows: None) -> None:
    """Work, the jobs of the queue, the job: it says who has to do what."""
    story = await begin(site, log_in)
    await story.click("Work", within="nav")
    await story.click("3", within="#queues")
    await story.click("641")
    await story.reads("queue mail is paused")
    story.ends()


async def test_what_failed_last_night_and_redrive_it(site: Site, hand: Hand, log_in: LogIn, story_rows: None) -> None:
    """Dead letters, the letter, redrive: then it is a job again."""
    story = await begin(site, log_in)
    await story.click("Dead letters", within="nav")
    await story.click("900")
    await story.reads("the mail server said no")
    await story.click("Redrive", role="button")
    await story.reads("redriven", within=".said")
    story.ends()
    assert hand.rows("SELECT state::text FROM livewell.job WHERE id = 900") == [("ready",)]


async def test_who_paused_that_queue(site: Site, log_in: LogIn, story_rows: None) -> None:
    """The audit: who, from where, what was before and after. It was somebody with a login of their own."""
    site.start()
    culprit = await log_in()
    await culprit.goto(f"{site.base}/work")
    await culprit.get_by_role("row", name="night").get_by_role("button", name="Pause").click()
    await expect(culprit.locator(".said")).to_contain_text("paused")
    who = await culprit.get_by_role("button", name="Log out").get_attribute("title")
    assert who is not None
    login = who.removeprefix("End the login ").removesuffix(" of this browser")
    await culprit.close()

    story = await come_back(site, log_in)
    await story.click("Audit", within="nav")
    line = story.page.get_by_role("row").filter(has_text="queues.pause").filter(has_text="night")
    for words in (login, "page 127.0.0.1", "paused"):
        await expect(line.first).to_contain_text(words)
    story.ends()
