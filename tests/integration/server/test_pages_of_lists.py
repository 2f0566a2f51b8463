"""Every list over HTTP turns its page: no row twice, none left out (R2, and all its siblings)."""

from __future__ import annotations

from typing import Any

from tests.support.http import Web
from tests.support.listed_rows import FILL


async def turned(client: Any, path: str) -> list[Any]:
    """The whole list, one row at a time.

    At most 60 pages, so that a cursor that stands still is seen.
    """
    found: list[Any] = []
    after: dict[str, str] = {}
    for _ in range(60):
        answer = await client.get(path, params={"limit": 1, **after})
        assert answer.status_code == 200, answer.text
        found += answer.json()["items"]
        if answer.json()["next"] is None:
            return found
        after = {"after": answer.json()["next"]}
    raise AssertionError(f"{path}: still turning after 60 pages; the last row is {found[-1]}")


async def test_every_list_turns_its_page(market: Web) -> None:
    """Seen failing: /v1/types/quote/ttl was not there at all (404)."""
    market.rows(FILL)
    market.rows("INSERT INTO livewell.queue (name, created_at) VALUES ('exports', now()) ON CONFLICT DO NOTHING")
    market.rows("SELECT livewell.declare_export_kind('resume', 'application/pdf', 'pdf', '{}', 1000)")
    client = market.as_key("view", "operate", "export")
    resume = await _documents(client)
    document = (await client.get("/v1/openapi.json")).json()
    lists = [
        path
        for path, routes in document["paths"].items()
        if {"after", "limit"} <= {one["name"] for one in routes.get("get", {}).get("parameters", ())}
    ]

    for path in lists:
        real = path.format(name="nightly" if path.startswith("/v1/runs") else "quote", id=resume)
        whole = (await client.get(real, params={"limit": 100})).json()["items"]
        names = [_name(row) for row in await turned(client, real)]
        assert names == [_name(row) for row in whole], path
        assert len(set(names)) == len(names), path
        assert len(names) >= (1 if path == "/v1/upstreams" else 3), path
    assert {"/v1/types/{name}/ttl", "/v1/exports", "/v1/resumes", "/v1/resumes/{id}/versions"} <= set(lists)
    assert len(lists) >= 14


async def test_overrides_are_listed_by_key(market: Web) -> None:
    """R2: set, listed and cleared over HTTP; a type that may not be read is not there."""
    client = market.as_key("view", "operate")
    await client.put("/v1/types/quote/ttl/IBM", json={"ttl": "5m"})
    await client.put("/v1/types/profile/ttl/IBM", json={"ttl": "1h"})

    assert (await client.get("/v1/types/quote/ttl")).json() == {
        "items": [{"key": "IBM", "ttl_seconds": 300}],
        "next": None,
    }
    assert (await client.delete("/v1/types/quote/ttl/IBM")).status_code == 204
    assert (await client.get("/v1/types/quote/ttl")).json()["items"] == []
    assert (await market.as_key(types=["profile"]).get("/v1/types/quote/ttl")).status_code == 404
    assert (await client.get("/v1/types/nothing/ttl")).status_code == 404
    assert (await client.get("/v1/types/quote/ttl?limit=101")).status_code == 400


async def _documents(client: Any) -> str:
    """Three documents, exports of them that were asked for in one instant, and three versions of the one it answers."""
    made = []
    for n in range(3):
        answer = await client.post("/v1/resumes", json={"document": {"basics": {"name": "Ann"}}, "name": f"CV {n}"})
        made.append(answer.json()["id"])
    batch = await client.post("/v1/exports/batch", json={"documents": [{"document": one} for one in made]})
    assert batch.status_code == 202, batch.text
    for version in (1, 2):
        changed = {"document": {"basics": {"name": f"Ann {version}"}}, "version": version}
        assert (await client.put(f"/v1/resumes/{made[0]}", json=changed)).status_code == 200
    first: str = made[0]
    return first


def _name(row: dict[str, Any]) -> Any:
    named = row.get("id") or row.get("name") or row.get("key") or row.get("cursor") or row.get("version")
    return named or (row["place"], row["what"])
