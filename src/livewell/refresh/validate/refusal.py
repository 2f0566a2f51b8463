"""An answer that is refused, as an exception that never leaves this package.

It is raised where the fault is noticed, and validate() turns it into a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from livewell.refresh.reasons import Reason
from livewell.telemetry.redact import redact
from livewell.telemetry.secret_forms import Secrets, secrets_of

DETAIL_CHARS_MAX = 300
_SHOWN_CHARS_MAX = 60

# What the answer must not make us repeat. Set by validate() for the length of its run: a text must
# be searched where it is cut, which is deep below.
_HIDDEN: ContextVar[Secrets] = ContextVar("_HIDDEN")


@contextmanager
def hiding(secrets: Secrets) -> Iterator[None]:
    """Within the block no refusal holds one of these."""
    token = _HIDDEN.set(secrets)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


class Refusal(Exception):
    """Why an answer is refused, where, and what it looked like."""

    def __init__(self, reason: Reason, detail: str, *, field: str | None = None) -> None:
        self.reason = reason
        self.detail = clean(detail)
        self.field = field
        super().__init__(self.detail)


def clean(text: str, secrets: Secrets | None = None) -> str:
    """Without what is or looks like a secret, storable, on one line, and cut only then."""
    known = secrets or _HIDDEN.get(secrets_of())
    text = known.hide(text, 2 * DETAIL_CHARS_MAX)
    plain = "".join(character if character.isprintable() else "·" for character in text)
    return redact(plain.encode("utf-8", "replace").decode())[:DETAIL_CHARS_MAX]


def show(value: object) -> str:
    """A value of the answer with its kind: "231.40" (text)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"{str(value).lower()} (boolean)"
    if isinstance(value, str):
        return f'"{cut(value)}" (text)'
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"{cut(str(value)) if not isinstance(value, int) or abs(value) < 10**60 else 'a very long number'} (number)"


def cut(text: str, chars_max: int = _SHOWN_CHARS_MAX) -> str:
    """So much of a text of the answer, with secrets hidden before it is cut."""
    hidden = _HIDDEN.get(secrets_of()).hide(text, chars_max + 1)
    return hidden if len(hidden) <= chars_max else hidden[:chars_max] + "…"
