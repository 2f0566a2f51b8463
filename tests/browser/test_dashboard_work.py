"""The pages of work in a browser: read, found and acted on with the keyboard, and nothing complains."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import LogIn
from tests.browser.site import Hand, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<script>document.title = 'owned'</script>\u202egnp.exe"
JOBS = """
INSERT INTO livewell.queue (name, created_at, limiter, concurrency) VALUES ('mail', now(), NULL, NULL), ('reports', now(), NULL, 4), ('thumbnails', now(), NULL, NULL);
UPDATE livewell.queue SET paused_at = now() - interval '2 hours' WHERE name = 'reports';
INSERT INTO livewell.worker (id, started_at, renewed_at, expires_at, steady_since, lease, slots, queues, kinds, name, version, lacks)
VALUES (1, now() - interval '3 hours', now(), now() + interval '1 hour', now(), '1 hour', 8, '{mail,reports}', '{}', 'web-7f9c (pid 4711)', '0.7.0', '{}'),
    (2, now() - interval '1 day', now(), now() + interval '1 hour', now(), '1 hour', 8, '{mail}', '{}', 'web-51aa (pid 812)', '0.7.0', '{"fmp FMP_KEY"}');
SELECT * FROM livewell.enqueue_jobs((SELECT jsonb_agg(jsonb_build_object('id', 1000 + n, 'queue', CASE WHEN n % 3 = 0 THEN 'thumbnails' WHEN n % 7 = 0 THEN 'reports' ELSE 'mail' END,
    'kind', 'shop.tasks:' || CASE WHEN n % 2 = 0 THEN 'send_receipt' ELSE 'render' END, 'payload', jsonb_build_object('order', 9007199254740993 + n, 'password', 'hunter2'), 'unique_key', 'order/' || n)) FROM generate_series(1, 70) n));
