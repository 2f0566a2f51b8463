"""Settings in words: what a value is, what is allowed, what is wrong. Secrets are never shown."""

import re
from collections.abc import Sequence
from typing import Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from livewell.telemetry.redact import MASK, mask_url, redact

_SHOWN_CHARS_MAX = 80


def message(problems: list[str]) -> str:
    """All problems at once."""
    if len(problems) == 1:
        return problems[0]
    return f"{len(problems)} settings are wrong:" + "".join(f"\n  - {problem}" for problem in problems)


_ADDRESSES = ("database_url", "listen_url", "api_url", "operate_url", "hub_url")

# The addresses people mistake for ours; anything else before :// may itself be a secret.
_SCHEME = re.compile(r"(jdbc:)?(postgres(ql)?|mysql|mariadb|sqlite|redis|mongodb|https?)(\+[a-z0-9]{1,12})?://")


_FIELD = re.compile(r"[a-z_ ]{1,30}")


def places_of(name: str, details: Sequence[ErrorDetails]) -> str:
    """Which entries of a list of tables are wrong, and where: names of fields, never what stands there."""
    words: dict[str, None] = {}
    for detail in details:
        _, *place = detail["loc"] or ("",)
        if detail["loc"][:1] == (name,) and place and isinstance(place[0], int):
            field = str(place[1]) if len(place) > 1 else "what goes together"
            shown = field if _FIELD.fullmatch(field) else "a field that is not known"
            words[f"{shown} of number {place[0] + 1}"] = None
    return f". Look at: {', '.join(words)}" if words else ""


def show_given(name: str, value: object) -> str:
    """The value as an error shows it.

    Of a secret only the scheme, for what is no address cannot be masked surely.
    """
    if isinstance(value, str) and not value.strip():
        return "empty"
    if name in ("alert_channels", "sinks"):
        return MASK  # somebody may have written an address where its variable belongs
    if name not in _ADDRESSES:
        return show(value)
    secret = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    scheme = _SCHEME.match(secret)
    return f"{scheme[0] if scheme else ''}{MASK}"


def show(value: object) -> str:
    """A value that is no secret, as an error shows it."""
    shown = redact(repr(value))
    return shown if len(shown) <= _SHOWN_CHARS_MAX else shown[:_SHOWN_CHARS_MAX] + "…"


def text(value: object) -> str:
    """A value as a page shows it; passwords are hidden."""
    if isinstance(value, SecretStr):
        return mask_url(value.get_secret_value())
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, tuple):
        return ", ".join(one if isinstance(one, str) else one.name for one in value) or "none"
    return "not set" if value is None else str(value)


def typed(value: object) -> object:
    """A value as JSON shows it; passwords are hidden."""
    if isinstance(value, tuple):
        return [one if isinstance(one, str) else one.name for one in value]
    return value if value is None or isinstance(value, bool | int | float) else text(value)


def flag(name: str) -> str:
    """The setting on a command line."""
    return "--" + name.replace("_", "-")


def allowed(info: FieldInfo) -> str:
    """What a setting accepts, in words."""
    if isinstance(info.json_schema_extra, dict):
        return str(info.json_schema_extra["allowed"])
    if get_origin(info.annotation) is Literal:
        return "one of " + ", ".join(get_args(info.annotation))
    low, high = _range(info)
    kind = "a whole number" if info.annotation is int else "a number"
    return f"{kind} from {text(low)} to {text(high)}"


def _range(info: FieldInfo) -> tuple[float, float]:
    low = next(bound.ge for bound in info.metadata if hasattr(bound, "ge"))
    high = next(bound.le for bound in info.metadata if hasattr(bound, "le"))
    return low, high
