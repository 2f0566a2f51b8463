"""Résumés as a kind of export: where a version is read, and what renders it.

request_export ──job──▶ read(user, document, version) ──canonical JSON──▶ render in a child ──▶ PDF
                             └──deleted meanwhile──▶ DocumentGone: the export fails with document_gone
"""

from __future__ import annotations

import json

from livewell.app import Livewell
from livewell.apps.resumes.resumes import SHOW
from livewell.exports.exporters import DocumentGone, ExportSource

KIND = "resume"
TEMPLATES = ("minimal", "modern", "compact")
BYTES_ESTIMATE = 200_000  # reserved before it is known; ten times what a page has


def declare(app: Livewell) -> None:
    """Called once, before an app opens."""

    @app.exporter(
        KIND,
        render="livewell.apps.resumes.render:render",
        templates=TEMPLATES,
        content_type="application/pdf",
        suffix="pdf",
        bytes_estimate=BYTES_ESTIMATE,
    )
    async def read(source: ExportSource) -> bytes:
        """The version that the export was asked for, as it was written."""
        [(found,)] = await source.database.call(SHOW, (source.user, source.document, int(source.version)))
        if found is None:
            raise DocumentGone
        return dated(found["content"], found["written_at"])


def dated(content: str, written_at: str) -> bytes:
    """With the instant of its version, which the file is dated with: the same version gives the same bytes."""
    document = json.loads(content)
    document["meta"] = {**document.get("meta", {}), "lastModified": written_at}
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
