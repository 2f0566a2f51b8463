"""The dashboard: who may see it, who may act, and what it says when something is wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest

from livewell.capability import capabilities
from livewell.errors import DatabaseUnavailable
from livewell.server.dashboard import form
from livewell.server.dashboard.rendering import pretty, sparkline
from tests.support.http import Web

NAVIGATION = [view.path for one in capabilities() for view in one.views if view.nav]
ACTS = [act.path for one in capabilities() for act in one.acts]
PARTS = {"{name}": "quote", "{id}": "1", "{key:path}": "AAPL"}
SECRET = "a" * 32
HOSTILE = '<script>alert(1)</script>"\u202e'


def _filled(path: str) -> str:
    for part, value in PARTS.items():
        path = path.replace(part, value)
    return path


def _form(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


@pytest.mark.parametrize("path", NAVIGATION)
async def test_every_page_is_there_for_an_operator(market: Web, path: str) -> None:
    """With its question as the title, all of its panels read, and nothing that a policy would refuse."""
    answer = await market.as_key("operate", "view").get(path)
    assert answer.status_code == 200, answer.text
    assert 'data-state="failed"' not in answer.text
    assert 'aria-current="page"' in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", answer.text)


async def test_pages_of_one_thing(market: Web) -> None:
    """A type, a key, a schedule; what is not there is 404."""
    operator = market.as_key("operate", "view")
    assert "The type quote" in (await operator.get("/types/quote")).text
    assert "is fresh" in (await operator.get("/types/quote/AAPL")).text
    looked = await operator.get("/types/quote?key=A%2FB")
    assert (looked.status_code, looked.headers["location"]) == (303, "/types/quote/A%2FB")
    assert (await operator.get("/types/nothing")).status_code == 404
    assert (await operator.get("/work/jobs/12345")).status_code == 404
    assert (await operator.get("/work/jobs/x")).status_code == 404


async def test_strangers_are_led_to_the_login(web: Web) -> None:
    """With the page that they asked for."""
    answer = await web.client.get("/work")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?to=%2Fwork")


@pytest.mark.parametrize("path", NAVIGATION)
async def test_who_may_only_view_sees_no_page(web: Web, path: str) -> None:
    """Payloads and errors may hold anything."""
    assert (await web.as_key("view", "subscribe").get(path)).status_code == 403


@pytest.mark.parametrize("path", ACTS)
async def test_nobody_acts_without_the_scope_or_the_form(market: Web, path: str) -> None:
    """403 without operate, with a wrong token, and without one; and nothing is written down as done."""
    before = market.rows("SELECT count(*) FROM livewell.audit")
    assert (await market.as_key("view", "subscribe").post(_filled(path), **_form())).status_code == 403
    operator = market.as_key("operate", "view")
    for fields in ({"other": "1"}, {"token": "wrong"}):
        answer = await operator.post(_filled(path), data=fields, headers={"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"})
        assert answer.status_code == 403
    assert (await market.client.post(_filled(path), **_form())).status_code == 303
    assert market.rows("SELECT count(*) FROM livewell.audit") == before


async def test_pausing_a_type_is_done_said_and_written_down(market: Web) -> None:
    """By whom, in the audit page too."""
    key = market.key("operate", "view")
    operator = market.bearer(key.text)
    done = await operator.post("/types/quote/pause", **_form())
    assert done.status_code == 303
    shown = await operator.get(done.headers["location"])
    assert "quote is paused: nothing of it is fetched" in shown.text
    assert market.rows("SELECT paused_at IS NOT NULL FROM livewell.data_type WHERE name = 'quote'") == [(True,)]
    [(actor, origin, action, before, after)] = market.rows(
        "SELECT actor, origin, action, before, after FROM livewell.audit WHERE action = 'types.pause'"
    )
    assert (actor, origin) == (f"key:{key.id}", "page 127.0.0.1")
    assert (before, after) == ({"paused": False}, {"paused": True})
    assert action in (await operator.get("/audit")).text


async def test_what_strangers_wrote_is_shown_as_text(market: Web) -> None:
    """Markup in a key is text; what changes the direction of a line is replaced."""
    page = await market.as_key("operate", "view").get(f"/types/quote/{HOSTILE.replace('/', '%2F')}")
    assert "<script>alert" not in page.text
    assert "\u202e" not in page.text


async def test_a_database_that_does_not_answer_is_failed_and_not_empty(
    market: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A panel that never had data says failed; one that had some says since when it is stale."""
    operator = market.as_key("operate", "view")

    async def away(*_: object) -> None:
        raise DatabaseUnavailable("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr("livewell.server.state_sampler.read_state", away)
        page = await operator.get("/")
        assert page.text.count('data-state="failed"') == 7
        assert "the database is away" in page.text
    market.state.looks.sampler._tried_at = float("-inf")
    assert 'data-state="failed"' not in (await operator.get("/")).text
    monkeypatch.setattr("livewell.server.state_sampler.read_state", away)
    market.state.looks.sampler._tried_at = float("-inf")
    page = await operator.get("/")
    assert 'data-state="stale"' in page.text
    assert "Stale: the database is away" in page.text


def test_numbers_keep_every_digit() -> None:
    """64-bit ids and long decimals, as they were written."""
    text = '{"id": 9223372036854775807, "price": 0.10000000000000000001, "text": "1"}'
    assert pretty(text) == '{\n  "id": 9223372036854775807,\n  "price": 0.10000000000000000001,\n  "text": "1"\n}'
    assert pretty("not json") == "not json"


def test_a_gap_of_a_line_stays_a_gap() -> None:
    """Two pens for two pieces, and no line of one point."""
    assert str(sparkline([1, 2, None, 3, 4])).count("M") == 2
    assert str(sparkline([1, None])) == ""
