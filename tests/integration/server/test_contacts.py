"""Contacts over HTTP, as an operator's program uses them, and the wall between tenants through every route (O9)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import Web


@pytest.fixture
def client(web: Web) -> httpx2.AsyncClient:
    return web.as_key("operate")


async def resolve(client: httpx2.AsyncClient, *identities: str, tenant: str = "acme", **more: Any) -> dict[str, Any]:
    pairs = [dict(zip(("type", "value"), one.split("=", 1), strict=True)) for one in identities]
    answer = await client.post("/v1/contacts/resolve", json={"identities": pairs, "tenant": tenant, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_who_somebody_is_in_one_call(client: httpx2.AsyncClient) -> None:
    """Made, found again, and shown; a request that is repeated is answered the same."""
    made = await resolve(client, "email=Ann@Example.com", "external_id=7", fields={"name": "Ann"}, request="r1")
    assert made["outcome"] == "created"
    assert await resolve(client, "external_id=7", "email=ann@example.com", fields={"name": "Ann"}, request="r1") == made

    shown = (await client.get(f"/v1/contacts/{made['contact']}?tenant=acme")).json()
    found = (
        await client.post("/v1/contacts/find", json={"type": "email", "value": "ANN@example.com", "tenant": "acme"})
    ).json()
    assert shown == found
    assert (shown["state"], shown["fields"]) == ("live", {"name": "Ann"})


async def test_a_merged_id_leads_to_who_answers_for_it(client: httpx2.AsyncClient) -> None:
    """301 with the place, until the merge is undone."""
    one = await resolve(client, "email=a@example.com")
    other = await resolve(client, "phone=1")
    await resolve(client, "email=a@example.com", "phone=1")

    answer = await client.get(f"/v1/contacts/{other['contact']}?tenant=acme")
    assert answer.status_code == 301
    assert answer.headers["location"] == f"/v1/contacts/{one['contact']}?tenant=acme"
    assert answer.json()["merged_into"] == one["contact"]

    [merge] = (await client.get(answer.headers["location"])).json()["merges"]
    undone = await client.post(f"/v1/contacts/merges/{merge['id']}/undo?tenant=acme")
    assert undone.json()["restored"] == [["phone", "1"]]
    assert (await client.get(f"/v1/contacts/{other['contact']}?tenant=acme")).json()["state"] == "live"


async def test_conflicts_are_listed_and_decided_once(client: httpx2.AsyncClient) -> None:
    """With both sides; afterwards there is nothing to decide."""
    await resolve(client, "external_id=1", "email=a@example.com")
    answer = await resolve(client, "external_id=2", "email=a@example.com")
    [waiting] = (await client.get("/v1/contacts/conflicts?tenant=acme")).json()["items"]

    assert [waiting["id"]] == answer["conflicts"]
    assert sorted(one["value"] for side in waiting["sides"] for one in side["identities"]) == [
        "1",
        "2",
        "a@example.com",
    ]
    decided = await client.post(f"/v1/contacts/conflicts/{waiting['id']}", json={"decision": "merge", "tenant": "acme"})
    assert decided.json()["decision"] == "merge"
    again = await client.post(f"/v1/contacts/conflicts/{waiting['id']}", json={"decision": "apart", "tenant": "acme"})
    assert again.status_code == 404


async def test_an_erased_person_is_not_made_again(web: Web, client: httpx2.AsyncClient) -> None:
    """And neither the audit nor an address keeps what they were known by."""
    who = await resolve(client, "email=secret.ann@example.com")
    answer = await client.delete(f"/v1/contacts/{who['contact']}?tenant=acme")

    assert answer.json()["identities"] == 1
    assert (await resolve(client, "email=secret.ann@example.com"))["outcome"] == "erased"
    assert (await client.get(f"/v1/contacts/{who['contact']}?tenant=acme")).json()["state"] == "erased"
    lines = web.rows("SELECT action, to_jsonb(a)::text FROM livewell.audit a")
    assert [action for action, _ in lines] == ["contacts.erase"]
    assert "secret.ann" not in lines[0][1]


async def test_policies_are_changed_and_listed(client: httpx2.AsyncClient) -> None:
    """What is out of bounds is a problem with the field."""
    changed = await client.put("/v1/contacts/policies/phone", json={"tenant": "acme", "merges": "ask", "limit": 3})
    assert (changed.json()["merges"], changed.json()["max_per_contact"]) == ("ask", 3)
    listed = (await client.get("/v1/contacts/policies?tenant=acme")).json()["items"]
    assert [one["type"] for one in listed] == ["external_id", "email", "other", "phone"]
    wrong = await client.put("/v1/contacts/policies/phone", json={"tenant": "acme", "limit": 0})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "body.limit")


async def test_contacts_are_listed_in_pages(client: httpx2.AsyncClient) -> None:
    """The newest first; a cursor that is not ours is a problem."""
    for n in range(5):
        await resolve(client, f"email={n}@example.com")
    seen, after = [], None
    while True:
        page = (
            await client.get(
                "/v1/contacts", params={"tenant": "acme", "limit": 2, **({"after": after} if after else {})}
            )
        ).json()
        seen += [one["identities"][0]["value"][0] for one in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == list("43210")
    assert (await client.get("/v1/contacts?tenant=acme&after=bm90aGluZw")).status_code == 400


async def test_no_route_shows_or_changes_anything_of_another_tenant(web: Web, client: httpx2.AsyncClient) -> None:
    """By every route there is, with ids and numbers of the other tenant; the same address never meets."""
    theirs = await resolve(client, "email=a@example.com", tenant="theirs")
    await resolve(client, "phone=1", tenant="theirs")
    await resolve(client, "email=a@example.com", "phone=1", tenant="theirs")
    await resolve(client, "external_id=1", "email=b@example.com", tenant="theirs")
    [conflict] = (await resolve(client, "external_id=2", "email=b@example.com", tenant="theirs"))["conflicts"]
    [(merge,)] = web.rows("SELECT id FROM livewell.contact_merge")
    digest = (
        "SELECT md5(string_agg(i::text, ',' ORDER BY i.value)) FROM livewell.contact_identity i WHERE tenant = 'theirs'"
    )
    before = web.rows(digest)

    identity = {"type": "email", "value": "a@example.com", "tenant": "ours"}
    answers = {
        "find": await client.post("/v1/contacts/find", json=identity),
        "show": await client.get(f"/v1/contacts/{theirs['contact']}?tenant=ours"),
        "erase": await client.delete(f"/v1/contacts/{theirs['contact']}?tenant=ours"),
        "undo": await client.post(f"/v1/contacts/merges/{merge}/undo?tenant=ours"),
        "decide": await client.post(f"/v1/contacts/conflicts/{conflict}", json={"decision": "merge", "tenant": "ours"}),
    }
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 404)
    assert (await client.get("/v1/contacts?tenant=ours")).json()["items"] == []
    assert (await client.get("/v1/contacts/conflicts?tenant=ours")).json()["items"] == []
    ours = await resolve(client, "email=a@example.com", tenant="ours")
    assert (ours["outcome"], ours["contact"] != theirs["contact"]) == ("created", True)
    await client.put("/v1/contacts/policies/email", json={"tenant": "ours", "merges": "never"})
    policies = (await client.get("/v1/contacts/policies?tenant=theirs")).json()["items"]
    assert {one["type"]: one["merges"] for one in policies}["email"] == "auto"
    assert web.rows(digest) == before
