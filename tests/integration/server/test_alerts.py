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


async def test_a_rule_is_silenced_with_an_end_and_every_act_is_written_down(fired: Web) -> None:
    """Seven days at most; an unknown rule is a 404, and so is the end of a silence that is not in force."""
    client = fired.as_key("operate")
    said = await client.post("/v1/alerts/silences", json={"rule": "sky", "subject": "roof", "seconds": 3600})
    assert said.status_code == 200, said.text
    [silence] = (await client.get("/v1/alerts/silences")).json()["items"]
    assert (silence["rule"], silence["subject"], silence["until"]) == ("sky", "roof", said.json()["until"])
    assert silence["silenced_by"].startswith("key:")
    roof, wall = (await client.get("/v1/alerts")).json()["items"]
    assert (roof["silenced_until"], wall["silenced_until"]) == (said.json()["until"], None)

    assert (await client.delete("/v1/alerts/silences?rule=sky")).status_code == 404
    assert (await client.delete("/v1/alerts/silences?rule=sky&subject=roof")).status_code == 204
    assert (await client.get("/v1/alerts/silences")).json()["items"] == []
    assert (await client.post("/v1/alerts/silences", json={"rule": "none", "seconds": 60})).status_code == 404
    for body in ({"rule": "sky"}, {"rule": "sky", "seconds": 604801}, {"rule": "sky", "seconds": 0}, {"seconds": 9}):
        assert (await client.post("/v1/alerts/silences", json=body)).status_code == 400
    done = [row[0] for row in fired.rows("SELECT action FROM livewell.audit ORDER BY id")]
    assert done[:3] == ["alerts.silence", "alerts.unsilence", "alerts.unsilence"]


async def test_a_channel_is_tested_and_enabled(fired: Web) -> None:
    """A test is asked for once, and waits for a worker."""
    client = fired.as_key("operate")
    tests = [await client.post("/v1/alerts/channels/ops/test") for _ in range(2)]
    assert [(one.status_code, one.json()["answer"]) for one in tests] == [(202, "nobody"), (202, "waiting")]
    [channel] = (await client.get("/v1/alerts/channels")).json()["items"]
    assert (channel["name"], channel["test_state"]) == ("ops", "waiting")
    fired.rows("UPDATE livewell.alert_channel SET disabled_at = livewell.now()")
    assert (await client.post("/v1/alerts/channels/ops/test")).status_code == 400
    assert (await client.post("/v1/alerts/channels/ops/enable")).status_code == 204
    assert (await client.get("/v1/alerts/channels")).json()["items"][0]["disabled_at"] is None
    assert (await client.post("/v1/alerts/channels/nobody/test")).status_code == 404
    assert (await client.post("/v1/alerts/channels/%00/enable")).status_code == 404


async def test_what_is_over_is_listed(fired: Web) -> None:
    """The newest first."""
    fired.rows("UPDATE livewell.alert_firing SET ended_at = livewell.now()")
    client = fired.as_key("operate")
    first = (await client.get("/v1/alerts/firings?limit=1")).json()
    second = (await client.get("/v1/alerts/firings", params={"limit": 1, "after": first["next"]})).json()
    found = first["items"] + second["items"]
    assert [(one["subject"], one["sent"], one["waiting"]) for one in found] == [("wall", 0, 1), ("roof", 1, 0)]


@pytest.mark.parametrize("path", ["/v1/alerts", "/v1/alerts/1", "/v1/warnings"])
async def test_they_are_for_operators(fired: Web, path: str) -> None:
    """Summaries and examples may hold what viewers must not see."""
    assert (await fired.as_key("view", "subscribe").get(path)).status_code == 403
    assert (await fired.client.get(path)).status_code == 401
