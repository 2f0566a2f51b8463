"""What is wrong with a page as it is now: for axe-core, and for a reader under whom it has moved."""

from __future__ import annotations

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

SHIFT_MAX = 0.05
_AXE = {"resultTypes": ["violations"]}
_SHIFT = """() => new Promise((done) => {
    let sum = 0;
    new PerformanceObserver((list) => { for (const one of list.getEntries()) sum += one.value; })
        .observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 50);
})"""


async def violations(page: Page) -> list[str]:
    """What axe-core finds."""
    found = await Axe().run(page, options=_AXE)
    return [found.generate_report()] if found.violations_count else []


async def moved(page: Page) -> list[str]:
    """Whether it has moved by itself since it was loaded, and how far."""
    far = float(await page.evaluate(_SHIFT))
    return [f"moved by {far:.2f}"] if far > SHIFT_MAX else []


async def faults(page: Page) -> list[str]:
    """All of it."""
    return [*await violations(page), *await moved(page)]
