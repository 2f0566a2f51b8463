"""Two people act on the same thing at once: it is done once, the second is told, and the audit has both.

And forms whose thing is gone by the time that they are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Error, Page, expect

from tests.browser.act_case import UNFOLLOWED, ActCase, login_of, look, newest_line, reach
from tests.browser.act_cases import CASES, GIVEN
from tests.browser.conftest import Complaints, arrive
from tests.browser.site import Hand, Site
from tests.browser.test_dashboard_types import furnish_trouble

pytestmark = pytest.mark.asyncio(loop_scope="session")

_UNDONE = "nothing was done"
_GONE = "It is gone: nothing was done."
# What the second one is told, by address. Whoever sees a thing as it is by now is told that, too.
TOLD = {
    "/queues/mail/pause": "mail was paused already: nothing was changed.",
    "/queues/asleep/resume": "asleep was not paused: nothing was changed.",
    "/jobs/7001/cancel": _UNDONE,
    "/jobs/7002/retry": _UNDONE,
    "/dead/7101/redrive": _GONE,
    "/dead/7102/discard": _GONE,
    "/dead/7104/edit": "somebody else changed",
    "/acts": "is doing the same already, and no other was begun",
    "/work/pause": "0 queues are paused: what runs may end, nothing more is begun. 2 were so already.",
    "/acts/900/cancel": "had ended already: nothing was done.",
    "/types/quote/pause": "quote was paused already: nothing was changed.",
    "/types/end_of_day/resume": "end_of_day was neither paused nor parked: nothing was changed.",
    "/upstreams/fmp/pause": "fmp was paused already: nothing was changed.",
    "/upstreams/fmp/resume": "fmp was neither paused nor silent: nothing was changed.",
    "/upstreams/fmp/close": "was closed already",
    "/schedules/nightly/pause": "nightly was paused already: nothing was changed.",
    "/schedules/nightly/resume": "nightly was not paused: nothing was changed.",
    "/alerts/1/silence": "Nobody is told of this alert for 4 h, until",  # it is made longer
    "/alerts/unsilence": _GONE,
    "/alerts/channels/ops/test": "The last test of ops is not over yet.",
    "/access/keys/robot00001/revoke": "robot00001 could not be used any more: nothing was done.",
    "/access/logins/login00001/end": "login00001 could not be used any more: nothing was done.",
}
# What stands behind a form is deleted before it is sent.
GONE = {
    "/jobs/7001/cancel": "DELETE FROM livewell.job WHERE id = 7001",
    "/jobs/7002/retry": "DELETE FROM livewell.job WHERE id = 7002",
    "/jobs/7003/reveal": "DELETE FROM livewell.job WHERE id = 7003",
    "/dead/7101/redrive": "DELETE FROM livewell.dead_job WHERE id = 7101",
    "/dead/7102/discard": "DELETE FROM livewell.dead_job WHERE id = 7102",
    "/dead/7103/reveal": "DELETE FROM livewell.dead_job WHERE id = 7103",
    "/dead/7104/edit": "DELETE FROM livewell.dead_job WHERE id = 7104",
    "/queues/mail/pause": "DELETE FROM livewell.queue WHERE name = 'mail'",
    "/acts/900/cancel": "DELETE FROM livewell.bulk_act WHERE id = 900",
    "/schedules/nightly/run": "DELETE FROM livewell.schedule WHERE name = 'nightly'",
    "/alerts/1/silence": "DELETE FROM livewell.alert WHERE id = 1",
    "/alerts/channels/ops/test": "DELETE FROM livewell.alert_channel WHERE name = 'ops'",
}
_LINES = """
SELECT actor, concat_ws(' ', action, subject), answer, before, after, n FROM livewell.audit
WHERE id > %s AND action <> 'acts.end' ORDER BY id
"""
_NOTHING = {"false", "waiting", "was_closed", "ended"}  # answers of an act that leaves no number


@dataclass(frozen=True, slots=True)
class Stage:
    """A server, and two people who are logged in."""

    site: Site
    hand: Hand
    pages: tuple[Page, Page]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(site: Site, hand: Hand, context: BrowserContext, complaints: Complaints) -> AsyncIterator[Stage]:
    """Two browsers; their pages do not follow themselves, as those of a slow network."""
    complaints.network_expected = True
    furnish_trouble(hand)
    for statement in GIVEN.strip().split(";\n"):
        hand.rows(statement)
    site.start()
    assert context.browser is not None
    other = await context.browser.new_context()
    other.on("page", complaints.hear)
    for one in (context, other):
        await one.add_init_script(UNFOLLOWED)
    yield Stage(site, hand, (await arrive(site, context), await arrive(site, other)))
    await other.close()


async def both(stage: Stage, case: ActCase) -> list[str]:
    """What the two pages say, the one that did it first."""
    await asyncio.gather(*(reach(page, stage.site.base, case) for page in stage.pages))
    await asyncio.gather(*(page.keyboard.press("Enter") for page in stage.pages))
    told = [page.locator(".said, .notice, section[data-state=failed]:not([id])") for page in stage.pages]
    await asyncio.gather(*(expect(one.first).to_be_visible() for one in told))
    words = [" ".join((await page.locator("main").inner_text()).split()) for page in stage.pages]
    return sorted(words, key=lambda one: case.says not in one)


async def test_two_who_do_the_same_at_once_do_it_once(stage: Stage) -> None:
    """One is told that it is done, the other that it was; the audit has a line of each."""
    actors = {f"key:{await login_of(page)}" for page in stage.pages}
    assert len(actors) == 2
    hand, wrong, tried = stage.hand, list[str](), set[str]()
    for case in CASES:
        if case.given:
            hand.rows(case.given)
        if case.to not in TOLD or case.to in tried:
            continue
        tried.add(case.to)
        after = newest_line(hand)
        try:
            first, second = await both(stage, case)
        except (AssertionError, Error) as error:
            wrong.append(f"{case}: {error}")
            continue
        wrong += [] if case.says in first else [f"{case}: the first is told {first!r}"]
        wrong += [] if TOLD[case.to] in second else [f"{case}: the second is told {second!r}"]
        if case.then:
            hand.rows(case.then)
        if (found := look(hand, case.query)) != case.found:
            wrong.append(f"{case}: it has {found!r}, not {case.found!r}")
        changes = [line for line in hand.rows(_LINES, after) if has_changed(*line)]
        is_right = (
            len(changes) == (2 if case.to == "/alerts/1/silence" else 1) and {one[0] for one in changes} <= actors
        )
        wrong += [] if is_right else [f"{case}: the audit says {hand.rows(_LINES, after)}"]
    assert wrong == []
    assert tried == set(TOLD)


def has_changed(_who: str, what: str, answer: str, before: Any, after: Any, n: int | None) -> bool:
    """Whether a line of the audit says that something was changed."""
    if n is not None and not what.startswith("acts.cancel "):  # there it is what the act had done so far
        return n > 0
    return before != after if before is not None else answer not in _NOTHING


async def test_a_form_whose_thing_is_gone_says_so(stage: Stage) -> None:
    """Nothing is done, and the page leads back."""
    page, hand, wrong = stage.pages[0], stage.hand, list[str]()
    tried: set[str] = set()
    for case in CASES:
        if case.given:
            hand.rows(case.given)
        if case.to not in GONE or case.to in tried:
            continue
        tried.add(case.to)
        await reach(page, stage.site.base, case)
        hand.rows(GONE[case.to])
        await page.keyboard.press("Enter")
        try:
            await expect(page.locator("h1")).to_have_text(_GONE)
            await expect(page.get_by_role("link", name="Back to the page")).to_be_visible()
        except AssertionError as error:
            wrong.append(f"{case}: {error}")
    assert wrong == []
    assert tried == set(GONE)
