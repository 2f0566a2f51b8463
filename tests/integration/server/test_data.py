"""Reading through over HTTP.

What there is with its verdict, what is demanded, and what strangers may not.
"""

from __future__ import annotations

import asyncio

import pytest

from livewell.db.scratch import TestClock
from livewell.settings import Settings
from livewell.testing.processes import eventually_async
from tests.support.http import Web


async def until_one_waits(market: Web) -> None:
    """The refresh is asked for, and a reader waits for it."""

    async def waits() -> bool:
        return market.state.waits._waiting.total() == 1 and market.rows("SELECT count(*) FROM livewell.job") == [(1,)]

    await eventually_async(waits, timeout=10, what="a reader waits")


def store(market: Web, price: int) -> None:
    """What the refresh brings."""
    market.rows("UPDATE livewell_data.quote SET price = %s", price)
    market.rows("UPDATE livewell.ledger SET version = 2, status_version = 2, status_at = now()")


async def test_a_fresh_value_comes_with_its_provenance(market: Web) -> None:
    """Every field of the wire format, times in UTC, and no demand."""
    answer = await market.as_key().get("/v1/data/quote/AAPL")
    body = answer.json()

    assert answer.status_code == 200
    assert (body["type"], body["key"], body["verdict"], body["demand"]) == ("quote", "AAPL", "fresh", "none")
    assert body["value"]["price"] == 231.40
    assert body["source_at"].endswith("Z")
    assert body["stale_at"] > body["checked_at"]
    assert 0 < body["fresh_for_seconds"] <= 60
    assert body["age_seconds"] >= 0
    assert set(body) == {
        "type",
        "key",
        "verdict",
        "source_at",
        "fetched_at",
        "checked_at",
        "stale_at",
        "fresh_for_seconds",
        "age_seconds",
        "version",
        "status_version",
        "reason",
        "value",
        "demand",
    }


async def test_a_key_that_nobody_knew_is_missing_and_asked_for(market: Web) -> None:
    """200 with the verdict missing, and a job for it."""
    answer = await market.as_key().get("/v1/data/quote/MSFT")

    assert (answer.status_code, answer.json()["verdict"], answer.json()["demand"]) == (200, "missing", "queued")
    assert market.rows("SELECT unique_key FROM livewell.job") == [("quote:MSFT",)]


async def test_a_refresh_is_accepted_whatever_the_age(market: Web) -> None:
    """202, and once for many who ask."""
    client = market.as_key()
    answers = [await client.post("/v1/data/quote/AAPL/refresh") for _ in range(2)]

    assert [(answer.status_code, answer.json()) for answer in answers] == [
        (202, {"demand": "queued"}),
        (202, {"demand": "waiting"}),
    ]
    assert market.rows("SELECT count(*) FROM livewell.job") == [(1,)]


async def test_what_cannot_be_fetched_now_is_throttled(market: Web) -> None:
    """X5, R11: nothing stored: 503 with Retry-After.

    A stored value is given with its true verdict, the reason and the time; nothing is queued, and
    nobody waits for what cannot come.
    """
    market.rows(
        "UPDATE livewell.limiter_credential SET quiet_until = livewell.now() + interval '10 minutes' RETURNING 1"
    )
    client = market.as_key()

    cold = await client.get("/v1/data/quote/MSFT", params={"wait": "30s"})
    known = await client.get("/v1/data/quote/AAPL", params={"max_age": "0s", "wait": "30s"})
    asked = await client.post("/v1/data/quote/AAPL/refresh")

    assert [answer.status_code for answer in (cold, known, asked)] == [503, 200, 503]
    assert cold.json()["type"] == "/problems/throttled"
    body = known.json()
    assert (body["value"]["price"], body["verdict"], body["demand"], body["throttled"]) == (
        231.40,
        "fresh",
        "throttled",
        "upstream",
    )
    assert body["retry_at"] > body["checked_at"]
    assert all(500 < int(answer.headers["Retry-After"]) <= 600 for answer in (cold, known, asked))
    assert market.rows("SELECT count(*) FROM livewell.job") == [(0,)]


async def test_waiting_ends_when_the_value_comes(market: Web) -> None:
    """The one after the refresh, not the one before."""
    client = market.as_key()
    waiting = asyncio.create_task(client.get("/v1/data/quote/AAPL", params={"max_age": "0s", "wait": "10s"}))
    await until_one_waits(market)
    store(market, 240)

    assert (await waiting).json()["value"]["price"] == 240


