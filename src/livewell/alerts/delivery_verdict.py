"""What an answer, or its absence, says about a notification.

Did it arrive, may it be tried again, is the receiver to be left alone? Pure.

2xx                             sent
429                             refused for now: the channel is quiet for as long as it was asked to be
408, 425, 500, 501, 503         refused for now: tried again later
410                             refused, and the channel is disabled
other 4xx, every redirect       refused: the address is wrong, and nobody else is told in its place
other 5xx (502, 504)            unknown: a gateway does not know what the one behind it did
nothing was sent                refused for now (nobody listens, no such name), or for good (an address that may not be called)
sent, and no answer came        unknown
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from livewell.errors import CallFailed
from livewell.outbound.retry_after import RETRY_AFTER_SECONDS_MAX, retry_after

Outcome = Literal["sent", "refused", "unknown"]

_QUIET_SECONDS = 60.0  # after a 429 that does not say for how long
_AGAIN = frozenset({408, 425, 500, 501, 503})
_WRONG: tuple[Outcome, str] = "refused", "the receiver does not take it: is the address right?"
_CLASSES: Mapping[int, tuple[Outcome, str]] = {
    2: ("sent", "accepted"),
    3: ("refused", "the receiver redirects; nobody else is told in its place"),
    5: ("unknown", "a gateway answered in the receiver's place"),
}
_FAILED = {
    "refused_address": "its address may not be called: https and a public host, or a host named in "
    "outbound_private_hosts",
    "deadline": "no answer came in time",
    "tls": "no trusted TLS connection could be made",
    "connection": "no connection, or it was closed before an answer came",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """As settle_attempt takes it.

    `detail` is ours: never the address, never the receiver's words.
    """

    outcome: Outcome
    detail: str
    status: int | None = None
    again: bool = False
    quiet_seconds: float | None = None
    gone: bool = False


def answered(status: int, headers: Mapping[str, str]) -> Verdict:
    """The head of an answer came; its body says nothing we need."""
    quiet = _quiet(headers)
    if status == 429:
        return Verdict(
            "refused", "too many messages for the receiver", status, again=True, quiet_seconds=quiet or _QUIET_SECONDS
        )
    if status in _AGAIN:
        return Verdict("refused", "the receiver is unwell", status, again=True)
    if status == 410:
        return Verdict("refused", "the receiver is gone", status, gone=True)
    outcome, detail = _CLASSES.get(status // 100, _WRONG)
    return Verdict(outcome, detail, status, quiet_seconds=quiet if outcome == "sent" else None)


def failed(error: CallFailed) -> Verdict:
    """No whole answer came. Of one whose head did, the head counts."""
    if error.status is not None:
        return answered(error.status, error.headers)
    detail = _FAILED.get(error.reason, "what came is no answer")
    if error.sent:
        return Verdict("unknown", detail)
    return Verdict("refused", detail, again=error.reason != "refused_address")


def _quiet(headers: Mapping[str, str]) -> float | None:
    """How long the receiver wants to be left alone.

    Retry-After, or a bucket that is empty (X-RateLimit-…).
    """
    asked = retry_after(headers)
    if asked is None and headers.get("x-ratelimit-remaining", "").strip() == "0":
        asked = retry_after({"retry-after": headers.get("x-ratelimit-reset-after", "")})
    return None if not asked else min(asked, RETRY_AFTER_SECONDS_MAX)
