"""The files of exports: a link for a while, the file itself, and a batch as one ZIP.

    POST /v1/exports/ID/link ──▶ url ──GET, no login: the signature is it──▶ the file, whole or in parts
    GET /v1/exports/batch/ID/zip ──▶ what is ready by now, a manifest first

A link is minted at each click and lives for an hour at most. Deleting the export ends it at once,
because the row is asked at each download. A download counts once, when its first byte is asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from livewell.exports.downloads import Answer, answer, etag
from livewell.exports.zip.archive import Archive
from livewell.server.answers.json_answer import JsonAnswer
from livewell.server.answers.problems import Problem, not_found
from livewell.server.depends import Exporter, TheState
from livewell.server.process import ServerProcess
from livewell.server.routes.exports import GONE, BatchId, ExportId, gone
from livewell.server.streams.file_answer import FileAnswer

router = APIRouter(prefix="/v1", tags=["exports"])

ZIP = "application/zip"
_PROBLEM: dict[str, Any] = {"application/problem+json": {}}
_CONTENT: dict[str, Any] = {"application/octet-stream": {}}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": _CONTENT},
    206: {"description": "The part that Range asked for.", "content": _CONTENT},
    304: {"description": "It is the file that If-None-Match names."},
    410: {"description": "The file expired or was deleted.", "content": _PROBLEM},
    412: {"description": "It is not the file that If-Match names."},
    416: {"description": "The file has no such part; Content-Range says how long it is."},
}
_NOT_YET: dict[int | str, dict[str, Any]] = {
    409: {"description": "There is no file: see `state`.", "content": _PROBLEM},
    410: _FILE[410],
}
_ZIP: dict[int | str, dict[str, Any]] = {
    **_FILE,
    409: {"description": "Not all of it is ready; the counts say what is.", "content": _PROBLEM},
}


class LinkDocument(BaseModel):
    """Where the file can be loaded from, by whoever has the address, until then."""

    url: str
    expires_at: datetime


@router.post("/exports/{id}/link", response_model=LinkDocument, responses=_NOT_YET)
async def link(state: TheState, caller: Exporter, id: ExportId) -> Any:  # noqa: A002 - as everywhere
    """Mint a link for the file of a finished export."""
    made = await state.exports.link(id, user=await state.owners.of(caller))
    if made is None:
        raise not_found()
    _check_there(made)
    return JsonAnswer({"url": made["url"], "expires_at": made["until"]})


@router.get("/exports/batch/{id}/zip", response_class=Response, responses=_ZIP)
@router.head("/exports/batch/{id}/zip", include_in_schema=False)
async def batch_zip(
    request: Request,
    state: TheState,
    caller: Exporter,
    id: BatchId,  # noqa: A002 - as everywhere
    complete: Annotated[bool, Query(description="Answer 409 unless every export has its file.")] = False,  # noqa: FBT002 - of the address
) -> Response:
    """What is ready of a batch, as one ZIP. It begins with a manifest, which also lists what is not there."""
    user = await state.owners.of(caller)
    files = await state.exports.batch_files(id, user=user)
    if files is None:
        raise not_found()
    counts = dict(files.counts)
    if complete and not files.complete:
        words = f"{len(files.exports)} of {len(files.members)} files are there."
        raise Problem(409, words, word="incomplete", more={"counts": counts})
    if not files.exports and set(counts) <= set(GONE):
        raise gone(next(iter(counts)), None, counts=counts)
    archive = Archive(files.members, {"batch": str(id)})
    told = answer(
        request.headers,
        tag=etag(archive.etag),
        length=archive.length,
        content_type=ZIP,
        file_name=f"exports-{str(id)[:8]}.zip",
        method=request.method,
    )
    complete_header = {"X-Batch-Complete": "true" if files.complete else "false"}
    with ExitStack() as held:
        pieces = None
        if told.has_body and request.method == "GET":
            held.enter_context(state.downloads.take(user))  # before the store is asked for anything
            await archive.check(state.exports.store)
            pieces = archive.stream(state.exports.store, told.start, told.end)
            if told.is_from_the_start:
                await state.exports.count_downloads(files.exports, user=user)
        return _file(state, told, pieces, held.pop_all(), complete_header)


@router.get("/download/{signed}", response_class=Response, responses=_FILE)
@router.head("/download/{signed}", include_in_schema=False)
async def download(
    request: Request,
    state: TheState,
    signed: Annotated[str, Path(max_length=1024, description="What a link ends with.")],
) -> Response:
    """The file of a link. Nobody has to log in: who has the link may load it, until it ends."""
    found = await state.exports.open_download(signed)
    if found is None:
        raise not_found()
    _check_there(found)
    told = answer(
        request.headers,
        tag=etag(found["sha256"]),
        length=found["bytes"],
        content_type=found["content_type"],
        file_name=found["file_name"],
        method=request.method,
    )
    with ExitStack() as held:
        pieces = None
        if told.has_body and request.method == "GET":
            held.enter_context(state.downloads.take(found["user"]))
            pieces = await state.exports.store.read(found["path"], told.start, told.end)
            if told.is_from_the_start:
                await state.exports.count_downloads([found["id"]], user=found["user"])
        return _file(state, told, pieces, held.pop_all())


def _file(
    state: ServerProcess,
    told: Answer,
    pieces: AsyncIterator[bytes] | None,
    held: ExitStack,
    more: Mapping[str, str] | None = None,
) -> FileAnswer:
    return FileAnswer(
        told.status, {**told.headers, **(more or {})}, pieces, held=held, send_seconds=state.settings.push_send_seconds
    )


def _check_there(found: Mapping[str, Any]) -> None:
    """Raise the problem that says why there is no file."""
    if found["answer"] == "gone":
        raise gone(found["state"], found["since"])
    if found["answer"] != "there":
        words = "It failed." if found["state"] == "failed" else f"There is no file: it is {found['state']}."
        told = {name: found.get(name) for name in ("state", "reason", "progress")}
        raise Problem(409, words, word="no-file", more=told)
