"""livewell.js as anybody's page uses it: from another origin, in several tabs, hidden, refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, expect

from livewell.refresh.reasons import Reason
from livewell.testing.processes import eventually_async
from livewell.web import CLIENT
from tests.browser.conftest import Complaints
from tests.browser.site import Hand, Site, elsewhere

GUIDE = Path(__file__).parents[2] / "docs/howto/own_front_end.md"
pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>test</title><body><script type="module">
import * as livewell from "{base}/livewell.js";
window.livewell = livewell;
window.lw = livewell.connect({{ key: "{key}", hiddenSeconds: 0.3, silenceSeconds: {silence}, lingerSeconds: 0.1 }});
window.seen = {{}};
window.stops = {{}};
window.see = (type, key, name = key) => void (window.stops[name] = lw.watch(type, key, (reading) => (window.seen[name] = reading)));
lw.onState((state) => (document.title = state));
</script>"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder of pages, and the origin that serves it."""
    with elsewhere(tmp_path) as origin:
        yield tmp_path, origin


async def opened(context: BrowserContext, folder: tuple[Path, str], site: Site, key: str, silence: int = 45) -> Page:
    (folder[0] / "index.html").write_text(PAGE.format(base=site.base, key=key, silence=silence))
    page = await context.new_page()
    await page.goto(folder[1])
    await page.wait_for_function("'see' in window")
    return page


async def price(page: Page, name: str, wanted: float, *, seconds: float = 15) -> None:
    """Wait until this page has seen it."""
    await page.wait_for_function(
        "([name, wanted]) => seen[name]?.value?.price === wanted", arg=[name, wanted], timeout=seconds * 1000
    )


async def hide(page: Page, state: str) -> None:
    """What a browser does when its tab goes to the back; a headless one never does it by itself."""
    await page.evaluate(
        """state => { Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
           document.dispatchEvent(new Event("visibilitychange")); }""",
        state,
    )


async def test_a_page_of_another_origin_that_is_allowed(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str]
) -> None:
    """It loads the module, subscribes with a public key, and gets what changes."""
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key())
    await page.evaluate("see('quote', 'AAPL')")
    await price(page, "AAPL", 231.4)
    hand.put("quote", "AAPL", price=99)
    await price(page, "AAPL", 99)
    assert await page.evaluate("livewell.words(seen.AAPL)") == "Fresh: checked 0 s ago."
    await expect(page).to_have_title("live")


async def test_a_page_of_another_origin_that_is_not_allowed(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str], complaints: Complaints
) -> None:
    """A good key does not help: the browser asks, and the server says no."""
    complaints.also_expected = ("CORS", "net::ERR_FAILED")
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS="https://somebody.example")
    page = await opened(context, folder, site, site.key())
    await page.evaluate("see('quote', 'AAPL')")
    await expect(page).to_have_title("offline")
    assert await page.evaluate("lw.problem") == "The server cannot be reached."
    assert await page.evaluate("seen.AAPL") is None
    assert hand.sessions() == 0
    assert any("CORS" in said for said in complaints)


async def test_the_guide_works_when_copied(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str], complaints: Complaints
) -> None:
    """docs/howto/own_front_end.md, with its key and its two addresses put in.

    Nothing else is changed.
    """
    [example] = re.findall(r"^```html\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS=folder[1])
    example = example.replace("http://127.0.0.1:8484", site.base).replace("lw_YOUR_KEY", site.key(types=["quote"]))
    (folder[0] / "index.html").write_text(example)
    complaints.network_expected = True  # the browser asks for a favicon
    page = await context.new_page()
    await page.goto(folder[1])
    await expect(page.locator("#price")).to_have_text("231.4")
    await expect(page.locator("#words")).to_contain_text("Fresh: checked")
    await expect(page.locator("#state")).to_have_text("live")
    hand.put("quote", "AAPL", price=300.25)
    await expect(page.locator("#price")).to_have_text("300.25")


async def test_a_hidden_tab_costs_nothing_and_converges_when_shown(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str]
) -> None:
    """Its session is closed, so nobody refreshes for it.

    Shown again it has what changed meanwhile.
    """
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key())
    await page.evaluate("see('quote', 'AAPL')")
    await price(page, "AAPL", 231.4)
    await hide(page, "hidden")
    await eventually_async(lambda: hand.sessions() == 0, timeout=10, what="the session to be closed")
    hand.put("quote", "AAPL", price=77)
    await hide(page, "visible")
    await price(page, "AAPL", 77)


