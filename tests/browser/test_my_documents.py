"""My documents: write, look at page one, save, export, fetch; by keyboard, in both themes, and only one's own (E2, E12).

Everything is real: the server, its children that render, and a worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, expect

from livewell.server.auth.api_keys import NewKey
from livewell.testing.processes import ChildProcess, eventually, eventually_async
from tests.browser.conftest import Complaints
from tests.browser.site import Site

pytestmark = pytest.mark.asyncio(loop_scope="session")

SIZES = ({"width": 1600, "height": 1000}, {"width": 390, "height": 844})
FITS = "document.documentElement.scrollWidth <= innerWidth"
DOCUMENT = {
    "basics": {"name": "Ann Lee", "label": "Engineer", "email": "ann@example.com", "summary": "Keeps things running."},
    "work": [{"name": "Northwind", "position": "Engineer", "startDate": "2021-03", "highlights": ["One", "Two"]}],
}
RENDER_MS = 30_000  # the first picture starts a child, on a busy machine


async def enter_as(site: Site, context: BrowserContext, person: str) -> Page:
    """A tab at My documents of somebody who has followed a link of their own terminal."""
    link = NewKey.make()
    row = (link.id, link.hash, "link", f"login link of cli:{person}@host", ["export"], None, False, 600)
    site.hand.rows("SELECT livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)", *row)
    answer = await context.request.post(f"{site.base}/v1/login", data={"token": link.text})
    assert answer.status == 204, await answer.text()
    page = await context.new_page()
    await page.goto(f"{site.base}/resumes")
    return page


async def keep(site: Site, context: BrowserContext, name: str, document: Any = None) -> str:
    """A document that is there already."""
    answer = await context.request.post(
        f"{site.base}/v1/resumes",
        data={"name": name, "document": document or DOCUMENT},
        headers={"Origin": site.base},
    )
    assert answer.status == 201, await answer.text()
    found: str = (await answer.json())["id"]
    return found


@pytest.fixture
def files(tmp_path: Path) -> str:
    """The folder of artifacts, for the server and the worker."""
    return str(tmp_path / "exports")


@pytest.fixture
def worker(site: Site, files: str) -> Iterator[ChildProcess]:
    """A worker of the queue exports."""
    env = {**site.env, "LIVEWELL_EXPORT_STORE": files}
    with ChildProcess(
        ["-m", "livewell.cli", "worker", "livewell.apps.plain:app", "--queue", "exports"], env=env
    ) as one:
        eventually(lambda: site.hand.rows("SELECT name FROM livewell.export_kind"), 60, what="the kind is declared")
        yield one


async def test_a_document_is_written_with_the_keyboard_alone(site: Site, context: BrowserContext) -> None:
    """New, type, add a job, move it, save; after a reload all of it is there."""
    site.start()
    page = await enter_as(site, context, "ann")
    await expect(page.locator("h1:visible")).to_have_text("You have no document yet.")
    await page.get_by_role("button", name="New document").press("Enter")
    await page.keyboard.type("Ann Lee")
    await page.get_by_role("button", name="+ Experience").press("Enter")
    await page.keyboard.type("Engineer")
    await page.get_by_role("button", name="Add a job").press("Enter")
    await page.keyboard.type("Director")
    await page.get_by_role("button", name="Move job 2 up").press("Enter")
    await expect(page.get_by_role("button", name="Move job 1 up")).to_be_focused()
    await page.keyboard.press("Control+s")
    await expect(page.locator(".editor-bar [role=status]")).to_have_text("Saved as version 1")

    await page.reload()
    positions = page.locator('[data-section="work"] .entries input[data-place$="position"]')
    await expect(positions).to_have_count(2)
    assert [await positions.nth(n).input_value() for n in range(2)] == ["Director", "Engineer"]
    await page.get_by_role("link", name="All documents").press("Enter")
    await expect(page.locator("h1:visible")).to_have_text("You have 1 document.")


async def test_page_one_follows_what_is_typed(site: Site, context: BrowserContext, complaints: Complaints) -> None:
    """A picture beside the form; what cannot be printed is named, with the field, and the way to it."""
    site.start()
    page = await enter_as(site, context, "ann")
    key = await keep(site, context, "CV")
    await page.goto(f"{site.base}/resumes#edit/{key}")
    await expect(page.locator(".preview[data-drawn]")).to_have_count(1, timeout=RENDER_MS)
    await expect(page.locator(".preview > .muted")).to_have_text("Page 1 of 1")
    before = await picture(page)
    await page.get_by_label("What you are").fill("Director of everything")
    await eventually_async(lambda: differs(page, before), RENDER_MS / 1000)

    complaints.network_expected = True
    await page.locator('[data-place="work.0.position"]').fill("Engineer \U0001f600")
    await expect(page.locator(".preview .notice")).to_be_visible(timeout=RENDER_MS)
    await page.get_by_role("button", name="Show me where").click()
    await expect(page.locator('[data-place="work.0.position"]')).to_be_focused()


async def differs(page: Page, before: str) -> bool:
    return await picture(page) != before


async def picture(page: Page) -> str:
    """What the canvas shows."""
    found: str = await page.evaluate("document.querySelector('.preview canvas').toDataURL()")
    return found


async def test_the_second_of_two_tabs_that_save_is_asked(
    site: Site, context: BrowserContext, complaints: Complaints
) -> None:
    """E16: nothing of the first is lost; the second becomes the next version if its writer says so."""
    site.start()
    first = await enter_as(site, context, "ann")
    key = await keep(site, context, "CV")
    second = await context.new_page()
    for page in (first, second):
        await page.goto(f"{site.base}/resumes#edit/{key}")
        await expect(page.get_by_label("What you are")).to_have_value("Engineer")
    await first.get_by_label("What you are").fill("First")
    await first.keyboard.press("Control+s")
    await expect(first.locator(".editor-bar [role=status]")).to_have_text("Saved as version 2")

    complaints.network_expected = True
    await second.get_by_label("What you are").fill("Second")
    await second.keyboard.press("Control+s")
    await expect(second.locator(".notice[role=alert]")).to_contain_text("Somebody saved version 2 meanwhile.")
    await second.get_by_role("button", name="Keep mine as the next version").click()
    await expect(second.locator(".editor-bar [role=status]")).to_have_text("Saved as version 3")


async def test_what_is_not_saved_is_not_lost_by_leaving(site: Site, context: BrowserContext) -> None:
    """The page asks in itself, and offers to save; what was removed can be had back."""
    site.start()
    page = await enter_as(site, context, "ann")
    key = await keep(site, context, "CV")
    await page.goto(f"{site.base}/resumes#edit/{key}")
    await page.get_by_role("button", name="Remove job 1").click()
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator('[data-place="work.0.position"]')).to_have_value("Engineer")
    await page.get_by_label("What you are").fill("Director")
    await page.get_by_role("link", name="All documents").click()
    await expect(page.locator(".notice[role=alert]")).to_contain_text("not saved")
    await page.get_by_role("button", name="Save it and leave").click()
    await expect(page.locator("h1:visible")).to_have_text("You have 1 document.")
    await expect(page.locator(".documents .muted").first).to_contain_text("Version 2")


async def test_an_export_moves_and_is_fetched(
    site: Site, context: BrowserContext, worker: ChildProcess, files: str
) -> None:
    """E2, E8: the bar moves without a reload; the file is a PDF, its link was made by the click."""
    site.start(LIVEWELL_EXPORT_STORE=files)
    page = await enter_as(site, context, "ann")
    await keep(site, context, "For Acme")
    await page.reload()
    await page.get_by_role("button", name="Export For Acme").click()
    done = page.locator('.exports li[data-state="finished"]')
    await expect(done).to_have_count(1, timeout=RENDER_MS)
    await expect(done).to_contain_text("1 page")
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="Download For Acme.pdf").click()
    download = await waiting.value
    assert download.suggested_filename == "For Acme.pdf"
    assert (await download.path()).read_bytes().startswith(b"%PDF-")
    await page.get_by_role("button", name="Delete the file For Acme.pdf").click()
    await expect(page.locator('.exports li[data-state="deleted"]')).to_have_count(1)


async def test_a_batch_has_one_bar_and_one_zip(
    site: Site, context: BrowserContext, worker: ChildProcess, files: str
) -> None:
    """E3, E9: chosen together, fetched together."""
    site.start(LIVEWELL_EXPORT_STORE=files)
    page = await enter_as(site, context, "ann")
    for name in ("One", "Two", "Three"):
        await keep(site, context, name)
    await page.reload()
    for name in ("One", "Two", "Three"):
        await page.get_by_label(f"Choose {name}").check()
    await page.get_by_role("button", name="Export 3 together").click()
    await expect(page.locator(".batch header")).to_contain_text("3 of 3 ready", timeout=RENDER_MS)
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name="ZIP of all").click()
    assert (await (await waiting.value).path()).read_bytes().startswith(b"PK")


async def test_two_people_see_their_own_documents_only(
    site: Site, context: BrowserContext, browser: Browser, complaints: Complaints
) -> None:
    """E12: also when one opens the address of the other's."""
    site.start()
    await enter_as(site, context, "ann")
    key = await keep(site, context, "Ann's own")
    other = await browser.new_context()
    other.on("page", complaints.hear)
    page = await enter_as(site, other, "ben")
    await expect(page.locator("h1:visible")).to_have_text("You have no document yet.")
    complaints.network_expected = True
    await page.goto(f"{site.base}/resumes#edit/{key}")
    await expect(page.locator("h1:visible")).to_have_text("This document is not there, or it is not yours.")
    assert "Ann's own" not in await page.content()
    await other.close()


