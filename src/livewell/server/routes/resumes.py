"""Résumé documents, each of one user: write, read, change, delete, and look at page one.

A caller with the scope `export` sees their own documents and no other: another one's id is answered
like an id that never was (E12). A document stands in a body, never in an address: addresses are
logged.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from livewell.apps.resumes.resumes import NAME_CHARS_MAX, REQUEST_BYTES_MAX, Record, Resumes, Written
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, number_after, page, place
from livewell.server.answers.problems import Problem
from livewell.server.depends import Exporter, TheState
from livewell.server.process import ServerProcess
from livewell.server.routes.types import Page

router = APIRouter(prefix="/v1", tags=["resumes"])

_EXAMPLE: dict[str, Any] = {"basics": {"name": "Ann Lee", "label": "Engineer", "email": "ann@example.com"}}
DocumentId = Annotated[UUID, Path(description="The id of a document.")]
Version = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="One of its versions; without it the latest.")]
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX, pattern=r"^[^\x00]*$")]


class NewResume(BaseModel):
    """A document to keep. `request`: asked again with it, the answer is the same document."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "For Acme", "document": _EXAMPLE}]}
    )

    document: Annotated[dict[str, Any], Field(description="A document in the format of JSON Resume (jsonresume.org).")]
    name: Name | None = None
    request: Annotated[str, Field(min_length=1, max_length=REQUEST_BYTES_MAX, pattern=r"^[ -~]*$")] | None = None


class ChangedResume(BaseModel):
    """Its next version. `version`: the one that was changed; if there is a newer one by now, nothing is written."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"version": 1, "document": _EXAMPLE}]})

    document: dict[str, Any]
    version: Annotated[int, Field(ge=1, le=2**31 - 1)]
    name: Name | None = None


class PreviewOf(BaseModel):
    """A document that need not be kept, and how it shall look; options as in POST /v1/exports."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"document": _EXAMPLE}]})

    document: dict[str, Any]
    options: dict[str, Any] = Field(default_factory=dict)


class WrittenResume(BaseModel):
    """Where a document is now. `is_new`: false if it was so already, and nothing was written."""

    id: UUID
    version: int
    is_new: bool


class ResumeDocument(BaseModel):
    """A document with one of its versions; `latest` is the newest one."""

    id: UUID
    name: str
    version: int
    latest: int
    bytes: int
    hash: str
    created_at: datetime
    changed_at: datetime
    written_at: datetime
    document: dict[str, Any]


_PNG: dict[int | str, dict[str, Any]] = {
    200: {"description": "A picture of page one.", "content": {"image/png": {}}},
}
_FULL: dict[int | str, dict[str, Any]] = {
    507: {"description": "The user has as many documents as one may have.", "content": {"application/problem+json": {}}}
}
_NEWER: dict[int | str, dict[str, Any]] = {
    409: {"description": "There is a newer `version`.", "content": {"application/problem+json": {}}},
    **_FULL,
}


@router.get("/resumes", response_model=Page)
async def resumes(state: TheState, caller: Exporter, limit: Limit = 50, after: After = None) -> Any:
    """Your documents, the one that changed last first."""
    user = await state.owners.of(caller)
    rows = await _resumes(state).page(user=user, after=_place(after), limit=limit)
    last = f"{rows[-1]['changed_at'].isoformat()} {rows[-1]['id']}" if rows else None
    return JsonAnswer(page(rows, limit, last))


@router.post("/resumes", response_model=WrittenResume, status_code=201, responses=_FULL)
async def create(state: TheState, caller: Exporter, body: NewResume) -> Any:
    """Keep a document."""
    user = await state.owners.of(caller)
    made = await _resumes(state).create(body.document, user=user, name=body.name, request=body.request)
    return _written(made, 201)


@router.post(
    "/resumes/import",
    response_model=WrittenResume,
    status_code=201,
    responses=_FULL,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}, "example": _EXAMPLE}},
        }
    },
)
async def import_resume(
    request: Request, state: TheState, caller: Exporter, name: Annotated[Name | None, Query()] = None
) -> Any:
    """Keep a resume.json as it is: the body is the file."""
    user = await state.owners.of(caller)
    return _written(await _resumes(state).create(await request.body(), user=user, name=name), 201)


@router.post("/resumes/preview", response_class=Response, responses=_PNG)
async def preview(state: TheState, caller: Exporter, body: PreviewOf) -> Response:
    """A picture of page one, as the export would have it."""
    user = await state.owners.of(caller)
    picture = await state.previews.picture(body.document, body.options, user=user)
    headers = {"Cache-Control": "no-store"}
    if picture.pages is not None:
        headers["X-Pages"] = str(picture.pages)
    return Response(picture.data, headers=headers, media_type="image/png")


@router.get("/resumes/{id}", response_model=ResumeDocument)
async def resume(state: TheState, caller: Exporter, id: DocumentId, version: Version = None) -> Any:  # noqa: A002 - as everywhere
    """One document, with what is in it."""
    found = await _resumes(state).show(id, user=await state.owners.of(caller), version=version)
    return JsonAnswer(with_document(found))


@router.get("/resumes/{id}/versions", response_model=Page)
async def versions(
    state: TheState,
    caller: Exporter,
    id: DocumentId,  # noqa: A002 - as everywhere
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Its versions, the newest first."""
    try:
        before = number_after(after) or None
    except ValueError:
        raise _no_cursor() from None
    user = await state.owners.of(caller)
    rows = await _resumes(state).versions(id, user=user, before=before, limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["version"] if rows else None))


@router.put("/resumes/{id}", response_model=WrittenResume, responses=_NEWER)
async def change(state: TheState, caller: Exporter, id: DocumentId, body: ChangedResume) -> Any:  # noqa: A002 - as everywhere
    """Write its next version."""
    user = await state.owners.of(caller)
    return _written(
        await _resumes(state).change(id, body.document, user=user, expected=body.version, name=body.name), 200
    )


@router.delete("/resumes/{id}", status_code=204)
async def delete(state: TheState, caller: Exporter, id: DocumentId) -> Response:  # noqa: A002 - as everywhere
    """Delete a document and its versions; what was exported of it stays in the history."""
    await _resumes(state).delete(id, user=await state.owners.of(caller))
    return Response(status_code=204)


def with_document(record: Record) -> Record:
    """What is in it as an object instead of a text."""
    told = {name: value for name, value in record.items() if name != "content"}
    return {**told, "document": json.loads(record["content"])}


def _resumes(state: ServerProcess) -> Resumes:
    return Resumes(state.pools.api, state.settings)


def _written(made: Written, status: int) -> JsonAnswer:
    answer = JsonAnswer({"id": made.id, "version": made.version, "is_new": made.is_new}, status)
    if status == 201:
        answer.headers["Location"] = f"/v1/resumes/{made.id}"
    return answer


def _place(after: str | None) -> tuple[datetime, UUID] | None:
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
        raise _no_cursor() from None


def _no_cursor() -> Problem:
    return Problem(
        400,
        "This is not a cursor of ours.",
        word="invalid",
        field="query.after",
        allowed="`next` of the page before",
    )
