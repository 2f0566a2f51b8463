"""Exports over HTTP: accepted, followed, fetched, ended; and the wall between two users on every route and link (E12)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from livewell.settings import Settings
from tests.support.exports_made import Maker
from tests.support.http import Web

DOCUMENT = {"basics": {"name": "Ann Lee", "summary": "CANARY-77aa"}}
PDF = b"%PDF-1.7 " + bytes(range(256)) * 40
NOWHERE = "c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11"


@pytest.fixture
def server_settings(server_settings: Settings, tmp_path: Path) -> Settings:
    changes = {"export_store": str(tmp_path / "files"), "export_daily_max": 30, "export_user_bytes_max": 3_000_000}
    return server_settings.model_copy(update=changes)


@pytest.fixture
def maker(web: Web) -> Iterator[Maker]:
    with Maker(web) as made:
        yield made


@pytest.fixture
def ann(web: Web) -> httpx2.AsyncClient:
    return web.as_key("export")


@pytest.fixture
def ben(web: Web) -> httpx2.AsyncClient:
    return web.as_key("export")


async def keep(client: httpx2.AsyncClient, name: str = "For Acme") -> str:
    answer = await client.post("/v1/resumes", json={"document": DOCUMENT, "name": name})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def ask(client: httpx2.AsyncClient, document: str | None = None, **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/exports", json={"document": document or await keep(client), **more})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def ask_batch(client: httpx2.AsyncClient, n: int) -> dict[str, Any]:
    documents = [{"document": await keep(client, f"CV {k}")} for k in range(n)]
    answer = await client.post("/v1/exports/batch", json={"documents": documents})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_request_is_accepted_and_the_same_one_has_the_same_id(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E1: 202 with an id; while it is unfinished the same version with the same options is the same export."""
    document = await keep(ann)
    first = await ann.post("/v1/exports", json={"document": document, "options": {"template": "modern"}})
    again = await ann.post("/v1/exports", json={"document": document, "version": 1, "options": {"template": "modern"}})
    other = await ann.post("/v1/exports", json={"document": document, "options": {"template": "compact"}})

    assert (first.status_code, first.json()["answer"]) == (202, "made")
    assert first.headers["location"] == f"/v1/exports/{first.json()['id']}"
    assert (again.json()["id"], again.json()["answer"]) == (first.json()["id"], "same")
    assert other.json()["id"] != first.json()["id"]
    shown = (await ann.get(first.headers["location"])).json()
    assert (shown["state"], shown["progress"], shown["version"], shown["file_name"]) == (
        "waiting",
        0,
        "1",
        "For Acme.pdf",
    )


async def test_a_file_of_a_kind_that_a_program_elsewhere_declares_has_its_suffix(
    maker: Maker, ann: httpx2.AsyncClient
) -> None:
    """Seen failing: it was offered as a PDF."""
    maker.session.rows("SELECT livewell.declare_export_kind('sheet', 'text/csv', 'csv', '{}', 1000)")
    made = await ask(ann, "4711", kind="sheet", version="1")

    assert (await ann.get(f"/v1/exports/{made['id']}")).json()["file_name"] == "4711.csv"


@pytest.mark.parametrize(
    "options", [{"template": "gold"}, {"margin": 3}, {"page": "A5"}, {"quality": "best"}, {"colour": "red"}, {"x": 1}]
)
async def test_options_that_are_none_are_refused_with_what_is_allowed(
    maker: Maker, ann: httpx2.AsyncClient, options: dict[str, Any]
) -> None:
    """E6: and nothing is made."""
    answer = await ann.post("/v1/exports", json={"document": await keep(ann), "options": options})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert next(iter(options)) in answer.json()["detail"]
    assert (await ann.get("/v1/exports")).json()["items"] == []


