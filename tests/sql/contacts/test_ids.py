"""Ids never die, chains have one step, and a loop cannot be written (O9)."""

from __future__ import annotations

import itertools
import random

import psycopg
import pytest

from tests.support.contacts_sql import ContactSession


def test_an_id_cannot_lead_to_itself_or_to_one_that_is_gone(contacts: ContactSession) -> None:
    """By a constraint, whatever code tries."""
    one, other = contacts.who("a@example.com"), contacts.who("b@example.com")
    contacts.resolve("a@example.com", "b@example.com")

    with pytest.raises(psycopg.errors.CheckViolation, match="loop"):
        contacts.rows("UPDATE livewell.contact_alias SET merged_into = id WHERE id = %s", other)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        contacts.rows("INSERT INTO livewell.contact_alias VALUES (%s, %s, now(), 'acme')", one, other)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_order_of_merges_every_id_leads_to_the_one_that_is_left(
    contacts: ContactSession, seed: int
) -> None:
    """Pairs of eight contacts in a random order, the last ones against the grain of age."""
    letters = "abcdefgh"
    ids = {letter: contacts.who(f"{letter}@example.com") for letter in letters}
    pairs = list(itertools.combinations(reversed(letters), 2))
    random.Random(seed).shuffle(pairs)
    for one, other in pairs:
        contacts.resolve(f"{one}@example.com", f"{other}@example.com")
        assert contacts.orphans() == []

    assert {contacts.show(ids[letter])["merged_into"] for letter in letters[1:]} == {ids["a"]}  # type: ignore[index] # all are there
    assert len(contacts.known(ids["a"])) == 8
    assert contacts.show("c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd10") is None


def test_lists_have_pages(contacts: ContactSession) -> None:
    """The newest first; each contact once."""
    for n in range(7):
        contacts.who(f"{n}@example.com")
    seen: list[str] = []
    after: tuple[object, object] = (None, None)
    while rows := contacts.rows(
        "SELECT id, created_at, identities FROM livewell.list_contacts('acme', %s, %s, 3)", *after
    ):
        seen += [row[2][0]["value"][0] for row in rows]
        after = rows[-1][1], rows[-1][0]
    assert seen == list("6543210")
