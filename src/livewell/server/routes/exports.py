"""Exports of the caller's own documents: ask for them, follow them, cancel and delete them.

    POST /v1/exports ──202, id──▶ GET /v1/exports/ID?after=SEQ, or its stream ──finished──▶ POST …/link ──▶ the file

Another user's id is answered like an id that never was (E12). An id that was answers 410 with what
is known of it, for a month after its file has gone (E14). Streams are in export_stream.py, files in
export_files.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from livewell.apps.resumes.exporter import KIND as RESUME
from livewell.apps.resumes.resumes import Resumes
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, page, place
from livewell.server.answers.problems import Problem, not_found
from livewell.server.depends import Exporter, TheState
from livewell.server.process import ServerProcess

router = APIRouter(prefix="/v1", tags=["exports"])

BATCH_MAX = 10
GONE = ("expired", "deleted")
_VERSIONS_MAX = 2**31 - 1
ExportId = Annotated[UUID, Path(description="The id of an export.")]
BatchId = Annotated[UUID, Path(description="The id of a batch.")]
Steps = Annotated[int, Query(ge=0, le=2**63 - 1, description="Only steps after this number.")]
Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
FileName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*$")]
Version = Annotated[int, Field(ge=1, le=_VERSIONS_MAX)] | Annotated[str, Field(min_length=1, max_length=100)]
_PROBLEM: dict[str, Any] = {"application/problem+json": {}}
_ROOM: dict[int | str, dict[str, Any]] = {
    429: {"description": "As many exports as one may ask for in a day; Retry-After says when.", "content": _PROBLEM},
    507: {"description": "The files of this user take all the room there is for them.", "content": _PROBLEM},
}
_GONE: dict[int | str, dict[str, Any]] = {
    410: {"description": "It expired or was deleted; what is known of it is in `export`.", "content": _PROBLEM}
}
_ENDED: dict[int | str, dict[str, Any]] = {
    409: {"description": "It has ended already; see `state`.", "content": _PROBLEM}
}


class ExportOf(BaseModel):
    """A document to export. Without a version: the latest of a résumé."""

    model_config = ConfigDict(extra="forbid")

    document: Text
    version: Version | None = None
    file_name: FileName | None = None


class NewExport(ExportOf):
    """One document. Options are those of its kind; for PDFs see docs/howto/exports.md."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"document": "0b1f4e5c-6d1a-4c53-a3ff-2f6f5c3f0f11", "options": {"template": "modern"}}]
        },
    )

    kind: Text = RESUME
    options: dict[str, Any] = Field(default_factory=dict)


class NewBatch(BaseModel):
    """Up to ten documents that belong together, with the same options; fetched as one ZIP."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"documents": [{"document": "0b1f4e5c-6d1a-4c53-a3ff-2f6f5c3f0f11"}]}]},
    )

    documents: Annotated[list[ExportOf], Field(min_length=1, max_length=BATCH_MAX)]
    kind: Text = RESUME
    options: dict[str, Any] = Field(default_factory=dict)


class AcceptedExport(BaseModel):
    """It will be made. `answer`: made, or same: this very export is under way already."""

    id: UUID
    answer: str
    state: str


class AcceptedBatch(BaseModel):
    """All of them will be made."""

    id: UUID
    exports: list[AcceptedExport]


class ExportDocument(BaseModel):
    """How far an export is, and what came of it. `steps`: what happened after the number that was asked for."""

    model_config = ConfigDict(extra="allow")

    id: UUID
    kind: str
    document: str
    version: str
    state: str
    progress: int
    seq: int
    file_name: str
    reason: str | None
    bytes: int | None
    pages: int | None
    created_at: datetime
    expires_at: datetime | None


class BatchDocument(BaseModel):
    """How far a batch is, and its exports in order."""

    model_config = ConfigDict(extra="allow")

    id: UUID
    state: str
    progress: int
    seq: int
    total: int
    finished: int
    failed: int
    exports: list[ExportDocument]


class Room(BaseModel):
    """What the caller's files take, and how much there may be."""

    bytes: int
    bytes_max: int
    today: int
    daily_max: int


class ExportPage(BaseModel):
    """One page; `next` is null on the last one."""

    items: list[ExportDocument]
    next: str | None
    room: Room


class Ended(BaseModel):
    """What became of it: deleted, or cancelled."""

    answer: str


class Kinds(BaseModel):
    """What can be exported, and the templates of each kind."""

    items: list[dict[str, Any]]


