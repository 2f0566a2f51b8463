"""The wall between tenants: the same address in two of them never meets, whoever asks (O9)."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.contacts_sql import ContactSession

GUARDED = (
    "contact",
    "contact_identity",
    "contact_alias",
    "identity_policy",
    "contact_merge",
    "contact_conflict",
    "contact_tombstone",
    "contact_request",
)
FORGETFUL = """
CREATE FUNCTION livewell.forgetful(p_tenant text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    PERFORM set_config('livewell.tenant', coalesce(p_tenant, ''), true);
    RETURN (SELECT count(*) FROM livewell.contact) + (SELECT count(*) FROM livewell.contact_identity)
        + (SELECT count(*) FROM livewell.contact_merge) + (SELECT count(*) FROM livewell.contact_alias);
END $$;
ALTER FUNCTION livewell.forgetful OWNER TO livewell_owner;
"""


@pytest.fixture
def two(contacts: ContactSession) -> ContactSession:
    """Two tenants with the same people, one merge each."""
    for tenant in ("acme", "other"):
        contacts.who("a@example.com", tenant=tenant), contacts.who("phone=1", tenant=tenant)
        contacts.resolve("a@example.com", "phone=1", tenant=tenant)
    return contacts


def test_the_same_address_in_two_tenants_is_two_people(two: ContactSession) -> None:
    """And what is merged in one is not touched in the other."""
    assert two.who("a@example.com") != two.who("a@example.com", tenant="other")
    assert two.value("SELECT count(*) FROM livewell.contact") == 2


def test_a_function_of_the_owner_sees_the_tenant_that_was_entered(two: ContactSession) -> None:
    """Whatever its own words forget."""
    two.rows(FORGETFUL)
    try:
        assert [two.value("SELECT livewell.forgetful(%s)", tenant) for tenant in ("acme", "", None, "x")] == [
            5,
            0,
            0,
            0,
        ]
    finally:
        two.rows("DROP FUNCTION livewell.forgetful")


@pytest.mark.parametrize("table", GUARDED)
@pytest.mark.parametrize(
    "role", ["livewell_api", "livewell_operate", "livewell_worker", "livewell_readonly", "livewell_hub"]
)
def test_no_role_reads_a_table(two: ContactSession, table: str, role: str) -> None:
    """All go through functions that enter a tenant first."""
    two.rows(f"SET ROLE {role}")
    try:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            two.rows(f"SELECT * FROM livewell.{table}")
    finally:
        two.rows("RESET ROLE")


def test_as_livewell_api_nothing_of_another_tenant_is_seen_or_changed(two: ContactSession) -> None:
    """By every function there is, with ids and numbers of the other tenant."""
    contact = two.who("a@example.com", tenant="other")
    merge = two.value("SELECT id FROM livewell.contact_merge WHERE tenant = 'other'")
    two.resolve("external_id=1", "c@example.com", tenant="other")
    [conflict] = two.resolve("external_id=2", "c@example.com", tenant="other")["conflicts"]
    before = two.writes()
    two.rows("SET ROLE livewell_api")
    two.rows("SELECT set_config('livewell.every_tenant', 'on', false), set_config('livewell.tenant', 'other', false)")
    try:
        assert two.show(contact, tenant="acme") is None
        assert two.find("email", "c@example.com", tenant="acme") is None
        assert two.unmerge(merge, tenant="acme") is None
        assert two.decide(conflict, "merge", tenant="acme") is None
        assert two.erase(contact, tenant="acme") is None
        assert two.rows("SELECT * FROM livewell.list_contact_conflicts('acme', 0, 100)") == []
        assert len(two.rows("SELECT * FROM livewell.list_contacts('acme', NULL, NULL, 100)")) == 1
    finally:
        two.rows("RESET ROLE")
        two.rows("SELECT set_config('livewell.every_tenant', '', false), set_config('livewell.tenant', '', false)")
    assert two.writes() == before


def test_an_identity_cannot_be_given_to_a_contact_of_another_tenant(two: ContactSession) -> None:
    """The key of a contact begins with its tenant."""
    contact = two.who("a@example.com", tenant="other")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        two.rows("UPDATE livewell.contact_identity SET contact_id = %s WHERE tenant = 'acme'", contact)


def test_who_counts_sees_numbers_of_all_and_no_rows(two: ContactSession) -> None:
    """The state counts what waits everywhere."""
    for tenant in ("acme", "other"):
        two.resolve("external_id=1", "c@example.com", tenant=tenant)
        two.resolve("external_id=2", "c@example.com", tenant=tenant)
    two.rows("SET ROLE livewell_readonly")
    try:
        state = two.value("SELECT livewell.state_contacts()")
    finally:
        two.rows("RESET ROLE")
    assert (state["conflicts"], state["oldest_tenant"]) == (2, "acme")
    assert two.value("SELECT coalesce(current_setting('livewell.every_tenant', true), '')") == ""