async def test_the_eleventh_document_is_refused_by_name(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E3: a clear 400 that names the field and the bound."""
    answer = await ann.post("/v1/exports/batch", json={"documents": [{"document": NOWHERE}] * 11})
    assert (answer.status_code, answer.json()["field"]) == (400, "body.documents")
    assert "10" in answer.json()["allowed"]


async def test_a_document_of_nobody_or_of_another_user_is_not_there(
    maker: Maker, ann: httpx2.AsyncClient, ben: httpx2.AsyncClient
) -> None:
    """E12: the same answer for both."""
    theirs = await keep(ben)
    answers = [await ann.post("/v1/exports", json={"document": one}) for one in (theirs, NOWHERE)]
    assert {one.status_code for one in answers} == {404}
    assert answers[0].content == answers[1].content


async def test_polling_gives_the_steps_after_a_number(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E2: the same numbers that a stream sends."""
    made = await ask(ann)
    claim, export = maker.begin()
    maker.session.step(claim, export, 50)
    where = f"/v1/exports/{made['id']}"

    steps = (await ann.get(where)).json()["steps"]
    assert [one["seq"] for one in steps] == list(range(1, len(steps) + 1))
    assert [one["progress"] for one in steps][-1] == 50
    assert (await ann.get(f"{where}?after={steps[-2]['seq']}")).json()["steps"] == steps[-1:]


async def test_a_link_loads_the_file_without_a_login_and_counts_once(
    web: Web, maker: Maker, ann: httpx2.AsyncClient
) -> None:
    """E8: whole, by HEAD, and not again by its ETag; only what begins at the first byte counts."""
    made = await ask(ann)
    await maker.make(PDF)
    link = (await ann.post(f"/v1/exports/{made['id']}/link")).json()
    whole = await web.client.get(link["url"])

    assert (whole.status_code, whole.content) == (200, PDF)
    assert whole.headers["content-type"] == "application/pdf"
    assert whole.headers["content-disposition"] == 'attachment; filename="For Acme.pdf"'
    assert whole.headers["content-length"] == str(len(PDF))
    head = await web.client.head(link["url"])
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(PDF)))
    known = await web.client.get(link["url"], headers={"If-None-Match": whole.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")
    rest = await web.client.get(link["url"], headers={"Range": "bytes=100-", "If-Range": whole.headers["etag"]})
    assert (rest.status_code, rest.content) == (206, PDF[100:])
    assert rest.headers["content-range"] == f"bytes 100-{len(PDF) - 1}/{len(PDF)}"
    beyond = await web.client.get(link["url"], headers={"Range": f"bytes={len(PDF)}-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(PDF)}")
    assert (await ann.get(f"/v1/exports/{made['id']}")).json()["downloads"] == 1


@pytest.mark.parametrize("change", ["cut", "turned", "longer"])
async def test_a_link_that_was_tampered_with_finds_nothing(
    web: Web, maker: Maker, ann: httpx2.AsyncClient, change: str
) -> None:
    """E12: whatever is changed of it; and the answer does not say what was wrong."""
    made = await ask(ann)
    await maker.make()
    url: str = (await ann.post(f"/v1/exports/{made['id']}/link")).json()["url"]
    changed = {"cut": url[:-1], "longer": url + "A", "turned": url[:-10] + url[-10:].swapcase()}[change]
    answer = await web.client.get(changed)
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")


async def test_a_deleted_file_is_gone_for_every_link_at_once(
    web: Web, maker: Maker, ann: httpx2.AsyncClient, tmp_path: Path
) -> None:
    """E5, E8: 410 with what is known of it; the room is free, and the file is removed."""
    made = await ask(ann)
    await maker.make(PDF)
    where = f"/v1/exports/{made['id']}"
    url = (await ann.post(f"{where}/link")).json()["url"]
    assert (await ann.delete(where)).json() == {"answer": "deleted"}

    gone = [await web.client.get(url), await ann.get(where), await ann.post(f"{where}/link"), await ann.delete(where)]
    assert [(one.status_code, one.json()["type"]) for one in gone] == [(410, "/problems/gone")] * 4
    assert gone[1].json()["export"]["file_name"] == "For Acme.pdf"
    assert (await ann.get("/v1/exports")).json()["room"]["bytes"] == 0
    assert list((tmp_path / "files").rglob("*.pdf")) == []


async def test_an_expired_export_is_a_tombstone(web: Web, maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E7, E14: 410 by the clock, with its history; unknown is a 404."""
    made = await ask(ann)
    await maker.make(PDF)
    url = (await ann.post(f"/v1/exports/{made['id']}/link")).json()["url"]
    web.rows("UPDATE livewell.export SET expires_at = now() - interval '1 second'")

    answer = await ann.get(f"/v1/exports/{made['id']}")
    assert (answer.status_code, answer.json()["state"]) == (410, "expired")
    assert (await web.client.get(url)).status_code == 410
    [line] = (await ann.get("/v1/exports")).json()["items"]
    assert (line["state"], line["pages"], line["bytes"]) == ("expired", 1, len(PDF))
    assert (await ann.get(f"/v1/exports/{NOWHERE}")).status_code == 404


async def test_what_has_no_file_says_why(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """409 with the state: not yet, or failed with its reason."""
    made = await ask(ann)
    early = await ann.post(f"/v1/exports/{made['id']}/link")
    assert (early.status_code, early.json()["state"]) == (409, "waiting")
    maker.fail("unsupported_character")
    late = await ann.post(f"/v1/exports/{made['id']}/link")
    assert (late.status_code, late.json()["state"], late.json()["reason"]) == (409, "failed", "unsupported_character")


async def test_an_export_is_cancelled_once(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E5: waiting or running; afterwards there is nothing to cancel."""
    waiting, running = await ask(ann), await ask(ann)
    claim, _ = maker.begin()
    for one in (waiting, running):
        assert (await ann.post(f"/v1/exports/{one['id']}/cancel")).json() == {"answer": "cancelled"}
        again = await ann.post(f"/v1/exports/{one['id']}/cancel")
        assert (again.status_code, again.json()["state"]) == (409, "cancelled")
    assert (await ann.get("/v1/exports")).json()["room"]["bytes"] == 0
    assert claim.id


async def test_delete_cancels_what_is_not_finished(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E5."""
    made = await ask(ann)
    assert (await ann.delete(f"/v1/exports/{made['id']}")).json() == {"answer": "cancelled"}


async def test_a_full_quota_is_a_507_with_the_numbers(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E10."""
    documents = [await keep(ann, f"CV {n}") for n in range(16)]
    answers = [await ann.post("/v1/exports", json={"document": one}) for one in documents]
    assert [one.status_code for one in answers] == [202] * 15 + [507]
    told = answers[-1].json()
    assert (told["type"], told["limit"], told["reserved"], told["needed"]) == (
        "/problems/full",
        3_000_000,
        3_000_000,
        200_000,
    )


async def test_a_day_has_so_many_exports_and_then_says_until_when(
    web: Web, maker: Maker, ann: httpx2.AsyncClient
) -> None:
    """E10: 429 with the numbers and Retry-After."""
    await ask(ann)
    web.rows("UPDATE livewell.export_usage SET day_count = 30")
    answer = await ann.post("/v1/exports", json={"document": await keep(ann)})
    assert (answer.status_code, answer.json()["used"], answer.json()["limit"]) == (429, 30, 30)
    assert 0 < int(answer.headers["retry-after"]) <= 86_401


async def test_a_batch_is_one_zip_that_says_what_it_lacks(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E9: what is ready, a manifest first, safe names; complete=1 is a 409 with the counts until all is there."""
    batch = await ask_batch(ann, 3)
    await maker.make(PDF)
    await maker.make(PDF[::-1])
    where = f"/v1/exports/batch/{batch['id']}"
    refused = await ann.get(f"{where}/zip?complete=1")
    assert (refused.status_code, refused.json()["counts"]) == (409, {"finished": 2, "waiting": 1})

    part = await ann.get(f"{where}/zip")
    assert (part.status_code, part.headers["x-batch-complete"]) == (200, "false")
    assert part.headers["content-length"] == str(len(part.content))
    with zipfile.ZipFile(io.BytesIO(part.content)) as opened:
        assert opened.testzip() is None
        assert opened.namelist()[0] == "manifest.json"
        assert [one["status"] for one in json.loads(opened.read("manifest.json"))["files"]] == [
            "finished",
            "finished",
            "waiting",
        ]
    await maker.make(PDF)
    whole = await ann.get(f"{where}/zip?complete=1")
    assert (whole.status_code, whole.headers["x-batch-complete"]) == (200, "true")
    rest = await ann.get(f"{where}/zip", headers={"Range": "bytes=1000-", "If-Range": whole.headers["etag"]})
    assert (rest.status_code, rest.content) == (206, whole.content[1000:])
    shown = (await ann.get(where)).json()
    assert (shown["state"], shown["progress"], shown["total"], shown["finished"]) == ("ended", 100, 3, 3)


async def test_no_route_shows_or_changes_an_export_of_another_user(
    web: Web, maker: Maker, ann: httpx2.AsyncClient, ben: httpx2.AsyncClient
) -> None:
    """E12: on every route that takes an id; the answer is byte for byte that for an id that never was."""
    batch = await ask_batch(ann, 1)
    export = batch["exports"][0]["id"]
    await maker.make(PDF)
    document = (await web.client.get("/v1/openapi.json")).json()
    routes = [
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
        if path.startswith("/v1/exports/") and "{id}" in path
    ]
    assert len(routes) >= 8
    for method, path in routes:
        key = batch["id"] if "/batch/" in path else export
        theirs, nobodys = [await ben.request(method, path.format(id=one)) for one in (key, NOWHERE)]
        assert (theirs.status_code, theirs.content) == (404, nobodys.content), (method, path)
    assert (await ben.get("/v1/exports")).json()["items"] == []
    assert (await ann.get(f"/v1/exports/{export}")).json()["state"] == "finished"


async def test_a_link_that_was_signed_for_another_user_finds_nothing(
    web: Web, maker: Maker, ann: httpx2.AsyncClient, ben: httpx2.AsyncClient
) -> None:
    """E12: even a good signature reaches what is that user's alone."""
    from uuid import UUID  # noqa: PLC0415

    made = await ask(ann)
    await maker.make(PDF)
    [(now,)] = web.rows("SELECT extract(epoch FROM now())::bigint")
    forged = web.state.exports.keys.sign(UUID(made["id"]), "ben", int(now) + 60)
    assert (await web.client.get(f"/v1/download/{forged}")).status_code == 404


async def test_exports_are_listed_in_pages_with_the_room_that_is_taken(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E14: the newest first; by document, too."""
    ids = [(await ask(ann))["id"] for _ in range(3)]
    page = (await ann.get("/v1/exports?limit=2")).json()
    rest = (await ann.get("/v1/exports", params={"limit": 2, "after": page["next"]})).json()
    assert [one["id"] for one in (*page["items"], *rest["items"])] == ids[::-1]
    assert page["room"] == {"bytes": 600_000, "bytes_max": 3_000_000, "today": 3, "daily_max": 30}
    document = page["items"][0]["document"]
    [only] = (await ann.get("/v1/exports", params={"document": document})).json()["items"]
    assert only["id"] == ids[2]


async def test_kinds_are_listed(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """With their templates."""
    [kind] = (await ann.get("/v1/exports/kinds")).json()["items"]
    assert (kind["name"], kind["templates"]) == ("resume", ["minimal", "modern", "compact"])


async def test_no_answer_repeats_what_is_in_a_document(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E15: lists, steps and problems hold nothing of its text."""
    made = await ask(ann)
    maker.fail("template")
    answers = [
        await ann.get("/v1/exports"),
        await ann.get(f"/v1/exports/{made['id']}"),
        await ann.post(f"/v1/exports/{made['id']}/link"),
        await ann.get("/v1/resumes"),
    ]
    assert all("CANARY" not in one.text for one in answers)
