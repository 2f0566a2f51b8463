"""A person who is erased leaves hashes, so that a replayed event does not make them again (O9)."""

from __future__ import annotations

from tests.support.contacts_sql import ContactSession

EVERYWHERE = """
SELECT string_agg(t::text, ' ') FROM (
    SELECT to_jsonb(a)::text AS t FROM livewell.contact a UNION ALL SELECT to_jsonb(b)::text FROM livewell.contact_identity b
    UNION ALL SELECT to_jsonb(c)::text FROM livewell.contact_alias c UNION ALL SELECT to_jsonb(d)::text FROM livewell.contact_merge d
    UNION ALL SELECT to_jsonb(e)::text FROM livewell.contact_conflict e UNION ALL SELECT to_jsonb(f)::text FROM livewell.contact_tombstone f
    UNION ALL SELECT to_jsonb(g)::text FROM livewell.contact_request g) all_rows
"""


def test_nothing_of_the_person_is_left(contacts: ContactSession) -> None:
    """Not in identities, fields, merges, conflicts and kept answers."""
    contacts.who("ann@example.com")
    contacts.resolve("external_id=777", fields={"name": "Annabel"})
    contacts.resolve("ann@example.com", "external_id=777", request="r1")
    contacts.resolve("ann@example.com", "external_id=888")
    who = contacts.find("external_id", "777")["id"]  # type: ignore[index] # it is there

    answer = contacts.erase(who)

    assert answer is not None
    assert answer["identities"] == 2
    text = contacts.value(EVERYWHERE)
    assert [word for word in ("ann@", "777", "Annabel") if word in text] == []
    assert contacts.find("email", "ann@example.com") is None


def test_a_replayed_event_does_not_make_them_again(contacts: ContactSession) -> None:
    """Nothing is written; with revive the person comes back, as somebody new."""
    who = contacts.who("ann@example.com", "external_id=7")
    contacts.erase(who)
    before = contacts.writes()

    replayed = contacts.resolve("ann@example.com", "phone=1")

    assert (replayed["contact"], replayed["outcome"], replayed["erased"]) == (None, "erased", ["email"])
    assert [(name, len(places)) for name, places in contacts.writes()] == [
        (name, len(places)) for name, places in before
    ]
    again = contacts.resolve("ann@example.com", revive=True)
    assert again["outcome"] == "created"
    assert again["contact"] != who
    assert contacts.resolve("ann@example.com")["outcome"] == "found"


def test_who_is_known_otherwise_is_found_without_the_erased_identity(contacts: ContactSession) -> None:
    """The erased identity is left out and named."""
    contacts.erase(contacts.who("ann@example.com"))
    bob = contacts.who("phone=1")

    answer = contacts.resolve("phone=1", "ann@example.com")

    assert (answer["contact"], answer["outcome"], answer["erased"]) == (bob, "found", ["email"])
    assert contacts.known(bob) == {"1"}


def test_every_id_answers_that_it_is_erased_and_is_said(contacts: ContactSession) -> None:
    """Also those that were merged before; asked again it answers, and a stranger is nothing."""
    one, other = contacts.who("a@example.com"), contacts.who("phone=1")
    contacts.resolve("a@example.com", "phone=1")

    answer = contacts.erase(other)

    assert answer is not None
    assert sorted(answer["ids"]) == sorted([one, other])
    assert [contacts.show(gone)["state"] for gone in (one, other)] == ["erased", "erased"]  # type: ignore[index] # they are there
    assert sorted(contacts.events()[-2:]) == sorted([("contact.erased", one), ("contact.erased", other)])
    assert contacts.erase(one)["identities"] == 0  # type: ignore[index] # it is there
    assert contacts.erase("c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd10") is None
    assert contacts.orphans() == []


def test_a_hash_is_of_one_tenant(contacts: ContactSession) -> None:
    """The same address elsewhere is somebody else."""
    contacts.erase(contacts.who("ann@example.com"))

    assert contacts.resolve("ann@example.com", tenant="other")["outcome"] == "created"
