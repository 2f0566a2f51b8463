"""Resolve or create: one contact for identities that belong together, and nothing is written twice (O9)."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.contacts_sql import ContactSession


def test_a_new_person_is_made_with_all_identities(contacts: ContactSession) -> None:
    """And said, in the same transaction, with the contact as the key."""
    answer = contacts.resolve("ann@example.com", "external_id=7")

    assert (answer["outcome"], answer["added"]) == ("created", 2)
    who = answer["contact"]
    assert contacts.known(who) == {"ann@example.com", "7"}
    assert contacts.events() == [("contact.created", who), ("identity.added", who), ("identity.added", who)]


def test_the_same_call_again_writes_nothing(contacts: ContactSession) -> None:
    """No row, no event: also in another spelling and another order."""
    who = contacts.who("ann@example.com", "external_id=7")
    before = contacts.writes()

    answer = contacts.resolve("external_id= 7 ", "ANN@EXAMPLE.com", "ann@example.com")

    assert (answer["contact"], answer["outcome"]) == (who, "found")
    assert contacts.writes() == before


def test_what_is_new_joins_whom_the_rest_is_of(contacts: ContactSession) -> None:
    """An identity is added to the contact that was found."""
    who = contacts.who("ann@example.com")

    answer = contacts.resolve("ann@example.com", "phone=+49 1")

    assert (answer["contact"], answer["outcome"], answer["added"]) == (who, "added", 1)
    assert contacts.known(who) == {"ann@example.com", "+49 1"}
    assert contacts.events()[-1] == ("identity.added", who)


def test_two_contacts_that_one_call_finds_are_merged_into_the_older_one(contacts: ContactSession) -> None:
    """Both keys hear of it."""
    older, younger = contacts.who("a@example.com"), contacts.who("external_id=7")

    answer = contacts.resolve("a@example.com", "external_id=7")

    assert (answer["contact"], answer["outcome"], answer["merged"]) == (older, "merged", [younger])
    assert contacts.known(older) == {"a@example.com", "7"}
    assert contacts.events()[-2:] == [("contact.merged", older), ("contact.merged", younger)]
    assert contacts.orphans() == []


def test_many_are_merged_by_one_call_and_a_new_one_is_added(contacts: ContactSession) -> None:
    """Ids that were merged before answer with the one that is left: no chain."""
    ids = [contacts.who(f"{letter}@example.com") for letter in "abcd"]
    contacts.resolve("c@example.com", "d@example.com")

    answer = contacts.resolve("b@example.com", "d@example.com", "a@example.com", "phone=1")

    assert answer["contact"] == ids[0]
    assert {contacts.show(one)["merged_into"] for one in ids[1:]} == {ids[0]}  # type: ignore[index] # all are there
    assert len(contacts.known(ids[0])) == 5
    assert contacts.orphans() == []


def test_a_request_that_is_repeated_is_answered_as_the_first_time(contacts: ContactSession) -> None:
    """Whatever has become of the contact meanwhile."""
    first = contacts.resolve("a@example.com", request="r1")
    contacts.resolve("a@example.com", "b@example.com")
    before = contacts.writes()

    assert contacts.resolve("A@example.com ", request="r1") == first
    assert first["outcome"] == "created"
    assert contacts.writes() == before
    with pytest.raises(psycopg.Error, match='request id "r1" was used for another call'):
        contacts.resolve("b@example.com", request="r1")


def test_fields_are_kept_and_the_latest_wins(contacts: ContactSession) -> None:
    """The same fields again write nothing."""
    who = contacts.who("a@example.com")
    contacts.resolve("a@example.com", fields={"name": "Ann", "age": 7})
    contacts.resolve("a@example.com", fields={"age": 8})
    before = contacts.writes()
    contacts.resolve("a@example.com", fields={"age": 8})

    assert contacts.show(who)["fields"] == {"name": "Ann", "age": 8}  # type: ignore[index] # it is there
    assert contacts.writes() == before


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("SELECT livewell.resolve_contact('', '{email}', '{a@b.c}')", "1 to 200 bytes"),
        ("SELECT livewell.resolve_contact(NULL, '{email}', '{a@b.c}')", "1 to 200 bytes"),
        ("SELECT livewell.resolve_contact('t', '{}', '{}')", "1 to 20"),
        ("SELECT livewell.resolve_contact('t', '{email,email}', '{a@b.c}')", "as many of both"),
        ("SELECT livewell.resolve_contact('t', '{Email}', '{a@b.c}')", "a type is like email"),
        ("SELECT livewell.resolve_contact('t', '{email}', ARRAY[NULL])", "a type is like email"),
        ("SELECT livewell.resolve_contact('t', '{email}', ARRAY[repeat('x', 501)])", "at most 500 bytes"),
        ("SELECT livewell.resolve_contact('t', '{email}', '{a@b.c}', '[]')", "a JSON object"),
        ("SELECT livewell.resolve_contact('t', '{email}', '{a@b.c}', NULL, '')", "request id"),
    ],
)
def test_what_is_no_call_is_refused(contacts: ContactSession, call: str, said: str) -> None:
    """With what is allowed, and nothing is written."""
    with pytest.raises(psycopg.Error, match=said) as caught:
        contacts.rows(call)

    assert caught.value.sqlstate == "LW003"
    assert contacts.value("SELECT count(*) FROM livewell.contact") == 0


def test_the_seeds_names_of_identities_refuse_duplicates(contacts: ContactSession) -> None:
    """Its fourth smoke test, with one tenant instead of one for each row: those of two tenants never meet."""
    contacts.rows("SET search_path = livewell")
    statement = """
    INSERT INTO contact_identities (tenant_id, contact_id, type, value)
    VALUES
      ('1f0c6a3e-7f43-4d6b-9a55-1d0f2f6a7f10', gen_random_uuid(), {}),
      ('1f0c6a3e-7f43-4d6b-9a55-1d0f2f6a7f10', gen_random_uuid(), {})
    """
    for one, other in (
        ("'external_id', 'acct_123'", "'external_id', 'acct_123'"),
        ("'email', 'Alice@Example.com'", "'email', 'alice@example.com'"),
    ):
        with pytest.raises(psycopg.errors.UniqueViolation, match="duplicate key value violates unique constraint"):
            contacts.rows(statement.format(one, other))
    contacts.rows("RESET search_path")
    assert contacts.value("SELECT count(*) FROM livewell.contact_identity") == 0


def test_an_import_through_the_view_is_found_by_a_call(contacts: ContactSession) -> None:
    """It is normalised, and said."""
    contacts.rows(
        "INSERT INTO livewell.contact_identities (tenant_id, contact_id, type, value) "
        "VALUES ('acme', gen_random_uuid(), 'email', ' Alice@Example.com')"
    )
    assert contacts.resolve("alice@example.com")["outcome"] == "found"
    assert [topic for topic, _ in contacts.events()] == ["contact.created", "identity.added"]
    assert contacts.rows("SELECT value, normal_value FROM livewell.contact_identities") == [
        (" Alice@Example.com", "alice@example.com")
    ]
