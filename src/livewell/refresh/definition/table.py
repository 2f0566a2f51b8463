"""Read a table of a definition.

Every value is taken out with its type and bounds checked. A name that is left over at the end is
unknown.

Values come from TOML or from JSON, so a number may be an int or a Decimal, and a date a date or a
text. Errors begin with where they are: `quote.toml: column "price": …`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, NoReturn

from livewell.duration import seconds
from livewell.errors import InvalidDefinition, InvalidOption
from livewell.telemetry.redact import redact
from livewell.zones import read_zone

_DAY_SECONDS = 86400
SPAN_SECONDS_MAX = 400 * _DAY_SECONDS
_SPAN_SECONDS_MIN = 0.001  # an interval rounds less than a microsecond to nothing
_SHOWN_CHARS_MAX = 80
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,31}){0,2}")
_FIELD_CHARS_MAX = 100
_FIELD_DEPTH_MAX = 8


def show(value: object) -> str:
    """A value as an error shows it: bounded, and without what looks like a secret."""
    text = value[: 4 * _SHOWN_CHARS_MAX] if isinstance(value, str) else value
    shown = redact(repr(str(text) if isinstance(value, Decimal) else text)[: 4 * _SHOWN_CHARS_MAX])
    return shown if len(shown) <= _SHOWN_CHARS_MAX else shown[:_SHOWN_CHARS_MAX] + "…"


class Table:
    """One table of a file."""

    def __init__(self, value: object, where: str) -> None:
        self.where = where
        if not isinstance(value, Mapping):
            self.refuse(f"{show(value)}: a table is needed here")
        self._left: dict[str, Any] = dict(value)
        self._known: list[str] = []

    def refuse(self, text: str) -> NoReturn:
        """Say what is wrong here."""
        raise InvalidDefinition(f"{self.where}: {text}")

    def wrong(self, name: str, value: object, allowed: str) -> NoReturn:
        """Say which value is wrong and what is allowed."""
        self.refuse(f"{name} {show(value)}: {allowed}")

    def take(self, name: str) -> Any:
        """The value, or None when it is not there."""
        self._known.append(name)
        return self._left.pop(name, None)

    def done(self) -> None:
        """Refuse what nobody took: a misspelt name must not be a silent default."""
        if self._left:
            name = min(self._left, key=str)
            near = difflib.get_close_matches(str(name)[:100], self._known, n=1)
            meant = f' Did you mean "{near[0]}"?' if near else f" There are: {', '.join(sorted(self._known))}"
            self.refuse(f"{show(name)} is not known here.{meant}")

    def need(self, name: str) -> Any:
        """The value; its absence is refused."""
        value = self.take(name)
        if value is None:
            near = difflib.get_close_matches(name, [str(left)[:100] for left in self._left], n=1)
            meant = f'; is "{near[0]}" meant to be it?' if near else ""
            self.refuse(f'"{name}" is missing{meant}')
        return value

    def table(self, name: str, *, required: bool = False) -> Table | None:
        """A table within this one."""
        value = self.need(name) if required else self.take(name)
        return None if value is None else Table(value, f"{self.where}: {name}")

    def text(
        self,
        name: str,
        *,
        required: bool = False,
        chars_max: int = 200,
        form: re.Pattern[str] | None = None,
        allowed: str = "",
    ) -> str | None:
        """A text of at least one character."""
        value = self.need(name) if required else self.take(name)
        if value is None:
            return None
        if not isinstance(value, str) or not 1 <= len(value) <= chars_max or not value.isprintable():
            self.wrong(name, value, f"a text of 1 to {chars_max} printable characters is allowed")
        if form is not None and not form.fullmatch(value):
            self.wrong(name, value, allowed)
        return value

    def word(self, name: str, words: Collection[str], *, default: str | None = None) -> str:
        """One word of a closed list."""
        value = self.take(name) if default is not None else self.need(name)
        value = default if value is None else value
        if not isinstance(value, str) or value not in words:
            self.wrong(name, value, f"allowed are {', '.join(words)}")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(name, value, "true or false is allowed")
        return value

    def whole(self, name: str, least: int, most: int, *, default: int | None = None, required: bool = False) -> int:
        """A whole number between two bounds."""
        value = self.need(name) if required else self.take(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.wrong(name, value, f"a whole number from {least:,} to {most:,} is allowed")
        return value

    def span(self, name: str, *, required: bool = False, most: float = SPAN_SECONDS_MAX) -> float | None:
        """A length of time: more than nothing, at most 400 days."""
        value = self.need(name) if required else self.take(name)
        if value is None:
            return None
        try:
            if not isinstance(value, str) or len(value) > 20:
                raise InvalidOption("")
            number = seconds(value, name)
        except InvalidOption:
            self.wrong(name, value, 'write it like "30s", "5m", "2h" or "1d"')
        if not _SPAN_SECONDS_MIN <= number <= most:
            self.wrong(name, value, f"more than 0 and at most {most / _DAY_SECONDS:g} days is allowed")
        return number

    def zone(self, name: str, *, default: str | None = None, required: bool = False) -> str:
        """A time zone of the tz database."""
        value = self.need(name) if required else self.take(name)
        value = default if value is None else value
        try:
            if not isinstance(value, str) or not _ZONE.fullmatch(value):
                raise ValueError
            read_zone(value)
        except ValueError:
            self.wrong(name, value, 'a time zone such as "America/New_York" or "UTC" is allowed')
        return value

    def path(self, name: str, *, default: str | None = None) -> tuple[str, ...] | None:
        """The name of a field, or a list of names from the row inwards."""
        value = self.take(name)
        value = default if value is None else value
        if value is None:
            return None
        names = [value] if isinstance(value, str) else value
        if (
            not isinstance(names, list)
            or not 1 <= len(names) <= _FIELD_DEPTH_MAX
            or not all(isinstance(part, str) and 1 <= len(part) <= _FIELD_CHARS_MAX for part in names)
        ):
            self.wrong(name, value, f"a field's name is allowed, or a list of at most {_FIELD_DEPTH_MAX} of them")
        return tuple(names)

    def texts(self, name: str, count_max: int, chars_max: int) -> tuple[str, ...]:
        """A list of different texts."""
        value = self.take(name)
        if value is None:
            return ()
        fits: Callable[[object], bool] = lambda one: isinstance(one, str) and 1 <= len(one) <= chars_max  # noqa: E731 - used once, here
        if not isinstance(value, list) or len(value) > count_max or not all(map(fits, value)):
            self.wrong(name, value, f"a list of at most {count_max} texts of 1 to {chars_max} characters is allowed")
        if len(set(value)) < len(value):
            self.wrong(name, value, "each may be named once")
        return tuple(value)
