"""What became of a key that was asked for.

One of seven results, the same from the call to the store. Pure.

    Value      rows that may be stored
    Same       the upstream says that nothing has changed
    Missing    the upstream says that there is no such key
    Failure    nothing to store, with the reason and whose fault it is
    Singly     a call for several keys failed as a whole: ask for each key alone
    Unproven   the answer may belong to another question: ask again on a new connection (ADR 0011)
    Forgotten  what is stored is not what the question was about: ask again for all of it

`fetch` makes a result where there is no body to look at, `validate` makes one for each key from the
body, and `store` takes them as they are. After the last three the job goes back to the queue, and
nobody is to blame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from livewell.model import Blame
from livewell.refresh.definition.model import JSON
from livewell.refresh.reasons import Reason


@dataclass(frozen=True, slots=True)
class Value:
    """Rows with a value for every column, as livewell.write_values takes them (without the key).

    etag and last_modified: what to ask "has it changed?" with the next time.
    """

    outcome: ClassVar[str] = "value"  # the word that store_refreshes knows it by

    rows: list[dict[str, JSON]]
    source_at: datetime | None
    event_at: datetime | None
    content_hash: bytes  # of the content alone: equal for equal rows, in whatever order fields and rows came
    added_fields: tuple[str, ...]  # the upstream has added these: accepted, not stored, counted
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Same:
    """Not modified since the value with this hash."""

    outcome: ClassVar[str] = "same"

    content_hash: bytes


@dataclass(frozen=True, slots=True)
class Missing:
    """The upstream answered that there is no such key.

    For a key that had data this is the upstream's fault (R13), which the store knows.
    """

    outcome: ClassVar[str] = "missing"


@dataclass(frozen=True, slots=True)
class Failure:
    """Nothing to store, and why; detail is bounded."""

    outcome: ClassVar[str] = "failed"

    reason: Reason
    detail: str
    blame: Blame
    retry_after_seconds: float | None = None
    field: str | None = None  # the column, where it is about one


@dataclass(frozen=True, slots=True)
class Singly:
    """A call for several keys was refused, or its answer as a whole.

    No key is blamed before each was asked for alone.
    """

    outcome: ClassVar[str] = "singly"

    detail: str
    endpoint: bool = False  # the endpoint itself may be closed to us, whatever is asked


@dataclass(frozen=True, slots=True)
class Unproven:
    """The answer came on a shared connection and does not repeat what was asked."""

    outcome: ClassVar[str] = "unproven"

    detail: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Settled days of a history have changed: the whole history is needed."""

    outcome: ClassVar[str] = "forgotten"

    detail: str


Result = Value | Same | Missing | Failure | Singly | Unproven | Forgotten
Results = Mapping[str, Result]  # by key
