"""Every act of the dashboard in a browser, by keyboard alone.

Each says what it did, has done it, and left its line in the audit. They are done in turns in a wide
light window and in a narrow dark one. An act that is added without a case here fails.
"""

from __future__ import annotations

import pytest
from playwright.async_api import BrowserContext, Error, Page

from livewell.queue.bulk_acts import BulkAction
from tests.browser.act_case import ACTS, UNFOLLOWED, ActCase, act_at, login_of, look, newest_line, send, wrong_lines
from tests.browser.act_cases import CASES, GIVEN
from tests.browser.conftest import Complaints, arrive, dress
from tests.browser.keyboard import NO_MOUSE
from tests.browser.other_cases import LEAVING
from tests.browser.site import Hand, Site
from tests.browser.test_dashboard_types import furnish_trouble


def test_every_act_has_a_case() -> None:
    """Whoever adds an act says how it is done in a browser, and what it leaves behind."""
    done = {act_at(case.to) for case in CASES}
    assert sorted(set(ACTS) - done) == []
    assert None not in done


@pytest.mark.asyncio(loop_scope="session")
async def test_every_act_is_done_by_keyboard(
    site: Site, hand: Hand, context: BrowserContext, complaints: Complaints
) -> None:
    """Words on the page, rows in the database, and a line in the audit for each."""
    furnish_trouble(hand)
    for statement in GIVEN.strip().split(";\n"):
        hand.rows(statement)
    site.start()
    await context.add_init_script(NO_MOUSE)
    await context.add_init_script(UNFOLLOWED)  # half of the work; test_dashboard_live.py acts on live pages
    page = await arrive(site, context)
    wrong: list[str] = []
    for place, case in enumerate(CASES):
        await dress(page, is_wide=place % 2 == 0)
        wrong += await faults(page, site, hand, case)
        if case in LEAVING:
            await page.close()
            page = await arrive(site, context)
    assert wrong == [], "\n".join(wrong)
    actions = hand.rows("SELECT DISTINCT action FROM livewell.bulk_act")
    assert {one for (one,) in actions} == set(BulkAction)


async def faults(page: Page, site: Site, hand: Hand, case: ActCase) -> list[str]:
    """What is wrong with one act."""
    if case.given:
        hand.rows(case.given)
    actor = f"key:{await login_of(page)}"
    after, before = newest_line(hand), look(hand, case.query)
    try:
        await send(page, site.base, case)
    except (AssertionError, Error) as error:
        return [f"{case}: {error}"]
    if case.then:
        hand.rows(case.then)
    found = look(hand, case.query)
    wrong = [f"it had {found!r} before, too"] if before == case.found else []
    wrong += [] if found == case.found else [f"it has {found!r}, not {case.found!r}"]
    wrong += wrong_lines(hand, after, actor, case.audit)
    return [f"{case}: {one}" for one in wrong]
