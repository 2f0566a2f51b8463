"""F-F8: markup in everything that a source, an upstream's error or a visitor can write, before a real browser.

The oracle is the browser: dialogs, a mark that any of the scripts would leave, elements that came
out of texts, requests to anywhere else, violations of the page's policy. The policy alone would
stop most of it, so elements are counted as well: nothing of it may even become an element.

Can it fail? Yes: with insertAdjacentHTML instead of text in element.js the very first text
disappears into a script element, and the run fails.
"""

from __future__ import annotations

import json
from contextlib import ExitStack

from playwright.async_api import Page, async_playwright

from livewell.settings import Settings
from tests.browser.site import CHROMIUM, Hand, Site, furnish
from tests.faults.fleet import open_fleet
from tests.faults.scenario import Findings, Scale
from tests.support.http import addresses, logins

CODE = "F-F8"
TITLE = "Markup in keys, values and errors"

_MARK = "window.pwned=1"
HOSTILE = [
    f"<script>{_MARK}</script>",
    f'<img src=x onerror="{_MARK}">',
    f"<svg onload={_MARK}>",
    f'"><script>{_MARK}</script>',
    f"'-{_MARK}-'",
    f"javascript:{_MARK}",
    f'<iframe srcdoc="<script>parent.{_MARK}</script>"></iframe>',
    f"<details open ontoggle={_MARK}>x</details>",
    "<style>body{display:none}</style>",
    '<base href="https://evil.example/">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    '<form action="https://evil.example/"><button>Log in</button></form>',
    "{{constructor.constructor('window.pwned=1')()}}",
    "${window.pwned=1}",
    "</title></textarea></script>",
    "&lt;b&gt;&#x3c;b&#x3e;",
    "__proto__",
    "constructor",
    "\u202egnp.exe",
    "<a href=//evil.example>free</a>",
]
_FIELDS = 7  # of a symbol that hold texts: name, exchange, company, sector, industry, description, chief
_FOREIGN = "main img, main script, main iframe, main style, main base, main meta, main form:not(#add), main a"


async def run(scale: Scale) -> Findings:
    """Every text in every place, a page for each."""
    findings = Findings()
    if CHROMIUM is None:
        findings.skipped = "there is no Chromium on this machine"
        return findings
    async with open_fleet(scale) as fleet, async_playwright() as playwright:
        with ExitStack() as stack:
            hand = Hand(fleet.dsn)
            stack.callback(hand.close)
            await furnish(fleet.dsn, Settings(database_url=fleet.dsn))  # type: ignore[arg-type] # pydantic makes it a secret
            made = stack.enter_context(logins(fleet.dsn))
            site = Site(fleet.dsn, addresses(fleet.dsn, made), hand)
            stack.callback(site.close)
            site.start()
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await browser.new_page()
            complaints = _listen(page, site.base)
            await page.goto(site.link())
            await page.get_by_role("button", name="Log in").click()
            await page.wait_for_url(f"{site.base}/")
            for text in HOSTILE[: scale.pick(8, len(HOSTILE))]:
                findings.fired += await _show(page, site, text, findings)
            findings.check(not complaints, f"the browser complained: {complaints[:5]}")
            findings.figures = {"texts": findings.fired, "places": _FIELDS + 3, "alerts_fired": len(complaints)}
            await browser.close()
    return findings


def _listen(page: Page, base: str) -> list[str]:
    heard: list[str] = []
    page.on("console", lambda said: heard.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: heard.append(dialog.message))
    page.on("request", lambda request: None if request.url.startswith(base) else heard.append(request.url))
    return heard


async def _show(page: Page, site: Site, text: str, findings: Findings) -> int:
    """One text everywhere at once; answers 1 if the page has shown it as the text that it is."""
    site.hand.put_all("AAPL")
    site.hand.put("quote", "AAPL", name=text, exchange=text[:50])
    told = dict.fromkeys(("company_name", "sector", "industry", "description", "ceo"), text)
    site.hand.put("profile", "AAPL", **told)
    site.hand.fail("cash_flow_statement", "AAPL", text, text)
    stored = json.dumps([{"symbol": symbol, "closed": [text]} for symbol in ("AAPL", text)])
    await page.evaluate("stored => localStorage.setItem('livewell.market', stored)", stored)
    await page.reload()
    prose = page.locator(".prose").first
    await prose.wait_for()
    shown = await prose.text_content() == text
    findings.check(shown, f"{text}: shown as {await prose.text_content()!r}")
    await page.locator(".symbol").nth(1).locator(".nothing").first.wait_for()
    findings.check(await page.locator(".symbol h2").nth(1).text_content() == text, f"{text}: not shown as a key")
    findings.check(await page.evaluate("window.pwned") is None, f"{text}: a script has run")
    findings.check(await page.locator(_FOREIGN).count() == 0, f"{text}: an element came out of it")
    findings.check(page.url == f"{site.base}/", f"{text}: led away to {page.url}")
    return int(shown)
