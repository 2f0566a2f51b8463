"""Which wall did a call run into? Status, words and headers in, one of eight kinds out. Pure.

    rate              too many calls: wait seconds
    bandwidth         the bytes of 30 days are used up: one probe per hours, no retry
    entitlement_key   this key is not in the plan: park the key
    entitlement_type  this endpoint is not in the plan: park the type
    auth              the credential is wrong or missing: stop, tell a person
    suspended         the account is closed: stop, tell a person
    legacy_path       the path no longer exists: our configuration is wrong
    transient         the upstream is unwell: retry later

A vocabulary says how an upstream words its refusals. `plain` reads the status alone. `fmp` needs
words AND status to agree (facts in its table below): a word alone has sent others to the wrong wall
for four days.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from livewell.errors import InvalidOption
from livewell.outbound.retry_after import retry_after

__all__ = ["PREFIX_BYTES", "VOCABULARIES", "Kind", "Vocabulary", "Wall", "classify"]

Kind = Literal[
    "rate", "bandwidth", "entitlement_key", "entitlement_type", "auth", "suspended", "legacy_path", "transient"
]
Vocabulary = Literal["plain", "fmp"]
VOCABULARIES: tuple[str, ...] = get_args(Vocabulary)

PREFIX_BYTES = 2_048  # of the body, looked at; a refusal says what it is at its beginning


@dataclass(frozen=True, slots=True)
class Wall:
    """What stands in the way, and for how long if the upstream said so."""

    kind: Kind
    retry_after_seconds: float | None = None


def classify(
    vocabulary: str, status: int, headers: Mapping[str, str], body_prefix: bytes, *, now: datetime | None = None
) -> Wall | None:
    """Name the wall; None where there is none, or none that is known (a 404, a redirect).

    Header names in lower case.
    """
    if vocabulary not in VOCABULARIES:
        raise InvalidOption(f"vocabulary {vocabulary!r}: allowed is one of {', '.join(VOCABULARIES)}")
    kind = _by_status(status)
    if vocabulary == "fmp":
        kind = _by_words(status, body_prefix[:PREFIX_BYTES]) or kind
    return None if kind is None else Wall(kind, retry_after(headers, now=now))


# A 402 of which nothing else is known parks the key, not the type: wrong, that costs one call per
# key; the other way round one premium symbol would blind every viewer of the type.
_STATUS: Mapping[int, Kind] = {
    401: "auth",
    402: "entitlement_key",
    403: "auth",
    408: "transient",
    425: "transient",
    429: "rate",
}


def _by_status(status: int) -> Kind | None:
    return "transient" if 500 <= status <= 599 else _STATUS.get(status)


# The first line that fits, top to bottom: "Bandwidth Limit Reach" contains "Limit Reach", and a
# restricted symbol's text also speaks of the subscription. "upgrade your plan" stands in several of
# them and so in none of these lines.
_FMP: tuple[tuple[bytes, int, Kind], ...] = (
    (b"bandwidth limit reach", 429, "bandwidth"),
    (b"limit reach", 429, "rate"),
    (b"invalid api key", 401, "auth"),
    (b"account suspended", 403, "suspended"),
    (b"legacy endpoint", 403, "legacy_path"),
    (b"limited to the following symbols", 403, "entitlement_key"),
    (b"exclusive endpoint", 403, "entitlement_type"),
    (b"limited to the following symbols", 402, "entitlement_key"),
    (b"premium query parameter", 402, "entitlement_key"),
    (b"special endpoint", 402, "entitlement_key"),
    (b"restricted endpoint", 402, "entitlement_type"),
    (b"exclusive endpoint", 402, "entitlement_type"),
)
_ERROR = re.compile(rb'\s*+\{\s*+"(?:error message|error)"\s*+:\s*+"((?:[^"\\]|\\.)*+)', re.DOTALL)


def _by_words(status: int, body: bytes) -> Kind | None:
    """A 200 is judged by the words of its error object alone.

    Rows that happen to hold the same words are no error.
    """
    text = b" ".join(body.lower().split())
    if status == 200:
        error = _ERROR.match(text)
        text = error[1] if error else b""
    return next((kind for words, expected, kind in _FMP if words in text and status in (200, expected)), None)
