"""Documents over HTTP: versions, conflicts, bounds, and the wall between two users on every route (E12, E16)."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from starlette.datastructures import Headers

from livewell.server.auth.api_keys import NewKey
from livewell.settings import Settings
from tests.support.http import Web

DOCUMENT = {"basics": {"name": "Ann Lee", "summary": "CANARY-5f1c"}}
NOWHERE = "c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11"


@pytest.fixture
def server_settings(server_settings: Settings) -> Settings:
    return server_settings.model_copy(update={"resume_documents_max": 3})


@pytest.fixture
def ann(web: Web) -> httpx2.AsyncClient:
    return web.as_key("export")


@pytest.fixture
def ben(web: Web) -> httpx2.AsyncClient:
    return web.as_key("export")


async def keep(client: httpx2.AsyncClient, document: Any = DOCUMENT, **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/resumes", json={"document": document, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_document_is_kept_changed_and_read_in_every_version(ann: httpx2.AsyncClient) -> None:
    """E16: what an export of version 1 said can still be looked up."""
    made = await keep(ann, name="For Acme")
    changed = await ann.put(f"/v1/resumes/{made['id']}", json={"document": {"basics": {"name": "Anna"}}, "version": 1})
    assert changed.json() == {"id": made["id"], "version": 2, "is_new": True}

    latest = (await ann.get(f"/v1/resumes/{made['id']}")).json()
    first = (await ann.get(f"/v1/resumes/{made['id']}?version=1")).json()
    assert (latest["version"], latest["name"], latest["document"]["basics"]["name"]) == (2, "For Acme", "Anna")
    assert first["document"]["basics"] == DOCUMENT["basics"]
    versions = (await ann.get(f"/v1/resumes/{made['id']}/versions")).json()["items"]
    assert [one["version"] for one in versions] == [2, 1]
    assert (await ann.get(f"/v1/resumes/{made['id']}?version=9")).status_code == 404


async def test_the_second_editor_is_told_where_the_document_is_now(ann: httpx2.AsyncClient) -> None:
    """E16: 409 with the version, and nothing is written."""
    made = await keep(ann)
    where = f"/v1/resumes/{made['id']}"
    await ann.put(where, json={"document": {"basics": {"name": "One"}}, "version": 1})

    answer = await ann.put(where, json={"document": {"basics": {"name": "Two"}}, "version": 1})
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    assert (answer.json()["type"], answer.json()["version"]) == ("/problems/conflict", 2)
    assert (await ann.get(where)).json()["document"]["basics"]["name"] == "One"


async def test_a_request_that_is_sent_again_makes_no_second_document(ann: httpx2.AsyncClient) -> None:
    """Whoever lost the answer sends the same."""
    first = await keep(ann, request="r1")
    again = await keep(ann, request="r1")
    assert (again["id"], first["is_new"], again["is_new"]) == (first["id"], True, False)
    other = await ann.post("/v1/resumes", json={"document": {"basics": {"name": "Ben"}}, "request": "r1"})
    assert other.status_code == 400


async def test_the_fourth_document_is_refused_with_the_numbers(ann: httpx2.AsyncClient) -> None:
    """507, and room at once when one is deleted."""
    ids = [(await keep(ann))["id"] for _ in range(3)]
    answer = await ann.post("/v1/resumes", json={"document": DOCUMENT})
    assert answer.status_code == 507
    assert {name: answer.json()[name] for name in ("used", "limit", "unit")} == {
        "used": 3,
        "limit": 3,
        "unit": "documents",
    }
    assert (await ann.delete(f"/v1/resumes/{ids[0]}")).status_code == 204
    await keep(ann)


async def test_a_resume_json_is_imported_as_it_is(ann: httpx2.AsyncClient) -> None:
    """The body is the file; it is called after its person."""
    answer = await ann.post("/v1/resumes/import", content=json.dumps(DOCUMENT))
    assert answer.status_code == 201
    found = (await ann.get(answer.headers["location"])).json()
    assert (found["name"], found["document"]["basics"]["name"]) == ("Ann Lee", "Ann Lee")


@pytest.mark.parametrize(
    ("body", "field"),
    [(b"{", "body.document"), (b"[]", "body.document"), (b'{"work": "CANARY-5f1c"}', "body.document.work")],
)
async def test_what_is_no_resume_is_a_problem_with_its_place_and_without_its_text(
    ann: httpx2.AsyncClient, body: bytes, field: str
) -> None:
    """E15: a problem never repeats what stood in a document."""
    answer = await ann.post("/v1/resumes/import", content=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert "CANARY" not in answer.text


async def test_a_document_that_is_too_large_says_how_large_it_may_be(
    ann: httpx2.AsyncClient, server_settings: Settings
) -> None:
    """Bounded before it is kept."""
    document = {"work": [{"summary": "x" * 5000}] * (server_settings.resume_bytes_max // 5000)}
    answer = await ann.post("/v1/resumes", json={"document": document})
    assert answer.status_code == 400
    assert f"{server_settings.resume_bytes_max:,}" in answer.json()["detail"]


async def test_documents_are_listed_in_pages(ann: httpx2.AsyncClient) -> None:
    """The one that changed last first; a cursor that is not ours is a problem."""
    ids = [(await keep(ann))["id"] for _ in range(3)]
    seen, after = [], None
    while True:
        page = (await ann.get("/v1/resumes", params={"limit": 2, **({"after": after} if after else {})})).json()
        seen += [one["id"] for one in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == ids[::-1]
    assert "CANARY" not in str(page)
    assert (await ann.get("/v1/resumes?after=bm90aGluZw")).status_code == 400


async def test_no_route_shows_or_changes_a_document_of_another_user(
    web: Web, ann: httpx2.AsyncClient, ben: httpx2.AsyncClient
) -> None:
    """E12: on every route that takes an id, the answer is byte for byte that for an id that never was."""
    made = await keep(ann)
    document = (await web.client.get("/v1/openapi.json")).json()
    routes = [
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
        if path.startswith("/v1/resumes/{id}")
    ]
    assert len(routes) >= 4
    for method, path in routes:
        body = {"document": {"basics": {"name": "Ben"}}, "version": 1} if method == "PUT" else None
        theirs = await ben.request(method, path.format(id=made["id"]), json=body)
        nobodys = await ben.request(method, path.format(id=NOWHERE), json=body)
        assert (theirs.status_code, theirs.content) == (404, nobodys.content), (method, path)
    assert (await ben.get("/v1/resumes")).json()["items"] == []
    assert (await ann.get(f"/v1/resumes/{made['id']}")).json()["version"] == 1


async def test_a_public_key_has_no_documents(web: Web) -> None:
    """Documents belong to somebody; and a key without the scope is told which."""
    assert (await web.as_key("view").get("/v1/resumes")).json()["type"] == "/problems/scope"


def login(web: Web, name: str) -> httpx2.AsyncClient:
    """A browser that has followed a link that was printed for somebody."""
    made = NewKey.make()
    query = "SELECT livewell.create_key(%s, %s, 'login', %s, '{export}', NULL, false, 3600)"
    web.rows(query, made.id, made.hash, name)
    return web.client_with({"Cookie": f"livewell={made.text}", "Sec-Fetch-Site": "same-origin"})


async def test_a_second_login_from_the_same_terminal_finds_the_documents_again(web: Web) -> None:
    """A login lasts hours, documents last; somebody at another terminal sees none of them (E12)."""
    first, second = login(web, "login link of cli:ann@host"), login(web, "login link of cli:ann@host")
    other, unknown = login(web, "login link of cli:ben@host"), login(web, "login link of python")
    made = await keep(first)

    assert (await second.get(f"/v1/resumes/{made['id']}")).status_code == 200
    for client in (other, unknown):
        assert (await client.get(f"/v1/resumes/{made['id']}")).status_code == 404
        assert (await client.get("/v1/resumes")).json()["items"] == []


async def test_a_key_that_is_called_like_a_login_is_nobody_else(web: Web) -> None:
    """E12: whoever may name keys cannot become a person by a name."""
    await keep(login(web, "login link of cli:ann@host"))
    made = NewKey.make()
    query = "SELECT livewell.create_key(%s, %s, 'key', 'login link of cli:ann@host', '{export}', NULL, false, NULL)"
    web.rows(query, made.id, made.hash)
    assert (await web.bearer(made.text).get("/v1/resumes")).json()["items"] == []


async def test_page_one_is_a_picture_in_every_template(ann: httpx2.AsyncClient) -> None:
    """Rendered by the same kind of child as exports; nothing of it is kept."""
    pictures = set()
    for template in ("minimal", "modern", "compact"):
        body = {"document": DOCUMENT, "options": {"template": template}}
        answer = await ann.post("/v1/resumes/preview", json=body)
        assert answer.status_code == 200, answer.text
        assert (answer.headers["content-type"], answer.headers["x-pages"]) == ("image/png", "1")
        assert answer.content.startswith(b"\x89PNG")
        pictures.add(answer.content)
    assert len(pictures) == 3
    assert (await ann.get("/v1/resumes")).json()["items"] == []


async def test_what_cannot_be_printed_is_named_with_its_field_and_not_repeated(ann: httpx2.AsyncClient) -> None:
    """No tofu and no silent loss: the character's name and the place; E15: not the text around it."""
    document = {"basics": {"name": "Ann"}, "work": [{"name": "Acme", "summary": "CANARY-5f1c \U0001f600"}]}
    answer = await ann.post("/v1/resumes/preview", json={"document": document})
    told = answer.json()
    assert (answer.status_code, told["type"], told["reason"]) == (
        400,
        "/problems/not-rendered",
        "unsupported_character",
    )
    assert told["field"] == "body.document.work[0].summary"
    assert "GRINNING FACE" in told["detail"]
    assert "CANARY" not in answer.text


async def test_a_third_picture_at_once_is_refused_and_others_are_not_held_up(
    web: Web, ann: httpx2.AsyncClient, ben: httpx2.AsyncClient
) -> None:
    """Two of one user: one is rendered, the next is asked for."""
    user = await web.state.owners.of(await caller_of(web, ann))
    slots = web.state.previews._slots
    with slots.take(user), slots.take(user):
        refused = await ann.post("/v1/resumes/preview", json={"document": DOCUMENT})
        served = await ben.post("/v1/resumes/preview", json={"document": DOCUMENT})
    assert (refused.status_code, served.status_code) == (429, 200)


async def caller_of(web: Web, client: httpx2.AsyncClient) -> Any:
    """Who a client is to the server."""
    headers = Headers({"authorization": client.headers["authorization"]})
    return await web.state.auth.caller(headers, "GET", "127.0.0.1")
