"""What rendering needs in one worker: the children, the store's health, and the report of both.

    begun ──▶ children ready (warm, if anything was ever exported) ──▶ a report every ten seconds ──▶ closed

A worker of an installation that exports nothing has no child and touches no store: the first export
starts one.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from livewell.db import Database
from livewell.errors import DatabaseError
from livewell.exports.artifacts.store import ArtifactError, ArtifactStore
from livewell.exports.exporters import Exporters
from livewell.exports.render.rendered import Rendered, RenderKilled
from livewell.exports.render.renderer import Renderer

log = structlog.get_logger("livewell.exports")

_REPORT_SECONDS = 10.0
_CHECK_SECONDS, _CHECK_AGAIN_SECONDS = 300.0, 30.0  # while the store answers, and while it does not
_DEATHS_SECONDS = 600.0  # deaths of spare children that are told
_PAGE_BYTES = 4096
_REPORT = "SELECT livewell.report_renderer(%s, %s::jsonb)"
_EVER = "SELECT EXISTS (SELECT FROM livewell.export)"


class Rendering:
    """The renderer of one worker, and how its store is."""

    def __init__(
        self,
        database: Database,
        *,
        exporters: Exporters,
        store: ArtifactStore,
        holder: str,
        make: Callable[..., Renderer] = Renderer,
    ) -> None:
        self._database = database
        self._exporters = exporters
        self._store = store
        self._holder = holder
        self._make = make
        self._renderer: Renderer | None = None
        self._ready = asyncio.Event()
        self._store_reason: str | None = None
        self._checked_at = 0.0  # monotonic; 0: never
        self._is_used = False  # a store that nobody uses is neither made nor asked
        self._deaths: deque[float] = deque()  # monotonic
        self._failed_starts = 0

    async def render(self, function: str, document: bytes, options: bytes) -> Rendered:
        """In a child; waits until there is a renderer.

        Once more if the child died: somebody killed it, or the machine had no memory left. The next
        attempt of the job would be a minute away (Q6), and the document is seldom the reason.
        """
        await self._ready.wait()
        self._is_used = True
        assert self._renderer is not None  # noqa: S101 - ready says so
        try:
            return await self._renderer.render(function, document, options)
        except RenderKilled as killed:
            if killed.reason != "died":
                raise
        return await self._renderer.render(function, document, options)

    def store_failed(self, error: ArtifactError) -> None:
        """An operation of the store failed; `not_there` is an answer like any other."""
        if error.reason not in ("not_there", "already_there"):
            self._store_reason = f"{error.reason}: {error.detail}" if error.detail else error.reason

    def store_answered(self) -> None:
        """An operation of the store went well."""
        self._store_reason = None

    async def run(self) -> None:
        """Beside the handlers, until the worker has stopped."""
        settings = self._database.settings
        self._is_used = await self._ever()
        renders = self._exporters.renders.values() if self._is_used else ()
        renderer = self._make(
            at_once=settings.export_renders_max,
            seconds=settings.export_render_seconds,
            bytes_max=settings.export_file_bytes_max,
            recycle_after=settings.export_child_renders_max,
            recycle_bytes=settings.export_child_bytes_max,
            functions=tuple(dict.fromkeys(renders)),
            fonts=[str(folder) for folder in settings.export_fonts],
        )
        try:
            async with renderer:
                self._renderer = renderer
                self._ready.set()
                while True:
                    await self._check_store()
                    await self._report(self._told(renderer))
                    await asyncio.sleep(_REPORT_SECONDS)
        finally:
            await self._report(None)
            await self._store.close()

    async def _ever(self) -> bool:
        try:
            return bool((await self._database.call(_EVER))[0][0])
        except DatabaseError:
            return True

    async def _check_store(self) -> None:
        """Now and then, and sooner while it fails: an idle worker shall know, too."""
        pause = _CHECK_SECONDS if self._store_reason is None else _CHECK_AGAIN_SECONDS
        now = time.monotonic()
        if not self._is_used or (self._checked_at and now - self._checked_at < pause):
            return
        self._checked_at = now
        try:
            await self._store.check()
        except ArtifactError as error:
            self.store_failed(error)
        else:
            self.store_answered()

    def _told(self, renderer: Renderer) -> dict[str, Any]:
        stats, now = renderer.stats(), time.monotonic()
        self._deaths.extend([now] * (stats.failed_starts - self._failed_starts))
        self._failed_starts = stats.failed_starts
        while self._deaths and now - self._deaths[0] > _DEATHS_SECONDS:
            self._deaths.popleft()
        return {
            "rss_bytes": own_bytes(),
            "children_bytes": stats.rss,
            "bytes_max": self._database.settings.export_worker_bytes_max,
            "renders": stats.renders,
            "children": stats.children,
            "spare_deaths": len(self._deaths),
            "killed": dict(stats.killed_by_reason),
            "store_reason": self._store_reason,
        }

    async def _report(self, report: dict[str, Any] | None) -> None:
        try:
            await self._database.call(_REPORT, (self._holder, None if report is None else json.dumps(report)))
        except DatabaseError as error:
            log.debug("cannot report what rendering uses", error=str(error))


def own_bytes() -> int:
    """The memory of this process; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
