"""A definition as text: TOML from a file, JSON from a registry row.

Both give the same document, with numbers exact.

Its size is bounded before anything is parsed, and checked again after. A document that passed has
no NUL, no half surrogate, and at most a few levels, so it can be stored as jsonb.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from livewell.errors import InvalidDefinition
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.definition.table import show
from livewell.refresh.definition.type_file import read_type
from livewell.refresh.definition.upstream_file import read_upstream

FILE_BYTES_MAX = 500_000
_DEPTH_MAX = 12
_VALUES_MAX = 20_000
_BAD_TEXT = re.compile("[\x00\ud800-\udfff]")
_DIGITS_MAX = 400


def read_file(
    content: bytes, name: str, *, private_hosts: Collection[str] = (), own_variables: Collection[str] = ()
) -> UpstreamDefinition | TypeDefinition:
    """The one upstream or the one type in a TOML file."""
    if len(content) > FILE_BYTES_MAX:
        raise InvalidDefinition(f"{name}: larger than {FILE_BYTES_MAX:,} bytes; record a smaller sample")
    try:
        found = tomllib.loads(content.decode("utf-8-sig"), parse_float=_decimal)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidDefinition(f"{name}: not UTF-8 text (line {line})") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InvalidDefinition(f"{name}: not valid TOML: {str(error)[:200] or 'nested too deeply'}") from None
    return read(found, name, private_hosts=private_hosts, own_variables=own_variables)


def read_row(
    text: str, name: str, *, private_hosts: Collection[str] | None = None
) -> UpstreamDefinition | TypeDefinition:
    """The same from data_type.definition or upstream.definition."""
    if len(text) > 4 * FILE_BYTES_MAX:
        raise InvalidDefinition(f"{name}: the row is larger than any file may be")
    try:
        found = json.loads(text, parse_float=_decimal, parse_int=_whole, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidDefinition(f"{name}: not valid JSON: {str(error)[:200]}") from None
    return read(found, name, private_hosts=private_hosts)


def read(
    document: object,
    name: str,
    *,
    private_hosts: Collection[str] | None = (),
    own_variables: Collection[str] = (),
) -> UpstreamDefinition | TypeDefinition:
    """The same from what a parser made of it."""
    _check(document, name)
    if not isinstance(document, Mapping):
        raise InvalidDefinition(f"{name}: {show(document)}: a table is needed")
    if "upstream" in document and "type" in document:
        raise InvalidDefinition(f"{name}: it has [upstream] and [type]; a file holds one of them")
    if "upstream" in document:
        others = sorted(str(part) for part in document if part != "upstream")
        if others:
            raise InvalidDefinition(f"{name}: {show(others[0])} is not known beside [upstream]")
        return read_upstream(
            document["upstream"], f"{name}: [upstream]", private_hosts=private_hosts, own_variables=own_variables
        )
    return read_type(document, name)


def write(document: Mapping[str, Any]) -> str:
    """As JSON, every number with the digits it was written with."""
    return _json(document)


def _json(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(name))}:{_json(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value.isoformat() if isinstance(value, date | time) else value)


def _check(document: object, name: str) -> None:
    """Breadth first, so that nothing here recurses."""
    level, seen, depth = [document], 0, 0
    while level:
        seen, depth = seen + len(level), depth + 1
        if depth > _DEPTH_MAX or seen > _VALUES_MAX:
            raise InvalidDefinition(f"{name}: nested too deeply or too many values")
        inner: list[object] = []
        for value in level:
            if isinstance(value, Mapping):
                inner += [*value.keys(), *value.values()]
            elif isinstance(value, list | tuple):
                inner += value
            elif isinstance(value, str) and _BAD_TEXT.search(value):
                raise InvalidDefinition(f"{name}: {show(value)}: NUL and half surrogate pairs are not text")
            elif isinstance(value, Decimal) and not value.is_finite():
                raise InvalidDefinition(f"{name}: {value} is not a number that can be stored")
            elif value is not None and not isinstance(value, str | bool | int | Decimal | date | datetime | time):
                raise InvalidDefinition(f"{name}: {show(value)}: not a value that a file can hold")
            elif isinstance(value, int) and abs(value) >= 10**_DIGITS_MAX:
                raise InvalidDefinition(f"{name}: a number of more than {_DIGITS_MAX} digits")
        level = inner


def _decimal(text: str) -> Decimal:
    if len(text) > _DIGITS_MAX:
        raise ValueError("a number with too many digits")
    try:
        number = Decimal(text.replace("_", ""))
    except InvalidOperation:
        raise ValueError(f"{text[:20]} is not a number") from None
    if number.is_finite() and abs(number.adjusted()) > _DIGITS_MAX:
        raise ValueError(f"{text[:20]} is too large or too small a number")
    return number


def _whole(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise ValueError("a number with too many digits")
    return int(text)


def _refuse(text: str) -> object:
    raise ValueError(f"{text} is not JSON")
