"""What is in a job, for people: secrets masked as the command line masks them, every digit kept.

masked ──button──▶ a line in the audit ──▶ as it is stored, on a page that has no address
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from livewell.db.acts import line, recorded
from livewell.server.dashboard.visit import Visit
from livewell.telemetry.logs import hide

LOOKED_CHARS_MAX = 524_288  # more than a payload may have; rows of other programs can be larger
_MARK = "\ufdd1"  # stands for nothing in any text
_REVEALED = "SELECT " + recorded("'revealed'")
_MARKED = re.compile(f'"{_MARK}([-0-9.]+)"')


def masked(text: str | None) -> str | None:
    """The JSON with secrets masked, by their names and by what they look like.

    Numbers are decimals meanwhile: neither Python's floats nor its bound on the digits of an int
    may change them.
    """
    if text is None:
        return None
    if len(text) > LOOKED_CHARS_MAX:
        return json.dumps(f"this payload has {len(text):,} characters: livewell jobs show --reveal prints it")
    try:
        found = hide(json.loads(text, parse_float=Decimal, parse_int=Decimal))
        made = json.dumps(found, default=_digits, ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps("this payload is nested too deeply to hide secrets in it: livewell jobs show --reveal")
    return _MARKED.sub(r"\1", made)


async def record_reveal(visit: Visit, action: str, subject: str) -> None:
    """Write down that this caller is shown the payload of a job or event with its secrets. Comes before it is shown."""
    await visit.state.pools.operate.call(_REVEALED, line(action, subject))


def has_secrets(text: str | None) -> bool:
    """True if masking changes something."""
    return text is not None and (len(text) > LOOKED_CHARS_MAX or _plain(masked(text)) != _plain(text))


def _plain(text: str | None) -> Any:
    try:
        return json.loads(text or "null", parse_float=Decimal, parse_int=Decimal)
    except (ValueError, RecursionError):
        return text


def _digits(value: object) -> str:
    return f"{_MARK}{value:f}" if isinstance(value, Decimal) else str(value)
