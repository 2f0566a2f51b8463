"""API keys: who comes in, who does not, and what both are told."""

from __future__ import annotations

import uuid

import pytest

from tests.support.http import Web


async def test_a_key_opens_a_session(web: Web) -> None:
    """The way of a machine: one header, one session."""
    answer = await web.as_key().post("/v1/sessions")

    assert answer.status_code == 201
    assert uuid.UUID(answer.json()["session"])
    assert answer.json()["heartbeat_seconds"] == 60
    assert answer.headers["cache-control"] == "no-store"


async def test_the_same_session_id_again_is_the_same_session(web: Web) -> None:
    """A retry after an unknown outcome has one effect."""
    client, session = web.as_key(), str(uuid.uuid4())

    first = await client.post("/v1/sessions", json={"session": session})
    again = await client.post("/v1/sessions", json={"session": session})

    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert web.rows("SELECT count(*) FROM livewell.viewer_session") == [(1,)]


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic bHdfeDp5",
        "Bearer lw_",
        "Bearer lw_short_secret",
        "Bearer lw_AAAAAAAAAAAAAAAA_" + "x" * 32,
        "Bearer lw_AAAAAAAAAAAAAAAA_" + "x" * 9000,
        "Bearer \x00",
    ],
)
async def test_without_a_good_key_nobody_comes_in(web: Web, header: str | None) -> None:
    """401, with how to do better, and as a problem document."""
    answer = await web.client_with({} if header is None else {"Authorization": header}).post("/v1/sessions")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 401


async def test_a_wrong_secret_and_an_unknown_id_are_answered_alike(web: Web) -> None:
    """Byte for byte: nobody learns which ids there are."""
    key = web.key()
    wrong = await web.bearer(f"lw_{key.id}_{'x' * 32}").post("/v1/sessions")
    unknown = await web.bearer(f"lw_{'A' * 16}_{'x' * 32}").post("/v1/sessions")

    assert (wrong.status_code, wrong.content) == (unknown.status_code, unknown.content)


async def test_a_revoked_key_is_refused(web: Web) -> None:
    """At once where nothing is remembered."""
    key = web.key()
    assert (await web.bearer(key.text).post("/v1/sessions")).status_code == 201

    web.rows("SELECT livewell.revoke_key(%s)", key.id)

    assert (await web.bearer(key.text).post("/v1/sessions")).status_code == 401


async def test_an_expired_key_is_refused(web: Web) -> None:
    """By the database's clock."""
    key = web.key(seconds=3600)
    assert (await web.bearer(key.text).post("/v1/sessions")).status_code == 201

    web.rows("UPDATE livewell.api_key SET expires_at = now() - interval '1 second'")

    assert (await web.bearer(key.text).post("/v1/sessions")).status_code == 401


async def test_only_the_hash_of_a_secret_is_stored_and_use_is_noted(web: Web) -> None:
    """Whoever reads the table has no key."""
    key = web.key()
    await web.bearer(key.text).post("/v1/sessions")

    [(row, used)] = web.rows("SELECT k::text, k.last_used_at IS NOT NULL FROM livewell.api_key k")
    assert key.secret not in row
    assert used


async def test_a_key_without_the_scope_is_told_which(web: Web) -> None:
    """403, not 404: the caller is known."""
    answer = await web.as_key("view").post("/v1/sessions")

    assert answer.status_code == 403
    assert "subscribe" in answer.json()["detail"]


async def test_sessions_of_a_public_key_are_anonymous(web: Web) -> None:
    """Each counts for itself."""
    client = web.as_key(public=True)
    await client.post("/v1/sessions")
    await client.post("/v1/sessions")

    users = web.rows("SELECT user_id, id FROM livewell.viewer_session")
    assert sorted(user for user, _ in users) == sorted(f"session:{session}" for _, session in users)


async def test_health_needs_no_key_and_tells_nothing(web: Web) -> None:
    """For supervisors and load balancers."""
    assert [(await web.client.get(path)).text for path in ("/healthz", "/readyz")] == ["ok\n", "ready\n"]
