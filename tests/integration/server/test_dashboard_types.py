"""The pages of types, one type and one key: what they show, and what each act does, says and leaves in the audit."""

from __future__ import annotations

import re
from typing import Any

import pytest

from livewell.refresh.registry.keys import Refreshed
from livewell.server.dashboard import form
from livewell.server.dashboard.pages.key import refreshed_words, value_table
from livewell.server.dashboard.pages.type import definition_words
from tests.support.http import Web

SECRET = "a" * 32
AUDIT = "SELECT action, subject, arguments, answer FROM livewell.audit ORDER BY id"

KEYS = """
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, fetched_at, checked_at, source_at, status_at, due_at)
SELECT 'quote', 'K' || lpad(n::text, 5, '0'), 'fmp', 1, 1, now(), now(), now(), now(), now() + interval '1 minute' FROM generate_series(1, %s) n
"""
FAIL = """
UPDATE livewell.ledger SET failing_since = now(), failures = 3, reason = %s, error = 'it said no', checked_at = now() - interval '1 day',
    retry_at = now() + interval '1 hour', due_at = now() WHERE data_type = 'quote' AND key = %s
"""


def _form(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


def _panel(page: str, panel: str) -> str:
    found = re.search(rf'<section[^>]* id="{panel}".*?</section>', page, re.S)
    assert found is not None, page
    return found[0]


async def _done(web: Web, path: str, **fields: str) -> str:
    """Do it as an operator; the page after it."""
    operator = web.as_key("operate", "view")
    done = await operator.post(path, **_form(**fields))
    assert done.status_code == 303, done.text
    page = await operator.get(done.headers["location"])
    assert 'data-state="failed"' not in page.text
    return page.text


async def test_keys_are_listed_by_verdict_page_by_page(market: Web) -> None:
    """Each verdict by its link; the next page goes on after the last key."""
    market.rows(KEYS, 60)
    market.rows(FAIL, "status", "K00055")
    operator = market.as_key("operate", "view")
    first = _panel((await operator.get("/types/quote?show=fresh")).text, "keys")
    assert ('K00001"' in first, "K00050" in first, "K00051" in first) == (True, True, False)
    second = _panel((await operator.get("/types/quote?show=fresh&after=K00050")).text, "keys")
    assert ("K00051" in second, "K00055" in second, "Next page" in second) == (True, False, False)
    failing = _panel((await operator.get("/types/quote?show=failing")).text, "keys")
    assert ("K00055" in failing, "K00054" in failing) == (True, False)
    parked = _panel((await operator.get("/types/quote?show=parked")).text, "keys")
    assert ("AAPL" in parked, "K00001" in parked) == (True, False)


async def test_failures_are_counted_by_reason_with_an_example(market: Web) -> None:
    """In words, with what the source said, and a key to look at."""
    market.rows(KEYS, 3)
    market.rows(FAIL, "status", "K00001")
    market.rows(FAIL, "deadline", "K00002")
    panel = _panel((await market.as_key("operate", "view").get("/types/quote")).text, "failing")
    assert "The source did not answer in time" in panel
    assert "it said no" in panel
    assert "/types/quote/K00002" in panel


async def test_the_most_watched_keys_are_counted_and_nobody_is_named(market: Web) -> None:
    """How many look, and no session and no user."""
    market.rows(KEYS, 2)
    market.rows(
        "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) "
        "SELECT gen_random_uuid(), now(), now(), 'somebody-' || n FROM generate_series(1, 7) n"
    )
    market.rows(
        "INSERT INTO livewell.subscription (session_id, data_type, key, user_id) "
        "SELECT id, 'quote', 'K00002', user_id FROM livewell.viewer_session"
    )
    page = (await market.as_key("operate", "view").get("/types/quote?show=watched")).text
    assert re.search(r'K00002</a></th>\s*<td class="n">7</td>', page)
    assert "somebody-" not in page
    assert "K00001" not in _panel(page, "keys")


async def test_the_day_of_a_type_is_drawn_from_its_counts(market: Web) -> None:
    """Refreshes that brought something, those that did not, and bytes."""
    market.rows(
        "INSERT INTO livewell.refresh_count VALUES "
        "(date_trunc('hour', now(), 'UTC'), 'quote', 'stored', 12, 1000, 3000), "
        "(date_trunc('hour', now(), 'UTC'), 'quote', 'status', 2, 10, 20), "
        "(date_trunc('hour', now(), 'UTC') - interval '30 hours', 'quote', 'stored', 99, 1, 1)"
    )
    panel = _panel((await market.as_key("operate", "view").get("/types/quote")).text, "day")
    points = panel.replace("&#34;", '"')
    assert '"done": [0, 0, 0' in points
    assert "12]" in points
    assert "3020]" in points
    drawn = re.sub(r'"at": \[[^]]*\]|<time.*?</time>|data-hash="[^"]*"', "", points)
    assert "99" not in drawn


async def test_calls_and_bytes_of_each_type_are_those_of_24_hours(market: Web) -> None:
    """From the hourly counts, in the units of the budget; what is older, or of another type, is not in them.

    Hours of a release that did not count calls are no zero.
    """
    market.rows(
        "INSERT INTO livewell.refresh_count SELECT date_trunc('hour', now(), 'UTC') - h * interval '1 hour', t, o, "
        "50, 1000, 3000, calls FROM (VALUES (0, 'quote', 'stored', 3), (23, 'quote', 'status', 4), "
        "(24, 'quote', 'stored', 100), (0, 'profile', 'stored', NULL)) g (h, t, o, calls)"
    )
    operator = market.as_key("operate", "view")

    listed = _panel((await operator.get("/types")).text, "types")
    assert _figures(listed, "quote")[-4:-2] == ["7", "6 kB"]
    assert _figures(listed, "profile")[-4:-2] == ["–", "3 kB"]
    one = (await operator.get("/types/quote")).text
    assert re.search(r"Spent, last 24 h</dt>\s*<dd>6 kB <small>in 7 calls</small>", _panel(one, "type"))
    assert '"calls": [4, 0' in _panel(one, "day").replace("&#34;", '"')


def _figures(panel: str, name: str) -> list[str]:
    """The cells of a row of the list of types."""
    row = next(found for found in re.findall(r"<tr>.*?</tr>", panel, re.S) if f'href="/types/{name}"' in found)
    return [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row, re.S)]


