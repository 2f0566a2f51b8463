"""A channel: whom to tell, from the settings and the environment variables that they name.

An address is a secret: it is shown nowhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from livewell.errors import ConfigurationError
from livewell.settings import AlertChannel, Settings

_SECRET_CHARS_MIN = 16
_ADDRESS_CHARS_MAX = 8_000
_HOST = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?]|$)")


@dataclass(frozen=True, slots=True)
class Channel:
    """One receiver.

    `repeats`: the receiver drops a message that it already has, so a message that may not have
    arrived is sent again (see docs/howto/alerts.md).
    """

    name: str
    kind: str
    level: str
    source: str
    address: SecretStr = field(repr=False)
    secret: SecretStr | None = field(repr=False, default=None)

    @property
    def repeats(self) -> bool:
        """A signed webhook carries the same id in every attempt.

        A chat shows every message it gets.
        """
        return self.kind == "webhook"

    @property
    def host(self) -> str | None:
        """Of an http(s) address.

        None where there is none to be seen, and the client will say why.
        """
        found = _HOST.match(self.address.get_secret_value())
        return found[1].lower() if found and self.kind != "apprise" else None


def read_channels(settings: Settings, environment: Mapping[str, str] | None = None) -> tuple[Channel, ...]:
    """The channels of the settings; raises ConfigurationError for a variable that is not there."""
    where = os.environ if environment is None else environment
    return tuple(_read(one, where) for one in settings.alert_channels)


def declared(channels: Iterable[Channel]) -> str:
    """What the database is told of them: names, never an address."""
    return json.dumps(
        [{name: getattr(one, name) for name in ("name", "kind", "source", "level", "repeats")} for one in channels]
    )


def _read(given: AlertChannel, environment: Mapping[str, str]) -> Channel:
    address = _variable(given.name, "address", given.address, environment)
    secret = None if given.secret is None else _variable(given.name, "secret", given.secret, environment)
    if secret is not None and len(secret) < _SECRET_CHARS_MIN:
        raise ConfigurationError(
            f"alert channel {given.name}: its secret ({given.secret}) has fewer than {_SECRET_CHARS_MIN} characters; "
            "make one with: openssl rand -base64 32"
        )
    return Channel(
        given.name,
        given.kind,
        given.level,
        given.address,
        SecretStr(address),
        None if secret is None else SecretStr(secret),
    )


def _variable(channel: str, what: str, reference: str, environment: Mapping[str, str]) -> str:
    name = reference.removeprefix("env:")
    value = environment.get(name, "").strip()
    if not value or len(value) > _ADDRESS_CHARS_MAX or not value.isprintable():
        raise ConfigurationError(
            f"alert channel {channel}: its {what} is in the variable {name}, which is not set, or is no {what}; "
            "set it where the worker is started"
        )
    return value
