"""What is wrong with a part of a request, in words: what was given, and what would be right.

A value from the address is repeated if it is short. Nothing else is repeated: it may be a secret
that somebody put there by mistake (F-F5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHOWN_CHARS_MAX = 16  # no key, token or password of ours is as short
_KINDS: Mapping[str, str] = {
    "bool": "true or false",
    "dict": "an object",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "an object",
    "string": "a text",
    "uuid": "a UUID",
}
_BOUNDS: Mapping[str, str] = {
    "expected": "{}",
    "pattern": "what matches {}",
    "ge": "at least {}",
    "gt": "more than {}",
    "le": "at most {}",
    "lt": "less than {}",
}


def place_of(error: Mapping[str, Any]) -> str:
    """Where it is: query.limit, body.subscriptions.0.key."""
    return ".".join(str(part) for part in error["loc"]) or "body"


def detail_of(error: Mapping[str, Any]) -> str:
    """What is wrong, of one error as pydantic tells it."""
    names = [part for part in error["loc"] if isinstance(part, str)]
    name = names[-1] if names else "body"
    kind, told = str(error["type"]), str(error["msg"])
    if kind == "missing":
        return f"{name} is missing."
    if kind == "extra_forbidden":
        return f"{name} is not known here."
    if allowed_of(error) is None:
        return told.removeprefix("Value error, ")
    if names[:1] in (["query"], ["path"]):
        return not_allowed_as(name, str(error.get("input")))
    return f"This is not allowed as {name}."


def not_allowed_as(name: str, given: str) -> str:
    """For what stood in the address."""
    if len(given) > _SHOWN_CHARS_MAX:
        return f"This is not allowed as {name}."
    return f'"{given}" is not allowed as {name}.'


def shown_name(name: str) -> str:
    """A name that somebody made up, if it is short."""
    return f'"{name}"' if len(name) <= _SHOWN_CHARS_MAX else "A parameter"


def allowed_of(error: Mapping[str, Any]) -> str | None:
    """What would be right, where that can be said."""
    kind, context = str(error["type"]), error.get("ctx") or {}
    told = [text.format(context[name]) for name, text in _BOUNDS.items() if name in context]
    unit = "characters" if kind.startswith("string") else "items"
    told += [f"at least {context['min_length']} {unit}"] if "min_length" in context else []
    told += [f"at most {context['max_length']} {unit}"] if "max_length" in context else []
    what, _, how = kind.partition("_")
    if not told and (how in ("parsing", "type") or kind == "int_from_float"):
        told = [_KINDS[what]] if what in _KINDS else []
    return ", ".join(told) or None
