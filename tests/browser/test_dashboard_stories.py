"""Five questions of somebody on call, each answered within three clicks from the first page."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import LogIn
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLICKS_MAX = 3
JOBS = """
SELECT livewell.declare_queue('mail', 5, 5, 300, 5);
UPDATE livewell.queue SET paused_at = livewell.now() WHERE name = 'mail';
INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, payload)
SELECT 640 + n, n, livewell.now() - interval '1 hour', livewell.now() - interval '1 hour', 'ready', 5, 'mail', 'welcome', '{}' FROM generate_series(1, 3) AS n;
INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload, error)
VALUES (900, livewell.now(), livewell.now() - interval '8 hours', 5, 5, 0, 0, 1, 'mail', 'welcome', 'attempts', '{"user": 7}', 'the mail server said no');
SELECT livewell.record_act('ann', 'queues.pause', 'mail', '{}', 'true')
"""


class Story:
    """A reader who begins at the first page and counts clicks."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    async def click(self, name: str, *, role: str = "link", within: str = "body") -> None:
        """Follow a link, or press a button."""
        self.clicks += 1
        await self.page.locator(within).get_by_role(role, name=name).first.click()  # type: ignore[arg-type] # link or button

    def ends(self) -> None:
        """Was it quick?"""
        assert self.clicks <= CLICKS_MAX


@pytest.fixture
def story_rows(hand: Hand) -> None:
    """A paused queue with jobs, a dead letter, a stale and a failing quote."""
    for statement in JOBS.strip().split(";\n"):
        hand.rows(statement.replace("%", "%%"))
    hand.put("quote", "AAPL")
    hand.fail("quote", "AAPL", "schema_changed", "the field price is gone")


async def _begin(site: Site, log_in: LogIn) -> Story:
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/")
    return Story(page)


async def test_why_is_aapl_stale(site: Site, log_in: LogIn, story_rows: None) -> None:
    """Types, the type, the key typed."""
    story = await _begin(site, log_in)
    await story.click("quote", within="#types")
    await story.page.get_by_label("Look up a key").fill("AAPL")
    story.clicks += 1
    await story.page.keyboard.press("Enter")
    await expect(story.page.locator("main")).to_contain_text("AAPL")
    await expect(story.page.locator("main")).to_contain_text("price is gone")
    story.ends()


async def test_will_the_budget_last_the_month(site: Site, log_in: LogIn, story_rows: None) -> None:
    """Limits."""
    story = await _begin(site, log_in)
    await story.click("Limits", within="nav")
    await expect(story.page.locator("h1")).to_have_text("Will the limits hold?")
    await expect(story.page.locator("main")).to_contain_text("udget")
    story.ends()


async def test_what_is_stuck_and_why(site: Site, log_in: LogIn, story_rows: None) -> None:
    """Work, the jobs of the queue, the job."""
    story = await _begin(site, log_in)
    await story.click("Work", within="nav")
    await story.click("3", within="#queues")
    await story.click("641")
    await expect(story.page.locator("main")).to_contain_text("paused")
    story.ends()


async def test_what_failed_last_night_and_redrive_it(site: Site, log_in: LogIn, story_rows: None) -> None:
    """Dead letters, the letter, redrive."""
    story = await _begin(site, log_in)
    await story.click("Dead letters", within="nav")
    await story.click("900")
    await expect(story.page.locator("main")).to_contain_text("the mail server said no")
    await story.click("Redrive", role="button")
    await expect(story.page.locator(".said")).to_contain_text("redriven")
    story.ends()


async def test_who_paused_that_queue(site: Site, log_in: LogIn, story_rows: None) -> None:
    """Audit."""
    story = await _begin(site, log_in)
    await story.click("Audit", within="nav")
    await expect(story.page.locator("main")).to_contain_text("queues.pause")
    await expect(story.page.locator("main")).to_contain_text("ann")
    story.ends()