async def test_a_parked_type_says_why_and_is_resumed(market: Web) -> None:
    """By the page, and in the audit."""
    market.rows(
        "UPDATE livewell.data_type SET parked_reason = 'entitlement_type: not in your plan' WHERE name = 'quote'"
    )
    operator = market.as_key("operate", "view")
    assert "not in your plan" in (await operator.get("/types/quote")).text
    assert "Resume the parked type" in (await operator.get("/types/quote")).text
    page = await _done(market, "/types/quote/resume")
    assert "quote is fetched again." in page
    assert market.rows("SELECT parked_reason FROM livewell.data_type WHERE name = 'quote'") == [(None,)]
    assert market.rows(AUDIT) == [("types.resume", "quote", {}, "true")]


async def test_a_ttl_of_its_own_is_set_and_taken_away(market: Web) -> None:
    """Each is said, and written down with what was before."""
    page = await _done(market, "/types/quote/AAPL/ttl", ttl="5m")
    assert "quote AAPL is fresh for 5 min after each check" in page
    assert "TTL: 5 min, of its own" in page
    page = await _done(market, "/types/quote/AAPL/ttl/clear")
    assert "has the TTL of its type again" in page
    [(action, before, after), (cleared, was, _)] = market.rows(
        "SELECT action, before, after FROM livewell.audit WHERE subject = 'quote AAPL' ORDER BY id"
    )
    assert (action, before["own"], after) == ("types.set_ttl", False, {"ttl_seconds": 300.0, "own": True})
    assert (cleared, was) == ("types.clear_ttl", {"ttl_seconds": 300, "own": True})


@pytest.mark.parametrize("wish", ["", "soon", "-1", "0", "500d", "1e999"])
async def test_a_ttl_that_makes_no_sense_is_refused(market: Web, wish: str) -> None:
    """With what is allowed; nothing is changed and nothing written down."""
    answer = await market.as_key("operate", "view").post("/types/quote/AAPL/ttl", **_form(ttl=wish))
    assert answer.status_code == 400
    assert "Nothing was done." in answer.text
    assert market.rows("SELECT count(*) FROM livewell.audit") == [(0,)]


