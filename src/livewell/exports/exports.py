"""`app.exports`: ask for files of documents, follow them, fetch them.

made = await app.exports.request("resume", "42", version="7", user="ann", options={"template": "modern"})
seen = await app.exports.show(made.id, user="ann")          # state, progress, steps
link = await app.exports.link(made.id, user="ann")          # once it is finished

Every call says for which user, and reaches what is that user's alone: an id of another user is
answered with None, as one that never was.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, Self
from uuid import UUID, uuid4

import structlog

from livewell.db import Database
from livewell.db.database import Transaction
from livewell.db.foreign import Foreign, fetch_in
from livewell.db.nudge import Nudger
from livewell.db.open_app import OpenApp
from livewell.errors import (
    DatabaseConflict,
    InvalidOption,
)
from livewell.exports.answers import batch_files, check_made, check_text, file_name, requested
from livewell.exports.artifacts.links import LinkKeys
from livewell.exports.artifacts.open import open_store
from livewell.exports.artifacts.store import ArtifactError, ArtifactStore
from livewell.exports.exporters import Exporters
from livewell.exports.follow import ExportFollower, ExportProgress
from livewell.exports.model import BATCH_MAX, QUEUE, BatchFiles, Document, Requested, RequestedBatch
from livewell.exports.nudges import CHANGED
from livewell.exports.options import canonical, read_options
from livewell.queue.nudges import CANCEL
from livewell.telemetry import tracing

log = structlog.get_logger("livewell.exports")

Documents = list[Document]  # in the class `list` is the method
Item = tuple[str, str, str | None]  # document, version, file name
_REQUEST = "SELECT livewell.request_exports(%s, %s::jsonb, %s::jsonb, %s, %s::jsonb, %s)"
_FILES = "SELECT livewell.read_export_files(%s, %s)"
_TRIES = 5
_CLOCK_SECONDS = 10.0  # the database's clock is asked again after this
_DOWNLOAD = "/v1/download/"


class ExportingApp(OpenApp, Protocol):
    """An app, as far as this module knows it."""

    @property
    def exporter(self) -> Exporters:
        """What it declares."""


class Exports:
    """Exports of one database and one store."""

    def __init__(
        self,
        database: Database,
        *,
        store: ArtifactStore | None = None,
        keys: LinkKeys | None = None,
        exporters: Exporters | None = None,
        nudger: Nudger | None = None,
    ) -> None:
        self._database = database
        self._settings = database.settings
        self._store = store
        self._keys = keys
        self._exporters = exporters
        self._suffixes: dict[str, str] = {}  # of kinds that programs elsewhere declare
        self._nudger = nudger
        self._progress = ExportProgress(database)
        if nudger is not None:
            nudger.attach(self.hear)
        self._clock: tuple[float, float] | None = None  # monotonic, and the database's then

    @classmethod
    def of(cls, app: ExportingApp) -> Self:
        """For an open app."""
        return cls(app.database, exporters=app.exporter, nudger=app.nudger)

    @property
    def store(self) -> ArtifactStore:
        """Where the files are; opened when it is first needed."""
        if self._store is None:
            self._store = open_store(self._settings)
        return self._store

    @property
    def keys(self) -> LinkKeys:
        """What signs links; read when it is first needed."""
        if self._keys is None:
            self._keys = LinkKeys.of(self._settings)
        return self._keys

    async def close(self) -> None:
        """Let go of the store and of followers."""
        if self._nudger is not None:
            self._nudger.detach(self.hear)
        await self._progress.close()
        if self._store is not None:
            await self._store.close()

    # -- asking -----------------------------------------------------------------------------------

    async def request(
        self,
        kind: str,
        document: str,
        *,
        version: str,
        user: str,
        options: Mapping[str, Any] | None = None,
        file_name: str | None = None,
        id: UUID | None = None,  # noqa: A002 - it is the export's id, and called so everywhere
        tx: Transaction | Foreign | None = None,
    ) -> Requested:
        """Ask for one. The same version with the same options, while it is unfinished, is the same export.

        Raises InvalidOption, ExportQuotaFull, ExportDailyLimit. With an id of yours the call can be
        repeated safely after an unknown outcome.
        """
        items = await self._items(kind, [(document, version, file_name)], options, [id or uuid4()])
        answer = await self._request(user, items, None, None, tx)
        return requested(answer["items"][0])

    async def request_batch(
        self,
        kind: str,
        documents: Sequence[Item],
        *,
        user: str,
        options: Mapping[str, Any] | None = None,
        id: UUID | None = None,  # noqa: A002 - see request
        follow_up: Mapping[str, Any] | None = None,
        tx: Transaction | Foreign | None = None,
    ) -> RequestedBatch:
        """Ask for up to ten together: all are made, or none.

        documents: document, version and file name (or None) of each. follow_up: a job for when all
        have ended, however: {"queue": …, "kind": …, "payload": {…}}, of a task that is declared.
        """
        if not 1 <= len(documents) <= BATCH_MAX:
            raise InvalidOption(f"{len(documents)} documents: 1 to {BATCH_MAX} are allowed in one batch")
        batch = id or uuid4()
        # Ids that follow from the batch's: the same call again names the same exports.
        ids = [UUID(bytes=hashlib.sha256(batch.bytes + bytes((n,))).digest()[:16], version=4) for n in range(BATCH_MAX)]
        items = await self._items(kind, documents, options, ids)
        answer = await self._request(user, items, batch, follow_up, tx)
        return RequestedBatch(batch, tuple(requested(one) for one in answer["items"]))

    async def _items(
        self, kind: str, documents: Sequence[Item], options: Mapping[str, Any] | None, ids: Sequence[UUID]
    ) -> Documents:
        model = None if self._exporters is None else self._exporters.options_of(kind)
        found = read_options(options) if model is None else read_options(options, model)
        written = canonical(found)
        suffix = await self._suffix(kind)
        items = []
        for one, (document, version, name) in zip(ids, documents, strict=False):
            check_text("document", document, 200)
            check_text("version", version, 100)
            items.append(
                {
                    "id": str(one),
                    "kind": kind,
                    "document": document,
                    "version": version,
                    "options": json.loads(written),
                    "hash": hashlib.sha256(written).hexdigest(),
                    "file_name": file_name(name or document, suffix),
                }
            )
        return items

    async def _suffix(self, kind: str) -> str:
        """As it is declared here or, in a server, by a program elsewhere."""
        known = None if self._exporters is None else self._exporters.kinds.get(kind)
        if known is not None:
            return known.suffix
        if kind not in self._suffixes:
            self._suffixes = {one["name"]: one["suffix"] for one in await self.kinds()}
        return self._suffixes.get(kind, "pdf")  # of a kind that nobody declares nothing is made

    async def _request(
        self,
        user: str,
        items: Documents,
        batch: UUID | None,
        follow: Mapping[str, Any] | None,
        tx: Transaction | Foreign | None,
    ) -> Document:
        settings = self._settings
        limits = {"bytes_max": settings.export_user_bytes_max, "day_max": settings.export_daily_max}
        params = (
            user,
            json.dumps(items, ensure_ascii=False),
            json.dumps(limits),
            batch,
            None if follow is None else json.dumps(follow),
            tracing.carried(),
        )
        if tx is None:
            answer: Document = await self._repeated(lambda: self._database.call(_REQUEST, params))
            self._nudge(QUEUE)
        else:
            answer = (await fetch_in(tx, _REQUEST, params))[0][0]
            if isinstance(tx, Transaction):
                tx.on_commit.append(lambda: self._nudge(QUEUE))
        check_made(answer)
        return answer

    async def _repeated(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Repeats what Postgres ended for a conflict of locks: nothing of it was done."""
        for left in reversed(range(_TRIES)):
            try:
                return (await call())[0][0]
            except DatabaseConflict:
                if left == 0:
                    raise
        raise AssertionError("unreachable")

    # -- looking ----------------------------------------------------------------------------------

    async def show(self, id: UUID, *, user: str, after: int = 0) -> Document | None:  # noqa: A002 - see request
        """One export, with its steps after a number; None if the user has none with that id.

        `state` is waiting, running, finished, expired, deleted, failed or cancelled.
        """
        return await self._one("SELECT livewell.show_export(%s, %s, %s)", user, id, after)

    async def show_batch(self, id: UUID, *, user: str, after: int = 0) -> Document | None:  # noqa: A002 - see request
        """A batch with its exports; `changed` says whether anything came after that number."""
        return await self._one("SELECT livewell.show_export_batch(%s, %s, %s)", user, id, after)

    async def list(
        self, *, user: str, after: UUID | None = None, limit: int = 50, document: str | None = None
    ) -> Documents:
        """A page of the user's exports, the newest first; also those whose file is gone.

        after: the id of the last one before.
        """
        rows = await self._database.call("SELECT livewell.list_exports(%s, %s, %s, %s)", (user, after, limit, document))
        return [row[0] for row in rows]

    async def usage(self, *, user: str) -> Document:
        """Bytes stored and reserved, and how many were asked for today."""
        found = await self._one("SELECT livewell.show_export_usage(%s)", user)
        return found or {}

    async def kinds(self) -> Documents:
        """What can be exported, with the templates of each kind."""
        return [row[0] for row in await self._database.call("SELECT livewell.list_export_kinds()")]

    async def follow(self, id: UUID, *, user: str, after: int = 0) -> ExportFollower | None:  # noqa: A002 - see request
        """Follow an export: every step after a number, until it has ended. None if there is none."""
        return await self._progress.follow(id, user, after=after, is_batch=False)

    async def follow_batch(self, id: UUID, *, user: str, after: int = 0) -> ExportFollower | None:  # noqa: A002 - see request
        """Follow a batch: how it is whenever something of it has changed."""
        return await self._progress.follow(id, user, after=after, is_batch=True)

    def unfollow(self, follower: ExportFollower) -> None:
        """Stop following."""
        self._progress.unfollow(follower)

    def hear(self, nudge: str) -> None:
        """Tell it of every nudge that this process hears: followers are then told at once."""
        if nudge in (CHANGED, ""):
            self._progress.wake()

    # -- ending -----------------------------------------------------------------------------------

    async def cancel(self, id: UUID, *, user: str) -> str | None:  # noqa: A002 - see request
        """Cancel what has not ended: cancelled, or ended (too late); None if there is none."""
        found = await self._one("SELECT livewell.cancel_export(%s, %s)", user, id)
        return None if found is None else self._told(found)

    async def delete(self, id: UUID, *, user: str) -> str | None:  # noqa: A002 - see request
        """Give up the file of a finished export, now; cancel one that has not ended.

        deleted, cancelled, or ended (there is no file); None if there is none. If the store does
        not answer the file is removed later; nobody can fetch it meanwhile.
        """
        found = await self._one("SELECT livewell.delete_export(%s, %s)", user, id)
        if found is None:
            return None
        for path in found.get("paths", ()):
            await self._remove(user, path)
        return self._told(found)

    async def _remove(self, user: str, path: str) -> None:
        try:
            await self.store.delete(path)
        except ArtifactError as error:
            log.warning("a deleted file is still in the store", reason=error.reason, detail=error.detail)
            return
        await self._database.call("SELECT livewell.forget_export_file(%s, %s)", (user, path))

    def _told(self, found: Document) -> str:
        answer = str(found["answer"])
        if answer == "cancelled":
            self._nudge(CANCEL)
        if answer != "ended":
            self._nudge(CHANGED)
        return answer

    # -- fetching ---------------------------------------------------------------------------------

    async def link(self, id: UUID, *, user: str) -> Document | None:  # noqa: A002 - see request
        """A link to the file for a while.

        {answer: there, url, until} | {answer: gone, state, since} | {answer: none, state, reason};
        None if there is none. A link of the store itself counts as a download.
        """
        found = await self._file(user, id)
        if found is None or found["answer"] != "there":
            return found
        seconds = int(min(self._settings.export_link_seconds, max(1, found["left_seconds"])))
        until = int(found["now"]) + seconds
        url = self.store.presign(
            found["path"], seconds, file_name=found["file_name"], content_type=found["content_type"]
        )
        if url is not None:
            await self.count_downloads([id], user=user)
        return {
            "answer": "there",
            "url": url or _DOWNLOAD + self.keys.sign(id, user, until),
            "until": datetime.fromtimestamp(until, UTC),
        }

    async def open_download(self, signed: str) -> Document | None:
        """What a link of ours gives: the file with `path`, `bytes`, `sha256` …, or gone, or none.

        None: the link is forged, cut or over, or its export is not there.
        """
        link = self.keys.check(signed, int(await self._now()))
        if link is None:
            return None
        found = await self._file(link.user, link.export)
        return None if found is None else {**found, "id": link.export, "user": link.user}

    async def count_downloads(self, ids: Sequence[UUID], *, user: str) -> None:
        """Count one download of each."""
        await self._database.call("SELECT livewell.count_downloads(%s, %s)", (user, list(ids)))

    async def batch_files(self, id: UUID, *, user: str) -> BatchFiles | None:  # noqa: A002 - see request
        """What the ZIP of a batch is made of; None if the user has no such batch."""
        rows: Documents | None = (await self._database.call(_FILES, (user, id)))[0][0]
        if rows is None:
            return None
        return batch_files(id, rows)

    async def _file(self, user: str, id: UUID) -> Document | None:  # noqa: A002 - see request
        return await self._one("SELECT livewell.read_export_file(%s, %s)", user, id)

    async def _now(self) -> float:
        """The database's clock, at most ten seconds old and counted on from there."""
        local = time.monotonic()
        if self._clock is None or local - self._clock[0] > _CLOCK_SECONDS:
            told = (await self._database.call("SELECT extract(epoch FROM livewell.now())::float8"))[0][0]
            self._clock = local, told
        return self._clock[1] + local - self._clock[0]

    async def _one(self, query: str, *params: Any) -> Document | None:
        found: Document | None = (await self._database.call(query, params))[0][0]
        return found

    def _nudge(self, name: str) -> None:
        if self._nudger is not None:
            self._nudger.nudge(name)
        else:
            self.hear(name)


__all__ = ["ExportFollower", "Exports", "Item"]
