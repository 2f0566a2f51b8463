"""Alerts and warnings over HTTP, as an operator sees them."""

from __future__ import annotations

import pytest

from tests.support.http import Web

FIRED = (
    "SELECT livewell.observe_alerts('sky', 'P1', '10 minutes', ARRAY['roof', 'wall'], ARRAY['it falls', 'it leans'])"
)
TOLD = """
SELECT livewell.declare_channels('[{"name": "ops", "kind": "discord", "source": "env:OPS", "level": "P2", "repeats": false}]', 100);
SELECT livewell.settle_attempt(a.attempt_id, 'sent', 204, 'accepted') FROM livewell.begin_attempt('ops', 30) a;
"""
WARNED = (
    "SELECT livewell.warn('refresh', w || ': older', 'as an example') FROM unnest(ARRAY['quote', 'quote', "
    "'price']) AS w"
)


@pytest.fixture
async def fired(market: Web) -> Web:
    """Two alerts, one channel that was told of the first, three warnings."""
    for statement in (FIRED, *filter(str.strip, TOLD.split(";\n")), WARNED):
        market.rows(statement)
    return market


async def test_alerts_are_listed_in_pages_with_who_was_told(fired: Web) -> None:
    """What is wrong now, by number."""
    client = fired.as_key("operate")
    first = (await client.get("/v1/alerts?limit=1")).json()
    second = (await client.get("/v1/alerts", params={"limit": 1, "after": first["next"]})).json()

    found = first["items"] + second["items"]
    assert [(one["subject"], one["level"], one["state"]) for one in found] == [
        ("roof", "P1", "fired"),
        ("wall", "P1", "fired"),
    ]
    assert [(one["sent"], one["waiting"]) for one in found] == [(1, 0), (0, 1)]
    assert (await client.get("/v1/alerts?state=armed")).json()["items"] == []


async def test_one_alert_has_every_attempt(fired: Web) -> None:
    """And one that is not there is a 404."""
    client = fired.as_key("operate")
    number = (await client.get("/v1/alerts")).json()["items"][0]["id"]
    [firing] = (await client.get(f"/v1/alerts/{number}")).json()["firings_shown"]

    assert firing["told"][0]["channel"] == "ops"
    assert firing["told"][0]["tried"][0]["outcome"] == "sent"
    assert (await client.get("/v1/alerts/999999")).status_code == 404
    assert (await client.get("/v1/alerts/x")).status_code == 400


async def test_warnings_are_listed_with_their_type_and_rate(fired: Web) -> None:
    """In pages, and for one type alone."""
    client = fired.as_key("operate")
    first = (await client.get("/v1/warnings?limit=1")).json()
    second = (await client.get("/v1/warnings", params={"limit": 5, "after": first["next"]})).json()
    found = {one["what"]: one for one in first["items"] + second["items"]}

    assert (found["quote: older"]["n"], found["quote: older"]["type"]) == (2, "quote")
    assert found["price: older"]["n"] == 1
    assert found["quote: older"]["sample"] == "as an example"
    assert [one["what"] for one in (await client.get("/v1/warnings?type=quote")).json()["items"]] == ["quote: older"]
    assert (await client.get("/v1/warnings?hours=0")).status_code == 400
    assert (await client.get("/v1/warnings?after=%21")).status_code == 400


@pytest.mark.parametrize("path", ["/v1/alerts", "/v1/alerts/1", "/v1/warnings"])
async def test_they_are_for_operators(fired: Web, path: str) -> None:
    """Summaries and examples may hold what viewers must not see."""
    assert (await fired.as_key("view", "subscribe").get(path)).status_code == 403
    assert (await fired.client.get(path)).status_code == 401
