"""Types over HTTP: seen by whoever may read them, changed by operators."""

from __future__ import annotations

from typing import Any

import pytest

from livewell.server.answers.json_answer import cursor
from tests.support.http import Web


async def test_types_are_listed_in_pages_and_only_those_that_may_be_read(market: Web) -> None:
    """Keyset cursors; a type without the right to it is not there."""
    client = market.as_key()
    first = (await client.get("/v1/types?limit=2")).json()
    second = (await client.get("/v1/types", params={"limit": 2, "after": first["next"]})).json()
    some = (await market.as_key(types=["quote"]).get("/v1/types")).json()

    assert [row["name"] for row in first["items"] + second["items"]] == ["profile", "quote", "secret_quote"]
    assert second["next"] is None
    assert [row["name"] for row in some["items"]] == ["quote"]
    assert (await client.get("/v1/types/quote")).json()["key_pattern"] == "[A-Z0-9.^=-]{1,20}"


@pytest.mark.parametrize("name", ["secret_quote", "nothing", "Quote", "%00", "a'b", "x" * 190])
async def test_a_type_that_is_not_there_and_one_that_may_not_be_read_are_one_answer(market: Web, name: str) -> None:
    """On every route of types."""
    client, operator = market.as_key("view", types=["quote"]), market.as_key("operate")
    paths = [f"/v1/types/{name}", f"/v1/types/{name}/universe", f"/v1/types/{name}/ttl/AAPL"]
    random = await client.get("/v1/types/nosuchtype")

    for path in paths:
        answer = await client.get(path)
        assert (answer.status_code, answer.content) == (404, random.content)
    for answer in (
        ()
        if name == "secret_quote"
        else (
            await operator.patch(f"/v1/types/{name}", json={"paused": True}),
            await operator.put(f"/v1/types/{name}/universe", json={"add": ["A"]}),
            await operator.put(f"/v1/types/{name}/ttl/AAPL", json={"ttl": "5m"}),
            await operator.delete(f"/v1/types/{name}/ttl/AAPL"),
        )
    ):
        assert (answer.status_code, answer.content) == (404, random.content)
    assert market.rows("SELECT count(*) FROM livewell.data_type WHERE paused_at IS NOT NULL") == [(0,)]


async def test_an_operator_changes_ttl_schedule_and_pause(market: Web) -> None:
    """At once; keys that are watched get their new time."""
    client = market.as_key("view", "operate")
    market.rows("UPDATE livewell.ledger SET due_at = now() + interval '1 minute'")

    answer = await client.patch(
        "/v1/types/quote",
        json={"ttl": "1h", "strategy": "scheduled", "cron": "0 2 * * *", "zone": "UTC", "paused": True},
    )

    body = answer.json()
    assert answer.status_code == 200
    assert (body["ttl_seconds"], body["strategy"], body["cron"], body["paused"]) == (
        3600,
        "scheduled",
        "0 2 * * *",
        True,
    )
    assert market.rows("SELECT due_at > now() + interval '50 minutes' FROM livewell.ledger") == [(True,)]
    back = (await client.patch("/v1/types/quote", json={"strategy": "on_demand", "paused": False})).json()
    assert (back["strategy"], back["cron"], back["paused"], back["ttl_seconds"]) == ("on_demand", None, False, 3600)


@pytest.mark.parametrize(
    "change",
    [{"ttl": "0s"}, {"ttl": -1}, {"ttl": 0}, {"ttl": "401d"}, {"ttl": "soon"}, {"ttl": 1e300}, {"ttl": True}, {"strategy": "never"}, {"strategy": "scheduled"}, {"cron": "0 2 * * *"}, {"strategy": "scheduled", "cron": "x", "zone": "UTC"}, {"strategy": "scheduled", "cron": "0 2 * * *", "zone": "../etc"}, {"strategy": "scheduled", "cron": "0 2 30 2 *", "zone": "UTC"}, {"other": 1}, [], "x"],
)  # fmt: skip
async def test_a_wrong_change_changes_nothing(market: Web, change: Any) -> None:
    """400, and the type is as it was."""
    answer = await market.as_key("operate").patch("/v1/types/quote", json=change)

    assert answer.status_code == 400
    assert market.rows("SELECT ttl::text, strategy FROM livewell.data_type WHERE name = 'quote'") == [
        ("00:01:00", "on_demand")
    ]


