"""Who is this? Contacts of one tenant, by look-up or by list, and what somebody has to decide."""

from __future__ import annotations

from urllib.parse import urlencode

from livewell.apps.contacts.contacts import DEFAULT_TENANT, Contacts
from livewell.apps.contacts.model import Decision
from livewell.server.answers.json_answer import cursor
from livewell.server.answers.problems import Problem, not_found
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Loaded, Panel, Visit, loaded
from livewell.server.routes.contacts import contact_place
from livewell.words import number

_TENANT_CHARS_MAX = 200
_NOBODY = (
    "This tenant has no contacts yet. A program makes them with: app.contacts.resolve, or POST /v1/contacts/resolve"
)


async def panels(visit: Visit) -> list[Panel]:
    """The form to look somebody up, what waits for a decision, and the newest contacts."""
    tenant, contacts = visit.asked("tenant") or DEFAULT_TENANT, Contacts(visit.database)
    after, query = contact_place(visit.query.get("after")), urlencode({"tenant": tenant})

    async def search() -> Loaded:
        return loaded(tenant=tenant)

    async def undecided() -> Loaded:
        rows = await contacts.conflicts(tenant=tenant, after=visit.number_asked("conflict"), limit=PAGE_ROWS)
        following = cursor(rows[-1]["id"]) if len(rows) == PAGE_ROWS else None
        return loaded(conflicts=rows, tenant=tenant, query=query, next=following, is_empty=not rows)

    async def newest() -> Loaded:
        rows = await contacts.page(tenant=tenant, after=after, limit=PAGE_ROWS)
        last = f"{rows[-1]['created_at'].isoformat()} {rows[-1]['id']}" if len(rows) == PAGE_ROWS else None
        following = None if last is None else cursor(last)
        return loaded(contacts=rows, query=query, next=following, is_empty=not rows)

    return [
        Panel("search", "Look somebody up", "contacts/search.html", search),
        Panel(
            "conflicts", "Perhaps one person", "contacts/conflicts.html", undecided, "Nobody has to decide anything."
        ),
        Panel("contacts", "The newest first", "contacts/list.html", newest, _NOBODY),
    ]


async def one_contact(visit: Visit) -> list[Panel]:
    """One contact: what it is known by, what was merged into it, and what can be done."""
    tenant = visit.asked("tenant") or DEFAULT_TENANT
    found = await Contacts(visit.database).show(visit.parts["id"], tenant=tenant)
    query = urlencode({"tenant": tenant})

    async def facts() -> Loaded:
        return loaded(contact=found, tenant=tenant, query=query)

    if found["state"] != "live":
        return [Panel("contact", "This id", "contacts/gone.html", facts)]

    async def merges() -> Loaded:
        return loaded(merges=found["merges"], tenant=tenant, query=query, is_empty=not found["merges"])

    async def conflicts() -> Loaded:
        return loaded(conflicts=found["conflicts"], query=query, is_empty=not found["conflicts"])

    return [
        Panel("contact", "What it is known by", "contacts/contact.html", facts),
        Panel("merges", "What was merged", "contacts/merges.html", merges, "Nothing was merged in the last 90 days."),
        Panel(
            "pairs",
            "Others that are perhaps the same",
            "contacts/pairs.html",
            conflicts,
            "Nobody else is perhaps this person.",
        ),
    ]


async def find(visit: Visit) -> Done:
    """Look somebody up by an identity, or by an id; in a form, since addresses are logged."""
    tenant, text = _tenant(visit), visit.form.get("value", "").strip()
    kind = visit.form.get("type", "").strip()
    found = None
    if text and "\x00" not in text + kind:
        contacts = _acting(visit)
        found = await (contacts.look_up(kind, text, tenant=tenant) if kind else contacts.show(text, tenant=tenant))
    if found is None:
        return Done(f"Nobody of tenant {tenant} has this identity.", f"/contacts?{urlencode({'tenant': tenant})}")
    return Done("Found.", _page(found["id"], tenant))


async def decide(visit: Visit) -> Done:
    """Merge the two contacts of a conflict, or keep them apart."""
    tenant, said = _tenant(visit), visit.form.get("decision", "")
    if said not in ("merge", "apart"):
        raise Problem(400, "Say merge or apart.", word="invalid", field="body.decision", allowed="merge, apart")
    decision: Decision = "merge" if said == "merge" else "apart"
    found = await _acting(visit).decide(visit.number("id"), decision, tenant=tenant)
    if decision == "apart":
        return Done("They are kept apart from now on.", f"/contacts?{urlencode({'tenant': tenant})}")
    return Done("They are one contact now.", _page(found["contact"], tenant))


async def unmerge(visit: Visit) -> Done:
    """Take a merge back."""
    tenant = _tenant(visit)
    found = await _acting(visit).unmerge(visit.number("id"), tenant=tenant)
    left = len(found["not_split"]) + len(found["fields_not_split"])
    said = f"It lives again, with {number(len(found['restored']))} identities; {number(len(found['stayed']))} that came later stayed"
    return Done(f"{said}{f', {left} could not be split' if left else ''}.", _page(found["loser"], tenant))


async def erase(visit: Visit) -> Done:
    """Erase a person."""
    tenant = _tenant(visit)
    found = await _acting(visit).erase(visit.parts["id"], tenant=tenant)
    said = (
        f"Erased: {number(found['identities'])} identities. Hashes stay, so that a replayed event makes nobody again."
    )
    return Done(said, f"/contacts?{urlencode({'tenant': tenant})}")


def _tenant(visit: Visit) -> str:
    tenant = visit.form.get("tenant", "") or DEFAULT_TENANT
    if "\x00" in tenant or len(tenant) > _TENANT_CHARS_MAX:
        raise not_found()
    return tenant


def _page(contact: object, tenant: str) -> str:
    return f"/contacts/{contact}?{urlencode({'tenant': tenant})}"


def _acting(visit: Visit) -> Contacts:
    return Contacts(visit.state.pools.operate, visit.state.nudger)
