"""What there is to fetch, as plain values: an upstream and a type.

They are checked when they are read (upstream_file.py, type_file.py).

The type is the one source of its table, of the schema that answers are checked against, and of the
statement that stores them (contract 22): `columns` below is all that any of the three knows about a
column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from livewell.limits.limiter import Limits
from livewell.refresh.definition.key_pattern import KeyPattern
from livewell.refresh.queues import queue_name

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
Path = tuple[str, ...]  # names of fields, from the row inwards
Bound = Decimal | date | datetime
ColumnType = Literal["text", "numeric", "bigint", "integer", "double", "boolean", "date", "timestamptz", "jsonb"]
TimeFormat = Literal["unix_seconds", "unix_millis", "date", "datetime"]
RowsKind = Literal["one", "set", "series"]
Rule = Literal["age", "session", "after_event"]

ROWS_MAX = 10_000
COLUMNS_MAX = 200


@dataclass(frozen=True, slots=True)
class UpstreamDefinition:
    """An outside API. Credentials are names of environment variables, never what they hold."""

    name: str
    base_url: str
    credential_in: str | None  # header:<name> or query:<name>
    credentials: tuple[str, ...]
    vocabulary: str
    counts: str
    limits: Limits
    document: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a time stands in a row, and how it is written.

    A time without an offset is in the zone.
    """

    path: Path
    format: TimeFormat
    zone: str


@dataclass(frozen=True, slots=True)
class Column:
    """One column: where its value stands in a row, what it must be, and what bounds it."""

    name: str
    path: Path
    type: ColumnType
    nullable: bool
    minimum: Bound | None = None
    maximum: Bound | None = None
    above_min: bool = False  # the minimum itself is not allowed
    below_max: bool = False
    max_length: int | None = None  # characters of a text; bytes of a jsonb
    one_of: tuple[str, ...] = ()
    empty_is_null: bool = False
    format: TimeFormat | None = None
    zone: str = "UTC"

    def registered(self, *, key: bool) -> dict[str, Any]:
        """The column as data_type.columns has it.

        All that the table and the upsert are made from.
        """
        bounds: dict[str, Any] = {
            "min": None if self.minimum is None else _written(self.minimum),
            "max": None if self.maximum is None else _written(self.maximum),
            "above_min": self.above_min or None,
            "below_max": self.below_max or None,
            "max_length": self.max_length if self.type == "text" else None,
            "one_of": list(self.one_of) or None,
        }
        stated = {name: value for name, value in bounds.items() if value is not None}
        return {"name": self.name, "type": self.type, "nullable": self.nullable, "key": key, "bounds": stated}


@dataclass(frozen=True, slots=True)
class Call:
    """A path and a query with {key} or {keys} in them.

    A parameter with {from} is left out when the whole history is asked for.
    """

    path: str
    query: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """One call for many keys."""

    call: Call
    keys_max: int
    separator: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """How one key, or many, is asked for."""

    call: Call
    pattern: KeyPattern
    body_bytes_max: int
    batch: Batch | None
    revision_days: int | None = None  # of a history: what is older does not change any more (changed_tail.py)


@dataclass(frozen=True, slots=True)
class Shape:
    """What an answer must look like."""

    rows: str  # JMESPath, see rows_path.py
    kind: RowsKind
    key: Path | None  # None: the file says that the upstream does not say
    row_key: tuple[str, ...]  # columns
    source_time: Moment | None
    max_source_age_seconds: float | None
    future_max_seconds: float
    rule: Rule
    calendar: str | None
    event: Moment | None
    empty: Literal["missing", "rejected"]
    transform: str | None
    ignore: frozenset[str]  # fields that are known and not stored


@dataclass(frozen=True, slots=True)
class Sample:
    """One recorded answer; the file is applied only if it validates."""

    key: str
    recorded: date
    body: str


@dataclass(frozen=True, slots=True, eq=False)
class TypeDefinition:
    """A kind of data. There is no default time to live: the file states it (contract 13).

    Definitions are compared by identity: objects that are prepared from a definition are cached
    under it.
    """

    name: str
    title: str
    upstream: str
    ttl_seconds: float
    negative_ttl_seconds: float
    strategy: Literal["on_demand", "scheduled"]
    cron: str | None
    zone: str | None
    size_estimate: int
    pool: str | None
    prefetch: bool
    fetch: Fetch
    answer: Shape
    columns: tuple[Column, ...]
    sample: Sample
    document: Mapping[str, Any] = field(repr=False)

    @property
    def keys_max(self) -> int:
        """How many keys one call may ask for."""
        return self.fetch.batch.keys_max if self.fetch.batch else 1

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that tell rows of one key apart."""
        return self.answer.row_key

    @property
    def rows_kind(self) -> RowsKind:
        """One row per key, a set that is replaced as a whole, or a series that grows."""
        return self.answer.kind

    @property
    def queue(self) -> str:
        """Where its jobs wait."""
        return queue_name(self.upstream, self.pool)

    def registered_columns(self) -> list[dict[str, Any]]:
        """data_type.columns."""
        return [column.registered(key=column.name in self.row_key) for column in self.columns]


def _written(bound: Bound) -> str:
    return format(bound, "f") if isinstance(bound, Decimal) else bound.isoformat()
