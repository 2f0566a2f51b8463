"""Keys and logins through the server: what administrators do, and that nobody gets more than they have."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import httpx2
import psycopg
import pytest

from livewell.db import Database
from livewell.db.acts import act_as
from livewell.server.auth.api_keys import NewKey, hash_of
from livewell.server.auth.caller import COOKIE
from livewell.server.auth.login_links import make_link
from livewell.server.dashboard import form
from livewell.server.dashboard.rendering import Painted, sign_of_own
from tests.support.http import Web

SECRET = "a" * 32
ALL = ("view", "subscribe", "export", "observe", "operate", "admin")
MINT = "SELECT livewell.mint_key(%s, %s, %s, %s, %s, %s, NULL, %s, %s)"


async def post(client: httpx2.AsyncClient, path: str, login: str | None = None, **fields: Any) -> httpx2.Response:
    """A form of ours with its token, by a browser with this login or by a key."""
    cookies = f"{form.TOKEN_COOKIE}={SECRET}" + (f"; {COOKIE}={login}" if login else "")
    headers = {"Cookie": cookies, **({"Sec-Fetch-Site": "same-origin"} if login else {})}
    return await client.post(path, data={"token": form.token(SECRET), **fields}, headers=headers)


async def get(client: httpx2.AsyncClient, path: str, login: str) -> httpx2.Response:
    return await client.get(path, headers={"Cookie": f"{COOKIE}={login}"})


async def browser(web: Web, link: str | None = None) -> str:
    """Log a browser in; the text of its cookie."""
    link = link or await make_link_as_owner(web)
    answer = await web.client.post("/v1/login", json={"token": link})
    found = re.search(rf"{COOKIE}=(lw_[A-Za-z0-9_-]+)", answer.headers["set-cookie"])
    assert found is not None
    return found[1]


async def make_link_as_owner(web: Web) -> str:
    made = NewKey.make()
    row = (made.id, made.hash, "link", "login link", list(ALL), None, False, 600)
    web.rows("SELECT livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)", *row)
    return made.text


def mint(session: psycopg.Connection[Any], asking: NewKey, scopes: list[str], **others: Any) -> str:
    """As SQL, with the rights of the server."""
    made = NewKey.make()
    hashed = others.get("hashed", hash_of(asking.secret))
    row = session.execute(
        MINT.encode(),
        (asking.id, hashed, made.id, made.hash, "minted", scopes, others.get("public", False), others.get("seconds")),
    ).fetchone()
    assert row is not None
    return str(row[0])


@pytest.fixture
def operate(web: Web) -> Any:
    """A session with the rights of livewell_operate."""
    with psycopg.connect(web.dsn, autocommit=True) as session:
        session.execute("SET ROLE livewell_operate")
        yield session


@pytest.mark.parametrize("scopes", [("operate",), ("view", "subscribe", "export", "observe", "operate")])
async def test_whoever_only_operates_mints_nothing_by_any_path(web: Web, operate: Any, scopes: tuple[str, ...]) -> None:
    """Not by the page, not by the function, not by the owner's functions, not by the table."""
    key, admin = web.key(*scopes), web.key(*ALL)
    before = web.rows("SELECT count(*) FROM livewell.api_key")

    answer = await post(web.bearer(key.text), "/access/keys", name="x", scope="admin")
    assert answer.status_code == 403
    assert mint(operate, key, ["admin"]) == "not_admin"
    assert mint(operate, key, ["view"]) == "not_admin"
    assert mint(operate, admin, ["admin"], hashed=hash_of(key.secret)) == "not_admin"
    assert mint(operate, admin, ["admin"], hashed=None) == "not_admin"
    owned = NewKey.make()
    for statement, params in (
        ("SELECT livewell.create_key(%s, %s, 'key', 'x', '{admin}', NULL, false, NULL)", (owned.id, owned.hash)),
        ("SELECT livewell.limit_key(%s, 5)", (key.id,)),
        ("SELECT livewell.revoke_key(%s)", (admin.id,)),
        ("SELECT livewell.find_api_key(%s)", (admin.id,)),
        ("SELECT secret_hash FROM livewell.api_key", ()),
        ("UPDATE livewell.api_key SET scopes = '{admin}' WHERE id = %s", (key.id,)),
        ("DELETE FROM livewell.api_key", ()),
        (
            """INSERT INTO livewell.api_key (id, user_id, kind, name, scopes, secret_hash, created_at)
            VALUES (%s, 'key:x', 'key', 'x', '{admin}', %s, now())""",
            (owned.id, owned.hash),
        ),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            operate.execute(statement.encode(), params)

    assert web.rows("SELECT count(*) FROM livewell.api_key") == before


async def test_an_administrator_gives_no_scope_that_they_lack(web: Web, operate: Any) -> None:
    """admin alone is not everything; a link, an expired and a revoked key are nobody."""
    admin = web.key("admin", "view")
    assert mint(operate, admin, ["operate"]) == "too_much"
    assert mint(operate, admin, ["view", "admin"]) == "made"
    refused = await post(web.bearer(admin.text), "/access/keys", name="x", scope="operate")
    assert (refused.status_code, "can get no scope" in refused.text) == (400, True)
    expired, revoked = web.key(*ALL, seconds=60), web.key(*ALL)
    web.rows("UPDATE livewell.api_key SET expires_at = now() WHERE id = %s", expired.id)
    web.rows("SELECT livewell.revoke_key(%s)", revoked.id)
    link = await make_link_as_owner(web)
    as_link = NewKey(link.split("_")[1], link.split("_", 2)[2])
    for one in (expired, revoked, as_link):
        assert mint(operate, one, ["view"]) == "not_admin"
    with pytest.raises(psycopg.errors.CheckViolation, match="public"):
        mint(operate, web.key(*ALL), ["operate"], public=True)


async def test_a_key_is_made_and_shown_once(market: Web) -> None:
    """It works; its secret is in no cookie, no address and no row."""
    admin = market.as_key(*ALL)
    answer = await post(admin, "/access/keys", name="robot", scope="view", types="quote", expires="90d")

    assert answer.status_code == 200, answer.text
    [text] = re.findall(r"lw_[A-Za-z0-9]{16}_[A-Za-z0-9_-]+", answer.text)
    secret = text.split("_", 2)[2]
    assert secret not in str(answer.headers)
    assert (await market.bearer(text).get("/v1/types/quote")).status_code == 200
    assert (await market.bearer(text).get("/v1/types/profile")).status_code == 404
    assert secret not in str(market.rows("SELECT a::text FROM livewell.audit a"))
    shown = (await admin.get("/access")).text
    assert "robot" in shown
    assert secret not in shown
    [(after,)] = market.rows("SELECT after FROM livewell.audit WHERE action = 'keys.create'")
    assert (after["scopes"], after["types"]) == (["view"], ["quote"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "x"}, "scope (none)"),
        ({"name": "", "scope": "view"}, "printable characters"),
        ({"name": "x", "scope": "view", "types": "nothing"}, "not in the registry"),
        ({"name": "x", "scope": "operate", "public": "yes"}, "public key"),
        ({"name": "x", "scope": "operate", "types": "quote"}, "bound to types"),
        ({"name": "x", "scope": "view", "expires": "soon"}, "expires"),
        ({"name": "x", "scope": "view", "expires": "9999d"}, "expires"),
    ],
)
async def test_what_cannot_be_a_key_is_refused(market: Web, fields: dict[str, str], words: str) -> None:
    """With the reason, and nothing is made."""
    before = market.rows("SELECT count(*) FROM livewell.api_key WHERE name <> 'test'")
    answer = await post(market.as_key(*ALL), "/access/keys", **fields)
    assert answer.status_code in (400, 404)
    assert words in answer.text
    assert market.rows("SELECT count(*) FROM livewell.api_key WHERE name <> 'test'") == before


