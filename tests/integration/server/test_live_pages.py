"""Live pages over HTTP: what is sent on connecting, what is refused, and which key an address names."""

from __future__ import annotations

import re

import pytest

from livewell.capability import Capability, capabilities
from livewell.errors import DatabaseUnavailable
from livewell.server.dashboard import form
from livewell.server.dashboard.pages import overview
from livewell.server.dashboard.visit import Panel, Visit
from livewell.settings import Settings
from livewell.testing.sse_client import EventStream
from tests.integration.server.conftest import server_settings as quick
from tests.support.http import Web

SECRET = "a" * 32
COOKIE = {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}
plain_settings = quick


@pytest.fixture
def server_settings(plain_settings: Settings) -> Settings:
    """A client follows one page."""
    return plain_settings.model_copy(update={"user_pages_max": 1})


async def test_what_the_page_holds_is_not_sent_again(wire: Web) -> None:
    """The hashes of the page are those of the stream, though they were made by two requests."""
    key = wire.key("operate")
    html = (await wire.bearer(key.text).get("/access", headers=COOKIE)).text
    shown = dict(re.findall(r'<section class="panel[^"]*" id="([\w-]+)"[^>]* data-hash="([0-9a-f]{16})"', html))
    assert len(shown) >= 2
    assert len(set(shown.values())) == len(shown)

    path = f"/v1/pages/stream?page=/access&has={','.join(shown.values())}"
    async with await EventStream.open(wire.base, path, key=key.text, headers=COOKIE) as stream:
        heard = [await stream.next("seen", "panel") for _ in shown]
    assert {(name, document["id"]) for name, document in heard} == {("seen", panel) for panel in shown}


async def test_one_page_too_many_is_refused_with_what_mends_it(wire: Web) -> None:
    """429 and a problem document; the same page in a second tab is no page more."""
    key = wire.key("operate").text
    async with await EventStream.open(wire.base, "/v1/pages/stream?page=/audit", key=key) as first:
        assert first.status == 200
        async with await EventStream.open(wire.base, "/v1/pages/stream?page=/audit", key=key) as same:
            assert same.status == 200
        refused = await wire.bearer(key).get("/v1/pages/stream", params={"page": "/work"})
    assert refused.status_code == 429
    assert "retry-after" in refused.headers
    assert (refused.json()["type"], refused.json()["detail"]) == (
        "/problems/pages",
        "You follow 1 different pages; close or pause one of them.",
    )


async def test_two_pages_come_by_one_stream(wire: Web) -> None:
    """Each with its number; of each the panels that are shown are not sent again."""
    key = wire.key("operate").text
    html = (await wire.bearer(key).get("/audit", headers=COOKIE)).text
    [shown] = re.findall(r'id="audit"[^>]* data-hash="([0-9a-f]{16})"', html)
    path = f"/v1/pages/stream?page=/audit&has={shown}&page=/work&has="
    async with await EventStream.open(wire.base, path, key=key, headers=COOKIE) as stream:
        told = {(name, document["page"]) for name, document in [await stream.next("seen", "refused") for _ in range(2)]}
    assert told == {("seen", 0), ("refused", 1)}  # this client may follow one page


async def test_a_question_is_not_live(market: Web) -> None:
    """No stream, and the page does not ask for one."""
    operator = market.as_key("operate")
    asked = await operator.get("/acts/new?action=redrive", follow_redirects=True)
    assert "Is this what you mean?" in asked.text
    assert 'id="live"' not in asked.text
    assert 'id="live"' in (await operator.get("/acts")).text
    refused = await operator.get("/v1/pages/stream", params={"page": "/acts/new?action=redrive"})
    assert (refused.status_code, refused.json()["type"]) == (400, "/problems/not-live")


async def test_who_observes_counts_nothing(market: Web) -> None:
    """Up to 200,000 rows are counted for a question that only operators may answer."""
    assert (await market.as_key("observe").get("/acts/new?action=redrive")).status_code == 403


@pytest.mark.parametrize("has", ["x", "0" * 15, "0" * 16 + ",", ",".join(["0" * 16] * 65)])
async def test_what_is_no_hash_is_refused(market: Web, has: str) -> None:
    """Bounded, too."""
    refused = await market.as_key("operate").get("/v1/pages/stream", params={"page": "/audit", "has": has})
    assert (refused.status_code, refused.json()["field"]) == (400, "query.has.0")


async def test_a_question_mark_in_a_key_is_part_of_the_key(market: Web) -> None:
    """The page of A?B is shown, follows itself, is led back to after a login, and its act is for A?B.

    With request.url.path it was the key A%3FB.
    """
    market.rows("UPDATE livewell.data_type SET key_pattern = '[A-Z?#]+' WHERE name = 'quote'")
    operator = market.as_key("operate", "view")
    address = "/types/quote/A%3FB%23C"
    shown = await operator.get(address)
    assert shown.status_code == 200
    assert "A?B#C" in shown.text
    assert "A%3FB%23C is" not in shown.text
    assert f'data-page="{address}"' in shown.text
    assert (await market.client.get(address)).headers[
        "location"
    ] == f"/login?to={address.replace('%', '%25').replace('/', '%2F')}"

    fields = {"token": form.token(SECRET), "ttl": "5m"}
    done = await operator.post(f"{address}/ttl", data=fields, headers=COOKIE)
    assert done.status_code == 303, done.text
    assert market.rows("SELECT subject FROM livewell.audit WHERE action ~ 'ttl'") == [("quote A?B#C",)]


async def test_one_capability_that_fails_leaves_the_first_page(market: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """One panel has failed: of a capability that raises, and of one that cannot be imported."""
    broken = Capability("broken", overview=f"{__name__}:raises")
    absent = Capability("absent", overview="livewell.nothing_of_that_name:panels")
    monkeypatch.setattr(overview, "capabilities", lambda: (*capabilities(), broken, absent))
    page = await market.as_key("operate").get("/")
    assert page.status_code == 200
    assert page.text.count('data-state="failed"') == 2
    assert "the beacons do not answer" in page.text
    assert 'id="overview-absent" data-state="failed"' in page.text
    assert 'id="types" data-state="data"' in page.text


async def raises(_: Visit) -> list[Panel]:
    """An overview that cannot be made."""
    raise DatabaseUnavailable("the beacons do not answer")
