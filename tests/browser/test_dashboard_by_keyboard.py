"""The keyboard alone reaches everything: Tab visits each control of each page, in order, and can be seen."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page

from tests.browser.act_case import ACTS, UNFOLLOWED, act_at
from tests.browser.conftest import Complaints, enter
from tests.browser.site import Hand, Site
from tests.browser.test_dashboard_every_page import NARROW, WIDE, everything, stage

# Opens every question and every row, names each control, and notes where the focus goes and how it looks there.
WATCH = """() => {
    for (const one of document.querySelectorAll("details")) one.open = true;
    const native = "a[href], button, input, select, textarea, summary";
    const all = [...document.querySelectorAll(`${native}, [tabindex="0"]`)];
    const controls = all.filter((one) => !one.disabled && one.type !== "hidden" && one.checkVisibility());
    const name = (one) => {
        const words = one.ariaLabel || one.name || one.textContent.trim().slice(0, 40);
        return `${controls.indexOf(one)} ${one.localName} ${words}`;
    };
    window.visited = [];
    window.unseen = [];
    addEventListener("focusin", ({ target }) => {
        if (!controls.includes(target)) return; // a box that scrolls: the browser adds it by itself
        window.visited.push(name(target));
        const { outlineStyle, outlineWidth } = getComputedStyle(target);
        const { left, right, top, bottom } = target.getBoundingClientRect();
        const isOutlined = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
        const isThere = right > left && bottom > top && right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
        if (!isOutlined || !isThere) window.unseen.push(name(target));
    });
    return controls.map(name);
}"""
ALSO_MAX = 20  # boxes that scroll


async def tab_through(page: Page) -> list[str]:
    """What is wrong with the way of the focus through this page, from its begin to its end and round again."""
    expected: list[str] = await page.evaluate(WATCH)
    for _ in range(len(expected) + ALSO_MAX):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement === document.body"):
            break
    found: dict[str, Any] = await page.evaluate("({ visited, unseen })")
    visited: list[str] = found["visited"][: len(expected)]
    wrong = [f"the focus cannot be seen on {one}" for one in sorted(set(found["unseen"]))]
    if visited != expected:
        missed = [one for one in expected if one not in visited]
        wrong.append(f"Tab does not reach {missed}" if missed else f"Tab goes another way: {visited}")
    return wrong


@pytest.mark.asyncio(loop_scope="session")
async def test_tab_reaches_every_control_of_every_page(
    site: Site, hand: Hand, context: BrowserContext, complaints: Complaints
) -> None:
    """In the order of the document, with a focus that can be seen, and out again at the end.

    Each form on the way goes to an act, which test_dashboard_every_act.py sends. Seen failing with a
    tabindex of -1 on one link, and with `outline: none` for buttons.
    """
    stage(hand)
    site.start()
    page = await enter(site, context)
    await page.add_init_script(UNFOLLOWED)  # what is painted again would change what is counted
    wrong: list[str] = []
    sent: set[str] = set()
    for place, path in enumerate(everything()):
        size = WIDE if place % 2 else NARROW
        await page.set_viewport_size(size)
        await page.goto(site.base + path)
        forms = await page.locator('form[method="post"]').evaluate_all(
            "(all) => all.map((one) => one.getAttribute('action'))"
        )
        sent |= set(forms) if path != "/ui" else set()
        wrong += [f"{path} at {size['width']}: {one}" for one in await tab_through(page)]
    wrong += [f"a form goes to {to}, which is no act" for to in sent if act_at(to) is None]
    assert wrong == []
    assert len({act_at(to) for to in sent}) > len(ACTS) / 2, "the pages have their forms"