async def test_a_key_is_revoked_and_a_login_is_ended(web: Web) -> None:
    """Both are refused at once by this server; the second time nothing is done."""
    admin, key, login = web.as_key(*ALL), web.key("operate"), await browser(web)
    assert (await get(web.client, "/access", login)).status_code == 200

    done = await post(admin, f"/access/keys/{key.id}/revoke")
    assert done.headers["location"] == "/access"
    assert (await web.bearer(key.text).get("/")).status_code == 303
    await post(admin, f"/access/logins/{login.split('_')[1]}/end")
    assert (await get(web.client, "/access", login)).status_code == 303
    again = await post(admin, f"/access/keys/{key.id}/revoke")
    assert again.status_code == 303
    rows = web.rows(
        "SELECT action, answer, before, after, n FROM livewell.audit WHERE origin LIKE 'page %%' ORDER BY id"
    )
    was, now = {"revoked": False}, {"revoked": True}
    assert rows[1:] == [
        ("keys.revoke", "revoked", was, now, 1),
        ("logins.end", "revoked", was, now, 1),
        ("keys.revoke", "was_revoked", None, None, 0),
    ]


async def test_the_list_of_logins_says_which_is_yours_and_where_each_began(web: Web) -> None:
    """Each browser sees its own sign, also in what the stream paints for all of them."""
    mine, other = await browser(web), await browser(web)
    page = (await get(web.client, "/access", mine)).text
    rows = re.findall(r"<code>(\w+)</code>(.*?)</tr>", page.partition('id="logins"')[2], re.DOTALL)
    signs = {login: ("this browser" in rest, "127.0.0.1" in rest) for login, rest in rows}
    assert signs[mine.split("_")[1]] == (True, True)
    assert signs[other.split("_")[1]] == (False, True)
    painted = Painted("one", str(sign_of_own("abc")), datetime.now(UTC))
    assert "this browser" in painted.complete("t", "abc")
    assert painted.complete("t", "def") == painted.complete("t") == ""


