"""What a problem document says: what was given, and what would be right."""

from __future__ import annotations

import pytest

from tests.support.http import Web


@pytest.mark.parametrize(
    ("path", "detail", "field", "allowed"),
    [
        ("jobs?limit=1000", '"1000" is not allowed as limit.', "query.limit", "at most 100"),
        ("jobs?limit=0", '"0" is not allowed as limit.', "query.limit", "at least 1"),
        ("jobs?limit=many", '"many" is not allowed as limit.', "query.limit", "a whole number"),
        ("jobs?state=lost", '"lost" is not allowed as state.', "query.state", "'delayed', 'held', 'ready', 'running', 'succeeded', 'cancelled' or 'failed'"),
        ("jobs/abc", '"abc" is not allowed as id.', "path.id", "a whole number"),
        ("jobs?queue=" + "q" * 201, "This is not allowed as queue.", "query.queue", "at most 200 characters"),
        ("data/quote/AAPL?max_age=soon", '"soon" is not allowed as max_age.', "query.max_age", '0 to 400 days, as "30s", "5m", "2h", "1d" or a number of seconds'),
        ("data/quote/AAPL?wait=1h", '"1h" is not allowed as wait.', "query.wait", '0 to 30 seconds, as "250ms", "2s", "30s" or a number of seconds'),
    ],
)  # fmt: skip
async def test_a_wrong_value_is_repeated_beside_what_is_allowed(
    web: Web, path: str, detail: str, field: str, allowed: str
) -> None:
    """In plain words; a long one is not repeated, for it may be a secret."""
    answer = await web.as_key("view", "operate").get(f"/v1/{path}")

    told = answer.json()
    assert (answer.status_code, told["detail"], told["field"], told["allowed"]) == (400, detail, field, allowed)


@pytest.mark.parametrize(
    ("body", "detail", "field"),
    [
        ({}, "token is missing.", "body.token"),
        ({"token": "x", "tokn": "s3cret"}, "tokn is not known here.", "body.tokn"),
        ({"token": ["s3cret"]}, "This is not allowed as token.", "body.token"),
        ({"token": "s3cret" * 40}, "This is not allowed as token.", "body.token"),
    ],
)
async def test_what_stood_in_a_body_is_not_repeated(web: Web, body: dict[str, object], detail: str, field: str) -> None:
    """It may be a secret."""
    answer = await web.client.post("/v1/login", json=body)

    assert (answer.status_code, answer.json()["detail"], answer.json()["field"]) == (400, detail, field)
    assert "s3cret" not in answer.text


@pytest.mark.parametrize(
    ("path", "detail", "allowed"),
    [
        ("data/quote/AAPL?maxage=1s", '"maxage" is not known here.', "max_age, numbers, wait"),
        ("data/quote/AAPL?max_age=1s&" + "x" * 30 + "=1", "A parameter is not known here.", "max_age, numbers, wait"),
        ("types/quote?fresh=1", '"fresh" is not known here.', "no parameters"),
    ],
)
async def test_a_parameter_that_nobody_knows_is_refused(web: Web, path: str, detail: str, allowed: str) -> None:
    """Not ignored: the caller believes to have been heard."""
    answer = await web.as_key("view", "operate").get(f"/v1/{path}")

    told = answer.json()
    assert (answer.status_code, told["detail"], told["field"], told["allowed"]) == (400, detail, "query", allowed)


async def test_pages_and_health_may_be_called_with_anything(web: Web) -> None:
    """Links are passed around with marks of others in them."""
    assert [(await web.client_with({}).get(path)).status_code for path in ("/market?utm=1", "/healthz?x=1")] == [
        200,
        200,
    ]


async def test_a_wrong_method_is_told_all_right_ones(web: Web) -> None:
    """Of every route at that address, and in the header too."""
    answer = await web.as_key("view").post("/v1/sessions/8c2f8f2a-6b1e-4b0e-9f0c-000000000000")

    told = answer.json()
    assert (answer.status_code, told["detail"]) == (405, "POST is not a method of this address.")
    assert told["allowed"] == answer.headers["allow"] == "PUT, DELETE"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("refresh", "POST"), ("why", "GET"), ("with/slashes", "GET")],
)
async def test_a_wrong_method_is_told_what_is_documented(web: Web, path: str, allowed: str) -> None:
    """L13: a key may hold anything, but "…/refresh" is an address of its own."""
    answer = await web.as_key("view", "subscribe").delete(f"/v1/data/quote/AAPL/{path}")

    assert (answer.status_code, answer.headers["allow"], answer.json()["allowed"]) == (405, allowed, allowed)


async def test_a_name_or_an_origin_that_is_not_ours_is_told_what_would_be(web: Web) -> None:
    """Whoever set it up wrongly; what arrived here is not repeated."""
    host = await web.client_with({"Host": "live.example:8484"}).get("/v1/types")
    preflight = {"Origin": "https://shop.example", "Access-Control-Request-Method": "PUT"}
    origin = await web.client_with(preflight).options("/v1/sessions")

    assert host.json()["detail"] == "This server is not called by that name."
    assert origin.json()["detail"] == "Pages of this origin may not use this server."
    assert origin.json()["allowed"] == "what LIVEWELL_ORIGINS names"
