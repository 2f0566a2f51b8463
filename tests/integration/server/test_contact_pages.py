"""The pages of contacts: look somebody up, decide, undo a merge, erase; nothing of another tenant is shown (O9)."""

from __future__ import annotations

from typing import Any

import pytest

from livewell.server.dashboard import form
from tests.support.http import Web

SECRET = "a" * 32
HOSTILE = "<script>alert(1)</script>"


def _form(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


async def _main(web: Web, path: str) -> str:
    answer = await web.as_key("operate").get(path)
    assert answer.status_code == 200, answer.text
    main = answer.text.split("<main", 1)[1]
    assert 'data-state="failed"' not in main
    assert "<script>alert" not in main
    return main


async def _post(web: Web, path: str, **fields: str) -> str:
    answer = await web.as_key("operate").post(path, **_form(**fields))
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def _resolve(web: Web, *identities: str, tenant: str = "acme") -> dict[str, Any]:
    pairs = [one.split("=", 1) for one in identities]
    [(answer,)] = web.rows(
        "SELECT livewell.resolve_contact(%s, %s, %s)",
        tenant,
        [kind for kind, _ in pairs],
        [value for _, value in pairs],
    )
    found: dict[str, Any] = answer
    return found


@pytest.fixture
def people(market: Web) -> Web:
    """A merge, a conflict, a hostile value, and the same address in another tenant."""
    _resolve(market, "email=ann@example.com")
    _resolve(market, f"phone={HOSTILE}")
    _resolve(market, "email=ann@example.com", f"phone={HOSTILE}")
    _resolve(market, "external_id=1", "email=bob@example.com")
    _resolve(market, "external_id=2", "email=bob@example.com")
    _resolve(market, "email=theirs@example.com", "email=ann@example.com", tenant="other")
    return market


async def test_the_page_shows_one_tenant_and_what_waits(people: Web) -> None:
    """The default tenant is empty and says what to do."""
    page = await _main(people, "/contacts?tenant=acme")
    assert "ann@example.com" in page
    assert "together they would have 2 of type external_id" in page
    assert "theirs@example.com" not in page
    assert "This tenant has no contacts yet" in await _main(people, "/contacts")


async def test_somebody_is_looked_up_without_an_address_in_an_address(people: Web) -> None:
    """By an identity, or by an id; who is not there is said."""
    to = await _post(people, "/contacts/find", tenant="acme", type="email", value="ANN@example.com ")
    contact = to.split("?")[0].rpartition("/")[2]
    assert "ann@example.com" in await _main(people, to)
    assert await _post(people, "/contacts/find", tenant="acme", type="", value=contact) == to
    assert (
        await _post(people, "/contacts/find", tenant="acme", type="email", value="nobody@x.y")
        == "/contacts?tenant=acme"
    )
    assert people.rows("SELECT action, subject, answer FROM livewell.audit ORDER BY id") == [
        ("contacts.find", "acme: email", "done"),
        ("contacts.find", "acme: email", "nothing"),
    ]


async def test_a_conflict_is_decided_by_a_form(people: Web) -> None:
    """The two are one, and the conflict is gone."""
    [(conflict,)] = people.rows("SELECT id FROM livewell.contact_conflict")
    to = await _post(people, f"/contacts/conflicts/{conflict}/decide", tenant="acme", decision="merge")
    page = await _main(people, to)
    assert "external_id" in page
    assert "somebody decided" in page
    assert "Nobody has to decide anything." in await _main(people, "/contacts?tenant=acme")
    assert people.rows("SELECT action FROM livewell.audit") == [("contacts.decide",)]


async def test_two_are_kept_apart_by_a_form(people: Web) -> None:
    """Both stay; another word is refused."""
    [(conflict,)] = people.rows("SELECT id FROM livewell.contact_conflict")
    wrong = await people.as_key("operate").post(
        f"/contacts/conflicts/{conflict}/decide", **_form(tenant="acme", decision="maybe")
    )
    assert wrong.status_code == 400
    await _post(people, f"/contacts/conflicts/{conflict}/decide", tenant="acme", decision="apart")
    assert people.rows("SELECT state FROM livewell.contact_conflict") == [("apart",)]


async def test_a_merge_is_undone_by_a_form(people: Web) -> None:
    """The page of a merged id leads on before, and shows the contact afterwards."""
    [(merge, loser)] = people.rows("SELECT id, loser_id FROM livewell.contact_merge")
    assert "who answers for this id" in await _main(people, f"/contacts/{loser}?tenant=acme")
    to = await _post(people, f"/contacts/merges/{merge}/undo", tenant="acme")
    assert to == f"/contacts/{loser}?tenant=acme"
    assert "kept apart" in await _main(people, to)
    assert people.rows("SELECT action FROM livewell.audit") == [("contacts.unmerge",)]


async def test_a_person_is_erased_by_a_form(people: Web) -> None:
    """The id says so for ever; nobody else is touched."""
    [(contact,)] = people.rows(
        "SELECT contact_id FROM livewell.contact_identity WHERE tenant = 'acme' AND value = 'ann@example.com'"
    )
    await _post(people, f"/contacts/{contact}/erase", tenant="acme")
    assert "nothing is known of this person any more" in await _main(people, f"/contacts/{contact}?tenant=acme")
    assert people.rows("SELECT count(*) FROM livewell.contact_identity WHERE value = 'ann@example.com'") == [(1,)]
    assert people.rows("SELECT action FROM livewell.audit") == [("contacts.erase",)]


async def test_whoever_only_looks_sees_no_person(people: Web) -> None:
    """Contacts are for operators."""
    for path in ("/contacts?tenant=acme", "/contacts/c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11"):
        assert (await people.as_key("observe").get(path)).status_code == 403
