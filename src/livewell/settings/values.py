"""The kinds of values that settings have, and how each is read.

A value comes as text from the environment, or as what TOML and Python give.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from livewell.host import host_name

HOSTS_MAX = 1_000
_TABLES_MAX = 20


def _refuse_bool(value: object) -> object:
    """Python counts True as 1; `lease_seconds = true` is a mistake."""
    if isinstance(value, bool):
        raise ValueError("a number, not true or false")  # not TypeError: pydantic collects only ValueError
    return value


def lower(value: object) -> object:
    """Words may be written as people like."""
    return value.strip().lower() if isinstance(value, str) else value


def _check_address(secret: SecretStr) -> SecretStr:
    """Only the shape: whether anybody answers there is the pool's to find out."""
    address = secret.get_secret_value().strip()  # a secret read from a file ends with a newline
    if len(address) > 4096 or not re.match(r"postgres(?:ql)?://|[a-z_]+\s*=", address) or "\0" in address:
        raise ValueError("not a Postgres address")
    return SecretStr(address)


def _check_path(value: object) -> object:
    """`Path("")` is the current folder: an empty variable must not put a database there."""
    if isinstance(value, str | Path) and str(value).strip() and "\0" not in str(value):
        try:
            return Path(value).expanduser()
        except RuntimeError as error:  # ~nobody has no home
            raise ValueError("no such home folder") from error
    raise ValueError("not a path")


def _list_of(read: Callable[[str], str], what: str) -> BeforeValidator:
    """Texts with commas between, or a list of them; each read in its own way, none twice."""

    def split(value: object) -> object:
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"not a list of {what}")
        read_once = tuple(dict.fromkeys(map(read, names)))
        if len(read_once) > HOSTS_MAX:
            raise ValueError(f"too many {what}")
        return read_once

    return BeforeValidator(split)


def _tables_of(model: type[BaseModel], what: str, *unique: str) -> BeforeValidator:
    """A list of tables, in the environment as JSON; no two have the same in these fields."""

    def tables(value: object) -> object:
        given = json.loads(value) if isinstance(value, str) else value
        if not isinstance(given, list | tuple) or len(given) > _TABLES_MAX:
            raise ValueError(f"not a list of {what}s")
        if not all(isinstance(one, dict | model) for one in given):
            raise ValueError(f"not a {what}")
        for name in unique:
            said = [one.get(name) if isinstance(one, dict) else getattr(one, name) for one in given]
            if len(set(said)) < len(said):
                raise ValueError(f"a {what} is named twice")
        return tuple(given)

    return BeforeValidator(tables)


_ORIGIN = re.compile(r"(https?)://([^/:\[\]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def _origin(text: str) -> str:
    """Exactly as browsers send it."""
    match = _ORIGIN.fullmatch(text.strip().lower())
    if match is None or match[3] == {"http": ":80", "https": ":443"}[match[1]]:
        raise ValueError("not an origin")
    return f"{match[1]}://{host_name(match[2])}{match[3] or ''}"


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


Channels = Annotated[tuple[AlertChannel, ...], _tables_of(AlertChannel, "channel", "name")]
Hosts = Annotated[tuple[str, ...], _list_of(host_name, "host names")]
Origins = Annotated[tuple[str, ...], _list_of(_origin, "origins")]
Issuers = Annotated[tuple[Issuer, ...], _tables_of(Issuer, "issuer", "name", "issuer")]
Whole = Annotated[int, BeforeValidator(_refuse_bool)]
Number = Annotated[float, BeforeValidator(_refuse_bool)]
Address = Annotated[SecretStr, AfterValidator(_check_address)]
Folder = Annotated[Path, BeforeValidator(_check_path)]