@router.get("/exports", response_model=ExportPage)
async def exports(
    *,
    state: TheState,
    caller: Exporter,
    document: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")] = None,
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Your exports, the newest first; also those whose file has gone."""
    user = await state.owners.of(caller)
    rows = await state.exports.list(user=user, after=_place(after), limit=limit, document=document)
    usage, settings = await state.exports.usage(user=user), state.settings
    room = {
        "bytes": usage["stored"] + usage["reserved"],
        "bytes_max": settings.export_user_bytes_max,
        "today": usage["today"],
        "daily_max": settings.export_daily_max,
    }
    return JsonAnswer({**page(rows, limit, rows[-1]["id"] if rows else None), "room": room})


@router.post("/exports", response_model=AcceptedExport, status_code=202, responses=_ROOM)
async def request(state: TheState, caller: Exporter, body: NewExport) -> Any:
    """Export one document; the answer comes at once, the file later."""
    user = await state.owners.of(caller)
    [(document, version, name)] = await _wanted(state, user, body.kind, [body])
    made = await state.exports.request(
        body.kind, document, version=version, user=user, options=body.options, file_name=name
    )
    answer = JsonAnswer({"id": made.id, "answer": made.answer, "state": made.state}, 202)
    answer.headers["Location"] = f"/v1/exports/{made.id}"
    return answer


@router.get("/exports/kinds", response_model=Kinds)
async def kinds(state: TheState, caller: Exporter) -> Any:  # noqa: ARG001 - the scope is the point
    """What can be exported here."""
    return JsonAnswer({"items": await state.exports.kinds()})


@router.post("/exports/batch", response_model=AcceptedBatch, status_code=202, responses=_ROOM)
async def request_batch(state: TheState, caller: Exporter, body: NewBatch) -> Any:
    """Export up to ten documents together: all are accepted, or none."""
    user = await state.owners.of(caller)
    wanted = await _wanted(state, user, body.kind, body.documents)
    made = await state.exports.request_batch(body.kind, wanted, user=user, options=body.options)
    told = [{"id": one.id, "answer": one.answer, "state": one.state} for one in made.exports]
    answer = JsonAnswer({"id": made.id, "exports": told}, 202)
    answer.headers["Location"] = f"/v1/exports/batch/{made.id}"
    return answer


@router.get("/exports/batch/{id}", response_model=BatchDocument)
async def batch(state: TheState, caller: Exporter, id: BatchId, after: Steps = 0) -> Any:  # noqa: A002 - as everywhere
    """A batch with all of its exports; `changed` says whether anything is new after that number."""
    found = await state.exports.show_batch(id, user=await state.owners.of(caller), after=after)
    if found is None:
        raise not_found()
    return JsonAnswer(found)


@router.get("/exports/{id}", response_model=ExportDocument, responses=_GONE)
async def export(state: TheState, caller: Exporter, id: ExportId, after: Steps = 0) -> Any:  # noqa: A002 - as everywhere
    """One export, with its steps after a number: the same that its stream sends."""
    found = await state.exports.show(id, user=await state.owners.of(caller), after=after)
    if found is None:
        raise not_found()
    if found["state"] in GONE:
        raise gone(found["state"], found["expires_at"], export=found)
    return JsonAnswer(found)


@router.delete("/exports/{id}", response_model=Ended, responses=_GONE | _ENDED)
async def delete(state: TheState, caller: Exporter, id: ExportId) -> Any:  # noqa: A002 - as everywhere
    """Delete the file of a finished export, now; one that is not finished is cancelled."""
    user = await state.owners.of(caller)
    return await _ended(state, user, id, await state.exports.delete(id, user=user))


@router.post("/exports/{id}/cancel", response_model=Ended, responses=_GONE | _ENDED)
async def cancel(state: TheState, caller: Exporter, id: ExportId) -> Any:  # noqa: A002 - as everywhere
    """End an export that waits or runs; its room is free at once."""
    user = await state.owners.of(caller)
    return await _ended(state, user, id, await state.exports.cancel(id, user=user))


def gone(why: str, since: Any, **more: Any) -> Problem:
    """It was there: what is known of it goes with the answer."""
    words = "Its file expired." if why == "expired" else "Its file was deleted."
    return Problem(410, words, word="gone", more={"state": why, "since": since, **more})


async def _ended(state: ServerProcess, user: str, id: UUID, answer: str | None) -> JsonAnswer:  # noqa: A002 - as everywhere
    if answer is None:
        raise not_found()
    if answer in ("deleted", "cancelled"):
        return JsonAnswer({"answer": answer})
    found = await state.exports.show(id, user=user)
    if found is None:
        raise not_found()
    if found["state"] in GONE:
        raise gone(found["state"], found["expires_at"], export=found)
    raise Problem(409, f"It has ended already: {found['state']}.", word="ended", more={"state": found["state"]})


async def _wanted(
    state: ServerProcess, user: str, kind: str, asked: Sequence[ExportOf]
) -> list[tuple[str, str, str | None]]:
    """Document, version and file name of each. Of résumés we know what there is; other kinds say it later."""
    if kind != RESUME:
        if any(one.version is None for one in asked):
            raise Problem(400, "Which version? Name it.", word="invalid", field="body.version")
        return [(one.document, str(one.version), one.file_name) for one in asked]
    resumes = Resumes(state.pools.api, state.settings)
    found = []
    for one in asked:
        if isinstance(one.version, str):
            raise Problem(
                400, "This is not allowed as version.", word="invalid", field="body.version", allowed="a whole number"
            )
        known = await resumes.show(one.document, user=user, version=one.version)
        found.append((known["id"], str(known["version"]), one.file_name or known["name"]))
    return found


def _place(after: str | None) -> UUID | None:
    try:
        text = place(after)
        return UUID(text) if text else None
    except ValueError:
        raise Problem(
            400,
            "This is not a cursor of ours.",
            word="invalid",
            field="query.after",
            allowed="`next` of the page before",
        ) from None