SELECT * FROM livewell.enqueue_jobs('[{"id": 2000, "queue": "mail", "kind": "shop.tasks:remind", "payload": {}, "delay_seconds": 3600}]');
UPDATE livewell.job SET state = 'running', worker = 1, started_at = now() - interval '40 seconds', attempt = 1, progress = 42, progress_note = 'page 42 of 100', fence = id, trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' WHERE id IN (1001, 1002, 1004);
UPDATE livewell.job SET last_error = 'HTTP 502 from the printer', last_traceback = 'Traceback (most recent call last): …', attempt = 2 WHERE id IN (1005, 1008);
INSERT INTO livewell.stat (minute, queue, kind, outcome, n, ms) VALUES (date_trunc('minute', now()), 'mail', 'shop.tasks:send_receipt', 'succeeded', 4200, 900000), (date_trunc('minute', now()), 'mail', 'shop.tasks:send_receipt', 'retry', 120, 30000);
INSERT INTO livewell.dead_job (id, queue, kind, reason, attempt, max_attempts, lost, lane, priority, created_at, died_at, payload, error, batch_id)
VALUES (3000, 'mail', 'shop.tasks:render', 'attempts', 5, 5, 0, 1, 0, now() - interval '1 day', now(), '{}', 'boom', 7);
INSERT INTO livewell.batch (id, created_at, sealed_at, succeeded, failed, remaining, follow_id, follow_when, follow)
VALUES (7, now(), now(), 120, 1, 40, 320, 'succeeded', '{"queue": "mail", "kind": "shop.tasks:report", "payload": {}}');
"""


@pytest.fixture
def work(site: Site, hand: Hand) -> Site:
    """Queues with and without trouble, jobs in every state, two workers, a batch."""
    for statement in JOBS.split(";\n"):
        if statement.strip():
            hand.rows(statement.replace("%", "%%"))
    site.start()
    return site


async def press(page: Page, name: str) -> None:
    """A button, by the keyboard alone."""
    button = page.get_by_role("button", name=name, exact=True)
    await button.focus()
    await page.keyboard.press("Enter")


async def test_queues_say_what_is_stuck_and_are_paused_with_the_keyboard(work: Site, log_in: LogIn) -> None:
    """Trouble first; the act is said, and can be taken back in the same place."""
    page = await log_in()
    await page.goto(f"{work.base}/work")
    await expect(page.locator("h1")).to_have_text("What is running, what is stuck?")
    rows = page.locator("#queues tbody tr")
    await expect(rows.nth(0)).to_contain_text("no worker works it")
    await expect(rows.nth(1)).to_contain_text("paused, and jobs wait")
    await press(page, "Resume reports")
    await expect(page.locator(".said")).to_have_text("reports goes on.")
    await press(page, "Pause mail")
    await expect(page.locator(".said")).to_have_text("mail is paused: what runs may end, nothing more is begun.")
    await page.get_by_label("A queue, by the beginning").fill("thu")
    await page.keyboard.press("Enter")
    await expect(page.locator("#queues tbody tr")).to_have_count(1)


async def test_jobs_are_filtered_paged_and_the_back_button_works(work: Site, log_in: LogIn) -> None:
    """The address holds the filter."""
    page = await log_in()
    await page.goto(f"{work.base}/work/jobs")
    await expect(page.locator("#jobs tbody tr")).to_have_count(50)
    await page.get_by_role("link", name="Next page").press("Enter")
    await expect(page.locator("#jobs tbody tr")).to_have_count(21)
    await page.go_back()
    await page.get_by_label("State").select_option("running")
    await page.get_by_label("Task").fill("shop.tasks:render")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/work/jobs?task=shop.tasks%3Arender&state=running&order=newest")
    await expect(page.locator("#jobs")).to_contain_text("1 job matches")
    await page.go_back()
    await expect(page.locator("#jobs tbody tr")).to_have_count(50)


async def test_a_job_is_followed_live_and_cancelled_with_the_keyboard(work: Site, hand: Hand, log_in: LogIn) -> None:
    """Progress arrives by itself; cancelling asks first; the open question survives a repaint."""
    page = await log_in()
    await page.goto(f"{work.base}/work/jobs/1001")
    await expect(page.locator("#now")).to_contain_text("42 %")
    await page.locator("summary", has_text="Cancel").press("Enter")
    hand.rows("UPDATE livewell.job SET progress = 77 WHERE id = 1001")
    held_and_painted = 15_000  # the question has the focus: its panel waits for five seconds
    await expect(page.locator("#now")).to_contain_text("77 %", timeout=held_and_painted)
    await press(page, "Cancel job 1001")
    await expect(page.locator(".said")).to_have_text("The worker of job 1001 is told to end it.")
    await expect(page.locator("#life")).to_contain_text("Cancel asked")
    assert hand.rows("SELECT cancel_requested FROM livewell.job WHERE id = 1001") == [(True,)]


async def test_a_delayed_job_runs_now_and_a_form_that_came_too_late_says_so(
    work: Site, hand: Hand, log_in: LogIn
) -> None:
    """Also while another tab has done it."""
    page = await log_in()
    await page.goto(f"{work.base}/work/jobs/2000")
    await page.get_by_role("button", name="Pause this page", exact=True).press("Enter")
    hand.rows("SELECT livewell.hasten_job(2000)")
    await press(page, "Run now")
    await expect(page.locator(".said")).to_contain_text("was delayed and is ready by now: nothing was done.")
    await page.goto(f"{work.base}/work/jobs/3000")
    await press(page, "Retry")
    await expect(page.locator(".said")).to_have_text("Job 3000 runs as soon as a worker is free.")


async def test_what_strangers_wrote_is_text(work: Site, hand: Hand, log_in: LogIn) -> None:
    """In the task, the keys, the error and the payload; and numbers have all of their digits."""
    columns = ("kind", "group_key", "last_error", "last_traceback", "progress_note")
    for column in columns:
        hand.rows(f"UPDATE livewell.job SET {column} = %s WHERE id = 1002", HOSTILE)
    hand.rows(
        "UPDATE livewell.job SET payload = jsonb_build_object('name', %s::text, 'n', 9223372036854775807) WHERE id = 1002",
        HOSTILE,
    )
    page = await log_in()
    for path in ("/work/jobs?state=running", "/work/jobs/1002"):
        await page.goto(work.base + path)
        await expect(page.locator("main")).to_contain_text("<script>document.title = 'owned'</script>")
        assert "\u202e" not in await page.locator("main").inner_text()
        assert "owned" not in await page.title()
    await expect(page.locator("#payload")).to_contain_text("9223372036854775807")
