"""A migrator in a process of its own, which begins when all of them are there."""

from __future__ import annotations

from typing import Any

from livewell.db.migrate import migrate


def migrate_at(dsn: str, barrier: Any, answers: Any) -> None:
    """Put the report, or the error as text, into the queue."""
    barrier.wait(300)
    try:
        answers.put(migrate(dsn, wait_seconds=300))
    except Exception as error:  # noqa: BLE001 - the parent asserts that there was none
        answers.put(f"{type(error).__name__}: {error}")
