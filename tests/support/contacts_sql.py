"""Contacts as a test speaks them: who is this, merges, conflicts, and what was said about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.queue_sql import QueueSession

TABLES = (
    "contact_identity",
    "contact_alias",
    "contact_conflict",
    "contact_merge",
    "contact_tombstone",
    "contact_request",
    "identity_policy",
    "contact",
    "event_delivery",
    "event",
)
TENANT = "acme"
Answer = dict[str, Any]
# Rows that must never be: an identity or an alias of nobody, an id that is live and gone, a loop.
ORPHANS = """
SELECT 'identity of nobody: ' || i.value FROM livewell.contact_identity i
WHERE NOT EXISTS (SELECT FROM livewell.contact c WHERE c.tenant = i.tenant AND c.id = i.contact_id)
UNION ALL SELECT 'live and gone: ' || a.id FROM livewell.contact_alias a JOIN livewell.contact c USING (tenant, id)
UNION ALL SELECT 'chain: ' || a.id FROM livewell.contact_alias a JOIN livewell.contact_alias b ON b.id = a.merged_into
UNION ALL SELECT 'contact without identity: ' || c.id FROM livewell.contact c
WHERE NOT EXISTS (SELECT FROM livewell.contact_identity i WHERE i.tenant = c.tenant AND i.contact_id = c.id)
UNION ALL SELECT 'conflict of nobody: ' || f.id FROM livewell.contact_conflict f
WHERE 2 <> (SELECT count(*) FROM livewell.contact c WHERE c.tenant = f.tenant AND c.id IN (f.one_id, f.other_id))
"""

TOPICS = ("contact.created", "identity.added", "contact.merged", "contact.unmerged", "contact.erased")


class ContactSession(QueueSession):
    """One session on one connection, of one tenant unless a call says otherwise."""

    def reset(self) -> None:
        self.connection.execute("; ".join(f"DELETE FROM livewell.{table}" for table in TABLES).encode())
        # The migration declares them; tests of the outbox on the same database leave no topic.
        for topic in TOPICS:
            self.rows("SELECT livewell.declare_topic(%s, %s)", topic, '{"on_dead": "continue"}')

    def resolve(
        self,
        *identities: str,
        tenant: str = TENANT,
        fields: Answer | None = None,
        request: str | None = None,
        revive: bool = False,
    ) -> Answer:
        """Each identity as type=value; without a type it is an e-mail."""
        pairs = [one.split("=", 1) if "=" in one else ["email", one] for one in identities]
        answer: Answer = self.value(
            "SELECT livewell.resolve_contact(%s, %s::text[], %s::text[], %s::jsonb, %s, %s)",
            tenant,
            [kind for kind, _ in pairs],
            [value for _, value in pairs],
            None if fields is None else json.dumps(fields),
            request,
            revive,
        )
        return answer

    def who(self, *identities: str, tenant: str = TENANT) -> str:
        """The contact alone."""
        return str(self.resolve(*identities, tenant=tenant)["contact"])

    def policy(self, kind: str, tenant: str = TENANT, **rule: Any) -> Answer:
        names = {"max": "p_max", "merges": "p_merges", "strength": "p_strength", "blocked": "p_blocked"}
        names |= {"fold_plus": "p_fold_plus", "fold_dots": "p_fold_dots"}
        told = "".join(f", {names[name]} => %s" for name in rule)
        answer: Answer = self.value(f"SELECT livewell.set_identity_policy(%s, %s{told})", tenant, kind, *rule.values())
        return answer

    def show(self, contact: str, tenant: str = TENANT) -> Answer | None:
        found: Answer | None = self.value("SELECT livewell.show_contact(%s, %s)", tenant, contact)
        return found

    def find(self, kind: str, value: str, tenant: str = TENANT) -> Answer | None:
        found: Answer | None = self.value("SELECT livewell.find_contact(%s, %s, %s)", tenant, kind, value)
        return found

    def decide(self, conflict: int, decision: str, tenant: str = TENANT) -> Answer | None:
        query = "SELECT livewell.decide_contact_conflict(%s, %s, %s, 'a test')"
        found: Answer | None = self.value(query, tenant, conflict, decision)
        return found

    def unmerge(self, merge: int, tenant: str = TENANT) -> Answer | None:
        found: Answer | None = self.value("SELECT livewell.unmerge_contact(%s, %s, 'a test')", tenant, merge)
        return found

    def erase(self, contact: str, tenant: str = TENANT) -> Answer | None:
        found: Answer | None = self.value("SELECT livewell.erase_contact(%s, %s)", tenant, contact)
        return found

    def merge(self) -> int:
        """The number of the latest merge."""
        return int(self.value("SELECT max(id) FROM livewell.contact_merge"))

    def known(self, contact: str) -> set[str]:
        """Values that a contact is known by."""
        return set(self.column("SELECT value FROM livewell.contact_identity WHERE contact_id = %s", contact))

    def events(self, after: int = 0) -> list[tuple[str, str]]:
        """Topic and key of what was said, in its order."""
        query = "SELECT topic, key FROM livewell.event WHERE number > %s ORDER BY number"
        return [(topic, key) for topic, key in self.rows(query, after)]

    def writes(self) -> list[Any]:
        """What changes if anything is written: where each row of each table is, and the last event."""
        query = " UNION ALL ".join(
            f"SELECT '{table}', coalesce(string_agg(t.ctid || '/' || t.xmin, ' ' ORDER BY t.ctid), '') FROM livewell.{table} t"
            for table in TABLES
        )
        return self.rows(query)

    def orphans(self) -> list[str]:
        """What must never be."""
        return self.column(ORPHANS)


@pytest.fixture
def contacts(queue_dsn: str) -> Iterator[ContactSession]:
    """Every table of contacts empty."""
    with ContactSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        yield session
        session.reset()
