"""Merge policy is data: strength, limits, blocked values, auto | ask | never; refusals keep both sides (O9)."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.support.contacts_sql import ContactSession


def test_a_merge_that_would_break_a_limit_is_recorded_and_both_sides_stay(contacts: ContactSession) -> None:
    """Two external ids of one system are two people, until somebody says otherwise."""
    one = contacts.who("external_id=1", "a@example.com")
    other = contacts.who("external_id=2")

    answer = contacts.resolve("external_id=2", "a@example.com")

    assert (answer["contact"], answer["outcome"], answer["merged"]) == (other, "conflict", [])
    assert contacts.known(one) == {"1", "a@example.com"}
    assert contacts.known(other) == {"2"}
    [(why,)] = contacts.rows("SELECT why FROM livewell.contact_conflict WHERE id = %s", answer["conflicts"][0])
    assert why == "together they would have 2 of type external_id, and 1 is the limit"


def test_the_same_refusal_again_writes_nothing(contacts: ContactSession) -> None:
    """One conflict for each pair."""
    contacts.resolve("external_id=1", "a@example.com")
    first = contacts.resolve("external_id=2", "a@example.com")
    before = contacts.writes()

    assert contacts.resolve("external_id=2", "a@example.com")["conflicts"] == first["conflicts"]
    assert contacts.writes() == before
    assert contacts.value("SELECT count(*) FROM livewell.contact_conflict") == 1


def test_the_same_call_again_merges_nothing_more(contacts: ContactSession) -> None:
    """A call begins where it would begin the next time; found by the model, when it did not."""
    contacts.resolve("external_id=1", "a@example.com")
    contacts.resolve("b@example.com")
    contacts.policy("email", max=1)
    first = contacts.resolve("external_id=2", "a@example.com", "b@example.com")
    before = contacts.writes()

    again = contacts.resolve("external_id=2", "a@example.com", "b@example.com")

    assert first["outcome"] == "merged"
    assert (again["contact"], again["merged"]) == (first["contact"], [])
    assert contacts.writes() == before


def test_a_new_strong_identity_that_does_not_fit_is_somebody_else(contacts: ContactSession) -> None:
    """The data of the second is not lost, and the first keeps the address."""
    ann = contacts.who("external_id=1", "a@example.com")

    answer = contacts.resolve("external_id=2", "a@example.com")

    assert answer["contact"] != ann
    assert answer["outcome"] == "conflict"
    assert contacts.known(answer["contact"]) == {"2"}
    assert contacts.orphans() == []


def test_external_ids_of_two_systems_belong_to_one_person(contacts: ContactSession) -> None:
    """The limit is for each system."""
    who = contacts.who("external_id:shop=1", "external_id:crm=1")

    assert contacts.known(who) == {"1"}
    assert contacts.resolve("external_id:shop=1", "external_id:shop=2")["outcome"] == "conflict"


@pytest.mark.parametrize(
    "value", ["test@example.com", "NoReply@Example.com", "null", "NULL ", "", "  ", "undefined", "null@x.y"]
)
def test_blocked_addresses_identify_nobody(contacts: ContactSession, value: str) -> None:
    """They are left out and named; alone they make nobody."""
    alone = contacts.resolve(f"email={value}")
    beside = contacts.resolve(f"email={value}", "external_id=1")

    assert (alone["contact"], alone["outcome"], alone["blocked"]) == (None, "blocked", ["email"])
    assert beside["blocked"] == ["email"]
    assert contacts.known(beside["contact"]) == {"1"}


def test_a_type_that_asks_merges_nobody_by_itself(contacts: ContactSession) -> None:
    """A person decides."""
    contacts.policy("phone", merges="ask")
    one, other = contacts.who("a@example.com"), contacts.who("phone=1")

    answer = contacts.resolve("a@example.com", "phone=1")

    assert (answer["contact"], answer["outcome"]) == (one, "conflict")
    assert contacts.known(other) == {"1"}
    [conflict] = answer["conflicts"]
    assert contacts.decide(conflict, "merge")["contact"] == one  # type: ignore[index] # it is there
    assert contacts.known(one) == {"a@example.com", "1"}
    assert contacts.decide(conflict, "merge") is None


def test_a_type_that_never_merges_neither_joins_nor_asks(contacts: ContactSession) -> None:
    """A device that a family shares."""
    contacts.policy("device", merges="never")
    ann = contacts.who("ann@example.com", "device=tv")

    bob = contacts.resolve("bob@example.com", "device=tv")

    assert (bob["outcome"], bob["conflicts"]) == ("created", [])
    assert bob["contact"] != ann
    assert contacts.known(ann) == {"ann@example.com", "tv"}


def test_two_that_are_kept_apart_are_never_merged_again(contacts: ContactSession) -> None:
    """Not by themselves, and not through a third that has merged with one of them."""
    contacts.resolve("external_id=1", "a@example.com")
    [conflict] = contacts.resolve("external_id=2", "a@example.com")["conflicts"]
    contacts.decide(conflict, "apart")
    contacts.policy("external_id", max=10)

    assert contacts.resolve("external_id=2", "a@example.com")["outcome"] == "found"
    contacts.who("phone=1")
    contacts.resolve("phone=1", "external_id=2")
    answer = contacts.resolve("phone=1", "a@example.com")

    assert (answer["merged"], answer["conflicts"]) == ([], [])
    assert contacts.value("SELECT count(*) FROM livewell.contact") == 2


def test_somebody_may_merge_above_a_limit(contacts: ContactSession) -> None:
    """It is their decision; the contact then has more, and new ones still are refused."""
    one = contacts.who("external_id=1", "a@example.com")
    [conflict] = contacts.resolve("external_id=2", "a@example.com")["conflicts"]

    assert contacts.decide(conflict, "merge")["contact"] == one  # type: ignore[index] # it is there
    assert contacts.known(one) == {"1", "2", "a@example.com"}
    assert contacts.resolve("external_id=3", "a@example.com")["outcome"] == "conflict"


def test_a_policy_of_one_tenant_is_not_that_of_another(contacts: ContactSession) -> None:
    """Nor are its contacts."""
    contacts.policy("external_id", max=2)

    assert contacts.resolve("external_id=1", "external_id=2")["outcome"] == "created"
    assert contacts.resolve("external_id=1", "external_id=2", tenant="other")["outcome"] == "conflict"


def test_folding_is_asked_for_and_not_changed_behind_identities(contacts: ContactSession) -> None:
    """By default ann+shop@ is somebody else."""
    assert contacts.who("ann+shop@example.com") != contacts.who("ann@example.com")
    with pytest.raises(psycopg.Error, match="folding cannot be changed"):
        contacts.policy("email", fold_plus=True)

    contacts.policy("email", tenant="folds", fold_plus=True, fold_dots=True)
    assert contacts.who("a.nn+shop@example.com", tenant="folds") == contacts.who("ann@example.com", tenant="folds")


@pytest.mark.parametrize("rule", [{"max": 0}, {"strength": 1001}, {"merges": "maybe"}, {"blocked": ["x" * 501]}])
def test_a_policy_outside_of_its_bounds_is_refused(contacts: ContactSession, rule: dict[str, Any]) -> None:
    """With what is allowed."""
    with pytest.raises(psycopg.Error, match="strength 0 to 1000, limit 1 to 10000") as caught:
        contacts.policy("email", **rule)
    assert caught.value.sqlstate == "LW003"


def test_the_policies_of_a_tenant_are_listed_with_the_defaults(contacts: ContactSession) -> None:
    """The strongest first."""
    contacts.policy("phone", strength=70, merges="ask")

    rows = contacts.rows("SELECT type, strength, merges FROM livewell.list_identity_policies('acme')")

    assert rows == [("external_id", 100, "auto"), ("phone", 70, "ask"), ("email", 50, "auto"), ("other", 10, "auto")]
