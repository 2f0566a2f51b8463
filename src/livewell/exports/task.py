"""The task export.render: one attempt at one export.

    begin ──▶ read 25 ──▶ render 50 ──▶ row of the file 75 ──▶ file 90 ──▶ finish: export, quota, job, 100
      │         │            │              └── no room: failed (quota)         └── cancelled: file removed
      │         └────────────┴── for good ──▶ failed, and the job ends with it
      │         └────────────┴── perhaps not next time ──▶ waiting, the job is tried again (Q6)
      └── cancelled, deleted: nothing to make, the job ends

Whatever is written shows the fence of the job. A worker that lost it is answered `fenced`, raises
OwnershipLost, and has changed nothing. A process that is killed anywhere leaves at most a file with
a row that says so, which the cleaner removes (E11).

Nothing of a document is in a log, an error or a payload (E15): an attempt that fails says one word
of model.REASONS, and a detail in our own words.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseConflict, DatabaseUnavailable, OwnershipLost
from livewell.exports.artifacts.paths import artifact_path
from livewell.exports.artifacts.store import ArtifactError, ArtifactStore
from livewell.exports.exporters import DocumentGone, Exporter, Exporters, ExportSource, Source
from livewell.exports.model import DOCUMENT_REASONS, KIND, QUEUE, REASONS, TWICE_REASONS, Document
from livewell.exports.nudges import CHANGED
from livewell.exports.render.rendered import RenderBusy, Rendered, RenderKilled, RenderRefused
from livewell.exports.rendering import Rendering
from livewell.model import Lane, Release, Retry, TaskPolicy
from livewell.queue.definition import TaskDefinition, define
from livewell.queue.job import Job
from livewell.telemetry.measures import EXPORTS

log = structlog.get_logger("livewell.exports")

_TIMEOUT_SECONDS = 840.0  # a job is taken back after 15 minutes at the latest (E4)
_THREAD_BYTES = 1_048_576  # sums of a larger file are made in a thread
_BEGIN = "SELECT livewell.begin_export(%s, %s, %s, %s, %s)"
_STEP = "SELECT livewell.step_export(%s, %s, %s, %s, %s)"
_PLAN = "SELECT livewell.plan_export_file(%s, %s, %s, %s, %s, %s, %s)"
_FINISH = "SELECT livewell.finish_export(%s, %s, %s, %s, %s::jsonb, %s)"
_FAIL = "SELECT livewell.fail_export(%s, %s, %s, %s, %s, %s, %s)"
_STORE_REASONS = {"full": "store_full", "already_there": "internal"}  # all others: store_unreachable


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt came to nothing."""

    reason: str
    detail: str = ""

    @property
    def words(self) -> str:
        """For the job's error; no more than the reason and our own detail."""
        return f"export: {self.reason}" + (f" ({self.detail})" if self.detail else "")


class _Over(Exception):
    """There is nothing to make any more; the job ends."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt, as begin_export gave it."""

    export: UUID
    job: Job
    told: Document

    @property
    def owner(self) -> tuple[int, int, int, UUID]:
        """What every write shows."""
        return self.job.worker, self.job.id, self.job.claimed.fence, self.export


