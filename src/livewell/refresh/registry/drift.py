"""Do the tables still look like their definitions?

The definition is the only source of both (contract 22); this finds what was changed by hand.

Three things must agree: the definition as it was applied, data_type.columns (what the upsert is
made from), and the live table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from livewell.errors import InvalidDefinition
from livewell.refresh.registry.registry import Call, read_type_row


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference, and the SQL that would end it where there is some."""

    type: str
    what: str
    statement: str | None


async def find_drift(call: Call) -> list[Drift]:
    """Every difference of every type."""
    rows = await call(
        "SELECT t.name, t.version, t.definition::text, t.columns::text FROM livewell.data_type t ORDER BY t.name",
        (),
    )
    found: list[Drift] = []
    for name, version, definition, columns in rows:
        found += _in_registry(name, version, definition, json.loads(columns))
        differences = await call(
            "SELECT c.what, c.statement FROM livewell.compare_table(%s, %s::jsonb) AS c", (name, columns)
        )
        found += [Drift(name, what, statement) for what, statement in differences]
    return found


def _in_registry(name: str, version: int, definition: str, columns: list[dict[str, Any]]) -> list[Drift]:
    again = f"Apply its file again: livewell types apply {name}.toml"
    try:
        wanted = read_type_row((name, version, definition)).definition.registered_columns()
    except InvalidDefinition as error:
        return [Drift(name, f"its definition cannot be read: {error}", None)]
    by_name = {column["name"]: column for column in columns}
    if {column["name"]: column for column in wanted} != by_name:
        return [Drift(name, f"data_type.columns is not what its definition says. {again}", None)]
    return []