async def test_a_key_gets_and_loses_its_own_ttl(market: Web) -> None:
    """R2 over HTTP."""
    client = market.as_key("view", "operate")

    assert (await client.get("/v1/types/quote/ttl/AAPL")).json() == {"ttl_seconds": 60, "own": False}
    assert (await client.put("/v1/types/quote/ttl/AAPL", json={"ttl": "5m"})).json() == {
        "ttl_seconds": 300,
        "own": True,
    }
    assert (await client.get("/v1/types/quote/ttl/AAPL")).json() == {"ttl_seconds": 300, "own": True}
    assert (await client.delete("/v1/types/quote/ttl/AAPL")).status_code == 204
    assert (await client.get("/v1/types/quote/ttl/AAPL")).json() == {"ttl_seconds": 60, "own": False}


async def test_the_universe_is_filled_and_read(market: Web) -> None:
    """R19 over HTTP."""
    client = market.as_key("view", "operate")

    assert (await client.put("/v1/types/quote/universe", json={"add": ["A", "B", "C"]})).json() == {
        "added": 3,
        "removed": 0,
    }
    assert (await client.put("/v1/types/quote/universe", json={"remove": ["B", "Z"]})).json() == {
        "added": 0,
        "removed": 1,
    }
    assert [row["key"] for row in (await client.get("/v1/types/quote/universe")).json()["items"]] == ["A", "C"]
    assert (await client.put("/v1/types/quote/universe", json={"add": ["lower"]})).status_code == 400


# Job 64 does not exist, and AAPL has no time to live of its own: who may ask is told so.
OPERATORS = [
    ("PATCH", "/v1/types/quote", {}, 200),
    ("PUT", "/v1/types/quote/ttl/AAPL", {"ttl": "5m"}, 200),
    ("DELETE", "/v1/types/quote/ttl/AAPL", None, 204),
    ("PUT", "/v1/types/quote/universe", {"add": ["A"]}, 200),
    ("GET", "/v1/upstreams", None, 200),
    ("GET", "/v1/queues", None, 200),
    ("POST", "/v1/queues/refresh.fmp/pause", None, 204),
    ("POST", "/v1/queues/refresh.fmp/resume", None, 204),
    ("GET", "/v1/jobs", None, 200),
    ("GET", "/v1/jobs/64", None, 404),
    ("GET", "/v1/jobs/64/why", None, 404),
    ("POST", "/v1/jobs/64/cancel", None, 404),
    ("POST", "/v1/jobs/64/retry", None, 404),
    ("GET", "/v1/dead", None, 200),
    ("POST", "/v1/dead/redrive", {"all": True}, 200),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), OPERATORS)
async def test_operators_routes_are_for_operators(market: Web, method: str, path: str, body: Any, status: int) -> None:
    """Neither nobody nor a viewer nor an exporter."""
    assert (await market.client.request(method, path, json=body)).status_code == 401
    for scopes in (("view", "subscribe"), ("export",), ("admin",)):
        assert (await market.as_key(*scopes).request(method, path, json=body)).status_code == 403
    assert (await market.as_key("operate").request(method, path, json=body)).status_code == status


async def test_upstreams_show_limits_and_no_secret(market: Web) -> None:
    """Names of credentials, never what they stand for."""
    [fmp] = (await market.as_key("operate").get("/v1/upstreams")).json()["items"]

    assert (fmp["name"], fmp["paused"]) == ("fmp", False)


BY_NAME = ("/v1/types", "/v1/queues", "/v1/types/quote/universe")
BY_NUMBER = ("/v1/jobs", "/v1/dead")


@pytest.mark.parametrize("after", ["x", "!!!!", "AA", "gA", "7" * 700, "w6TDtg\x00"])
async def test_a_cursor_that_is_not_ours_is_refused(market: Web, after: str) -> None:
    """By every list; never a mistake of the server."""
    client = market.as_key("view", "operate")
    for path in (*BY_NAME, *BY_NUMBER):
        assert (await client.get(path, params={"after": after})).status_code == 400


async def test_a_cursor_of_names_is_refused_by_a_list_of_numbers(market: Web) -> None:
    """And leads to a page where names are."""
    client = market.as_key("view", "operate")
    after = {"after": cursor("name")}

    assert [(await client.get(path, params=after)).status_code for path in BY_NAME] == [200] * len(BY_NAME)
    assert [(await client.get(path, params=after)).status_code for path in BY_NUMBER] == [400] * len(BY_NUMBER)
