"""An answer that is refused, on its way from where that is noticed to validate(), which turns it into a value. Never leaves this package."""

from __future__ import annotations

from livewell.redact import redact
from livewell.refresh.reasons import Reason

DETAIL_CHARS_MAX = 300
_SHOWN_CHARS_MAX = 60


class Refusal(Exception):
    """Why, where, and what it looked like."""

    def __init__(self, reason: Reason, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = clean(detail)
        self.field = field


def clean(text: str) -> str:
    """Bounded, on one line, storable, and without what looks like a secret."""
    plain = "".join(character if character.isprintable() else "·" for character in text[: 2 * DETAIL_CHARS_MAX])
    return redact(plain.encode("utf-8", "replace").decode())[:DETAIL_CHARS_MAX]


def show(value: object) -> str:
    """A value of the answer with its kind: "231.40" (text)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"{str(value).lower()} (boolean)"
    if isinstance(value, str):
        return f'"{_cut(value)}" (text)'
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"{_cut(str(value)) if not isinstance(value, int) or abs(value) < 10**60 else 'a very long number'} (number)"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "…"
