"""Schedules, runs, alerts, warnings and the doctor in a browser: read, act by keyboard, hostile text as text."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, expect

from tests.browser.conftest import LogIn
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<script>alert(1)</script>\u202edesrever"
PAGES = ("/schedules", "/schedules/nightly-report", "/runs", "/runs?outcome=failed", "/alerts", "/warnings", "/doctor")
_RUN = (
    "INSERT INTO livewell.run (schedule, due_at, last_due_at, started_at, finished_at, fence, state, holder, error, "
    "rows_affected, reason, slots) VALUES (%s, now() - %s * interval '1 hour', now() - %s * interval '1 hour', "
    "CASE WHEN %s = 'skipped' THEN NULL ELSE now() - %s * interval '1 hour' END, "
    "now() - %s * interval '1 hour' + %s * interval '1 second', 1, %s::livewell.run_state, 'worker-7@app-2', %s, %s, %s, %s)"
)


def furnish_night(hand: Hand) -> None:
    """A night on which things failed: late, refused, silenced, tolerated."""
    declare = (
        "SELECT livewell.declare_schedule(%s, %s, %s, %s, %s::interval, NULL, 'once', interval '1 hour', %s, false)"
    )
    for name, kind, cron, zone, every, ours in (
        ("nightly-report", "cron", "30 2 * * *", "Europe/Paris", None, False),
        ("weekday-open", "cron", "*/5 9-17 * * 1-5", "America/New_York", None, False),
        ("poll-suppliers", "interval", None, None, "5 minutes", False),
        ("month-end", "cron", "0 6 L * *", "UTC", None, False),
        ("livewell.sweep", "interval", None, None, "1 minute", True),
        ("livewell.housekeeping", "interval", None, None, "1 hour", True),
    ):
        hand.rows(declare, name, kind, cron, zone, every, ours)
    hand.rows("UPDATE livewell.schedule SET due_at = now() + interval '40 minutes', gap = interval '1 day'")
    hand.rows(
        "UPDATE livewell.schedule SET due_at = now() - interval '3 hours', gap = interval '5 minutes' WHERE name = 'poll-suppliers'"
    )
    for n in range(24, 0, -1):
        state = {3: "failed", 9: "crashed", 15: "skipped"}.get(n, "succeeded")
        error = {
            3: f"TimeoutError: {HOSTILE}\n" + "the report server did not answer. " * 12,
            9: "its lease ran out",
        }.get(n)
        rows = None if state == "skipped" else 1200 + 37 * n
        took = 30 + (n * 37) % 90
        extra = ("missed", 4) if state == "skipped" else (None, 1)
        hand.rows(_RUN, "nightly-report", n * 24, n * 24, state, n * 24, n * 24, took, state, error, rows, *extra)
        hand.rows(_RUN, "livewell.sweep", n, n, "succeeded", n, n, 1, "succeeded", None, 0, None, 1)
    hand.rows(
        "SELECT livewell.observe_alerts('queue_deep', 'P1', '10 minutes', %s, %s)",
        ["mail", HOSTILE],
        ["queue mail: more than 1,000 jobs have been waiting for 31 min", HOSTILE],
    )
    hand.rows(
        "SELECT livewell.observe_alerts('schedule_late', 'P0', '5 minutes', ARRAY['poll-suppliers'], ARRAY['poll-suppliers is late by 2 h'])"
    )
    for name, kind in (("ops", "webhook"), ("phone", "apprise")):
        channel = (
            f'[{{"name": "{name}", "kind": "{kind}", "source": "env:{name.upper()}", "level": "P2", "repeats": false}}]'
        )
        hand.rows("SELECT livewell.declare_channels(%s::jsonb, 100)", channel)
    for _ in range(3):
        hand.rows(
            "SELECT livewell.settle_attempt(a.attempt_id, 'sent', 204, 'accepted') FROM livewell.begin_attempt('ops', 30) a"
        )
    hand.rows(
        "SELECT livewell.settle_attempt(a.attempt_id, 'refused', 410, 'the receiver is gone', false, NULL, true) "
        "FROM livewell.begin_attempt('phone', 30) a"
    )
    hand.rows(
        "SELECT livewell.observe_alerts('breaker_open', 'P1', '0', ARRAY['fmp'], ARRAY['fmp: calls are stopped for 4 min'])"
    )
    hand.rows("SELECT livewell.observe_alerts('breaker_open', 'P1', '0', '{}', '{}')")
    hand.rows("SELECT livewell.observe_alerts('breaker_open', 'P1', '0', '{}', '{}')")
    hand.rows("SELECT livewell.warn('refresh', 'quote: older', %s) FROM generate_series(1, 7)", HOSTILE)
    hand.rows("SELECT livewell.warn('alerts', 'a notification was refused', 'phone: the receiver is gone')")


@pytest.fixture
def night(site: Site, hand: Hand) -> Site:
    """The server, with that night behind it."""
    furnish_night(hand)
    site.start()
    return site


async def test_every_page_opens_and_what_strangers_wrote_is_text(night: Site, log_in: LogIn) -> None:
    """No complaint of the console, no panel that failed, no script that ran, no line that was turned."""
    page = await log_in()
    for path in PAGES:
        await page.goto(night.base + path)
        await expect(page.locator(".panel[data-state=failed]")).to_have_count(0)
        assert "\u202e" not in await page.locator("main").inner_text()
        assert await page.evaluate("document.querySelectorAll('main script').length") == 0
    await page.goto(night.base + "/schedules")
    await expect(page.locator("#schedules tbody tr").first).to_contain_text("poll-suppliers")  # it is late
    await expect(page.locator("#schedules")).to_contain_text("every day at 02:30 Europe/Paris")
    await page.goto(night.base + "/warnings")
    await expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
    shown = await page.locator("main").evaluate("one => one.scrollWidth <= document.documentElement.clientWidth")
    assert shown


async def test_what_failed_last_night_is_two_clicks_from_the_first_page(night: Site, log_in: LogIn) -> None:
    """And the filter is in the address; the whole error is one more."""
    page = await log_in()
    await page.goto(night.base + "/")
    await page.get_by_role("link", name="Schedules").click()
    await page.get_by_role("link", name="All runs that failed").click()
    await expect(page).to_have_url(re.compile(r"/runs\?outcome=failed$"))
    await expect(page.locator("#runs tbody tr")).to_have_count(2)
    await page.locator("#runs summary").first.click()
    await expect(page.locator("#runs pre")).to_contain_text("did not answer")
    await page.get_by_role("link", name="Skipped").click()
    await expect(page.locator("#runs tbody tr")).to_have_count(1)


async def test_what_was_chosen_in_a_form_is_not_undone_by_a_repaint(night: Site, hand: Hand, log_in: LogIn) -> None:
    """Seen failing: four hours were chosen, the panel was painted again, and the silence was of one hour."""
    page = await log_in()
    await page.goto(night.base + "/alerts")
    await page.get_by_role("link", name="schedule late").first.click()
    await expect(page.locator("#told")).to_contain_text("the receiver is gone")
    await expect(page.locator("#manual")).to_contain_text("What to do")
    await page.locator("#alert select[name=for]").select_option("4h")
    await page.locator("#alert button").focus()
    hand.rows("UPDATE livewell.alert SET summary = 'it is later now' WHERE rule = 'schedule_late'")
    hand.rows("UPDATE livewell.notification SET state = 'unknown' WHERE channel = 'phone'")
    await expect(page.locator("#told")).to_contain_text("unknown")  # the other panel is painted again
    await expect(page.locator("#alert select[name=for]")).to_have_value("4h")
    await page.locator("#alert select[name=for]").select_option("1h")
    await page.locator("h1").click()
    await expect(page.locator("#alert")).to_contain_text("it is later now")  # nothing is chosen: it goes on


async def test_the_command_that_mends_is_copied(night: Site, log_in: LogIn, context: BrowserContext) -> None:
    """The button is there because a script put it there; the findings stay for a while."""
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await log_in()
    await page.goto(night.base + "/doctor")
    first = page.locator("#findings .command").first
    await first.get_by_role("button", name="Copy").press("Enter")
    await expect(first.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == await first.locator("code").inner_text()
    at = await page.locator("#findings time").first.get_attribute("datetime")
    await page.reload()
    assert await page.locator("#findings time").first.get_attribute("datetime") == at
    await page.goto(night.base + "/")
    await expect(page.locator("#wrong")).to_contain_text("The doctor has")


async def test_without_javascript_everything_can_be_read(night: Site, log_in: LogIn, context: BrowserContext) -> None:
    """And no button that would do nothing is shown."""
    page = await log_in()
    cookies = await context.cookies()
    browser = context.browser
    assert browser is not None
    assert page.url
    plain = await browser.new_context(java_script_enabled=False)
    await plain.add_cookies(cookies)  # type: ignore[arg-type]
    page = await plain.new_page()
    await page.goto(night.base + "/doctor")
    await expect(page.locator("#findings .command").first).to_be_visible()
    await expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    await plain.close()


@pytest.mark.skipif("LIVEWELL_TEST_PICTURES" not in os.environ, reason="pictures are for people")
async def test_pictures(night: Site, log_in: LogIn, hand: Hand) -> None:
    """Of every page, light and dark, wide and narrow, into a folder."""
    folder = Path(os.environ["LIVEWELL_TEST_PICTURES"])
    hand.rows("SELECT livewell.silence_alerts('queue_deep', 'mail', 7200, 'key:anna')")
    [(number,)] = hand.rows("SELECT id FROM livewell.alert WHERE rule = 'schedule_late'")
    page = await log_in()
    for path in (*PAGES, f"/alerts/{number}", "/"):
        await page.goto(night.base + path)
        for width in (1600, 390):
            for theme in ("light", "dark"):
                await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
                await page.set_viewport_size({"width": width, "height": 1000})
                name = re.sub(r"\W+", "-", path).strip("-") or "overview"
                await page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=True)