async def test_without_a_login_the_page_says_how_to_get_one(
    site: Site, context: BrowserContext, complaints: Complaints
) -> None:
    """And shows nothing else."""
    site.start()
    complaints.network_expected = True
    page = await context.new_page()
    await page.goto(f"{site.base}/resumes")
    await expect(page.locator("#banner-title")).to_contain_text("no login")
    await expect(page.locator("#banner-command code")).to_contain_text("livewell keys login")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_both_rooms_are_accessible_and_fit(site: Site, context: BrowserContext, scheme: Any) -> None:
    """axe-core finds nothing, nothing is wider than the screen, at 390 and at 1600 px."""
    site.start()
    page = await enter_as(site, context, "ann")
    await page.emulate_media(color_scheme=scheme)
    key = await keep(site, context, "A document with a rather long name that has to be wrapped on a telephone " * 2)
    wrong = []
    for size, place in product(SIZES, ("", f"#edit/{key}")):
        await page.set_viewport_size(size)  # type: ignore[arg-type] # a dict is what it takes
        await page.goto(f"{site.base}/resumes{place}")
        await page.reload()
        await expect(page.locator("h1:visible, .document-name:visible").first).to_be_visible()
        found = await Axe().run(page, options={"resultTypes": ["violations"]})
        if found.violations_count:
            wrong.append(f"{place} at {size['width']}: {found.generate_report()}")
        if not await page.evaluate(FITS):
            wrong.append(f"{place} is wider than {size['width']}")
    assert wrong == []


async def test_the_page_asks_nobody_but_its_own_server() -> None:
    """No address of another host is in its files."""
    folder = Path(__file__).parents[2] / "src" / "livewell" / "web" / "resumes"
    named = {found for path in folder.iterdir() for found in re.findall(r"https?://[^\s\"'`)]+", path.read_text())}
    assert named == set()