async def test_a_tab_that_is_hidden_for_a_moment_keeps_its_session(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str]
) -> None:
    """Switching to and fro does not open and close."""
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key())
    await page.evaluate("see('quote', 'AAPL')")
    await price(page, "AAPL", 231.4)
    before = hand.rows("SELECT id FROM livewell.viewer_session")
    await hide(page, "hidden")
    await hide(page, "visible")
    await page.wait_for_timeout(800)
    assert hand.rows("SELECT id FROM livewell.viewer_session") == before


async def test_tabs_share_one_stream_and_outlive_the_one_that_leads(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str]
) -> None:
    """One session for all; what a tab wanted ends with it.

    Another tab leads on when the first is closed.
    """
    for symbol in ("AAPL", "MSFT", "TSLA"):
        hand.put("quote", symbol)
    site.start(LIVEWELL_ORIGINS=folder[1])
    key = site.key()
    first = await opened(context, folder, site, key)
    await first.evaluate("see('quote', 'AAPL')")
    await price(first, "AAPL", 231.4)
    second = await opened(context, folder, site, key)
    third = await opened(context, folder, site, key)
    await second.evaluate("see('quote', 'AAPL'); see('quote', 'MSFT')")
    await third.evaluate("see('quote', 'TSLA')")
    await price(second, "MSFT", 231.4)
    await price(third, "TSLA", 231.4)
    assert hand.sessions() == 1
    await expect(second).to_have_title("live")
    hand.put("quote", "AAPL", price=55)
    await price(first, "AAPL", 55)
    await price(second, "AAPL", 55)

    await third.close()
    await eventually_async(
        lambda: hand.rows("SELECT DISTINCT key FROM livewell.subscription ORDER BY key") == [("AAPL",), ("MSFT",)],
        timeout=10,
        what="the closed tab's key to be let go of",
    )
    await first.close()
    hand.put("quote", "MSFT", price=66)
    await price(second, "MSFT", 66)
    await eventually_async(lambda: hand.sessions() == 1, timeout=10, what="one session")


async def test_watchers_of_one_key_are_counted(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str]
) -> None:
    """One subscription for three; the last one to stop ends it, and to stop twice is nothing."""
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key())
    await page.evaluate("see('quote', 'AAPL', 'a'); see('quote', 'AAPL', 'b')")
    await price(page, "a", 231.4)
    await page.evaluate("see('quote', 'AAPL', 'c')")  # later: told at once what is known
    await price(page, "c", 231.4)
    assert hand.subscriptions("quote") == 1
    await page.evaluate("stops.a(); stops.a(); stops.c()")
    hand.put("quote", "AAPL", price=12)
    await price(page, "b", 12)
    assert await page.evaluate("[seen.a.value.price, seen.c.value.price]") == [231.4, 231.4]
    await page.evaluate("stops.b()")
    await eventually_async(lambda: hand.subscriptions("quote") == 0, timeout=10, what="the subscription to end")


async def test_a_listener_that_throws_does_not_deafen_the_others(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str], complaints: Complaints
) -> None:
    """Its error is reported, as any error of a page."""
    complaints.also_expected = ("mine",)
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key())
    await page.evaluate("lw.watch('quote', 'AAPL', () => { throw new Error('mine') }); see('quote', 'AAPL')")
    await price(page, "AAPL", 231.4)
    assert any("mine" in said for said in complaints)


