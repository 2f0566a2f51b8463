"""JSON as it is sent: times in RFC 3339 and UTC, numbers exact.

Pages of lists, and the cursors between them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

import orjson
from fastapi import Path, Query
from starlette.responses import JSONResponse

_CURSOR_CHARS_MAX = 600
LIMIT_MAX = 100

TypeName = Annotated[str, Path(max_length=200, description="The name of a type.")]
TypeKey = Annotated[str, Path(max_length=2000, description="A key of the type.")]
JobId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The number of a job.")]
Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="Items at most.")]
After = Annotated[
    str | None,
    Query(max_length=_CURSOR_CHARS_MAX, description="The `next` of the page before; without it the list begins."),
]


class JsonAnswer(JSONResponse):
    """A JSON answer."""

    def render(self, content: Any) -> bytes:
        """Bytes at once: orjson is the only encoder here."""
        return encode(content)


def encode(value: Any) -> bytes:
    """JSON; a number that JSON cannot hold exactly is a string."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)


def page(items: Sequence[Any], limit: int, after: str | int | None) -> dict[str, Any]:
    """One page: full means that there may be more after its last item."""
    return {"items": list(items), "next": cursor(after) if len(items) >= limit and after is not None else None}


def cursor(after: str | int) -> str:
    """A place in a list, as something opaque."""
    return base64.urlsafe_b64encode(str(after).encode()).decode().rstrip("=")


def place(after: str | None) -> str:
    """The place that a cursor means; raises ValueError for one that is not ours."""
    if not after:
        return ""
    try:
        text = base64.b64decode(after + "=" * (-len(after) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("not a cursor") from None
    if "\x00" in text:
        raise ValueError("not a cursor")
    return text


def number_after(after: str | None) -> int:
    """The place in a list that is ordered by a number."""
    text = place(after)
    if text and not (text.isascii() and text.isdigit() and int(text) < 2**63):
        raise ValueError("not a cursor")
    return int(text or 0)