NOWHERE = [
    "nothing/AAPL",
    "quote/lower",
    "quote/" + "X" * 300,
    "quote/A%00",
    "qu%00ote/A",
    "Quote/A",
    "quote/..%2f..%2fetc",
    "quote/%0d%0aX",
    "quote/<b>",
    "secret_quote/AAPL",
    "secret_quote/lower",
    "%2e%2e/x",
    "quote/'",
    "quote/ключ",
]


@pytest.mark.parametrize("path", NOWHERE)
async def test_what_cannot_be_read_is_one_answer(market: Web, path: str) -> None:
    """An unknown type, a key the type cannot have, a type without the right to it.

    Byte for byte the same, and nothing is written.
    """
    client = market.as_key(types=["quote"])
    answer = await client.get(f"/v1/data/{path}")
    random = await client.get("/v1/data/nosuchtype/ZZZZ")

    assert (answer.status_code, answer.content) == (404, random.content)
    assert market.rows("SELECT count(*) FROM livewell.job") == [(0,)]


@pytest.mark.parametrize(
    ("query", "field"),
    [("wait=31s", "query.wait"), ("wait=-1", "query.wait"), ("wait=soon", "query.wait"), ("max_age=1e9", "query.max_age"), ("max_age=nan", "query.max_age"), ("max_age=" + "9" * 30, "query.max_age"), ("max_age=٣", "query.max_age")],
)  # fmt: skip
async def test_a_wrong_span_is_named(market: Web, query: str, field: str) -> None:
    """400 with what is allowed."""
    answer = await market.as_key().get(f"/v1/data/quote/AAPL?{query}")

    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_a_public_key_cannot_spend_the_quota(market: Web) -> None:
    """It lives in a web page: neither max_age nor refresh."""
    client = market.as_key(public=True)

    assert (await client.get("/v1/data/quote/AAPL")).status_code == 200
    assert (await client.get("/v1/data/quote/AAPL?max_age=0")).status_code == 403
    assert (await client.post("/v1/data/quote/AAPL/refresh")).status_code == 403


async def test_unknown_keys_have_a_budget_and_429_says_so(market: Web, livewell_clock: TestClock) -> None:
    """F-E8: made-up keys of one client end; known ones are read as before."""
    livewell_clock.freeze()  # the budget is per minute: 25 reads must not reach into the next one
    client = market.as_key()
    answers = [await client.get(f"/v1/data/quote/MADEUP{number}") for number in range(25)]

    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(answers) - len(refused) == market.state.settings.cold_reads_max
    assert refused[0].headers["retry-after"]
    assert (await client.get("/v1/data/quote/AAPL")).status_code == 200


async def test_the_raw_error_of_an_upstream_is_not_shown(market: Web) -> None:
    """The closed word is; what the upstream said may hold anything."""
    market.rows("UPDATE livewell.ledger SET reason = 'http_500', error = 'key=hunter2canary'")

    answer = await market.as_key().get("/v1/data/quote/AAPL")

    assert answer.json()["reason"] == "http_500"
    assert "hunter2canary" not in answer.text


class TestFewWaits:
    @pytest.fixture
    def server_settings(self, server_settings: Settings) -> Settings:
        """Room for two requests."""
        return server_settings.model_copy(update={"requests_max": 2})

    async def test_waiting_cannot_fill_the_server(self, market: Web) -> None:
        """Half of the room at most: who is one too many gets what there is.

        Beyond the room it is 503.
        """
        client = market.as_key()
        waiting = asyncio.create_task(client.get("/v1/data/quote/AAPL", params={"max_age": "0s", "wait": "20s"}))
        await until_one_waits(market)
        at_once = await client.get("/v1/data/quote/AAPL", params={"max_age": "0s", "wait": "20s"})

        assert (at_once.status_code, at_once.json()["value"]["price"]) == (200, 231.40)
        assert not waiting.done()
        crowd = await asyncio.gather(*(client.get("/v1/types") for _ in range(20)))
        assert {answer.status_code for answer in crowd} == {200, 503}
        store(market, 240)
        assert (await waiting).status_code == 200
