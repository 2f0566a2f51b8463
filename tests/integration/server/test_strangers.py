"""R3: strangers of one public key, however many sessions they open, cannot use up what others have."""

from __future__ import annotations

import uuid

import httpx2

from livewell.settings import Settings
from tests.support.http import BASE, Web, in_process

STOPPED = """
CREATE OR REPLACE FUNCTION livewell.now() RETURNS timestamptz LANGUAGE sql SET search_path = '' AS $$ SELECT timestamptz '2126-11-17 12:00:30+00' $$
"""


async def bring_up(market: Web, key: str, sessions: int, each: int, word: str) -> int:
    """Open sessions and subscribe to made-up keys; how many were taken."""
    client, taken = market.bearer(key), 0
    for number in range(sessions):
        session = (await client.post("/v1/sessions")).json()["session"]
        pairs = [{"type": "quote", "key": f"{word}{number}X{n}"} for n in range(each)]
        answer = await client.put(f"/v1/sessions/{session}/subscriptions", json={"subscriptions": pairs})
        taken += sum(one["answer"] == "subscribed" for one in answer.json()["subscriptions"])
    return taken


async def test_sessions_of_one_stranger_share_a_budget(market: Web) -> None:
    """Seen failing on 0.5.0: 15 anonymous sessions of one public key brought up 300 made-up keys."""
    public = market.key(public=True)
    market.rows(STOPPED)  # budgets are counted by the minute

    assert await bring_up(market, public.text, 15, 40, "CC") == 40  # twice what one user may
    assert market.rows("SELECT count(*) FROM livewell.ledger WHERE key LIKE 'CC%%'") == [(40,)]
    assert (await market.bearer(public.text).get("/v1/data/quote/MADEUP")).status_code == 429
    assert (await market.bearer(public.text).get("/v1/data/quote/AAPL")).status_code == 200
    assert await bring_up(market, market.key().text, 1, 15, "DD") == 15  # a user has a budget of its own


async def test_a_public_key_cannot_use_another_ones_session(market: Web) -> None:
    """L12: its id is answered like an id that does not exist, byte for byte.

    In 0.5.0 an attacker subscribed, streamed and closed with such an id.
    """
    one, other = market.as_key(public=True), market.as_key(public=True)
    session = (await one.post("/v1/sessions")).json()["session"]
    body = {"subscriptions": [{"type": "quote", "key": "AAPL"}]}

    for method, path, json in (
        ("PUT", "", None),
        ("PUT", "/subscriptions", body),
        ("DELETE", "/subscriptions", body),
        ("GET", "/stream", None),
        ("DELETE", "", None),
    ):
        tried = await other.request(method, f"/v1/sessions/{session}{path}", json=json)
        nothing = await other.request(method, f"/v1/sessions/{uuid.uuid4()}{path}", json=json)
        assert (tried.status_code, tried.content) == (nothing.status_code, nothing.content) == (404, tried.content)
    assert (await other.post("/v1/sessions", json={"session": session})).status_code == 404
    assert (await one.put(f"/v1/sessions/{session}/subscriptions", json=body)).status_code == 200


async def test_sessions_of_a_public_key_are_bounded_and_one_address_has_a_share(
    livewell_dsn: str, server_logins: dict[str, tuple[str, str]], server_settings: Settings
) -> None:
    """R3: 429 that says so; visitors of other addresses, and users, come in meanwhile.

    In 0.5.0 an attacker opened 628 in 40 s.
    """
    few = server_settings.model_copy(update={"public_sessions_max": 30})
    async with in_process(livewell_dsn, server_logins, few) as web:
        key, small = web.key(public=True), web.key(public=True)
        web.rows("SELECT livewell.limit_key(%s, 10)", small.id)

        def at(address: str, text: str) -> httpx2.AsyncClient:
            transport = httpx2.ASGITransport(app=web.application, client=(address, 4711))
            headers = {"Authorization": f"Bearer {text}"}
            return httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers)

        async def come(text: str, address: str, times: int = 1) -> list[int]:
            client = at(address, text)
            return [(await client.post("/v1/sessions")).status_code for _ in range(times)]

        assert await come(key.text, "10.0.0.1", 30) == [201] * 3 + [429] * 27  # a tenth of what the key may
        assert await come(small.text, "10.0.0.1", 3) == [201, 429, 429]  # as the key itself says
        assert await come(key.text, "10.0.0.2", 3) == [201] * 3
        assert await come(web.key().text, "10.0.0.1", 5) == [201] * 5
        told = await at("10.0.0.1", key.text).post("/v1/sessions")
        assert told.headers["retry-after"] == "60"
        assert "This public key, or your address" in told.json()["detail"]


async def test_no_address_is_stored(market: Web) -> None:
    """Budgets and sessions know hashes; a reader with a public key leaves no row of its own."""
    client = market.as_key(public=True)
    await client.post("/v1/sessions")
    await client.get("/v1/data/quote/MADEUP")

    stored = market.rows(
        "SELECT s::text FROM livewell.viewer_session s UNION ALL SELECT v::text FROM "
        "livewell.viewer v UNION ALL SELECT b::text FROM livewell.cold_budget b"
    )
    assert stored
    assert not any("127.0.0.1" in text for (text,) in stored)


