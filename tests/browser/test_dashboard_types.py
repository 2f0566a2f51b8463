"""Types, keys and limits in a browser: each question is answered within a few clicks."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.conftest import LogIn
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<script>alert(1)</script> \u202eevil"
SYMBOLS = ("AAPL", "MSFT", "NVDA", "AMZN", "GOOG", "META", "TSLA", "JPM", "V", "XOM", "KO", "PEP")


def furnish_trouble(hand: Hand) -> None:
    """Keys of every verdict, viewers, a day of counts, a budget that runs out and a breaker that is open."""
    hand.put_all(*SYMBOLS)
    hand.rows("UPDATE livewell.ledger SET due_at = livewell.now() + interval '1 minute'")
    hand.rows("UPDATE livewell.ledger SET source_at = source_at - interval '15 s', changed_at = fetched_at")
    for key, reason in (("TSLA", "status"), ("JPM", "deadline"), ("META", "status")):
        hand.fail("quote", key, reason, f"HTTP 500: {HOSTILE}")
    hand.rows(
        "UPDATE livewell.ledger SET tries = 4, tried_at = livewell.now(), retry_at = livewell.now() + interval '4 min' WHERE failing_since IS NOT NULL"
    )
    hand.rows(
        "UPDATE livewell.ledger SET checked_at = livewell.now() - interval '3 days' WHERE key IN ('AAPL', 'KO') AND data_type = 'quote'"
    )
    hand.rows(
        "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) "
        "SELECT gen_random_uuid(), now(), now(), 'somebody-' || n FROM generate_series(1, 12) n"
    )
    hand.rows(
        "INSERT INTO livewell.subscription (session_id, data_type, key, user_id) SELECT s.id, 'quote', k, s.user_id "
        "FROM livewell.viewer_session s CROSS JOIN unnest(ARRAY['AAPL', 'MSFT', 'KO']) k WHERE hashtext(k || s.user_id) %% 3 <> 0"
    )
    hand.rows(
        "INSERT INTO livewell.refresh_count SELECT date_trunc('hour', now(), 'UTC') - n * interval '1 hour', t, o.outcome, "
        "((24 - n) * o.part * (1 + mod(n, 5)))::bigint, 1000 * (24 - n) * (1 + mod(n, 5)), 3500 * (24 - n) * (1 + mod(n, 5)), (24 - n) * o.part "
        "FROM generate_series(0, 23) n CROSS JOIN unnest(ARRAY['quote', 'profile']) t "
        "CROSS JOIN (VALUES ('stored', 9), ('unchanged', 30), ('status', 1)) o (outcome, part)"
    )
    hand.rows(
        "INSERT INTO livewell.limiter_credential (limiter, name) VALUES ('fmp', 'FMP_API_KEY'), ('fmp', 'FMP_API_KEY_2') ON CONFLICT DO NOTHING"
    )
    hand.rows(
        "INSERT INTO livewell.limiter_usage SELECT 'fmp', 'FMP_API_KEY', date_trunc('hour', now()) - n * interval '1 hour', "
        "(26000000 + 9000000 * sin(n / 24.0))::bigint, 900 FROM generate_series(0, 500) n"
    )
    hand.rows(
        "INSERT INTO livewell.limiter_calls SELECT 'fmp', 'FMP_API_KEY', date_bin('10 s', now() - n * interval '10 s', timestamptz 'epoch'), "
        "(28 + 14 * sin(n / 20.0))::integer, CASE WHEN n < 20 THEN 9 ELSE 0 END FROM generate_series(0, 359) n"
    )
    hand.rows("INSERT INTO livewell.limiter_grant VALUES ('fmp', 'FMP_API_KEY_2', now() + interval '30 s', 212)")
    hand.rows(
        "UPDATE livewell.limiter_credential SET breaker = 'open', open_until = now() + interval '4 min', opened_at = now() - interval '1 min', "
        "opened_reason = 'deadline', opened_keys = 6 WHERE limiter = 'fmp' AND name = 'FMP_API_KEY'"
    )


async def test_why_is_aapl_stale_in_two_clicks(site: Site, log_in: LogIn, hand: Hand) -> None:
    """From the overview: the type, then the key; the answer names the next step."""
    furnish_trouble(hand)
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/")
    await page.get_by_role("link", name="quote", exact=True).click()
    await page.get_by_role("link", name="AAPL", exact=True).click()
    await expect(page.locator("#why")).to_contain_text("It is stale")
    await expect(page.locator("#why").get_by_role("link", name="All keys of quote")).to_be_visible()


async def test_will_the_budget_last_the_month_in_one_click(site: Site, log_in: LogIn, hand: Hand) -> None:
    """The page of limits says when it ends, at today's pace and by plan."""
    furnish_trouble(hand)
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/")
    await page.get_by_role("link", name="Limits", exact=True).click()
    await expect(page.locator("#hold")).to_contain_text("At today's pace")
    await expect(page.locator("#hold")).to_contain_text("By plan")


async def test_a_key_is_looked_up_by_name(site: Site, log_in: LogIn, hand: Hand) -> None:
    """With the keyboard; back goes to the type."""
    furnish_trouble(hand)
    site.start()
    page = await log_in()
    await page.goto(f"{site.base}/types/quote")
    await page.get_by_label("Look up a key").focus()
    await page.keyboard.type("NVDA")
    await page.keyboard.press("Enter")
    await expect(page.locator("#why h2")).to_have_text("quote NVDA")
    await page.go_back()
    await expect(page.locator("#keys")).to_be_visible()
