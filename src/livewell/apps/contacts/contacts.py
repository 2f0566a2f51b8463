"""`app.contacts`: who is this?

who = await app.contacts.resolve({"email": "Ann@Example.com", "external_id": "7"}, tenant="acme")
who.contact                                    # the same for every identity

Every call is safe to repeat. With tx= it belongs to that transaction; several calls in one
transaction may deadlock with those of another one, which Postgres ends and you repeat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from livewell.apps.contacts.identities import Identities, pairs
from livewell.apps.contacts.model import Decision, Merges, Resolved
from livewell.db import Database, acts
from livewell.db.database import Transaction
from livewell.db.foreign import Foreign, fetch_in
from livewell.db.nudge import Nudger
from livewell.db.open_app import OpenApp
from livewell.errors import ContactNotFound, DatabaseConflict, InvalidOption
from livewell.outbox.nudges import EVENTS
from livewell.telemetry import tracing

Record = dict[str, Any]
DEFAULT_TENANT = "default"
_TRIES = 5
_RESOLVE = "SELECT livewell.resolve_contact(%s, %s::text[], %s::text[], %s::jsonb, %s, %s, %s)"


# With a line of the audit that lacks the answer: an answer names identities, and a line stays.
_WORD = "CASE WHEN d.answer IS NULL THEN 'nothing' ELSE 'done' END"
_ACT = "WITH done AS MATERIALIZED (SELECT {call} AS answer) SELECT d.answer, {kept} FROM done d"


def _act(call: str) -> str:
    return _ACT.format(call=call, kept=acts.recorded(_WORD))


_LOOK_UP = _act("livewell.find_contact(%s, %s, %s)")
_DECIDE = _act("livewell.decide_contact_conflict(%s, %s, %s, %s, %s)")
_UNMERGE = _act("livewell.unmerge_contact(%s, %s, %s, %s)")
_ERASE = _act("livewell.erase_contact(%s, %s, %s)")
_POLICY = _act("livewell.set_identity_policy(%s, %s, %s, %s, %s, %s, %s, %s)")


class Contacts:
    """Contacts of one database; every call says for which tenant."""

    def __init__(self, database: Database, nudger: Nudger | None = None) -> None:
        self._database = database
        self._nudger = nudger  # without it, events wait for the next poll of a relay

    @classmethod
    def of(cls, app: OpenApp) -> Self:
        """For an open app."""
        return cls(app.database, app.nudger)

    async def resolve(
        self,
        identities: Identities,
        *,
        tenant: str = DEFAULT_TENANT,
        fields: Mapping[str, Any] | None = None,
        request: str | None = None,
        revive: bool = False,
        tx: Transaction | Foreign | None = None,
    ) -> Resolved:
        """The one contact with these identities, made, added to or merged as needed.

        request: an id of yours for this call; asked again with it, the answer is the first one.
        revive: makes a person again who was erased. fields: kept with the contact, the latest wins.
        """
        listed = pairs(identities)
        written = None if fields is None else json.dumps(fields, ensure_ascii=False)
        params = (
            tenant,
            [kind for kind, _ in listed],
            [value for _, value in listed],
            written,
            request,
            revive,
            tracing.carried(),
        )
        found = Resolved.read(
            await self._resolve(params) if tx is None else (await fetch_in(tx, _RESOLVE, params))[0][0]
        )
        if tx is None and found.outcome not in ("found", "blocked", "erased"):
            self._nudge()
        elif isinstance(tx, Transaction):
            tx.on_commit.append(self._nudge)
        return found

    async def _resolve(self, params: Sequence[Any]) -> Record:
        """Repeats what Postgres ended for a conflict of locks: nothing of it was done."""
        for left in reversed(range(_TRIES)):
            try:
                [(answer,)] = await self._database.call(_RESOLVE, params)
            except DatabaseConflict:
                if left == 0:
                    raise
            else:
                found: Record = answer
                return found
        raise AssertionError("unreachable")

    async def find(self, kind: str, value: str, *, tenant: str = DEFAULT_TENANT) -> Record | None:
        """The contact that has this identity, or None; nothing is written."""
        [(kind, value)] = pairs([(kind, value)])
        return await self._one("SELECT livewell.find_contact(%s, %s, %s)", tenant, kind, value)

    async def look_up(self, kind: str, value: str, *, tenant: str = DEFAULT_TENANT) -> Record | None:
        """The same for a person who asks: who looked somebody up is in the audit, without the value."""
        [(kind, value)] = pairs([(kind, value)])
        line = acts.line("contacts.find", f"{tenant}: {kind}")
        found: Record | None = (await self._database.call(_LOOK_UP, (tenant, kind, value, *line)))[0][0]
        return found

    async def show(self, contact: UUID | str, *, tenant: str = DEFAULT_TENANT) -> Record:
        """A contact with identities, merges and conflicts.

        Its `state` is live, merged (then `merged_into` is who answers for it) or erased.
        """
        key = contact_id(contact)
        found = await self._one("SELECT livewell.show_contact(%s, %s)", tenant, key)
        return found if found is not None else _missing(f"contact {key}", tenant, "livewell contacts list")

    async def page(
        self, *, tenant: str = DEFAULT_TENANT, after: tuple[datetime, UUID] | None = None, limit: int = 50
    ) -> list[Record]:
        """A page of contacts, the newest first; after: created_at and id of the last one before."""
        query = "SELECT * FROM livewell.list_contacts(%s, %s, %s, %s)"
        return await self._database.call_dicts(query, (tenant, *(after or (None, None)), limit))

    async def conflicts(self, *, tenant: str = DEFAULT_TENANT, after: int = 0, limit: int = 50) -> list[Record]:
        """A page of pairs that wait for somebody to decide, the oldest first."""
        query = "SELECT * FROM livewell.list_contact_conflicts(%s, %s, %s)"
        return await self._database.call_dicts(query, (tenant, after, limit))

    async def decide(self, conflict: int, decision: Decision, *, tenant: str = DEFAULT_TENANT) -> Record:
        """Merge the two contacts of a conflict, or keep them apart from now on."""
        line = acts.line("contacts.decide", f"{tenant}: conflict {conflict}", decision=decision)
        params = (tenant, conflict, decision, acts.actor(), tracing.carried())
        found = await self._acted(_DECIDE, params, line)
        return found or _missing(f"conflict {conflict}", tenant, "livewell contacts conflicts")

    async def unmerge(self, merge: int, *, tenant: str = DEFAULT_TENANT) -> Record:
        """Take a merge back, within 90 days; says what came back, what stayed, and what it could not split."""
        line = acts.line("contacts.unmerge", f"{tenant}: merge {merge}")
        found = await self._acted(_UNMERGE, (tenant, merge, acts.actor(), tracing.carried()), line)
        return found or _missing(f"merge {merge}", tenant, "livewell contacts show CONTACT")

    async def erase(self, contact: UUID | str, *, tenant: str = DEFAULT_TENANT) -> Record:
        """Erase a person; hashes stay, so that a replayed event does not make the person again."""
        key = contact_id(contact)
        line = acts.line("contacts.erase", f"{tenant}: contact {key}")
        found = await self._acted(_ERASE, (tenant, key, tracing.carried()), line)
        return found or _missing(f"contact {key}", tenant, "livewell contacts list")

    async def policies(self, *, tenant: str = DEFAULT_TENANT) -> list[Record]:
        """What identities of each type may do, the strongest first."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_identity_policies(%s)", (tenant,))

    async def set_policy(
        self,
        kind: str,
        *,
        tenant: str = DEFAULT_TENANT,
        strength: int | None = None,
        limit: int | None = None,
        merges: Merges | None = None,
        blocked: Sequence[str] | None = None,
        fold_plus: bool | None = None,
        fold_dots: bool | None = None,
    ) -> Record:
        """Change what identities of a type may do; what is None stays."""
        told = {"strength": strength, "limit": limit, "merges": merges, "fold_plus": fold_plus, "fold_dots": fold_dots}
        line = acts.line("contacts.policy", f"{tenant}: {kind}", after={k: v for k, v in told.items() if v is not None})
        wanted = None if blocked is None else list(blocked)
        params = (tenant, kind, strength, limit, merges, wanted, fold_plus, fold_dots)
        found = await self._acted(_POLICY, params, line)
        if found is None:
            raise InvalidOption(f"policy of {kind}: nothing was written")
        return found

    async def _acted(self, query: str, params: Sequence[Any], line: acts.Line) -> Record | None:
        found: Record | None = (await self._database.call(query, (*params, *line)))[0][0]
        self._nudge()
        return found

    async def _one(self, query: str, *params: Any) -> Record | None:
        [(found,)] = await self._database.call(query, params)
        document: Record | None = found
        return document

    def _nudge(self) -> None:
        if self._nudger is not None:
            self._nudger.nudge(EVENTS)


def contact_id(contact: UUID | str) -> UUID:
    """An id of a contact, or ContactNotFound: no other text is one."""
    if isinstance(contact, UUID):
        return contact
    try:
        return UUID(contact)
    except ValueError:
        raise ContactNotFound(
            f"contact {contact[:60]!r}: ids are UUIDs; list them with: livewell contacts list"
        ) from None


def _missing(what: str, tenant: str, command: str) -> Record:
    raise ContactNotFound(f"{what}: tenant {tenant} has none, or it is over; see: {command} --tenant {tenant}")
