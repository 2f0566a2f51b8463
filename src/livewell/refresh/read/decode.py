"""From the database's JSON text to Python.

Every number of a numeric column becomes a Decimal, whatever its digits. All other values are what
JSON says (R30).

    numeric → Decimal, trailing zeros kept     bigint, integer → int     double → float     jsonb → as json.loads gives it

JSON has one kind of number; only the type's columns say which of them are money. orjson has no
Decimal, and a float keeps 15 digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def decode(text: str, columns: Mapping[str, str]) -> Any:
    """A row or a list of rows; columns: the type of each.

    A fraction in a column that is not known is a Decimal, too: nothing is lost.
    """
    if columns and "numeric" not in columns.values():
        return json.loads(text)
    value = json.loads(text, parse_float=Decimal)
    for row in value if isinstance(value, list) else [value]:
        for name, cell in row.items():
            kind = columns.get(name)
            if cell is None:
                continue
            if kind == "numeric":
                row[name] = Decimal(cell)
            elif kind == "double":
                row[name] = float(cell)
            elif kind == "jsonb":
                row[name] = _floats(cell)
    return value


def _floats(value: Any) -> Any:
    """What is inside a jsonb column is not ours to interpret."""
    if isinstance(value, dict):
        return {name: _floats(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_floats(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value
