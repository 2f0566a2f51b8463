"""Fields that the options of several kinds have, and how a mapping becomes checked options.

A refusal names the option, its value and what is allowed. The value of an option that is unknown,
or that should name a variable, is not shown: somebody may have written a secret there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from livewell.errors import ConfigurationError
from livewell.telemetry.redact import names_secret, redact

_VALUE_CHARS_MAX = 100

Variable = Annotated[str, Field(pattern=r"^env:[A-Za-z_][A-Za-z0-9_]{0,99}$", description="env:NAME")]
AtOnce = Annotated[int, Field(ge=1, le=10_000)]
Bytes = Annotated[int, Field(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Field(ge=0.05, le=600)]
Prefix = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9._:/-]*$")]
Place = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._:/-]+$")]


class Options(BaseModel):
    """What options of every kind have in common: a closed list of names, and values as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class Windowed(Options):
    """Options of a sink that sends lanes beside each other and waits for an answer."""

    at_once: AtOnce = 256
    connect_seconds: Seconds = 5.0
    answer_seconds: Seconds = 5.0


def read_options(kind: str, model: type[BaseModel], given: Mapping[str, object]) -> BaseModel:
    """Check the options of a sink; raises ConfigurationError for the first that is wrong."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise ConfigurationError(f"sink of kind {kind}: {_complaint(model, given, first)}") from None


def _complaint(model: type[BaseModel], given: Mapping[str, object], first: Mapping[str, object]) -> str:
    place = first["loc"]
    name = str(place[0]) if isinstance(place, tuple) and place else ""
    allowed = ", ".join(sorted(model.model_fields)) or "none"
    if first["type"] == "missing":
        return f"option {name} is missing; it has these options: {allowed}"
    if first["type"] == "extra_forbidden":
        return f"option {redact(name)[:_VALUE_CHARS_MAX]} is unknown; allowed are: {allowed}"
    if not name:
        return f"its options do not fit each other: {first['msg']}"
    field = model.model_fields[name]
    is_variable = "env:NAME" in (field.description or "") or names_secret(name)
    shown = "" if is_variable else f" is {redact(repr(given[name]))[:_VALUE_CHARS_MAX]}"
    wanted = "write env:NAME, the name of a variable that holds it" if is_variable else str(first["msg"])
    return f"option {name}{shown}: {wanted}"