async def test_a_refresh_is_asked_for_and_written_down_in_one_transaction(market: Web) -> None:
    """It is a job for the workers, whatever the age of the value."""
    page = await _done(market, "/types/quote/AAPL/refresh")
    assert "quote AAPL: a refresh is queued." in page
    [(action, subject, _, answer)] = market.rows(AUDIT)
    assert (action, subject, answer) == ("types.refresh", "quote AAPL", "queued")
    assert market.rows("SELECT n FROM livewell.audit") == [(1,)]
    assert market.rows("SELECT unique_key FROM livewell.job") == [("quote:AAPL",)]


async def test_a_refresh_of_a_paused_type_says_what_stands_in_the_way(market: Web) -> None:
    """Nothing is queued."""
    market.rows("UPDATE livewell.data_type SET paused_at = now() WHERE name = 'quote'")
    assert "is paused: nothing is fetched" in await _done(market, "/types/quote/AAPL/refresh")
    assert market.rows("SELECT count(*) FROM livewell.job") == [(0,)]


@pytest.mark.parametrize("act", ["refresh", "ttl"])
async def test_a_key_that_cannot_be_is_refused(market: Web, act: str) -> None:
    """400, in words."""
    answer = await market.as_key("operate", "view").post(f"/types/quote/no such key!/{act}", **_form(ttl="5m"))
    assert answer.status_code == 400
    assert "does not fit" in answer.text
    assert market.rows("SELECT count(*) FROM livewell.ledger") == [(1,)]


async def test_a_stale_key_says_why_and_links_the_next_step(market: Web) -> None:
    """The reason in words, and where it is mended."""
    market.rows("UPDATE livewell.ledger SET checked_at = now() - interval '1 day'")
    market.rows("UPDATE livewell.upstream SET paused_at = now()")
    page = (await market.as_key("operate", "view").get("/types/quote/AAPL")).text
    assert "It is stale, and everything from its upstream is paused since" in page
    assert '<a href="/limits">Resume the upstream</a>' in page


async def test_the_value_and_its_times_are_shown(market: Web) -> None:
    """Every digit of it."""
    market.rows("UPDATE livewell_data.quote SET price = 231.4000000000000000001")
    page = (await market.as_key("operate", "view").get("/types/quote/AAPL")).text
    assert "231.4000000000000000001" in _panel(page, "value")
    for word in ("Source", "Fetched", "Checked", "Fresh until"):
        assert f"<b>{word}</b>" in _panel(page, "times")


async def test_a_key_that_nobody_asked_for_is_empty_and_not_an_error(market: Web) -> None:
    """It says what to do."""
    page = (await market.as_key("operate", "view").get("/types/quote/MSFT")).text
    assert "Nobody ever asked for it" in page
    assert 'data-state="failed"' not in page
    assert "Refresh now asks for it" in page


def test_a_value_keeps_its_digits_and_shows_the_last_row_first() -> None:
    """Numbers as they are stored, JSON inside a column too; an empty cell is none."""
    columns = [
        {"name": "key", "type": "text"},
        {"name": "day", "type": "date"},
        {"name": "volume", "type": "bigint"},
        {"name": "more", "type": "jsonb"},
    ]
    text = '[{"day": "2026-01-01", "volume": 9223372036854775807, "more": {"a": 1.10}}, {"day": "2026-01-02", "volume": null, "more": null}]'
    table = value_table(text, columns)
    assert table.columns == ("day", "volume", "more")
    assert table.rows == (("2026-01-02", None, None), ("2026-01-01", "9223372036854775807", '{"a": 1.10}'))


def test_every_answer_to_a_refresh_has_words() -> None:
    """No name of ours is shown in place of a sentence."""
    for demand in ("queued", "waiting", "due", "none", "missing", "backed_off", "paused", "parked"):
        assert " " in refreshed_words(Refreshed(demand, None, None, None))
    for throttled in ("budget", "breaker", "upstream", "probe"):
        assert " " in refreshed_words(Refreshed("throttled", None, throttled, None))


async def test_a_definition_is_told_in_words(market: Web) -> None:
    """Without a name of a column of ours."""
    page = (await market.as_key("operate", "view").get("/types/quote")).text
    assert "when the last check is older than the TTL" in _panel(page, "definition")
    assert not re.search(r"ttl_seconds|rows_kind|keys_max|max_source_age", page)
    assert definition_words.__doc__
