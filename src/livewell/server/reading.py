"""A reading as it goes over the wire: value, verdict and provenance; the reason is a word of a closed list, never what an upstream said."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from livewell.refresh.reading import Reading

Verdict = Literal["fresh", "stale", "lagging", "unverifiable", "missing", "failing"]


class ReadingDocument(BaseModel):
    """How a reading looks, for the OpenAPI document."""

    type: str
    key: str
    verdict: Verdict
    source_at: datetime | None = Field(description="What the source says of its own time.")
    fetched_at: datetime | None = Field(description="When this content was fetched.")
    checked_at: datetime | None = Field(description="When it was last confirmed.")
    version: int = Field(description="Grows with the content.")
    status_version: int = Field(description="Grows with anything that is shown.")
    reason: str | None = Field(description="Why the last attempt failed, if it did.")
    value: Any = None


def document(reading: Reading) -> dict[str, Any]:
    """The fields, in the order of the OpenAPI document."""
    return {
        "type": reading.type,
        "key": reading.key,
        "verdict": reading.verdict,
        "source_at": reading.source_at,
        "fetched_at": reading.fetched_at,
        "checked_at": reading.checked_at,
        "version": reading.version,
        "status_version": reading.status_version,
        "reason": reading.reason,
        "value": reading.value,
    }