async def test_log_out_everywhere_ends_every_login_and_the_own_last(web: Web) -> None:
    """Links that nobody followed are used up too; keys go on."""
    mine, other, link = await browser(web), await browser(web), await make_link_as_owner(web)
    key = web.key("operate")

    answer = await post(web.client, "/access/logins/end", mine)

    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert f'{COOKIE}=""' in answer.headers["set-cookie"]
    for login in (mine, other):
        assert (await get(web.client, "/", login)).status_code == 303
    assert (await web.client.post("/v1/login", json={"token": link})).status_code == 401
    assert (await web.bearer(key.text).get("/")).status_code == 200
    [(n, subject)] = web.rows("SELECT n, subject FROM livewell.audit WHERE action = 'logins.end_all'")
    assert (n, subject) == (3, "all logins")


async def test_a_login_is_named_after_whoever_made_its_link(web: Web) -> None:
    """So the audit says who a login was, also when the login is deleted.

    Before, it was key:<a random id>.
    """
    owner = Database(web.dsn, web.state.settings)
    await owner.open()
    act_as("cli:ann@desk", "cli")
    link = await make_link(owner, web.state.settings)
    act_as("python", "python")
    await owner.close()
    login = await browser(web, link)
    page = await get(web.client, "/audit", login)
    assert page.status_code == 200
    assert "login link of cli:ann@desk" in page.text
    named = "SELECT action, actor_name, subject_name FROM livewell.list_acts(NULL, 9, NULL, NULL, NULL, NULL, NULL)"
    name = "login link of cli:ann@desk"
    assert ("logins.begin", name, name) in web.rows(named)
    assert ("logins.link", None, name) in web.rows(named)
    web.rows("DELETE FROM livewell.api_key WHERE kind IN ('login', 'link')")
    assert ("logins.begin", name, name) in web.rows(named)


async def test_a_browser_logs_itself_out(web: Web) -> None:
    """By a form of every page, without a script; back to the login."""
    login = await browser(web)
    page = await get(web.client, "/", login)
    assert 'action="/logout"' in page.text
    assert 'action="/logout"' not in (await web.as_key("operate").get("/")).text

    answer = await post(web.client, "/logout", login)

    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert (await get(web.client, "/", login)).status_code == 303
    acts = web.rows("SELECT action, actor, origin FROM livewell.audit ORDER BY id")
    actor = f"key:{login.split('_')[1]}"
    assert acts == [("logins.begin", actor, "page 127.0.0.1"), ("logins.end", actor, "page 127.0.0.1")]


async def test_a_login_link_is_in_the_audit(web: Web) -> None:
    """Without its secret."""
    owner = web.state.pools.operate
    with pytest.raises(Exception, match="permission denied"):
        await make_link(owner, web.state.settings)  # the server cannot make one
    assert web.rows("SELECT count(*) FROM livewell.audit") == [(0,)]