async def test_one_key_that_cannot_be_asked_for_does_not_stop_the_others(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str], complaints: Complaints
) -> None:
    """Unknown types, impossible keys and types that are not for this key of ours are each told apart."""
    complaints.network_expected = True  # the longest key is refused with 400
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key(types=["quote", "nothing"]))
    await page.evaluate(
        """see("quote", "AAPL"); see("nothing", "AAPL", "type"); see("quote", "a b", "pattern"); see("quote", "A".repeat(5000), "long");
           see("quote", "", "empty"); see("profile", "AAPL", "scope")"""
    )
    await price(page, "AAPL", 231.4)
    await page.wait_for_function("seen.type && seen.pattern && seen.long && seen.empty && seen.scope")
    answers: dict[str, Any] = await page.evaluate(
        "Object.fromEntries(Object.entries(seen).map(([name, one]) => [name, one.answer]))"
    )
    assert answers == {
        "AAPL": None,
        "type": "unknown_type",
        "pattern": "bad_key",
        "long": "bad_key",
        "empty": "bad_key",
        "scope": "forbidden",
    }
    assert await page.evaluate("livewell.words(seen.scope)") == "You may not see this."


async def test_a_key_beyond_the_share_is_capped_until_there_is_room(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str]
) -> None:
    """H6.

    The stream goes on, the page is told, and the key is watched when another one is let go.
    """
    hand.put("quote", "AAPL")
    hand.put("quote", "MSFT")
    site.start(LIVEWELL_ORIGINS=folder[1], LIVEWELL_CLIENT_KEYS_MAX="1")
    page = await opened(context, folder, site, site.key())
    await page.evaluate("see('quote', 'AAPL')")
    await price(page, "AAPL", 231.4)
    await page.evaluate("see('quote', 'MSFT')")
    await page.wait_for_function("seen.MSFT?.answer === 'capped'")
    said = await page.evaluate("livewell.words(seen.MSFT)")
    hand.put("quote", "AAPL", price=7)
    await price(page, "AAPL", 7)
    await page.evaluate("stops.AAPL()")
    await price(page, "MSFT", 231.4)

    assert said == "As much is watched from here as may be; this has to wait."
    assert await page.evaluate("[seen.MSFT.answer, lw.state]") == [None, "live"]


@pytest.mark.parametrize("scopes", [("view",), None])
async def test_a_key_that_may_not_subscribe_is_refused_for_good(
    site: Site,
    context: BrowserContext,
    folder: tuple[Path, str],
    complaints: Complaints,
    scopes: tuple[str, ...] | None,
) -> None:
    """It is said, and not asked again and again."""
    complaints.network_expected = True
    site.start(LIVEWELL_ORIGINS=folder[1])
    key = site.key(*scopes) if scopes else "lw_aaaaaaaaaaaaaaaa_" + "b" * 32
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url) if "/v1/" in request.url else None)
    page = await opened(context, folder, site, key)
    await expect(page).to_have_title("refused")
    await page.wait_for_timeout(1_500)
    assert len(asked) == 1


async def test_a_silent_server_is_left_and_tried_again(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str], complaints: Complaints
) -> None:
    """A stream without a beat is dead, whatever TCP thinks of it."""
    complaints.network_expected = True
    hand.put("quote", "AAPL")
    site.start_process(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key(), silence=3)
    await page.evaluate("see('quote', 'AAPL')")
    await price(page, "AAPL", 231.4)
    site.freeze()
    await expect(page).to_have_title("offline")
    site.thaw()
    hand.put("quote", "AAPL", price=5)
    await price(page, "AAPL", 5, seconds=40)


