"""The outbox over HTTP as an operator uses it (O5, O7), with the rights of livewell_operate."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http import Web

TOPICS = """
SELECT livewell.ensure_event_days(3);
SELECT livewell.declare_topic('orders.created', '{}');
SELECT livewell.declare_topic('orders.paid', '{"on_dead": "park"}');
SELECT livewell.declare_sink('shop', 'own', '{*}', '{}')
"""
REFUSE = """
SELECT e.number FROM livewell.exchange_events(%s, '{}', '{}', '{}', '{}', '{}', 100) e WHERE e.answer = 'event'
"""


@pytest.fixture
async def shop(web: Web) -> Web:
    """Two topics, one sink, no events."""
    for statement in TOPICS.strip().split(";\n"):
        web.rows(statement)
    return web


def kill_first(web: Web) -> list[int]:
    """A relay whose sink refuses the first event that it gets; answers all that it got."""
    [(relay,)] = web.rows("SELECT livewell.register_relay('shop', 'test', '1', 45)")
    web.rows("SELECT livewell.renew_relay(%s, 45, NULL, NULL)", relay)
    numbers = [row[0] for row in web.rows(REFUSE, relay)]
    web.rows(
        "SELECT livewell.exchange_events(%s, ARRAY[%s]::bigint[], '{refused}', '{no}', '{NULL}', '{}', 0)",
        relay,
        numbers[0],
    )
    web.rows("SELECT livewell.exchange_events(%s, '{}', '{}', '{}', '{}', '{}', 100)", relay)
    for statement in (
        "DELETE FROM livewell.event_flight",
        "UPDATE livewell.relay_shard SET relay = NULL",
        "DELETE FROM livewell.relay",
    ):
        web.rows(statement)
    return numbers


async def test_an_event_is_emitted_shown_and_explained(shop: Web) -> None:
    """Every digit of payload_text is kept; what was done is in the audit."""
    client = shop.as_key("operate")
    made = await client.post(
        "/v1/outbox/events", json={"topic": "orders.created", "key": "42", "payload_text": '{"total":  1.50}'}
    )
    assert made.status_code == 201
    event = (await client.get(f"/v1/outbox/events/{made.json()['id']}")).json()
    why = (await client.get(f"/v1/outbox/events/{made.json()['id']}/why")).json()

    assert (event["payload"], event["key"]) == ('{"total":  1.50}', "42")
    assert [(one["sink"], one["state"]) for one in event["sinks"]] == [("shop", "waiting")]
    assert [one["code"] for one in why["items"]] == ["no_relay"]
    assert shop.rows("SELECT action, subject FROM livewell.audit") == [("outbox.emit", "orders.created")]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("events", {"topic": "nothing", "payload": {}}),
        ("events", {"topic": "orders.created"}),
        ("events", {"topic": "orders.created", "payload_text": "{"}),
        ("events", {"topic": "orders.created", "payload_text": '"\\u0000"'}),
        ("redrive", {}),
        ("redrive", {"ids": ["1"], "surprise": 1}),
        ("replays", {"sink": "shop", "start": "2999-01-01T00:00:00Z"}),
        ("replays", {"sink": "shop", "start": "2026-01-01T00:00:00"}),
        ("replays", {"sink": "shop", "start": "2026-01-01T00:00:00Z", "topic": "nothing"}),
    ],
)
async def test_what_is_wrong_is_a_problem_document(shop: Web, path: str, body: dict[str, Any]) -> None:
    answer = await shop.as_key("operate").post(f"/v1/outbox/{path}", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "sinks/none"),
        ("POST", "sinks/none/pause"),
        ("GET", "events/1"),
        ("GET", "events/nonsense"),
        ("GET", "events/1/why"),
        ("DELETE", "replays/1"),
    ],
)
async def test_what_is_not_there_is_one_answer(shop: Web, method: str, path: str) -> None:
    assert (await shop.as_key("operate").request(method, f"/v1/outbox/{path}")).status_code == 404


async def test_a_sink_is_paused_and_resumed(shop: Web) -> None:
    client = shop.as_key("operate")
    for act, is_paused in (("pause", True), ("resume", False)):
        assert (await client.post(f"/v1/outbox/sinks/shop/{act}")).status_code == 204
        sink = (await client.get("/v1/outbox/sinks/shop")).json()
        assert (sink["paused_at"] is not None) is is_paused
    assert (await client.get("/v1/outbox")).json()["waiting"] == 0
    assert [one["name"] for one in (await client.get("/v1/outbox/sinks")).json()["items"]] == ["shop"]
    topics = (await client.get("/v1/outbox/topics?limit=1")).json()
    assert [one["sinks"] for one in topics["items"]] == [["shop"]]
    assert topics["next"]


async def test_a_parked_key_is_listed_and_redriven(shop: Web) -> None:
    """Blocks and dead events name the same event; redriven, it goes in front of what it parked."""
    client = shop.as_key("operate")
    for _ in range(3):
        shop.rows("SELECT livewell.emit_event('orders.paid', '{}', 'k', 'acme')")
    first, *_ = kill_first(shop)

    [block] = (await client.get("/v1/outbox/blocks?sink=shop&state=parked")).json()["items"]
    [letter] = (await client.get("/v1/outbox/dead?limit=10")).json()["items"]
    [group] = (await client.get("/v1/outbox/dead/groups")).json()["items"]
    assert block["event_id"] == letter["id"]
    assert (block["aside"], letter["number"], letter["parks"], group["n"]) == (2, first, True, 1)

    assert (await client.post("/v1/outbox/redrive", json={"ids": [letter["id"]]})).json() == {"redriven": 1}
    assert (await client.post("/v1/outbox/discard", json={"all": True})).json() == {"discarded": 0}
    assert shop.rows("SELECT state::text FROM livewell.event_block") == [("draining",)]


async def test_lists_go_on_where_a_page_ended(shop: Web) -> None:
    """Dead events by number and sink, blocks by lane; a cursor of another list is refused."""
    client = shop.as_key("operate")
    for key in "abc":
        shop.rows("SELECT livewell.emit_event('orders.paid', '{}', %s)", key)
        kill_first(shop)
    for path in ("dead?", "blocks?"):
        seen, after = [], ""
        while after is not None:
            page = (await client.get(f"/v1/outbox/{path}limit=1{after and f'&after={after}'}")).json()
            seen += [one.get("id") or one["event_id"] for one in page["items"]]
            after = page["next"]
        assert len(set(seen)) == len(seen) == 3
        assert (await client.get(f"/v1/outbox/{path}after=bm8")).status_code == 400


async def test_a_replay_is_begun_listed_and_cancelled(shop: Web) -> None:
    client = shop.as_key("operate")
    asked = {"sink": "shop", "start": "2026-01-01T00:00:00Z", "request_key": "mine"}
    begun = [(await client.post("/v1/outbox/replays", json=asked)).json() for _ in range(2)]
    assert begun[0] == begun[1]

    [row] = (await client.get("/v1/outbox/replays")).json()["items"]
    assert (row["id"], row["state"], row["rate"]) == (begun[0]["id"], "running", 100)
    path = f"/v1/outbox/replays/{row['id']}"
    assert [(await client.delete(path)).json()["cancelled"] for _ in range(2)] == [True, False]
