"""Ways back: where a person is led after a failure, and what is kept of what they typed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from livewell.capability import capabilities
from livewell.errors import DatabaseUnavailable
from livewell.server.dashboard import form
from livewell.server.dashboard.frame import Frame
from tests.support.http import Web

SECRET = "a" * 32
PARTS = {"{name}": "quote", "{id}": "7", "{key:path}": "AAPL"}
LETTER = """
INSERT INTO livewell.dead_job (id, queue, kind, reason, attempt, max_attempts, lost, lane, priority, created_at, died_at, payload)
VALUES (101, 'mail', 'welcome', 'attempts', 5, 5, 0, 1, 0, now(), now(), %s::jsonb)
"""
ACTS = [act for one in capabilities() for act in one.acts]


def sent(referer: str | None = None, **fields: str) -> dict[str, Any]:
    headers = {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"} | ({"Referer": referer} if referer else {})
    return {"data": {"token": form.token(SECRET), **fields}, "headers": headers}


def filled(path: str) -> str:
    for part, value in PARTS.items():
        path = path.replace(part, value)
    return path


def back(page: str) -> str:
    """The address of the first link of a failure."""
    found = re.search(r'<p><a href="([^"]*)">(?:Try again|Back to the page)</a>', page)
    assert found is not None, page
    return found[1].replace("&amp;", "&")


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.path)
def test_every_act_has_a_page_to_go_back_to(act: Any) -> None:
    """One that a view shows, whatever the act is on."""
    frame = Frame(capabilities())
    scope = {"method": "POST", "path": filled(act.path), "headers": [], "query_string": b""}
    assert frame.find(frame.back(scope).partition("?")[0]) is not None


@pytest.mark.parametrize(
    ("act", "page"),
    [
        ("/queues/quote/pause", "/work"),
        ("/jobs/7/cancel", "/work/jobs/7"),
        ("/types/quote/AAPL/ttl", "/types/quote/AAPL"),
        ("/types/quote/AAPL/ttl/clear", "/types/quote/AAPL"),
        ("/types/quote/pause", "/types/quote"),
        ("/alerts/channels/hook/test", "/alerts"),
        ("/upstreams/fmp/pause", "/limits"),
        ("/access/keys", "/access"),
    ],
)
async def test_a_stranger_who_acts_is_led_back_to_the_page_of_the_form(market: Web, act: str, page: str) -> None:
    """By the login: an address that only takes forms is no place to come back to."""
    answer = await market.client.post(act, **sent())
    assert (answer.status_code, answer.headers["location"]) == (303, f"/login?to={page.replace('/', '%2F')}")


async def test_a_stranger_who_looks_comes_back_to_the_same_address(market: Web) -> None:
    """With its query, and escapes as they were; what is too long is cut to the path."""
    answer = await market.client.get("/work/jobs?state=ready&queue=a%26b")
    assert answer.headers["location"] == "/login?to=%2Fwork%2Fjobs%3Fstate%3Dready%26queue%3Da%2526b"
    key = await market.client.get("/types/quote/A%2FB%3Fc")
    assert key.headers["location"] == "/login?to=%2Ftypes%2Fquote%2FA%252FB%253Fc"
    long = await market.client.get("/work/jobs", params={"queue": "x" * 3000})
    assert long.headers["location"] == "/login?to=%2Fwork%2Fjobs"


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/queues/quote/pause", "/work"),
        ("/types/quote/AAPL/ttl", "/types/quote/AAPL"),
        ("/types/quote/A%2FB/ttl", "/types/quote/A%2FB"),
        ("/upstreams/fmp/pause", "/limits"),
        ("/logout", "/"),
    ],
)
async def test_the_address_of_an_act_leads_to_its_page(market: Web, address: str, page: str) -> None:
    """Whoever loads it, by the address bar or by going back, finds a page and no key called ttl."""
    answer = await market.as_key("operate").get(address)
    assert (answer.status_code, answer.headers["location"]) == (303, page)


async def test_a_key_that_looks_like_an_act_has_its_page(market: Web) -> None:
    """A link escapes the slash of a key."""
    page = await market.as_key("operate").get("/types/quote/AAPL%2Fttl")
    assert page.status_code == 200
    assert "quote AAPL/ttl" in page.text


async def test_a_failed_act_leads_back_to_where_the_form_was(market: Web) -> None:
    """The page that the browser names, with its filter, if it is one of ours; else the page of the act."""
    operator = market.as_key("operate")
    host = str(operator.base_url).rstrip("/")
    for referer, page in (
        (f"{host}/work?name=ma", "/work?name=ma"),
        ("https://elsewhere.example/work", "/work"),
        (f"{host}/queues/nothing/pause", "/work"),
        (f"{host}/v1/queues", "/work"),
        (None, "/work"),
    ):
        answer = await operator.post("/queues/nothing/pause", **sent(referer))
        assert answer.status_code == 404
        assert back(answer.text) == page
    wrong = await operator.get("/dead?since=yesterday")
    assert back(wrong.text) == "/dead?since=yesterday"


async def test_pages_let_forms_say_where_they_were(market: Web) -> None:
    """The address goes to this server alone."""
    assert (await market.as_key("operate").get("/work")).headers["referrer-policy"] == "same-origin"
    assert (await market.client.get("/healthz")).headers["referrer-policy"] == "no-referrer"


async def test_an_act_without_a_connection_has_done_nothing(market: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was never sent, and that is said; after a statement was sent nothing is known."""
    operator = market.as_key("operate")

    class Busy:
        """A pool whose connections are all in use."""

        async def getconn(self) -> None:
            raise DatabaseUnavailable("no free connection within 1 s", was_sent=False)

    with monkeypatch.context() as patched:
        patched.setattr(market.state.pools.operate, "_pool", Busy())
        answer = await operator.post("/queues/mail/pause", **sent())
    assert answer.status_code == 503
    assert "<h1>Nothing was done.</h1>" in answer.text

    async def lost(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("the connection ended")

    with monkeypatch.context() as patched:
        patched.setattr("livewell.queue.admin.QueueAdmin.pause", lost)
        answer = await operator.post("/queues/mail/pause", **sent())
    assert answer.status_code == 503
    assert "Nothing is known of what was done." in answer.text


async def test_a_second_statement_without_a_connection_is_not_called_nothing(
    market: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one may have been the act."""
    market.rows("INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now()) ON CONFLICT DO NOTHING")
    operate = market.state.pools.operate

    async def then_none(self: Any, *_: object, **__: object) -> None:
        await operate.call("SELECT 1")
        raise DatabaseUnavailable("no free connection within 1 s", was_sent=False)

    monkeypatch.setattr("livewell.queue.admin.QueueAdmin.pause", then_none)
    answer = await market.as_key("operate").post("/queues/mail/pause", **sent())
    assert "Nothing is known of what was done." in answer.text


async def test_a_refused_edit_keeps_what_was_typed(market: Web) -> None:
    """The form comes back with its text and why it was refused; mended, it is saved."""
    operator = market.as_key("operate")
    market.rows(LETTER, '{"note": "a"}')
    was = re.search(r'name="was" value="(\w+)"', (await operator.get("/dead/101")).text)
    assert was is not None
    typed = '{"note": "an hour of <work>",}'
    answer = await operator.post("/dead/101/edit", **sent(was=was[1], payload=typed))
    assert answer.status_code == 400
    assert "Nothing was done." in answer.text
    assert "an hour of &lt;work&gt;" in answer.text
    assert f'name="was" value="{was[1]}"' in answer.text
    assert 'data-page="' not in answer.text, "a page without an address does not follow itself"
    mended = await operator.post("/dead/101/edit", **sent(was=was[1], payload=typed.replace(",}", "}")))
    assert (mended.status_code, mended.headers["location"]) == (303, "/dead/101")
    late = await operator.post("/dead/101/edit", **sent(was=was[1], payload='{"late": "text"}'))
    assert late.status_code == 400
    assert "somebody else changed" in late.text
    assert "{&#34;late&#34;: &#34;text&#34;}" in late.text


@pytest.mark.parametrize(("letter", "fits"), [("x", True), ("\u044f", False)])
async def test_a_payload_is_edited_in_a_form_only_if_the_form_can_be_sent(
    market: Web,
    letter: str,
    fits: bool,
) -> None:
    """What counts is its size as a form: a Cyrillic letter takes six bytes there."""
    payload = json.dumps({"notes": [letter * 10_000] * 5}, ensure_ascii=False)
    market.rows(LETTER, payload)
    operator = market.as_key("operate")
    page = (await operator.get("/dead/101")).text
    assert ("Edit the payload" in page) == fits
    if fits:
        inside = re.search(r'name="was" value="(\w+)"', page)
        assert inside is not None
        done = await operator.post("/dead/101/edit", **sent(was=inside[1], payload=payload))
        assert done.status_code == 303
    else:
        assert "livewell dead edit 101 --payload @FILE" in page
