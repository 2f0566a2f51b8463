"""What people who may only look are not shown: payloads of jobs, and texts of errors.

Both may hold anything, so they are taken out of a panel's data by their names before a template
sees them. A template cannot show by mistake what it is not given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from livewell.queue.why import Why

WORDS = "(hidden: this needs the scope operate)"
NAMES = frozenset(
    {
        "detail",
        "error",
        "errors",
        "last_error",
        "operator_words",
        "payload",
        "progress_note",
        "result",
        "sample",
        "seen",
        "traceback",
        "value",
        "values",
    }
)
_DEPTH_MAX = 12


def withhold(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same data, with words in place of every text that is payload or error."""
    return {name: _hidden(name, value, 0) for name, value in data.items()}


def _hidden(name: str, value: Any, depth: int) -> Any:
    if name in NAMES and isinstance(value, list | tuple):
        return []
    if name in NAMES and isinstance(value, str | bytes | Mapping):
        return WORDS if value else ""
    return _within(value, depth + 1)


def _within(value: Any, depth: int) -> Any:
    if depth > _DEPTH_MAX:
        return WORDS
    if isinstance(value, Mapping):
        return {name: _hidden(str(name), one, depth) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_within(one, depth + 1) for one in value)
    if isinstance(value, Why):
        return value.without_errors()
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _hidden(one.name, getattr(value, one.name), depth) for one in fields(value)})
    return value
