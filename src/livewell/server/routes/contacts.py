"""Contacts, for operators: who is this, what was merged, and what somebody has to decide.

Every route takes the tenant, and shows and changes nothing of another one. An identity stands in a
body, never in an address: addresses are logged.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from livewell.apps.contacts.contacts import DEFAULT_TENANT, Contacts
from livewell.apps.contacts.identities import IDENTITIES_MAX
from livewell.apps.contacts.model import Decision, Merges, Outcome
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, page, place
from livewell.server.answers.problems import Problem, not_found
from livewell.server.depends import Operator, TheState
from livewell.server.process import ServerProcess
from livewell.server.routes.jobs import id_place
from livewell.server.routes.types import Page

router = APIRouter(prefix="/v1", tags=["contacts"])

_TENANT = Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")
TenantText = Annotated[str, _TENANT]
Tenant = Annotated[
    str, Query(min_length=1, max_length=200, pattern=r"^[^\x00]*$", description="Whose contacts these are.")
]
ContactId = Annotated[UUID, Path(description="The id of a contact.")]
Number = Annotated[int, Path(ge=1, le=2**63 - 1, description="The number of a conflict or a merge.")]
Type = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,30}(:[a-z0-9_.-]{1,60})?$", max_length=100)]
Value = Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")]


class IdentityBody(BaseModel):
    """What somebody is known by: email, external_id, external_id:shop, phone …"""

    model_config = ConfigDict(extra="forbid")

    type: Type
    value: Value


class Resolve(BaseModel):
    """Identities that belong to one person. `request`: asked again with it, the answer is the same."""

    model_config = ConfigDict(extra="forbid")

    identities: Annotated[list[IdentityBody], Field(min_length=1, max_length=IDENTITIES_MAX)]
    tenant: TenantText = DEFAULT_TENANT
    fields: dict[str, Any] | None = None
    request: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")] | None = None
    revive: bool = False


class ResolvedDocument(BaseModel):
    """Who it is. `conflicts` wait for somebody; `blocked` and `erased` are types that were left out."""

    contact: UUID | None
    outcome: Outcome
    added: int
    merged: list[UUID]
    conflicts: list[int]
    blocked: list[str]
    erased: list[str]


class Find(IdentityBody):
    """One identity of a tenant."""

    tenant: TenantText = DEFAULT_TENANT


class Decide(BaseModel):
    """merge: they are one person. apart: they are two, also from now on."""

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    tenant: TenantText = DEFAULT_TENANT


class Policy(BaseModel):
    """What identities of a type may do; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantText = DEFAULT_TENANT
    strength: Annotated[int, Field(ge=0, le=1000)] | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    merges: Merges | None = None
    blocked: Annotated[list[Value], Field(max_length=1000)] | None = None
    fold_plus: bool | None = None
    fold_dots: bool | None = None


