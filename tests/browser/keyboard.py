"""A person without a mouse: Tab, Shift+Tab, Enter, Space and letters, and nothing else.

What has the focus is never set by a script. A control is found as a screen reader tells of it, by its
role and its name, and it is the only one of that name.
"""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

# Counts what a mouse or a finger would do, on every page from now on.
NO_MOUSE = """
for (const name of ["mousedown", "pointerdown", "touchstart"])
    addEventListener(name, ({ isTrusted }) => { if (isTrusted) console.error("a mouse was used"); }, true);
"""
# How many times Tab is pressed from the focus to this control; less than 0: Shift+Tab. From the begin of the page
# if nothing has the focus.
_STEPS = """(one) => {
    const native = "a[href], button, input, select, textarea, summary";
    const all = [...document.querySelectorAll(`${native}, [tabindex="0"]`)];
    const controls = all.filter((each) => !each.disabled && each.type !== "hidden" && each.checkVisibility());
    return controls.indexOf(one) - controls.indexOf(document.activeElement);
}"""
_IS_IN_MAIN = "(one) => document.activeElement === document.body && document.getElementById('main')?.contains(one)"
_IS_FOCUSED = "(one) => one === document.activeElement"
_ROUNDS_MAX = 12  # each is off by the boxes that scroll, which the browser adds by itself


async def tab_to(page: Page, control: Locator) -> None:
    """Until this control has the focus; over the navigation with the link for that."""
    await expect(control).to_have_count(1)
    await control.wait_for(state="visible")
    if await control.evaluate(_IS_IN_MAIN):
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the page", exact=True)).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
    for _ in range(_ROUNDS_MAX):
        if await control.evaluate(_IS_FOCUSED):
            return
        steps: int = await control.evaluate(_STEPS)
        for _ in range(abs(steps)):
            await page.keyboard.press("Tab" if steps > 0 else "Shift+Tab")
    raise AssertionError(f"Tab does not reach {control}")


async def follow(page: Page, name: str) -> None:
    """Go where the link of this name leads."""
    await tab_to(page, page.get_by_role("link", name=name, exact=True))
    async with page.expect_navigation():
        await page.keyboard.press("Enter")


async def fill(page: Page, name: str, text: str) -> None:
    """Write into the field of this name, or choose in it by the first letters."""
    fields = page.get_by_role("textbox", name=name).or_(page.get_by_role("combobox", name=name))
    await tab_to(page, fields)
    await page.keyboard.press("Control+A")
    await page.keyboard.type(text)


async def to_button(page: Page, name: str) -> None:
    """To the button of this name; if it is behind a question, that is opened first."""
    button = page.get_by_role("button", name=name, exact=True)
    if not await button.count():
        await unfold(page, f"{name}…")
    await tab_to(page, button)


async def unfold(page: Page, name: str) -> None:
    """Open what is below this name. Chromium gives a summary a role of its own, which no standard has."""
    named = page.locator(f'summary[aria-label="{name}"]')
    await tab_to(
        page,
        named.or_(
            page.locator("summary:not([aria-label])").filter(has_text=re.compile(f"^\\s*{re.escape(name)}\\s*$"))
        ),
    )
    await page.keyboard.press("Space")