class ExportTask:
    """Makes exports in one worker."""

    def __init__(
        self, database: Database, nudger: Nudger, *, exporters: Exporters, store: ArtifactStore, rendering: Rendering
    ) -> None:
        self._database = database
        self._settings = database.settings
        self._nudger = nudger
        self._exporters = exporters
        self._store = store
        self._rendering = rendering

    @property
    def task(self) -> TaskDefinition:
        """What the worker runs."""
        return define(self.render, name=KIND, policy=TaskPolicy(QUEUE, None, _TIMEOUT_SECONDS, Lane.PEOPLE, 0, 1))

    async def render(self, export: UUID, job: Job) -> None:
        """One attempt."""
        fence = job.claimed.fence
        told: Document = (
            await self._database.call(_BEGIN, (job.worker, job.id, fence, export, self._settings.export_user_bytes_max))
        )[0][0]
        if _owned(told["answer"], job) == "over":
            return
        self._changed()
        exporter = self._exporters.kinds.get(told["kind"])
        if exporter is None:
            raise Release(f"no exporter for kind {told['kind']!r} in this worker", after=30)
        attempt = _Attempt(export, job, told)
        try:
            failure = await self._make(attempt, exporter)
        except _Over:
            self._count("over")
            return
        if failure is None:
            self._count("finished")
            self._changed()
        else:
            await self._fail(attempt, failure)

    async def _make(self, attempt: _Attempt, exporter: Exporter) -> Failure | None:
        """All steps; answers why it came to nothing."""
        source = await self._read(attempt, exporter)
        if isinstance(source, Failure):
            return source
        await self._step(attempt, 25)
        rendered = await self._render(attempt, exporter, source.data)
        if isinstance(rendered, Failure):
            return rendered
        await self._step(attempt, 50)
        size = len(rendered.data)
        if size > self._settings.export_file_bytes_max:
            return Failure("too_large", f"{size:,} bytes; at most {self._settings.export_file_bytes_max:,}")
        result = (await _sums(rendered)) | {"as_of": source.as_of.isoformat() if source.as_of else None}
        path = artifact_path(attempt.told["user"], attempt.export, attempt.job.claimed.fence, attempt.told["suffix"])
        planned = await self._call(_PLAN, *attempt.owner, path, size, self._settings.export_user_bytes_max)
        if planned == "full":
            raise _Over  # the export has failed with `quota` already
        self._go_on(planned, attempt)
        try:
            await self._store.put(path, rendered.data, content_type=attempt.told["content_type"])
        except ArtifactError as error:
            self._rendering.store_failed(error)
            return Failure(_STORE_REASONS.get(error.reason, "store_unreachable"), error.detail or error.reason)
        self._rendering.store_answered()
        await self._step(attempt, 90)
        await self._finish(attempt, path, result)
        return None

    async def _read(self, attempt: _Attempt, exporter: Exporter) -> Source | Failure:
        told = attempt.told
        source = ExportSource(self._database, told["user"], told["document"], told["version"])
        try:
            found = await exporter.read(source)
        except DocumentGone:
            return Failure("document_gone")
        except (DatabaseUnavailable, DatabaseConflict):
            raise  # nobody's fault: the worker hands the job back
        except Exception as error:  # noqa: BLE001 - its text may be the document's
            return _unexpected("read", error)
        return found if isinstance(found, Source) else Source(found)

    async def _render(self, attempt: _Attempt, exporter: Exporter, document: bytes) -> Rendered | Failure:
        options = json.dumps(attempt.told["options"], sort_keys=True, separators=(",", ":")).encode()
        try:
            return await self._rendering.render(exporter.render, document, options)
        except RenderRefused as refused:
            return Failure(refused.reason if refused.reason in REASONS else "bad_document", refused.detail)
        except RenderKilled as killed:
            return Failure(killed.reason if killed.reason in REASONS else "died")
        except RenderBusy:
            raise Release("so many documents wait already that this one was not taken", after=1) from None
        except Exception as error:  # noqa: BLE001 - see _read
            return _unexpected("render", error)

    async def _finish(self, attempt: _Attempt, path: str, result: Document) -> None:
        """Export, quota and job, together; of what was cancelled meanwhile the file goes."""
        job = attempt.job
        async with job.transaction() as tx:
            params = (
                job.id,
                job.claimed.fence,
                attempt.export,
                path,
                json.dumps(result),
                self._settings.export_days,
            )
            said = _owned((await tx.fetch(_FINISH, params))[0][0], job)
        if said == "over":
            await self._remove(attempt.told["user"], path)
            raise _Over

    async def _remove(self, user: str, path: str) -> None:
        """At once; the cleaner does it if this fails."""
        try:
            await self._store.delete(path)
        except ArtifactError as error:
            self._rendering.store_failed(error)
            return
        await self._call("SELECT livewell.forget_export_file(%s, %s)", user, path)

    async def _fail(self, attempt: _Attempt, failure: Failure) -> None:
        """For good, with the job, or until the next attempt."""
        job, reason, detail = attempt.job, failure.reason, failure.detail or None
        self._count(reason)
        log.info("an export failed", export=str(attempt.export), reason=reason, detail=detail, attempt=job.attempt)
        if reason in DOCUMENT_REASONS or (reason in TWICE_REASONS and job.attempt >= 2):
            async with job.transaction() as tx:
                _owned((await tx.fetch(_FAIL, (*attempt.owner, reason, False, detail)))[0][0], job)
            self._changed()
            return
        params = (*attempt.owner, reason, True, detail)
        said = _owned((await self._database.call(_FAIL, params))[0][0], job)
        self._changed()
        if said != "over":
            raise Retry(failure.words)

    async def _step(self, attempt: _Attempt, progress: int) -> None:
        self._go_on(await self._call(_STEP, *attempt.owner, progress), attempt)
        self._changed()

    def _go_on(self, said: str, attempt: _Attempt) -> None:
        if _owned(said, attempt.job) == "over":
            raise _Over

    async def _call(self, query: str, *params: Any) -> str:
        return str((await self._database.call(query, params))[0][0])

    def _changed(self) -> None:
        self._nudger.nudge(CHANGED)

    def _count(self, outcome: str) -> None:
        EXPORTS.add(outcome)


def _owned(said: str, job: Job) -> str:
    """What a function answered, unless it is that somebody else owns the job."""
    if said == "fenced":
        raise OwnershipLost(f"job {job.id}: another worker owns it by now")
    return said


def _unexpected(step: str, error: Exception) -> Failure:
    """What nobody has foreseen; its text may hold the document's, so only its type is told."""
    kind = type(error).__name__
    log.warning("an export failed unexpectedly", step=step, error=kind)
    return Failure("internal", f"{step}: {kind}"[:300])


async def _sums(rendered: Rendered) -> Document:
    """Bytes, pages and checksums of a file."""

    def make() -> Document:
        data = rendered.data
        return {
            "bytes": len(data),
            "pages": rendered.pages,
            "sha256": hashlib.sha256(data).hexdigest(),
            "crc32": zlib.crc32(data),
        }

    return make() if len(rendered.data) <= _THREAD_BYTES else await asyncio.to_thread(make)
