"""Which jobs are meant: the filter of lists and of acts on all that match. Pure.

    address of a page, options, parameters ──from_query──▶ JobFilter ──document──▶ SQL
                                              ◀──to_query──┘  └──at_rest──▶ the same at any time

A filter names jobs of one table: live ones (no state, or one of LIVE), dead letters (failed), or
the history (succeeded, cancelled), which has no groups, keys and batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from livewell.duration import moment
from livewell.errors import InvalidOption
from livewell.model import JobState

LIVE = (JobState.DELAYED.value, JobState.HELD.value, JobState.READY.value, JobState.RUNNING.value)
IN_HISTORY = (JobState.SUCCEEDED.value, JobState.CANCELLED.value)
TIMES = ("since", "until")
STATES = (*LIVE, *IN_HISTORY, JobState.FAILED.value)
TEXT_CHARS_MAX = 512  # as long as a key may be


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Every part that is set must match.

    since and until are an age ("2h") or an instant, as written. They are of the time when a job was
    made; of dead letters (the state failed, and acts on them) of the time when it died. Only those
    have a reason.
    """

    queue: str | None = None
    task: str | None = None
    state: str | None = None
    group: str | None = None
    key: str | None = None
    since: str | None = None
    until: str | None = None
    batch: int | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in STATES:
            raise InvalidOption(f"state {self.state!r}: allowed are {', '.join(STATES)}")
        for name in ("queue", "task", "group", "key", "reason"):
            text = getattr(self, name)
            if text is not None and ("\x00" in text or len(text) > TEXT_CHARS_MAX):
                raise InvalidOption(f"{name}: at most {TEXT_CHARS_MAX} characters, without NUL")
        if self.state in IN_HISTORY and (self.group or self.key or self.batch):
            raise InvalidOption(
                f"state {self.state}: the history keeps no group, key or batch of a job; leave those out, "
                "or ask for live or failed jobs"
            )
        for name, text in ((name, getattr(self, name)) for name in TIMES):
            if text is not None:
                _moment(name, text)
        if self.batch is not None and not 0 < self.batch < 2**63:
            raise InvalidOption(f"batch {self.batch}: a batch's id is a whole number from 1 to 2^63 - 1")

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Self:
        """Of an address: what is empty is not set. Raises InvalidOption for what cannot be meant."""
        given = {one.name: query[one.name].strip() for one in fields(cls) if query.get(one.name, "").strip()}
        batch = given.pop("batch", None)
        if batch is not None and not (batch.isascii() and batch.isdigit() and len(batch) < 20):
            raise InvalidOption(f"batch {batch[:40]!r}: a batch's id is a whole number")
        return cls(**given, batch=int(batch) if batch else None)

    def to_query(self) -> dict[str, str]:
        """What from_query reads."""
        return {name: str(value) for name, value in self._set().items()}

    def document(self) -> dict[str, Any]:
        """As find_jobs takes it: an age stays an age, because the database's clock decides."""
        given = self._set()
        for name in TIMES:
            if name in given:
                given |= _moment(name, given.pop(name))
        return given

    @property
    def has_age(self) -> bool:
        """True if what it means depends on when it is asked."""
        return any(f"{name}_seconds" in self.document() for name in TIMES)

    def at_rest(self, now: datetime | None) -> Self:
        """The same with instants for ages: what it means now, it means at any time.

        Without an age it needs not to know what time it is.
        """
        found = self.document()
        for name in TIMES:
            ago = found.pop(f"{name}_seconds", None)
            if ago is not None and now is not None:
                found[name] = (now - timedelta(seconds=ago)).astimezone(UTC).isoformat()
        return replace(self, **found)

    @property
    def is_live(self) -> bool:
        """True if it is about jobs that have not ended."""
        return self.state is None or self.state in LIVE

    def _set(self) -> dict[str, Any]:
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


NAMES = tuple(one.name for one in fields(JobFilter))


def _moment(name: str, text: str) -> dict[str, Any]:
    """since_seconds or since, in the form of find_jobs."""
    at = moment(name, text)
    return {name: at.isoformat()} if isinstance(at, datetime) else {f"{name}_seconds": at}
