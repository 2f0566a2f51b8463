"""Warn of fields that an upstream has added: they are accepted, not stored, and counted (R14).

Once per field and process.
"""

from __future__ import annotations

import asyncio

import structlog

from livewell.errors import DatabaseError
from livewell.limits.walls import Call
from livewell.refresh.result import Results, Value

log = structlog.get_logger("livewell.refresh")

_FIELDS_MAX = 20  # named in one warning
_WARNED_MAX = 10_000  # fields of one process


class AddedFields:
    """The fields this process has warned of."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._warned: set[tuple[str, str]] = set()

    def note(self, data_type: str, results: Results) -> None:
        """These came for this type."""
        added = {field for result in results.values() if isinstance(result, Value) for field in result.added_fields}
        new = sorted(field for field in added if (data_type, field) not in self._warned)[:_FIELDS_MAX]
        if new and len(self._warned) < _WARNED_MAX:
            self._warned |= {(data_type, field) for field in new}
            asyncio.get_running_loop().create_task(
                self._warn(f"{data_type}: the upstream added fields", ", ".join(new))
            )

    async def _warn(self, what: str, sample: str) -> None:
        try:
            await self._call("SELECT livewell.warn('refresh', %s, %s)", (what, sample))
        except DatabaseError as error:
            log.warning("cannot warn", what=what, error=str(error))
