"""An app with exporters of a test's own, a real worker, a real folder: what a test of exports drives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from livewell import Livewell
from livewell.exports.duties import clean
from livewell.exports.exporters import DocumentGone, ExportSource
from livewell.settings import Settings
from livewell.testing.processes import eventually_async

Document = dict[str, Any]
RENDERS = "tests.support.renders:"
ENDED = ("finished", "failed", "cancelled", "expired", "deleted")


class Desk:
    """Documents are texts by name; each kind renders them with the function of that name."""

    def __init__(self, settings: Settings, folder: Path, *kinds: str) -> None:
        self.folder = folder
        self.documents: dict[str, bytes] = {}
        self.app = Livewell(settings.model_copy(update={"export_store": str(folder)}))
        for kind in kinds:
            self.app.exporter(
                kind, render=RENDERS + kind, suffix="txt", content_type="text/plain", bytes_estimate=1000
            )(self._read)

    async def _read(self, source: ExportSource) -> bytes:
        if source.document not in self.documents:
            raise DocumentGone
        return self.documents[source.document]

    async def ask(self, kind: str, document: str, text: bytes | None = None, user: str = "ann") -> UUID:
        if text is not None:
            self.documents[document] = text
        return (await self.app.exports.request(kind, document, version="1", user=user)).id

    async def show(self, export: UUID, user: str = "ann") -> Document:
        found = await self.app.exports.show(export, user=user)
        assert found is not None
        return found

    async def until(self, export: UUID, *states: str, reason: str | None = None, user: str = "ann") -> Document:
        seen: Document = {}

        async def reached() -> bool:
            nonlocal seen
            seen = await self.show(export, user)
            return seen["state"] in states and (reason is None or seen["reason"] == reason)

        await eventually_async(reached, timeout=40, what=f"the export is {states}")
        return seen

    async def hasten(self, export: UUID) -> None:
        """Let its next attempt begin now."""

        async def hastened() -> bool:
            query = "SELECT livewell.hasten_job(job_id) FROM livewell.export WHERE id = %s"
            return bool((await self.app.database.call(query, (export,)))[0][0])

        await eventually_async(hastened, timeout=20, what="its job waits for the next attempt")

    async def clean(self) -> int:
        return (await clean(self.app.database, self.app.exports.store, grace_seconds=0)).removed

    async def scalar(self, query: str, *params: object) -> Any:
        return (await self.app.database.call(query, params))[0][0]

    def files(self) -> list[Path]:
        """Every file of the store that is one of an export."""
        return sorted(path for path in self.folder.rglob("*.txt") if path.is_file())

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        worker = self.app.worker(queues=["exports"])
        running = asyncio.create_task(worker.run())
        await asyncio.wait([running, asyncio.create_task(worker.started.wait())], return_when=asyncio.FIRST_COMPLETED)
        try:
            yield
        finally:
            worker.stop()
            await running


def written(document: bytes, options: dict[str, Any]) -> bytes:
    """What `echo` makes of it."""
    return document + json.dumps(options, sort_keys=True, separators=(",", ":")).encode()
