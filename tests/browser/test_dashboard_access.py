"""The audit and the access page in a browser: by keyboard, in both widths and themes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.browser.conftest import LogIn
from tests.browser.site import Site

pytestmark = pytest.mark.asyncio(loop_scope="session")
PICTURES = os.environ.get("LIVEWELL_TEST_PICTURES")
HOSTILE = "<script>alert(1)</script>\u202e"


async def shoot(page: Page, name: str) -> None:
    """Pictures of a page for people, if somebody asked for them."""
    if PICTURES is None:
        return
    for width in (1600, 390):
        for theme in ("light", "dark"):
            await page.set_viewport_size({"width": width, "height": 900})
            await page.emulate_media(color_scheme=theme)
            await page.screenshot(path=str(Path(PICTURES) / f"{name}-{width}-{theme}.png"), full_page=True)
    await page.set_viewport_size({"width": 1280, "height": 900})


async def fits(page: Page) -> None:
    """No page is wider than its window, also on a telephone."""
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await page.set_viewport_size({"width": 1280, "height": 900})


async def press(page: Page, name: str) -> None:
    """Reach a button with the keyboard, and press it."""
    await page.get_by_role("button", name=name, exact=True).first.focus()
    await page.keyboard.press("Enter")


async def confirm(page: Page, words: str, meaning: str) -> None:
    """Open the question before a dangerous act, read what it means, and do it, all by keyboard."""
    await page.locator("details.confirm > summary", has_text=words).first.press("Enter")
    question = page.locator("details.confirm[open]")
    await expect(question).to_contain_text(meaning)
    await question.get_by_role("button").press("Enter")


async def test_a_key_is_made_copied_and_revoked_by_keyboard(site: Site, log_in: LogIn) -> None:
    """The secret is shown once; the key works, and after its end it does not."""
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/")
    await page.get_by_role("link", name="Access").click()
    await page.get_by_role("heading", name="Who may do what?").wait_for()
    await shoot(page, "access")
    await fits(page)
    await page.get_by_label("Name, for people").fill(HOSTILE[:-1])
    await page.get_by_label("Good for").fill("90d")
    await press(page, "Make the key")
    await page.get_by_role("heading", name="Copy this now").wait_for()
    await shoot(page, "access-secret")
    await fits(page)
    text = await page.locator("#secret").inner_text()
    assert re.fullmatch(r"lw_[A-Za-z0-9]{16}_\S+", text)
    assert text not in page.url
    await page.get_by_role("link", name="I have copied it").click()
    await page.get_by_role("heading", name="Who may do what?").wait_for()
    assert text not in await page.content()
    assert "<script>alert(1)</script>" in await page.locator("#keys").inner_text()
    await confirm(page, "Revoke", "it cannot be undone")
    said = page.locator(".said")
    await said.wait_for()
    assert "is revoked" in await said.inner_text()


async def test_the_audit_tells_who_did_what_and_filters_by_a_click(site: Site, log_in: LogIn) -> None:
    """before → after is there; the address holds the filter, and back works."""
    site.start()
    for action, subject, before, after in (
        ("queues.pause", HOSTILE, '{"paused": false}', '{"paused": true}'),
        ("types.set_ttl", "quote AAPL", '{"ttl_seconds": 60, "own": false}', '{"ttl_seconds": 5, "own": true}'),
        ("keys.create", "Ab12", None, '{"scopes": ["view", "operate"], "public": false}'),
    ):
        site.hand.rows(
            "SELECT livewell.audit_act('cli:ann@desk', 'cli', %s, %s, '{}', 'done', %s::jsonb, %s::jsonb, 1)",
            action,
            subject,
            before,
            after,
        )
    page = await log_in()
    await page.goto(f"{site.base}/")
    await page.get_by_role("link", name="Audit").click()
    await page.get_by_role("heading", name="Who did what?").wait_for()
    table = page.locator("#audit")
    assert "\u202e" not in await table.inner_text()
    assert "paused false → true" in re.sub(r"\s+", " ", await table.inner_text())
    await shoot(page, "audit")
    await fits(page)
    await page.get_by_role("link", name="types.set_ttl").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"action=types\.set_ttl"))
    assert await page.locator("#audit tbody tr").count() == 1
    await page.go_back()
    await page.get_by_role("link", name="keys.create").wait_for()
    await page.get_by_label("Since").fill("1h")
    await press(page, "Show")
    await page.wait_for_url(re.compile("since=1h"))
    assert await page.locator("#audit tbody tr").count() >= 4


async def test_log_out_and_log_out_everywhere(site: Site, log_in: LogIn, context: BrowserContext) -> None:
    """Without a script; each leads to the login, and the page is not there any more."""
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/")
    await press(page, "Log out")
    await page.wait_for_url(f"{site.base}/login")
    assert COOKIE not in [one["name"] for one in await context.cookies()]
    page = await log_in()
    await page.goto(f"{site.base}/")
    await page.goto(f"{site.base}/access")
    await confirm(page, "Log out everywhere", "your own too")
    await page.wait_for_url(f"{site.base}/login")
    await page.goto(f"{site.base}/access")
    await page.wait_for_url(re.compile("/login"))
    assert site.hand.rows("SELECT n FROM livewell.audit WHERE action = 'logins.end_all'") == [(1,)]


COOKIE = "livewell"
