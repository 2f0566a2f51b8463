"""Where a receiver is: a secret, known by the name of the variable that holds it.

    env:NATS_URL ──read──▶ Address ──reveal──▶ the client library, and nobody else
                              └──hide──▶ any text of a library, without the address and its parts

A library's error may repeat the address it was given. So every such text passes hide() before it
gets into an exception, a verdict or a log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from livewell.errors import ConfigurationError
from livewell.telemetry.redact import redact
from livewell.telemetry.secret_forms import SECRET_CHARS_MIN, secrets_of

DETAIL_CHARS_MAX = 300
_CHARS_MAX = 8_000
_REFERENCE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]{0,99})")


class Address:
    """The value of an environment variable: an address, a login, a key for signing."""

    __slots__ = ("_secrets", "_value", "variable")

    def __init__(self, variable: str, value: str) -> None:
        self.variable = variable
        self._value = value
        self._secrets = secrets_of(*_parts(value))

    def reveal(self) -> str:
        """The value itself: for the client library alone."""
        return self._value

    def hide(self, text: str) -> str:
        """A text without this value and without what looks like a secret, cut to fit a dead letter."""
        return redact(self._secrets.hide(text, 2 * DETAIL_CHARS_MAX))[:DETAIL_CHARS_MAX]

    def __repr__(self) -> str:
        return f"Address(env:{self.variable})"


def read_address(reference: object, where: str, environment: Mapping[str, str]) -> Address:
    """Read the variable that a reference names; `where` says whose it is: "sink hooks: address".

    What was given instead of a reference is not shown: it may be the secret itself.
    """
    found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if found is None:
        raise ConfigurationError(
            f"{where}: write env:NAME, the name of the environment variable that holds it; "
            "what is written there now is not shown, because it may be a secret"
        )
    value = environment.get(found[1], "").strip()
    if not value:
        raise ConfigurationError(
            f"{where}: the environment variable {found[1]} is not set; set it where the worker is started"
        )
    if len(value) > _CHARS_MAX or not value.isprintable():
        raise ConfigurationError(
            f"{where}: the environment variable {found[1]} has {len(value)} characters, or some that cannot be "
            f"printed; up to {_CHARS_MAX} printable ones are allowed"
        )
    return Address(found[1], value)


def _parts(value: str) -> list[str]:
    """The value, and what stands in it that is a secret by itself: user and password, path, query."""
    found = [value]
    for one in value.split(","):
        try:
            url = urlsplit(one.strip())
            host, port = url.hostname, url.port
        except ValueError:  # not an address: a key, or one that the library will refuse
            continue
        if host is None:
            continue
        found.append(one.strip())
        found += [unquote(part) for part in (url.password, url.path.lstrip("/"), url.query) if part]
        found += [part for part in (url.password, url.netloc) if part and (port is None or part != f"{host}:{port}")]
    if "://" not in value:
        found += value.split(":", 1)[1:]  # user:password
    return [part for part in found if len(part) >= SECRET_CHARS_MIN]
