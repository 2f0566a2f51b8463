"""Dead letters and acts on many in a browser: read, mended, redriven and discarded by keyboard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import LogIn
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

SHOTS = os.environ.get("LIVEWELL_TEST_SHOTS")  # a folder: pictures of these pages are written there
HOSTILE = "<script>alert('dead')</script> \u202etxt.exe"
LETTERS = """
INSERT INTO livewell.dead_job
    (id, queue, kind, reason, attempt, max_attempts, lost, lane, priority, created_at, died_at, payload, error, traceback)
SELECT 4611686018427387904 + n, (ARRAY['mail', 'billing', 'reports'])[1 + n %% 3],
    (ARRAY['send_welcome', 'charge_card', 'render_report'])[1 + n %% 3],
    (ARRAY['attempts', 'refused', 'payload', 'lost'])[1 + n / 30], 5, 5, 0, 1, 0,
    now() - interval '2 days', now() - n * interval '7 minutes',
    jsonb_build_object('price', 0.10000000000000000001, 'user', n, 'note', %s::text), %s,
    E'Traceback (most recent call last):\\n  File "tasks.py", line 7, in send\\nConnectionError: refused'
FROM generate_series(1, 90) n
"""


@pytest.fixture
def letters(site: Site, hand: Hand) -> Site:
    """Ninety letters, with text of strangers in them; the server runs."""
    hand.rows(
        "INSERT INTO livewell.queue (name, created_at) SELECT q, now() FROM unnest('{mail,billing,reports}'::text[]) q"
    )
    hand.rows(LETTERS, HOSTILE, f"SMTPServerDisconnected: Connection unexpectedly closed for {HOSTILE}")
    site.start()
    return site


async def shot(page: Page, name: str) -> None:
    """Pictures at two widths, light and dark, if somebody wants them."""
    if SHOTS is None:
        return
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        for width in (1600, 390):
            await page.set_viewport_size({"width": width, "height": 1000})
            await page.screenshot(path=Path(SHOTS) / f"{name}-{theme}-{width}.png", full_page=True)
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size({"width": 1280, "height": 900})


async def test_letters_are_read_mended_and_redriven_by_keyboard(letters: Site, log_in: LogIn, hand: Hand) -> None:
    """What strangers wrote is text; every digit is there; the page says what was done."""
    page = await log_in()
    await page.goto(f"{letters.base}/dead")
    await expect(page.get_by_role("heading", name="What failed for good?")).to_be_visible()
    await expect(page.locator("#groups")).to_contain_text("<script>alert('dead')</script>")
    await shot(page, "dead")

    await page.get_by_role("link", name="4611686018427387905").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#payload")).to_contain_text("0.10000000000000000001")
    await page.get_by_text("Traceback", exact=True).focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#letter")).to_contain_text("ConnectionError")
    await page.get_by_text("Edit the payload").focus()
    await page.keyboard.press("Enter")
    await shot(page, "letter")
    await page.get_by_role("textbox").fill('{"price": 0.20000000000000000002}')
    await page.get_by_role("button", name="Save the payload").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".said")).to_contain_text("has a new payload")
    await expect(page.locator("#payload")).to_contain_text("0.20000000000000000002")
    await page.get_by_role("button", name="Redrive", exact=True).focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".said")).to_contain_text("4611686018427387905 is redriven")
    assert hand.rows("SELECT payload->>'price' FROM livewell.job") == [("0.20000000000000000002",)]


async def test_a_letter_is_discarded_after_a_warning(letters: Site, log_in: LogIn, hand: Hand) -> None:
    """The button is behind the words that say what it means."""
    page = await log_in()
    await page.goto(f"{letters.base}/dead/4611686018427387906")
    button = page.get_by_role("button", name="Discard this letter")
    await expect(button).to_be_hidden()
    await page.get_by_text("Discard…").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("deleted for good: nobody")).to_be_visible()
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".said")).to_contain_text("is discarded")
    assert hand.rows("SELECT count(*) FROM livewell.dead_job") == [(89,)]


async def test_all_that_match_need_the_number_and_show_progress(letters: Site, log_in: LogIn, hand: Hand) -> None:
    """A wrong number does nothing; the page of the act follows it while it is done."""
    page = await log_in()
    await page.goto(f"{letters.base}/dead?queue=mail&since=100d")
    await page.get_by_role("link", name="Redrive all that match…").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Is this what you mean?")).to_be_visible()
    await expect(page.locator("#question")).to_contain_text("Redrive 30 dead letters?")
    await shot(page, "question")
    number = page.get_by_label("Type the number 30 to confirm")
    await number.fill("31")
    await page.keyboard.press("Enter")
    await expect(page.locator(".said")).to_contain_text("Nothing was done: you typed 31")
    await number.fill("30")
    await page.keyboard.press("Enter")
    await expect(page.locator(".said")).to_contain_text("has begun")
    hand.rows("SELECT FROM livewell.step_bulk_act(20)")
    await expect(page.locator("#act .figures")).to_contain_text("20")
    await shot(page, "act")
    hand.rows("SELECT FROM livewell.step_bulk_act(20)")
    hand.rows("SELECT FROM livewell.step_bulk_act(20)")
    await expect(page.locator("#act")).to_contain_text("ended")
    await page.get_by_role("link", name="All acts").click()
    await expect(page.locator("#acts tbody tr")).to_have_count(1)
    await shot(page, "acts")


async def test_a_large_act_is_cancelled_by_keyboard(letters: Site, log_in: LogIn, hand: Hand) -> None:
    """What is done stays done."""
    page = await log_in()
    await page.goto(f"{letters.base}/acts/new?action=discard")
    await page.get_by_label("Type the number 90 to confirm").fill("90")
    await shot(page, "question-danger")
    await page.keyboard.press("Enter")
    await expect(page.locator(".said")).to_contain_text("has begun")
    hand.rows("SELECT FROM livewell.step_bulk_act(10)")
    await page.locator("details.confirm > summary", has_text="Cancel the rest").press("Enter")
    await page.get_by_role("button", name="Cancel the rest").press("Enter")
    await expect(page.locator(".said")).to_contain_text("is cancelled: what is done stays done.")
    assert hand.rows("SELECT count(*) FROM livewell.dead_job") == [(80,)]


async def test_pages_without_anything_say_so(site: Site, log_in: LogIn) -> None:
    """Empty is said in words."""
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/dead")
    await expect(page.locator("#letters")).to_contain_text("Nothing has failed for good.")
    await shot(page, "dead-empty")
    await page.goto(f"{site.base}/acts")
    await expect(page.locator("#acts")).to_contain_text("Nobody has acted on many at once.")
