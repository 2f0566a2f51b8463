"""A merge can be taken back: what came from whom goes back, what came later stays and is named (O9)."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.contacts_sql import ContactSession


def test_both_live_again_with_what_they_brought(contacts: ContactSession) -> None:
    """What arrived later stays with the one that answered for both; both keys hear of it."""
    one = contacts.who("a@example.com")
    contacts.resolve("a@example.com", fields={"name": "Ann"})
    other = contacts.who("phone=1")
    contacts.resolve("phone=1", fields={"name": "B", "city": "Rome"})
    contacts.resolve("a@example.com", "phone=1")
    contacts.resolve("a@example.com", "later@example.com")

    back = contacts.unmerge(contacts.merge())

    assert back is not None
    assert (back["winner"], back["loser"]) == (one, other)
    assert back["restored"] == [["phone", "1"]]
    assert back["stayed"] == [["email", "later@example.com"]]
    assert (back["not_split"], back["fields_not_split"]) == ([], [])
    assert contacts.known(other) == {"1"}
    assert contacts.known(one) == {"a@example.com", "later@example.com"}
    assert contacts.show(one)["fields"] == {"name": "Ann"}  # type: ignore[index] # it is there
    assert contacts.show(other)["fields"] == {"name": "B", "city": "Rome"}  # type: ignore[index] # it is there
    assert contacts.events()[-2:] == [("contact.unmerged", one), ("contact.unmerged", other)]
    assert contacts.orphans() == []


def test_asked_again_it_answers_the_same_and_writes_nothing(contacts: ContactSession) -> None:
    """Also after the two were merged once more."""
    contacts.who("a@example.com"), contacts.who("phone=1")
    contacts.resolve("a@example.com", "phone=1")
    merge = contacts.merge()
    first = contacts.unmerge(merge)
    before = contacts.writes()

    assert contacts.unmerge(merge) == first
    assert contacts.writes() == before


def test_the_two_are_kept_apart_from_then_on(contacts: ContactSession) -> None:
    """Or their next common call would undo what somebody did."""
    one, other = contacts.who("a@example.com"), contacts.who("phone=1")
    contacts.resolve("a@example.com", "phone=1")
    contacts.unmerge(contacts.merge())

    answer = contacts.resolve("a@example.com", "phone=1")

    assert (answer["contact"], answer["outcome"]) == (one, "found")
    assert contacts.show(other)["state"] == "live"  # type: ignore[index] # it is there


def test_merges_are_undone_in_any_order(contacts: ContactSession) -> None:
    """B into A, then A into Z: the first one first, then the second."""
    z, a, b = (contacts.who(f"{letter}@example.com") for letter in "zab")
    contacts.resolve("a@example.com", "b@example.com")
    first = contacts.merge()
    contacts.resolve("z@example.com", "a@example.com")

    assert contacts.unmerge(first)["winner"] == z  # type: ignore[index] # it is there
    assert contacts.known(b) == {"b@example.com"}
    assert contacts.show(a)["merged_into"] == z  # type: ignore[index] # it is there
    second = contacts.unmerge(first + 1)
    assert second is not None
    assert (second["restored"], second["not_split"]) == ([["email", "a@example.com"]], [["email", "b@example.com"]])
    assert [contacts.known(one) for one in (z, a, b)] == [
        {"z@example.com"},
        {"a@example.com"},
        {"b@example.com"},
    ]
    assert contacts.orphans() == []


def test_ids_that_were_merged_before_go_back_too(contacts: ContactSession) -> None:
    """An older id answers with the one that it belonged to."""
    z, a, b = (contacts.who(f"{letter}@example.com") for letter in "zab")
    contacts.resolve("a@example.com", "b@example.com")
    contacts.resolve("z@example.com", "a@example.com")
    assert contacts.show(b)["merged_into"] == z  # type: ignore[index] # it is there

    contacts.unmerge(contacts.merge())

    assert contacts.show(b)["merged_into"] == a  # type: ignore[index] # it is there
    assert contacts.known(a) == {"a@example.com", "b@example.com"}


def test_a_field_that_was_changed_since_is_named_and_stays(contacts: ContactSession) -> None:
    """It cannot be said whose it is."""
    one = contacts.who("a@example.com")
    contacts.resolve("phone=1", fields={"city": "Rome"})
    contacts.resolve("a@example.com", "phone=1")
    contacts.resolve("a@example.com", fields={"city": "Oslo"})

    back = contacts.unmerge(contacts.merge())

    assert back is not None
    assert back["fields_not_split"] == ["city"]
    assert contacts.show(one)["fields"] == {"city": "Oslo"}  # type: ignore[index] # it is there


def test_after_ninety_days_it_is_too_late(contacts: ContactSession) -> None:
    """And housekeeping forgets the evidence; the id still answers."""
    one, other = contacts.who("a@example.com"), contacts.who("phone=1")
    contacts.resolve("a@example.com", "phone=1", request="r")
    contacts.rows("UPDATE livewell_test.clock SET ahead = '91 days'")

    with pytest.raises(psycopg.Error, match="can be undone for 90 days"):
        contacts.unmerge(contacts.merge())
    assert contacts.value("SELECT livewell.prune_contacts(10)") == 2
    assert contacts.value("SELECT livewell.prune_contacts(10)") == 0
    assert contacts.unmerge(1) is None
    assert contacts.show(other)["merged_into"] == one  # type: ignore[index] # it is there


def test_a_merge_that_never_was_is_nothing(contacts: ContactSession) -> None:
    """Nor is that of another tenant."""
    contacts.who("a@example.com"), contacts.who("phone=1")
    contacts.resolve("a@example.com", "phone=1")

    assert contacts.unmerge(2**40) is None
    assert contacts.unmerge(contacts.merge(), tenant="other") is None
