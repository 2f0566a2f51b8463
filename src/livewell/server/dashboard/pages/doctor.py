"""What is wrong, and what mends it? The findings of the doctor, the most severe first."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from livewell.server.dashboard.visit import Loaded, Panel, Visit
from livewell.server.findings import Diagnosis
from livewell.telemetry.redact import redact

LEVELS = {"P0": "Now: something does not work", "P1": "Today", "P2": "This week"}
TONES = {"P0": "bad", "P1": "warn", "P2": "none"}


async def panels(visit: Visit) -> list[Panel]:
    """Every known failure: what was seen, what it means, and what mends it."""

    async def load() -> Loaded:
        diagnosis = await visit.state.looks.findings.look()
        if diagnosis is None:
            return Loaded({"levels": [], "tones": TONES}, stale="the first examination is not over yet.", is_open=True)
        data = {"levels": grouped(diagnosis), "tones": TONES}
        return Loaded(data, diagnosis.at, diagnosis.error, is_empty=not diagnosis.findings and not diagnosis.error)

    return [Panel("findings", "Findings", "doctor.html", load, "All is well: the doctor found nothing.")]


def grouped(diagnosis: Diagnosis) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """(level, what that means, findings); secrets are taken out, as in `livewell doctor`."""
    return [
        (level, LEVELS[level], [{name: redact(text) for name, text in one.document().items()} for one in several])
        for level, several in groupby(diagnosis.findings, key=lambda one: one.level)
    ]
