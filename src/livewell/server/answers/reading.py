"""A reading as it goes over the wire: value, verdict and provenance.

The reason is a word of a closed list, never what an upstream said.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from livewell.refresh.push.key_state import Numbers as NumbersOf
from livewell.refresh.read.reads import Read
from livewell.server.answers.json_answer import encode

Verdict = Literal["fresh", "stale", "lagging", "unverifiable", "missing", "failing"]
Numbers = Annotated[
    NumbersOf,
    Query(
        description="How numbers of the value are written: as JSON numbers with all their digits, or as "
        "strings, for clients whose JSON numbers have 15 digits."
    ),
]


class ReadingDocument(BaseModel):
    """How a reading looks, for the OpenAPI document."""

    type: str
    key: str
    verdict: Verdict
    source_at: datetime | None = Field(description="What the source says of its own time.")
    fetched_at: datetime | None = Field(description="When this content was fetched.")
    checked_at: datetime | None = Field(description="When it was last confirmed.")
    stale_at: datetime | None = Field(description="Until then the verdict holds, if nothing newer is heard.")
    version: int = Field(description="Grows with the content.")
    status_version: int = Field(description="Grows with anything that is shown.")
    reason: str | None = Field(description="Why the last attempt failed, if it did.")
    value: Any = None
    fresh_for_seconds: float | None = Field(
        description="How long until stale_at, when this was sent: count on your own clock, it may be wrong."
    )
    age_seconds: float | None = Field(description="How long ago it was last confirmed, when this was sent.")


def demanded(read: Read) -> dict[str, Any]:
    """What became of the demand; why nothing could, and when to ask again, where it is so."""
    told: dict[str, Any] = {"demand": read.demand}
    return told | {"throttled": read.throttled, "retry_at": read.retry_at} if read.throttled else told


def answer(read: Read, numbers: NumbersOf, headers: Mapping[str, str] | None = None) -> Response:
    """The database's own digits, with what became of the demand."""
    document = read.state.now().document(numbers=numbers)
    return Response(
        b"%b,%b" % (document[:-1], encode(demanded(read))[1:]), headers=headers, media_type="application/json"
    )