async def test_what_nobody_wants_is_pruned(market: Web) -> None:
    """Seen failing on 0.5.0 for want of prune_refresh.

    Nothing deleted from ledger, refresh_count or viewer. Keys that are watched, demanded,
    overridden or have a value stay.
    """
    old = "now() - interval '2 days'"
    market.rows(
        f"""
        INSERT INTO livewell.ledger (data_type, key, upstream, status_at, wanted_at, ttl_override)
        VALUES ('quote', 'GONE', 'fmp', {old}, {old}, NULL), ('quote', 'OVER', 'fmp', {old}, {old}, '5 s'), ('quote', 'LATE', 'fmp', {old}, now(), NULL),
               ('quote', 'SEEN', 'fmp', {old}, {old}, NULL);
        INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) VALUES ('11111111-1111-4111-8111-111111111111', now(), now(), 'ann');
        INSERT INTO livewell.viewer (user_id, subscriptions) VALUES ('ann', 1), ('nobody', 0);
        INSERT INTO livewell.subscription (session_id, data_type, key, user_id) VALUES ('11111111-1111-4111-8111-111111111111', 'quote', 'SEEN', 'ann');
        INSERT INTO livewell.refresh_count VALUES (now() - interval '31 days', 'quote', 'stored', 1, 1, 1), (now(), 'quote', 'stored', 1, 1, 1);
        """
    )
    while market.rows("SELECT livewell.prune_refresh(30, 1)") != [(0,)]:
        pass

    assert market.rows("SELECT key FROM livewell.ledger ORDER BY key") == [("AAPL",), ("LATE",), ("OVER",), ("SEEN",)]
    assert market.rows("SELECT user_id FROM livewell.viewer") == [("ann",)]
    assert market.rows("SELECT count(*) FROM livewell.refresh_count") == [(1,)]


def later(market: Web, interval: str) -> None:
    """The database's clock, so long after STOPPED."""
    market.rows(STOPPED.replace("timestamptz '2126", f"interval '{interval}' + timestamptz '2126"))


def from_address(market: Web, key: str, address: str) -> httpx2.AsyncClient:
    """A client with this key at this address."""
    transport = httpx2.ASGITransport(app=market.application, client=(address, 4711), raise_app_exceptions=False)
    return httpx2.AsyncClient(
        transport=transport, base_url=market.base, headers={"Authorization": f"Bearer {key}"}, timeout=20
    )


async def attack(client: httpx2.AsyncClient, word: str, sessions: int = 3) -> int:
    """H7: open a session, subscribe to 20 made-up keys, and again; how many were taken."""
    taken = 0
    for number in range(sessions):
        session = (await client.post("/v1/sessions")).json()["session"]
        pairs = [{"type": "quote", "key": f"{word}{number}X{n}"} for n in range(20)]
        answer = await client.put(f"/v1/sessions/{session}/subscriptions", json={"subscriptions": pairs})
        taken += sum(one["answer"] == "subscribed" for one in answer.json()["subscriptions"])
    return taken


async def test_made_up_keys_of_many_addresses_are_few_and_leave_some(market: Web) -> None:
    """H7 as it was found, from ten addresses: 600 keys asked for in a minute.

    Seen failing on 0.6.0: three addresses took all of the public key's 120, and the fourth got
    none.
    """
    public = market.key(public=True)
    market.rows(STOPPED)

    taken = [await attack(from_address(market, public.text, f"10.0.0.{n}"), f"A{n}K") for n in range(10)]

    assert taken[0] == 40
    assert taken == sorted(taken, reverse=True)
    assert min(taken[:8]) >= 1
    assert sum(taken) <= 120
    assert market.rows("SELECT count(*) FROM livewell.ledger WHERE key LIKE 'A%%K%%'") == [(sum(taken),)]
    honest = from_address(market, public.text, "10.9.9.9")
    session = (await honest.post("/v1/sessions")).json()["session"]
    known = {"subscriptions": [{"type": "quote", "key": "AAPL"}]}
    answer = await honest.put(f"/v1/sessions/{session}/subscriptions", json=known)
    assert answer.json()["subscriptions"][0]["answer"] == "subscribed"
    assert await attack(market.bearer(market.key().text), "USER", 1) == 20  # a user has a budget of its own


async def test_nothing_of_an_attack_is_left_after_a_day(market: Web) -> None:
    """H7, L5: sessions go after six minutes, all other traces within a day and an hour.

    It held in 0.6.0; the rows that 0.5.0 kept for ever are those of H7.
    """
    public = market.key(public=True)
    before = market.rows("SELECT count(*) FROM livewell.ledger")
    market.rows(STOPPED)
    for n in range(3):
        client = from_address(market, public.text, f"2001:db8:{n}::1")
        await attack(client, f"A{n}K")
        await client.get("/v1/data/quote/READ")

    later(market, "7 minutes")
    assert market.rows("SELECT livewell.sweep_sessions(1000)") == [(9,)]
    later(market, "25 hours")
    while market.rows("SELECT livewell.prune_refresh(30, 1000)") != [(0,)]:
        pass

    market.rows("DELETE FROM livewell.job")  # READ was demanded, and there is no worker here
    while market.rows("SELECT livewell.prune_refresh(30, 1000)") != [(0,)]:
        pass
    left = {
        table: market.rows(f"SELECT count(*) FROM livewell.{table}")
        for table in ("viewer", "viewer_session", "subscription", "cold_budget")
    }
    assert left == {table: [(0,)] for table in left}
    assert market.rows("SELECT count(*) FROM livewell.ledger") == before
