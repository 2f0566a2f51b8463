"""The same version and options, rendered once more in a child of our own: the bytes have to be the same."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

from livewell.app import Livewell
from livewell.apps.resumes.demo.verdict import Row, Verdict
from livewell.exports.exporters import Exporter, ExportSource, Source
from livewell.exports.render.renderer import Renderer

_AT_ONCE = 2
_RENDER_SECONDS = 60.0


async def judge_remade(app: Livewell, rows: Sequence[Row], verdict: Verdict) -> None:
    """rows: of what was downloaded. Each reader and each render function is the product's, the run is new."""
    settings = app.settings
    kinds: dict[str, Exporter] = app.exporter.kinds
    room = asyncio.Semaphore(_AT_ONCE)
    async with Renderer(
        at_once=_AT_ONCE,
        seconds=_RENDER_SECONDS,
        bytes_max=settings.export_file_bytes_max,
        recycle_after=settings.export_child_renders_max,
        recycle_bytes=settings.export_child_bytes_max,
    ) as renderer:

        async def remake(row: Row) -> None:
            async with room:
                kind = kinds[row["kind"]]
                source = ExportSource(app.database, row["user_id"], row["document_id"], row["document_version"])
                found = await kind.read(source)
                data = found.data if isinstance(found, Source) else found
                options = json.dumps(row["options"], sort_keys=True, separators=(",", ":")).encode()
                made = await renderer.render(kind.render, data, options)
                verdict.rendered_again += 1
                if hashlib.sha256(made.data).hexdigest() != row["sha256"]:
                    verdict.wrong += 1
                    verdict.lies.append(f"export {row['id']}: rendered once more it gives other bytes")

        await asyncio.gather(*(remake(row) for row in rows))
