"""What every request passes: host, origin, size, how often, and the login of a browser."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import psycopg
import pytest

from livewell.server.bounds.client_rates import ClientRates
from livewell.settings import Settings
from tests.support.http import BASE, Web

HERE = {"Host": "127.0.0.1:8484"}


# -- host ----------------------------------------------------------------------------------------


@pytest.fixture
def server_settings(server_settings: Settings) -> Settings:
    """With a name and an origin of its own, and a small body."""
    changes = {"hosts": ("live.example.com",), "origins": ("https://shop.example.com",), "body_bytes_max": 2048}
    return server_settings.model_copy(update=changes)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost:8484",
        "LOCALHOST",
        "[::1]",
        "[::1]:8484",
        "live.example.com",
        "Live.Example.com:443",
    ],
)
async def test_our_own_names_are_answered(web: Web, host: str) -> None:
    """With any port, in any case."""
    answer = await web.client_with({"Host": host}).get("/v1/types")

    assert answer.status_code == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example:8484",
        "live.example.com.",
        "xlive.example.com",
        "127.0.0.1:8484@evil.example",
        "evil.example#127.0.0.1",
        "127.0.0.1:8484:80",
        "127.0.0.1:x",
        "0x7f.1",
        "2130706433",
        "[::1",
        "[::ffff:127.0.0.1]",
        "127.0.0.1, evil.example",
        "",
        " ",
    ],
)
async def test_other_names_are_refused_before_anything_else(web: Web, host: str) -> None:
    """DNS rebinding: a page of evil.example that points here gets nothing, with or without a key."""
    for client in (
        web.client_with({"Host": host}),
        web.client_with({"Host": host, "Authorization": f"Bearer {web.key().text}"}),
    ):
        answer = await client.get("/v1/types")
        assert answer.status_code == 400
        assert answer.json()["type"] == "/problems/host"


async def test_two_host_headers_are_refused(web: Web) -> None:
    """A proxy may believe the other one."""
    statuses = []

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"host", b"127.0.0.1"), (b"host", b"evil.example")]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/types",
        "headers": headers,
        "query_string": b"",
        "client": ("1.2.3.4", 5),
        "state": {},
    }
    await web.application(scope, receive, send)

    assert statuses == [400]


async def test_health_is_answered_under_any_name(web: Web) -> None:
    """A probe calls a pod by its address; there is nothing to learn."""
    assert (await web.client_with({"Host": "10.0.0.7:8484"}).get("/healthz")).status_code == 200


# -- origins -------------------------------------------------------------------------------------

PREFLIGHT = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization,content-type"}


async def test_an_allowed_origin_may_use_its_key_and_never_our_cookie(web: Web) -> None:
    """Preflight and answer name the origin; credentials are never allowed."""
    shop = {"Origin": "https://shop.example.com"}
    preflight = await web.client_with({**shop, **PREFLIGHT}).options("/v1/sessions")
    answer = await web.client_with({**shop, "Authorization": f"Bearer {web.key().text}"}).post("/v1/sessions")

    assert (preflight.status_code, answer.status_code) == (204, 201)
    for headers in (preflight.headers, answer.headers):
        assert headers["access-control-allow-origin"] == "https://shop.example.com"
        assert "access-control-allow-credentials" not in headers
        assert "Origin" in headers["vary"]
    assert "authorization" in preflight.headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://shop.example.com",
        "https://shop.example.com:8443",
        "https://shop.example.com.evil.example",
        "null",
        "https://SHOP.example.com@evil.example",
    ],
)
async def test_other_origins_are_told_nothing(web: Web, origin: str) -> None:
    """No header, so the browser keeps the answer from the page; the preflight fails."""
    preflight = await web.client_with({"Origin": origin, **PREFLIGHT}).options("/v1/sessions")
    answer = await web.client_with({"Origin": origin, "Authorization": f"Bearer {web.key().text}"}).post("/v1/sessions")

    assert preflight.status_code == 403
    assert "access-control-allow-origin" not in preflight.headers
    assert "access-control-allow-origin" not in answer.headers


async def test_problems_carry_the_origin_too(web: Web) -> None:
    """Otherwise a page could not read why it was refused."""
    answer = await web.client_with({"Origin": "https://shop.example.com"}).get("/v1/types")

    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == "https://shop.example.com"


# -- size ----------------------------------------------------------------------------------------


async def test_a_large_body_is_refused_by_what_it_says_and_by_what_it_is(web: Web) -> None:
    """With a length that is too much; without a length at all (H5)."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    client = web.as_key()
    said = await client.post("/v1/sessions", content=b" " * 3000, headers={"content-type": "application/json"})
    was = await client.post("/v1/sessions", content=pieces(), headers={"content-type": "application/json"})

    assert (said.status_code, was.status_code) == (413, 411)
    assert was.headers["content-type"] == "application/problem+json"
    assert said.json()["detail"] == "The body is larger than 2048 bytes (LIVEWELL_BODY_BYTES_MAX)."
    assert was.json()["detail"] == "State the length of the body: Content-Length."


