"""Settings that are lists of tables: issuers of tokens, channels of alerts, sinks and topics of the outbox.

In livewell.toml [[sinks]], in the environment JSON.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_TABLES_MAX = 20
_SINKS_MAX = 100
_TOPICS_MAX = 1000


def _tables_of(model: type[BaseModel], what: str, *unique: str, at_most: int = _TABLES_MAX) -> BeforeValidator:
    """A list of tables, in the environment as JSON; no two have the same in these fields."""

    def tables(value: object) -> object:
        given = json.loads(value) if isinstance(value, str) else value
        if not isinstance(given, list | tuple) or len(given) > at_most:
            raise ValueError(f"not a list of {what}s")
        if not all(isinstance(one, dict | model) for one in given):
            raise ValueError(f"not a {what}")
        for name in unique:
            said = [one.get(name) if isinstance(one, dict) else getattr(one, name) for one in given]
            if len(set(said)) < len(said):
                raise ValueError(f"a {what} is named twice")
        return tuple(given)

    return BeforeValidator(tables)


class Issuer(BaseModel):
    """An issuer of tokens: it says who a person is.

    The algorithm is fixed: what a token says of its own is never believed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,19}$")]
    issuer: Annotated[str, Field(min_length=1, max_length=500)]
    audience: Annotated[str, Field(min_length=1, max_length=500)]
    algorithm: Literal["RS256", "ES256", "EdDSA", "HS256"]
    key: Annotated[str, Field(pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]{0,99}|file:.{1,1000})$")]
    scopes_claim: Annotated[str, Field(min_length=1, max_length=100)] = "scope"


_ENVIRONMENT = r"^env:[A-Za-z_][A-Za-z0-9_]{0,99}$"


class AlertChannel(BaseModel):
    """Somebody who is told of alerts.

    Its address is a secret: here stands the name of a variable that holds it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    kind: Literal["webhook", "discord", "apprise"]
    address: Annotated[str, Field(pattern=_ENVIRONMENT)]
    secret: Annotated[str, Field(pattern=_ENVIRONMENT)] | None = None
    level: Literal["P0", "P1", "P2"] = "P2"

    @model_validator(mode="after")
    def _a_webhook_is_signed(self) -> Self:
        if (self.kind == "webhook") != (self.secret is not None):
            raise ValueError("a webhook has a secret, and nothing else has one")
        return self


_Pattern = Annotated[str, Field(pattern=r"^(\*|[A-Za-z][A-Za-z0-9_.-]{0,199}\*?)$")]


class SinkTable(BaseModel):
    """Where events go. Its address is a secret: here stands the name of a variable that holds it.

    kind: one that `livewell docs reference/sinks` lists, or outside, where others claim the events.
    options: of its kind, checked when a relay makes the sink.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
    kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
    address: Annotated[str, Field(pattern=_ENVIRONMENT)] | None = None
    topics: Annotated[tuple[_Pattern, ...], Field(min_length=1, max_length=100)] = ("*",)
    options: Mapping[str, Any] = Field(default_factory=dict, max_length=50)
    ordered: bool = True
    attempts: Annotated[int, Field(ge=1, le=1000)] = 20
    batch_max: Annotated[int, Field(ge=1, le=5000)] = 1000
    backoff_base_seconds: Annotated[float, Field(ge=0, le=604_800)] = 1
    backoff_cap_seconds: Annotated[float, Field(ge=0, le=604_800)] = 300
    deadline_seconds: Annotated[float, Field(ge=0.1, le=600)] = 30
    rate: str | None = None

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.backoff_base_seconds > self.backoff_cap_seconds:
            raise ValueError("backoff_base_seconds is more than backoff_cap_seconds")
        if self.kind == "outside" and (self.address is not None or self.options):
            raise ValueError("nobody here sends to a sink of kind outside: it has no address and no options")
        return self

    def variables(self) -> list[str]:
        """What it names as env:NAME."""
        named = [self.address, *self.options.values()]
        return [one for one in named if isinstance(one, str) and one.startswith("env:")]


class TopicTable(BaseModel):
    """A kind of event."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,199}$")]
    on_dead: Literal["continue", "park"] = "continue"
    payload_bytes_max: Annotated[int, Field(ge=1, le=1_048_576)] = 262_144


Channels = Annotated[tuple[AlertChannel, ...], _tables_of(AlertChannel, "channel", "name")]
Issuers = Annotated[tuple[Issuer, ...], _tables_of(Issuer, "issuer", "name", "issuer")]
Sinks = Annotated[tuple[SinkTable, ...], _tables_of(SinkTable, "sink", "name", at_most=_SINKS_MAX)]
Topics = Annotated[tuple[TopicTable, ...], _tables_of(TopicTable, "topic", "name", at_most=_TOPICS_MAX)]
