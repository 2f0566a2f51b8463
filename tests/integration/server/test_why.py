"""GET /v1/data/{type}/{key}/why and GET /v1/plan: who is told what."""

from __future__ import annotations

import pytest

from tests.integration.server.test_data import NOWHERE
from tests.support.http import Web


async def test_why_a_key_is_fresh(market: Web) -> None:
    """The word, the sentence and the three times; nothing of ours."""
    answer = await market.as_key("view").get("/v1/data/quote/AAPL/why")
    body = answer.json()

    assert (answer.status_code, body["reason"], body["verdict"]) == (200, "fresh", "fresh")
    assert body["words"].startswith("it is fresh: the source says 20")
    assert body["fresh_until"] > body["checked_at"]
    assert not {"viewers", "error", "job_id", "lane", "name", "n"} & set(body)


async def test_asking_why_asks_for_nothing(market: Web) -> None:
    """A key that nobody knew stays unknown: no row, no job."""
    answer = await market.as_key("view").get("/v1/data/quote/MSFT/why")

    assert answer.json()["reason"] == "never_asked"
    assert market.rows("SELECT count(*) FROM livewell.ledger WHERE key = 'MSFT'") == [(0,)]
    assert market.rows("SELECT count(*) FROM livewell.job") == [(0,)]


async def test_an_operator_is_told_more(market: Web) -> None:
    """What the upstream said, and the job; a viewer gets the word of the closed list."""
    market.rows(
        "UPDATE livewell.ledger SET checked_at = now() - interval '1 hour', failing_since = now(), failures = "
        "1, reason = 'schema', error = 'price is text', retry_at = now() + interval '1 minute'"
    )
    viewer = (await market.as_key("view").get("/v1/data/quote/AAPL/why")).json()
    operator = (await market.as_key("view", "operate").get("/v1/data/quote/AAPL/why")).json()

    assert (viewer["reason"], viewer["failure"], operator["reason"]) == ("failing", "schema", "failing")
    assert "price is text" not in str(viewer)
    assert operator["error"] == "price is text"
    assert "price is text" in operator["words"]
    assert operator["viewers"] == 0


@pytest.mark.parametrize("path", NOWHERE)
async def test_what_cannot_be_read_has_no_why(market: Web, path: str) -> None:
    """Byte for byte the answer of a type that does not exist."""
    client = market.as_key(types=["quote"])
    answer = await client.get(f"/v1/data/{path}/why")
    random = await client.get("/v1/data/nosuchtype/ZZZZ")

    assert (answer.status_code, answer.content) == (404, random.content)


async def test_the_plan_is_for_operators(market: Web) -> None:
    """403 for everybody else; the document has what docs/howto/plan.md explains."""
    assert (await market.as_key().get("/v1/plan")).status_code == 403
    answer = await market.as_key("operate").get("/v1/plan")
    [upstream] = answer.json()["upstreams"]

    assert answer.status_code == 200
    assert (upstream["upstream"], upstream["short"], upstream["keys"]) == ("fmp", False, 0)
    assert {one["type"] for one in upstream["types"]} == {"quote", "profile", "secret_quote"}
