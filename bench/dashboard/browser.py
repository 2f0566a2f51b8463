"""How soon the first page is usable in Chromium: its title is painted and its button to pause works.

A new browser context each time, so nothing is kept; the server has answered before.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time

from bench.dashboard.pages import dashboard
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.operations.lab import Lab

_LOADS = 9
CHROMIUM = os.environ.get("LIVEWELL_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def _measure(lab: Lab) -> Figures:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser

    took = []
    with dashboard(lab) as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(_LOADS + 1):
            context = browser.new_context(extra_http_headers={"Authorization": f"Bearer {running.key}"})
            page = context.new_page()
            began = time.perf_counter()
            page.goto(f"{running.base}/")
            page.get_by_role("button", name="Pause").wait_for()
            took.append(1000 * (time.perf_counter() - began))
            context.close()
        browser.close()
    return {"usable_ms": statistics.median(took[1:]), "slowest_ms": max(took[1:])}


def _missing() -> str | None:
    return None if CHROMIUM else "there is no Chromium (set LIVEWELL_TEST_CHROMIUM)"


LINES: tuple[Line[Lab], ...] = (
    Line(
        "browser",
        "the first page in Chromium, until it is usable",
        (Check("browser", "usable_ms", 1000.0, at_most=True),),
        lambda lab: [Contender("livewell", lambda: _measure(lab))],
        _missing,
    ),
)
