"""Kinds of values that settings have, and how each is read: from text of the environment, or from what TOML and Python give."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from livewell.host import host_name

HOSTS_MAX = 1_000


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


def _split_hosts(value: object) -> object:
    """`a.com, b.com`, or a list of them; exact names, so no *, no port and no scheme."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("not a list of host names")
    hosts = tuple(dict.fromkeys(map(host_name, names)))
    if len(hosts) > HOSTS_MAX:
        raise ValueError("too many host names")
    return hosts


def _split_origins(value: object) -> object:
    """`https://a.com, http://localhost:3000`, or a list of them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("not a list of origins")
    origins = tuple(dict.fromkeys(map(_origin, names)))
    if len(origins) > HOSTS_MAX:
        raise ValueError("too many origins")
    return origins


_ORIGIN = re.compile(r"(https?)://([^/:\[\]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def _origin(text: str) -> str:
    """Exactly as browsers send it."""
    match = _ORIGIN.fullmatch(text.strip().lower())
    if match is None or match[3] == {"http": ":80", "https": ":443"}[match[1]]:
        raise ValueError("not an origin")
    return f"{match[1]}://{host_name(match[2])}{match[3] or ''}"


class Issuer(BaseModel):
    """One who may say who a person is. The algorithm is fixed: what a token says of its own is never believed."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,19}$")]
    issuer: Annotated[str, Field(min_length=1, max_length=500)]
    audience: Annotated[str, Field(min_length=1, max_length=500)]
    algorithm: Literal["RS256", "ES256", "EdDSA", "HS256"]
    key: Annotated[str, Field(pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]{0,99}|file:.{1,1000})$")]
    scopes_claim: Annotated[str, Field(min_length=1, max_length=100)] = "scope"


def _read_issuers(value: object) -> object:
    """A list of tables; in the environment it is JSON."""
    issuers = json.loads(value) if isinstance(value, str) else value
    if not isinstance(issuers, list | tuple) or len(issuers) > 20:
        raise ValueError("not a list of issuers")
    if not all(isinstance(one, dict | Issuer) for one in issuers):
        raise ValueError("not an issuer")
    names = [one.get("name") if isinstance(one, dict) else one.name for one in issuers]
    said = [one.get("issuer") if isinstance(one, dict) else one.issuer for one in issuers]
    if len(set(names)) < len(names) or len(set(said)) < len(said):
        raise ValueError("an issuer is named twice")
    return tuple(issuers)


_ENVIRONMENT = r"^env:[A-Za-z_][A-Za-z0-9_]{0,99}$"


class AlertChannel(BaseModel):
    """Somebody who is told of alerts. Its address is a secret: here stands the name of a variable that holds it."""

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


def _read_channels(value: object) -> object:
    """A list of tables; in the environment it is JSON."""
    channels = json.loads(value) if isinstance(value, str) else value
    if not isinstance(channels, list | tuple) or len(channels) > 20:
        raise ValueError("not a list of channels")
    if not all(isinstance(one, dict | AlertChannel) for one in channels):
        raise ValueError("not a channel")
    names = [one.get("name") if isinstance(one, dict) else one.name for one in channels]
    if len(set(names)) < len(names):
        raise ValueError("a channel is named twice")
    return tuple(channels)


Channels = Annotated[tuple[AlertChannel, ...], BeforeValidator(_read_channels)]
Hosts = Annotated[tuple[str, ...], BeforeValidator(_split_hosts)]
Origins = Annotated[tuple[str, ...], BeforeValidator(_split_origins)]
Issuers = Annotated[tuple[Issuer, ...], BeforeValidator(_read_issuers)]
Whole = Annotated[int, BeforeValidator(_refuse_bool)]
Number = Annotated[float, BeforeValidator(_refuse_bool)]
Address = Annotated[SecretStr, AfterValidator(_check_address)]
Folder = Annotated[Path, BeforeValidator(_check_path)]
