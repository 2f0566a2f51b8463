"""The way of the focus through a page: Tab visits each control, in order, and can be seen; each has a name of its own."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page

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
# What each control that acts is called, and what it does: two of one name that do different things cannot be told
# apart by a person who does not see in which row they are.
NAMED = """() => {
    const sent = (form) => [...new FormData(form)].filter(([name]) => name !== "token").map(String).sort().join("&");
    const does = (one) => {
        const form = one.form ?? one.parentElement.querySelector("form");
        if (one.href) return one.href;
        if (one.matches("[data-copy]")) return one.previousElementSibling.textContent;
        return form ? `${form.getAttribute("action")} ${sent(form)}` : one.id;
    };
    const named = {};
    for (const one of document.querySelectorAll("button, .confirm > summary, .acts a, a.button")) {
        const name = (one.ariaLabel || one.textContent).trim().replace(/\\s+/g, " ");
        (named[name] ??= new Set()).add(does(one));
    }
    return Object.entries(named).filter(([, several]) => several.size > 1).map(([name]) => name);
}"""


async def tab_through(page: Page) -> list[str]:
    """What is wrong with the way of the focus through this page, from its begin to its end and round again."""
    expected: list[str] = await page.evaluate(WATCH)
    for _ in expected:
        await page.keyboard.press("Tab")
    for _ in range(ALSO_MAX + 1):
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


async def names(page: Page) -> list[str]:
    """What is wrong with the names of controls that act."""
    return [f"several are called {one!r}" for one in await page.evaluate(NAMED)]


async def forms(page: Page) -> set[str]:
    """Where the forms of a page go that change something."""
    found = page.locator('form[method="post"]')
    return set(await found.evaluate_all("(all) => all.map((one) => one.getAttribute('action'))"))
