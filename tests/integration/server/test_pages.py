"""Pages and static files: what the browser may keep, and what it may not do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from livewell.server.pages import CSP, asset_files, shelf
from livewell.settings import Settings
from tests.support.http import Web

SPECIFIED = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
}


@pytest.mark.parametrize(("page", "keep"), [("/market", "no-cache"), ("/login", "no-store")])
async def test_a_page_is_asked_for_again_and_allows_nothing_foreign(web: Web, page: str, keep: str) -> None:
    """No login to load it; no script, style or frame of anybody else in it."""
    answer = await web.client.get(page)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == keep
    assert set(answer.headers["content-security-policy"].split("; ")) == SPECIFIED == set(CSP.split("; "))
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", answer.text)


async def test_every_file_that_a_page_names_is_there_and_may_be_kept_for_ever(web: Web) -> None:
    """Under an address that changes with the content."""
    named = set()
    for page in ("/market", "/login"):
        named |= set(re.findall(r'(?:src|href)="(/static/[^"]+)"', (await web.client.get(page)).text))
    assert len(named) >= 5
    for address in named:
        answer = await web.client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert "content-security-policy" in answer.headers


async def test_modules_import_only_what_lies_beside_them() -> None:
    """No build step, no dependency."""
    files = asset_files()
    for path in files.values():
        imports = re.findall(r'^import .* from "\./(.*)";', path.read_text(), re.MULTILINE)
        assert set(imports) <= set(files), path.name
        assert path.name != "livewell.js" or imports == []


async def test_what_is_known_is_not_sent_again(web: Web) -> None:
    """304 for the right tag, alone or among others; 200 for another."""
    first = await web.client.get("/livewell.js")
    tag = first.headers["etag"]
    for given in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        again = await web.client.get("/livewell.js", headers={"If-None-Match": given})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert (await web.client.get("/livewell.js", headers={"If-None-Match": '"x"'})).status_code == 200


async def test_the_module_may_be_loaded_by_any_page_and_nothing_else_may(web: Web) -> None:
    """It holds no secret; what it asks for needs a key, and an origin that is allowed."""
    elsewhere = {"Origin": "https://elsewhere.example"}
    module = await web.client.get("/livewell.js", headers=elsewhere)
    assert module.headers["access-control-allow-origin"] == "*"
    assert module.headers["cross-origin-resource-policy"] == "cross-origin"
    for address in ("/market", f"/static/{shelf().fingerprint}/market.js"):
        answer = await web.client.get(address, headers=elsewhere)
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "address",
    [
        "/static/0000000000000000/market.js",
        "/static/{}/../../__init__.py",
        "/static/{}/..%2f__init__.py",
        "/static/{}/nothing.js",
        "/static/{}/",
        "/static/",
        "/market.html",
    ],
)
async def test_nothing_else_is_served(web: Web, address: str) -> None:
    """Files come from a list that was read at the start.

    No path is ever put together from an address.
    """
    answer = await web.client.get(address.format(shelf().fingerprint))
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("address", ["/nowhere", "/v1/data/nosuch/AAPL", "/v1/nowhere", "/static/x/y"])
async def test_nothing_here_is_a_page_for_people_and_a_document_for_programs(web: Web, address: str) -> None:
    """The same 404, whatever is not there. In 0.5.0 a person got raw JSON."""
    client = web.as_key()
    person = await client.get(
        address, headers={"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    )
    assert (person.status_code, person.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert person.headers["cache-control"] == "no-store"
    assert set(person.headers["content-security-policy"].split("; ")) == SPECIFIED
    assert "There is nothing here." in person.text
    for accept in ("*/*", "application/json", "application/json, text/html", ""):
        program = await client.get(address, headers={"Accept": accept})
        assert (program.status_code, program.headers["content-type"]) == (404, "application/problem+json")
    posted = await client.post("/v1/queues/nothing/pause", headers={"Accept": "text/html"})
    assert posted.headers["content-type"] == "application/problem+json"


async def test_the_way_in_names_a_folder_only_to_whoever_is_here(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the embedded Postgres the command names its folder.

    Behind a proxy, or on another database, it is the command alone.
    """
    monkeypatch.setattr(web.state, "settings", Settings(database_url=None, data_dir=Path("/srv/live well")))
    here = (await web.client.get("/login/how")).json()
    assert here["command"] == "LIVEWELL_DATA_DIR='/srv/live well' livewell keys login"
    assert here["login_seconds"] == 43_200
    for name in ("Forwarded", "X-Forwarded-For", "Via"):
        there = await web.client.get("/login/how", headers={name: "203.0.113.7"})
        assert there.json()["command"] == "livewell keys login"
        assert there.headers["cache-control"] == "no-store"


async def test_a_page_takes_no_other_method(web: Web) -> None:
    """GET and HEAD."""
    assert (await web.client.head("/market")).status_code == 200
    assert (await web.client.post("/market", content=b"x")).status_code == 405