async def test_every_reason_has_words(site: Site, context: BrowserContext, folder: tuple[Path, str]) -> None:
    """The closed list of the engine, and what the module says of it.

    No word is left that no reason has.
    """
    source = (CLIENT / "livewell.js").read_text()
    table = source.split("const REASONS = {")[1].split("};")[0]
    told = {word for words in re.findall(r'": "([a-z0-9_ ]+)",', table) for word in words.split()}
    assert told == {reason.value for reason in Reason}
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key())
    said: list[str] = await page.evaluate(
        """() => { const at = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();
          const reading = { value: {}, checked_at: at(130), source_at: at(7300), reason: null };
          const verdicts = ["fresh", "stale", "lagging", "unverifiable", "missing"];
          return [...verdicts.map((verdict) => livewell.words({ ...reading, verdict })),
                  livewell.words({ ...reading, verdict: "missing", checked_at: null, value: null }),
                  livewell.words({ ...reading, verdict: "failing", reason: "deadline" }),
                  livewell.words({ ...reading, verdict: "failing", reason: "deadline", value: null })] }"""
    )
    assert said == [
        "Fresh: checked 2 min ago.",
        "Last checked 2 min ago, and due again.",
        "The source is late: checked 2 min ago, but its own time is 2 h ago.",
        "Checked 2 min ago; the source does not say how old it is.",
        "The source knows nothing of this (asked 2 min ago).",
        "Not fetched yet.",
        "The source did not answer in time; this value was confirmed 2 min ago.",
        "The source did not answer in time; there is no value yet.",
    ]


async def test_numbers_beyond_fifteen_digits_arrive_whole_as_strings(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str]
) -> None:
    """R30: connect({ numbers: "string" }) gives all 38 digits and the zero at the end.

    JavaScript's own numbers round, and the module says so.
    """
    exact = "1234567.0123456789012345678901234567890"
    hand.put("quote", "AAPL")
    hand.rows(f"UPDATE livewell_data.quote SET price = {exact}")
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await opened(context, folder, site, site.key())
    await page.evaluate(
        """key => { const exact = livewell.connect({ key, numbers: "string" });
           exact.watch("quote", "AAPL", (reading) => (seen.exact = reading)); see("quote", "AAPL"); }""",
        site.key(),
    )
    await page.wait_for_function("seen.exact?.value && seen.AAPL?.value")

    assert await page.evaluate("seen.exact.value.price") == exact
    assert await page.evaluate("seen.AAPL.value.price === Number(seen.exact.value.price)")
    assert await page.evaluate("seen.exact.version") == 1


async def test_a_reading_turns_by_clocks_that_cannot_be_fooled(
    site: Site, hand: Hand, context: BrowserContext, folder: tuple[Path, str]
) -> None:
    """R22: a wall clock that is an hour wrong makes nothing older or younger.

    One that went on while the machine slept, and performance.now() did not, turns the verdict.

    Seen failing with an age by the wall clock (an hour too old), and with performance.now() alone
    (the sleep turned nothing).
    """
    hand.put("quote", "AAPL")
    site.start(LIVEWELL_ORIGINS=folder[1])
    page = await context.new_page()
    await page.add_init_script("const now = Date.now; window.shift = 3600e3; Date.now = () => now() + window.shift;")
    (folder[0] / "index.html").write_text(PAGE.format(base=site.base, key=site.key(), silence=45))
    await page.goto(folder[1])
    await page.wait_for_function("'see' in window")
    await page.evaluate("see('quote', 'AAPL')")
    await price(page, "AAPL", 231.4)
    awake = await page.evaluate("[seen.AAPL.verdict, livewell.age(seen.AAPL) < 30, livewell.words(seen.AAPL)]")
    await page.evaluate("window.shift += 600e3")  # ten minutes of sleep
    await page.wait_for_function("seen.AAPL.turned", timeout=5000)
    asleep = await page.evaluate("[seen.AAPL.verdict, livewell.age(seen.AAPL) >= 600, seen.AAPL.value.price]")

    assert awake[:2] == ["fresh", True]
    assert awake[2].startswith("Fresh: checked ")
    assert asleep == ["stale", True, 231.4]
