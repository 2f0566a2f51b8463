"""The kinds of values that settings have, and how each is read.

A value comes as text from the environment, or as what TOML and Python give.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from livewell.host import host_name

HOSTS_MAX = 1_000


def bounded(default: float, low: float, high: float, description: str) -> Any:
    """A number with its range."""
    return Field(default=default, ge=low, le=high, description=description)


def free(allowed: str, description: str, *, default: object = None, **limits: Any) -> Any:
    """Anything else, with words for what is allowed."""
    return Field(default=default, description=description, json_schema_extra={"allowed": allowed}, **limits)


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


_ORIGIN = re.compile(r"(https?)://([^/:\[\]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def _origin(text: str) -> str:
    """Exactly as browsers send it."""
    match = _ORIGIN.fullmatch(text.strip().lower())
    if match is None or match[3] == {"http": ":80", "https": ":443"}[match[1]]:
        raise ValueError("not an origin")
    return f"{match[1]}://{host_name(match[2])}{match[3] or ''}"


Hosts = Annotated[tuple[str, ...], _list_of(host_name, "host names")]
Origins = Annotated[tuple[str, ...], _list_of(_origin, "origins")]
Whole = Annotated[int, BeforeValidator(_refuse_bool)]
Number = Annotated[float, BeforeValidator(_refuse_bool)]
Address = Annotated[SecretStr, AfterValidator(_check_address)]
Folder = Annotated[Path, BeforeValidator(_check_path)]