@pytest.mark.parametrize("length", ["-1", "1e3", "999999999999999999999999"])
async def test_an_odd_length_is_refused(web: Web, length: str) -> None:
    """Before it is believed."""
    answer = await web.client_with({"Content-Length": length.encode("utf-8").decode("latin-1")}).get("/v1/types")

    assert answer.status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"session": 7}',
        b'{"session": "x"}',
        b'{"other": 1}',
        b"\xff\xfe",
        b'{"session": "\\ud800"}',
        b"[" * 1000,
    ],
)
async def test_a_wrong_body_is_a_400_that_names_the_field(web: Web, body: bytes) -> None:
    """And not a word of the framework."""
    answer = await web.as_key().post("/v1/sessions", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"].startswith("body")
    assert "pydantic" not in answer.text


# -- login of a browser --------------------------------------------------------------------------


async def logged_in(web: Web) -> str:
    """The cookie of a browser that has followed a link."""
    [(token,)] = [(await link(web),)]
    answer = await web.client.post("/v1/login", json={"token": token})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie
    return cookie.partition(";")[0]


async def link(web: Web) -> str:
    """A login link's token, as the owner makes it."""
    from livewell.db import Database  # noqa: PLC0415 - only here
    from livewell.server.auth.login_links import make_link  # noqa: PLC0415 - only here

    database = Database(web.dsn, web.state.settings)
    await database.open()
    try:
        return await make_link(database, web.state.settings)
    finally:
        await database.close()


async def test_a_link_works_once(web: Web) -> None:
    """Also when two browsers post it at the same moment."""
    token = await link(web)
    answers = await asyncio.gather(*(web.client.post("/v1/login", json={"token": token}) for _ in range(5)))

    assert sorted(answer.status_code for answer in answers) == [204, 401, 401, 401, 401]


async def test_an_old_link_a_wrong_one_and_a_key_are_no_links(web: Web) -> None:
    """All answered alike."""
    old = await link(web)
    web.rows("UPDATE livewell.api_key SET expires_at = now() - interval '1 second'")
    wrong = (await link(web))[:-3] + "xxx"
    answers = [
        await web.client.post("/v1/login", json={"token": token}) for token in (old, wrong, web.key().text, "x", "")
    ]

    assert {(answer.status_code, answer.content) for answer in answers} == {(401, answers[0].content)}


async def test_a_link_is_no_key(web: Web) -> None:
    """Neither in the header nor in the cookie."""
    token = await link(web)

    assert (await web.bearer(token).get("/v1/types")).status_code == 401
    assert (await web.client_with({"Cookie": f"livewell={token}"}).get("/v1/types")).status_code == 401


async def test_a_login_is_for_the_cookie_and_a_key_is_for_the_header(web: Web) -> None:
    """A key in a cookie would come along on its own; a login in a header has no business there."""
    cookie = await logged_in(web)

    assert (await web.client_with({"Cookie": cookie}).get("/v1/types")).status_code == 200
    assert (await web.bearer(cookie.partition("=")[2]).get("/v1/types")).status_code == 401
    assert (
        await web.client_with({"Cookie": f"livewell={web.key('operate').text}"}).get("/v1/types")
    ).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": BASE}, 201),
        ({}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": BASE, "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://shop.example.com", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_a_cookie_changes_nothing_from_another_site(web: Web, headers: dict[str, str], status: int) -> None:
    """CSRF: also from an origin that may use keys. Proven once by leaving the check out."""
    cookie = await logged_in(web)

    answer = await web.client_with({"Cookie": cookie, **headers}).post("/v1/sessions")

    assert answer.status_code == status


async def test_a_login_can_end_itself_and_nothing_else_can(web: Web) -> None:
    """Afterwards the cookie is worth nothing; a key is told how to be revoked.

    Another site logs nobody out.
    """
    cookie, other = await logged_in(web), await logged_in(web)
    page = web.client_with({"Cookie": cookie, "Origin": BASE})

    assert (
        await web.client_with({"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}).post("/v1/logout")
    ).status_code == 403
    assert (await web.as_key("view", "admin").post("/v1/logout")).status_code == 403
    ended = await page.post("/v1/logout")
    assert ended.status_code == 204
    assert 'livewell=""' in ended.headers["set-cookie"]
    assert (await page.get("/v1/types")).status_code == 401
    assert (await web.client_with({"Cookie": other}).get("/v1/types")).status_code == 200


async def test_a_cookie_reads_nothing_for_another_site(web: Web) -> None:
    """A cross-site request that brought it all the same."""
    cookie = await logged_in(web)

    assert (
        await web.client_with({"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}).get("/v1/types")
    ).status_code == 403


async def test_logging_in_from_another_site_is_refused(web: Web) -> None:
    """Nobody is logged in without having pressed the button."""
    answer = await web.client_with({"Sec-Fetch-Site": "cross-site"}).post("/v1/login", json={"token": await link(web)})

    assert answer.status_code == 403


async def test_the_login_page_has_a_strict_policy_and_no_token(web: Web) -> None:
    """The token is in the fragment, which no server sees."""
    answer = await web.client.get("/login")

    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


async def test_without_a_database_it_is_busy(web: Web) -> None:
    """503 with Retry-After, and not a word about the database.

    That /readyz says so: tests/integration/server/test_outage.py.
    """
    client = web.as_key()
    await web.state.pools.close()

    answer = await client.post("/v1/sessions")

    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "connection" not in answer.text
    assert (await web.client.get("/healthz")).status_code == 200


# -- how often -----------------------------------------------------------------------------------


def test_a_bucket_is_full_at_first_and_fills_with_time() -> None:
    """Twice the rate at once, then the rate."""
    now = 0.0
    buckets = ClientRates({"session": 30, "read": 10, "other": 20}, clock=lambda: now)

    burst = [buckets.take("ann", "read") for _ in range(21)]
    assert burst[:20] == [0.0] * 20
    assert burst[20] == pytest.approx(0.1)
    assert buckets.take("bob", "read") == 0.0
    assert buckets.take("ann", "session") == 0.0
    now = 0.1
    assert buckets.take("ann", "read") == pytest.approx(0.0)


def test_the_buckets_are_bounded() -> None:
    """A million made-up clients are no way to fill the memory."""
    buckets = ClientRates({"session": 1, "read": 1, "other": 1}, clients_max=10)
    for number in range(1000):
        buckets.take(str(number), "other")

    assert len(buckets._levels) == 10


class TestLimited:
    @pytest.fixture
    def server_settings(self, server_settings: Settings) -> Settings:
        """Few requests, as a busy client sees it."""
        return server_settings.model_copy(
            update={
                "session_requests_per_second": 1.0,
                "requests_per_second": 1.0,
                "key_cache_seconds": 60.0,
                "pool_size_max": 6,
                "pool_wait_seconds": 30.0,
            }
        )

    async def test_too_many_requests_are_told_when_to_come_back(self, web: Web) -> None:
        """429 with Retry-After; another client is served as before."""
        loud, quiet = web.as_key(), web.as_key()
        answers = [await loud.post("/v1/sessions") for _ in range(5)]

        assert [answer.status_code for answer in answers[:2]] == [201, 201]
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await quiet.post("/v1/sessions")).status_code == 201

    async def test_who_asks_too_often_takes_nobodys_place(self, web: Web) -> None:
        """How often comes before room.

        With every place taken the loud client still hears 429, a quiet one 503 (F-F9).
        """
        loud, quiet = web.as_key(), web.as_key()
        for _ in range(3):
            last = await loud.post("/v1/sessions")
        assert last.status_code == 429
        gate = web.application
        taken, gate._requests._total = gate._requests._total, gate._requests._places

        full = [(await client.post("/v1/sessions")).status_code for client in (loud, quiet)]
        gate._requests._total = taken

        assert full == [429, 503]
        assert (await quiet.post("/v1/sessions")).status_code == 201

    async def test_a_large_body_costs_more_than_a_small_one_and_is_refused_unread(self, web: Web) -> None:
        """One more for every kilobyte, up to a full bucket.

        It passes once, and then only after as long as that takes to fill (F-F9).
        """
        client = web.as_key()
        web.state.buckets = ClientRates({"session": 1, "read": 1, "other": 1})
        large = b'{"subscriptions": [' + b" " * 2000
        path = f"/v1/sessions/{uuid.uuid4()}/subscriptions"

        async def dripped() -> AsyncIterator[bytes]:
            yield b"{"

        first = await client.put(path, content=large)
        second = await client.put(path, content=large)
        unknown = await web.as_key().put(path, content=dripped())

        assert (first.status_code, second.status_code, unknown.status_code) == (400, 429, 411)
        assert 1 <= int(second.headers["retry-after"]) <= 3

    async def test_one_whose_requests_wait_holds_up_nobody_else(self, web: Web) -> None:
        """Twenty requests of one client wait for a lock, the pool has six connections.

        Another client is answered meanwhile (F-F9).
        """
        web.state.buckets = ClientRates({"session": 1000, "read": 1000, "other": 1000})
        stuck, other = web.as_key(), web.as_key()
        session = (await stuck.post("/v1/sessions")).json()["session"]
        with psycopg.connect(web.dsn) as holder:
            holder.execute("SELECT FROM livewell.viewer_session FOR UPDATE")
            waiting = [asyncio.create_task(stuck.delete(f"/v1/sessions/{session}")) for _ in range(20)]
            await asyncio.sleep(0)
            try:
                async with asyncio.timeout(3):
                    assert (await other.post("/v1/sessions")).status_code == 201
            finally:
                holder.rollback()
        statuses = [answer.status_code for answer in await asyncio.gather(*waiting)]
        assert sorted(set(statuses)) == [204, 404]
        assert not web.application._lines._standing

    async def test_failed_logins_are_counted_and_lock_nobody_out_who_is_known(self, web: Web) -> None:
        """Guessing ends; a key that was good a moment ago still is."""
        known = web.as_key("view", "subscribe")
        assert (await known.post("/v1/sessions")).status_code == 201
        guesses = [(await web.bearer(f"lw_{'A' * 16}_{'x' * 32}").post("/v1/sessions")).status_code for _ in range(6)]

        assert guesses[0] == 401
        assert guesses[-1] == 429
        assert (await known.post("/v1/sessions")).status_code == 201