@router.get("/contacts", response_model=Page)
async def contacts(
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    tenant: Tenant = DEFAULT_TENANT,
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """The contacts of a tenant, the newest first, each with five of its identities."""
    rows = await _contacts(state).page(tenant=tenant, after=contact_place(after), limit=limit)
    last = f"{rows[-1]['created_at'].isoformat()} {rows[-1]['id']}" if rows else None
    return JsonAnswer(page(rows, limit, last))


@router.post("/contacts/resolve", response_model=ResolvedDocument)
async def resolve(state: TheState, caller: Operator, body: Resolve) -> Any:  # noqa: ARG001 - the scope is the point
    """Who is this? The contact is found, made, added to or merged; the same call again changes nothing."""
    who = await _contacts(state).resolve(
        [(one.type, one.value) for one in body.identities],
        tenant=body.tenant,
        fields=body.fields,
        request=body.request,
        revive=body.revive,
    )
    return JsonAnswer(ResolvedDocument.model_validate(who, from_attributes=True).model_dump())


@router.post("/contacts/find", response_model=dict[str, Any])
async def find(state: TheState, caller: Operator, body: Find) -> Any:  # noqa: ARG001 - the scope is the point
    """The contact that has an identity; nothing is written."""
    found = await _contacts(state).find(body.type, body.value, tenant=body.tenant)
    if found is None:
        raise not_found()
    return JsonAnswer(found)


@router.get("/contacts/conflicts", response_model=Page)
async def conflicts(
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    tenant: Tenant = DEFAULT_TENANT,
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Pairs of contacts that are perhaps one person and wait for somebody to decide."""
    rows = await _contacts(state).conflicts(tenant=tenant, after=id_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["id"] if rows else None))


@router.post("/contacts/conflicts/{id}", response_model=dict[str, Any])
async def decide(state: TheState, caller: Operator, id: Number, body: Decide) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """Merge the two contacts of a conflict, or keep them apart."""
    return JsonAnswer(await _contacts(state).decide(id, body.decision, tenant=body.tenant))


@router.post("/contacts/merges/{id}/undo", response_model=dict[str, Any])
async def unmerge(
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    id: Number,  # noqa: A002 - as everywhere
    tenant: Tenant = DEFAULT_TENANT,
) -> Any:
    """Take a merge of the last 90 days back; asked again, the answer is the same."""
    return JsonAnswer(await _contacts(state).unmerge(id, tenant=tenant))


@router.get("/contacts/policies", response_model=Page)
async def policies(state: TheState, caller: Operator, tenant: Tenant = DEFAULT_TENANT) -> Any:  # noqa: ARG001 - the scope is the point
    """What identities of each type may do in a tenant, the strongest first."""
    rows = await _contacts(state).policies(tenant=tenant)
    return JsonAnswer(page(rows, len(rows) + 1, None))


@router.put("/contacts/policies/{type}", response_model=dict[str, Any])
async def set_policy(state: TheState, caller: Operator, type: Annotated[Type, Path()], body: Policy) -> Any:  # noqa: A002, ARG001 - the word of the field; the scope is the point
    """Change what identities of a type may do in a tenant."""
    told = body.model_dump(exclude={"tenant"})
    return JsonAnswer(await _contacts(state).set_policy(type, tenant=body.tenant, **told))


@router.get(
    "/contacts/{id}",
    response_model=dict[str, Any],
    responses={301: {"description": "It was merged: who answers for it is in Location, and in merged_into."}},
)
async def contact(state: TheState, caller: Operator, id: ContactId, tenant: Tenant = DEFAULT_TENANT) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """One contact with its identities, merges and conflicts; a merged id leads to who answers for it."""
    found = await _contacts(state).show(id, tenant=tenant)
    if found["state"] != "merged":
        return JsonAnswer(found)
    answer = JsonAnswer(found, 301)
    answer.headers["Location"] = f"/v1/contacts/{found['merged_into']}?{urlencode({'tenant': tenant})}"
    answer.headers["Cache-Control"] = "no-store"  # an unmerge takes it back
    return answer


@router.delete("/contacts/{id}", response_model=dict[str, Any])
async def erase(state: TheState, caller: Operator, id: ContactId, tenant: Tenant = DEFAULT_TENANT) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """Erase a person: hashes of the identities stay, so that a replayed event does not make them again."""
    return JsonAnswer(await _contacts(state).erase(id, tenant=tenant))


def contact_place(after: str | None, field: Literal["query.after"] = "query.after") -> tuple[datetime, UUID] | None:
    """Where a list of contacts goes on: behind one of this instant and id."""
    try:
        text = place(after)
        if not text:
            return None
        at, _, key = text.partition(" ")
        instant = datetime.fromisoformat(at)
        if instant.tzinfo is None:
            raise ValueError(at)
        return instant, UUID(key)
    except ValueError:
        raise Problem(400, "This is not a cursor of ours.", word="invalid", field=field) from None


def _contacts(state: ServerProcess) -> Contacts:
    return Contacts(state.pools.operate, state.nudger)
