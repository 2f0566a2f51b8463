"""The app that workers of F-F11 run: one kind of export, from documents that need no table.

`livewell worker tests.faults.export_app:app --queue exports`, as anybody would start it.
"""

from __future__ import annotations

from livewell.app import Livewell
from livewell.exports.exporters import ExportSource
from tests.faults.export_sheet import content

KIND = "sheet"

app = Livewell()


@app.exporter(
    KIND,
    render="tests.faults.export_sheet:render",
    templates=("minimal",),
    content_type="application/octet-stream",
    suffix="bin",
    bytes_estimate=200_000,
)
async def read(source: ExportSource) -> bytes:
    """Every document exists in every version."""
    return content(source.document, source.version)
