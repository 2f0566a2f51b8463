"""What people who may only look are not shown: payloads of jobs, and texts of errors.

Both may hold anything, so they are taken out of a panel's data by their names before a template
sees them. A template cannot show by mistake what it is not given.

The same holds for why a page or a panel could not be read: an error of the database may hold the
statement that was running, and its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from livewell.errors import (
    ActNotFound,
    AlertNotFound,
    ContactNotFound,
    DatabaseUnavailable,
    EventNotFound,
    InvalidOption,
    JobNotFound,
    UnknownLimiter,
    UnknownQueue,
    UnknownSchedule,
    UnknownSink,
    UnknownType,
)
from livewell.queue.why import Why
from livewell.refresh.why import WhyKey
from livewell.server.answers.problems import Problem

WORDS = "(hidden: this needs the scope operate)"
NO_ANSWER = "the database did not answer in time"
NO_WORDS = "this could not be read; an operator sees why"
NOTHING_NEWER = "nothing newer could be read; an operator sees why"
GONE = (
    ActNotFound,
    AlertNotFound,
    EventNotFound,
    ContactNotFound,
    JobNotFound,
    UnknownLimiter,
    UnknownQueue,
    UnknownSchedule,
    UnknownSink,
    UnknownType,
)
_OPEN = (Problem, InvalidOption, *GONE)  # they say in our own words what was asked for
NAMES = frozenset(
    {
        "away_reason",
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
        "test_detail",
        "traceback",
        "value",
        "values",
    }
)
_DEPTH_MAX = 12


def withhold(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same data, with words in place of every text that is payload or error."""
    return {name: _hidden(name, value, 0) for name, value in data.items()}


def reason_of(error: Exception, *, may_operate: bool) -> str:
    """Why something could not be read or done, for people who may see errors or may not."""
    if may_operate or isinstance(error, _OPEN):
        return str(error)
    return NO_ANSWER if isinstance(error, DatabaseUnavailable) else NO_WORDS


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
    if isinstance(value, Why | WhyKey):
        return value.without_errors()
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _hidden(one.name, getattr(value, one.name), depth) for one in fields(value)})
    return value
