"""The whole system in one query (S6), and what of it stands still."""

from __future__ import annotations

import time

from livewell.capability import offered
from livewell.db import Database
from livewell.telemetry.system_state import Document, part

_STATE = "SELECT livewell.system_state()"


async def read_state(database: Database) -> Document:
    """What livewell.system_state() says: one document with a part for each package.

    And took_ms: how long asking took.
    """
    began = time.monotonic()
    [(document,)] = await database.call(_STATE)
    return {**document, "took_ms": round((time.monotonic() - began) * 1000, 1)}


def stuck(document: Document) -> list[str]:
    """What stands still now, in few words each; `livewell doctor` says more."""
    said = [line for _, lines in offered("stuck") for line in lines(document)]
    return said + [f"the part {name} could not be read: {error}" for name, error in failed_parts(document).items()]


def failed_parts(document: Document) -> dict[str, str]:
    """Parts that could not be read, and why."""
    return {
        name: str(value.get("error", ""))
        for name, value in document.items()
        if isinstance(value, dict) and value.get("how") == "failed"
    }


def how_known(document: Document, name: str) -> str:
    """`exact`, or `estimated, 4 s old`."""
    found = part(document, name)
    age = found.get("sample_age_seconds")
    return str(found.get("how", "unknown")) + (f", {max(age, 0):.0f} s old" if age is not None else "")
