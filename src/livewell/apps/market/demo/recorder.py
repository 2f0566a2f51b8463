"""Record every value that is ever stored, and every verdict on a watched row, for the judge.

Values are noted by a trigger on each table, verdicts every two seconds. The judge compares both
with the simulator's log. Reading the tables at the end would miss a wrong value that was
overwritten in between.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from livewell.apps.market.demo.figures import Row
from livewell.apps.market.simulator.oracle.judge import Stored
from livewell.apps.market.simulator.oracle.verdict_check import Claim, Verdict
from livewell.db import Database

_CLAIMS_MAX = 200_000
_CLAIM_SECONDS = 2.0
_WRITTEN_MAX = 200_000  # rows; an endless demo keeps the newest
_PAGE = 20_000

_PREPARE = """
CREATE SCHEMA livewell_demo;
CREATE TABLE livewell_demo.written (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL, data_type text NOT NULL, value jsonb NOT NULL);
CREATE FUNCTION livewell_demo.note() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO livewell_demo.written (at, data_type, value) VALUES (now(), TG_TABLE_NAME, to_jsonb(NEW));
    RETURN NULL;
END
$$;
"""
_NOTE = (
    "CREATE TRIGGER livewell_demo AFTER INSERT OR UPDATE ON livewell_data.{} FOR EACH ROW EXECUTE FUNCTION "
    "livewell_demo.note()"
)
_READ = "SELECT w.id, w.at, w.data_type, w.value FROM livewell_demo.written w WHERE w.id > %s ORDER BY w.id LIMIT %s"
_FORGET = "DELETE FROM livewell_demo.written w WHERE w.id <= (SELECT max(id) - %s FROM livewell_demo.written)"


class Recorder:
    """Records what is stored and what is said of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._claims: deque[Claim] = deque(maxlen=_CLAIMS_MAX)
        self._heard: datetime | None = None

    async def prepare(self, types: Iterable[str]) -> None:
        """After the types were applied; the names are the registry's."""
        async with self._database.transaction() as tx:
            for statement in _PREPARE.split(";\n", 2):
                await tx.execute(statement)
            for name in types:
                await tx.execute(_NOTE.format(name))

    def hear(self, rows: Sequence[Row]) -> None:
        """Remember what is said of each row, not more often than every two seconds."""
        if not rows or (self._heard is not None and (rows[0].at - self._heard).total_seconds() < _CLAIM_SECONDS):
            return
        self._heard = rows[0].at
        for row in rows:
            if row.verdict in get_args(Verdict):
                self._claims.append(
                    Claim(row.type, row.key, row.verdict, row.at, row.ttl_seconds, row.max_source_age_seconds)  # type: ignore[arg-type] # it is one of the words
                )

    @property
    def claims(self) -> Sequence[Claim]:
        """All that was said."""
        return self._claims

    async def forget(self) -> None:
        """Keep the newest only."""
        await self._database.call(_FORGET, (_WRITTEN_MAX,))

    async def stored(self) -> list[Stored]:
        """All that was written: the rows of one key in one transaction are one value."""
        notes: list[tuple[datetime, str, dict[str, Any]]] = []
        after = 0
        while page := await self._database.call(_READ, (after, _PAGE)):
            after = page[-1][0]
            notes += [(at, name, value) for _, at, name, value in page]
        notes.sort(key=_which)
        return [_value(list(group)) for _, group in itertools.groupby(notes, key=_which)]


def _which(note: tuple[datetime, str, dict[str, Any]]) -> tuple[str, str, datetime]:
    at, name, value = note
    return name, value["key"], at


def _value(notes: Sequence[tuple[datetime, str, dict[str, Any]]]) -> Stored:
    at, name, first = notes[0]
    source = first.get("timestamp")
    return Stored(
        name,
        first["key"],
        [value for _, _, value in notes],
        source_at=datetime.fromtimestamp(source, UTC) if name == "quote" and isinstance(source, int) else None,
        fetched_at=at,
    )
