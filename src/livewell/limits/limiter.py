"""A limiter: the limits of one outside resource, declared once and held by the database for every queue that names it.

    app.limiter("fmp", rate="300/min", budget="20GB/30d", concurrency=10, per_key=1,
                breaker=Breaker(), credentials=["main", "spare"])
    app.queue("quotes", limiter="fmp")

Rate, budget and breaker are per credential; concurrency is for all of them together. A credential
is a name: what it stands for stays in the application.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypedDict

from livewell.errors import ConfigurationError, InvalidOption
from livewell.limits import notation as written
from livewell.limits.walls import Call, Heard, Walls

DEADLINE_SECONDS = 30.0  # unless told otherwise: three times what a refresh waits for its answer

_NAME_BYTES_MAX = 200
_PERMIT_SECONDS_MIN = 0.25  # unless told otherwise: a new connection with its handshake should fit
_EPOCH_LIKELY = 10_000_000  # a reset larger than this is an instant, not a number of seconds


@dataclass(frozen=True, slots=True)
class Breaker:
    """When to stop calling an upstream that fails, and for how long (R13)."""

    failures: int = 10
    share: float | str = 0.2
    within: float | str = "10m"
    in_row: int = 5
    open_for: float | str = "60s"
    open_max: float | str = "15m"
    wall: float | str = "6h"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the database is told: columns of livewell.limiter, and the credentials."""

    columns: Mapping[str, Any]
    credentials: tuple[str, ...]


class LimitOptions(TypedDict, total=False):
    """What app.limiter() takes; read() has the defaults.

    Rate, budget and breaker are kept for each credential.
    """

    # Calls in any such window, as the receiver counts them: "300/min".
    rate: str | None
    # So many of them may go at once (10).
    burst: int
    # The share of the rate that only lane 0 may use (0.1).
    reserve: float | str
    # How long after its claim was sent a call may still be made (a sixtieth of the window, 0.25 to
    # 1 s; 1 s without a rate).
    permit: float | str | None
    # How long after that a call without an answer may still reach the upstream, and so long it
    # counts (30 s). At least the longest timeout of the calls.
    deadline: float | str
    # Bytes, calls or tokens, rolling ("20GB/30d") or by the day ("5000 calls/day").
    budget: str | None
    # When a budget by the day begins anew: "17:00 America/New_York".
    budget_resets: str | None
    # At this share of the budget everything stops (0.95).
    budget_stop: float | str
    # At this one lane 1 stops (0.8).
    budget_background_stop: float | str
    # What a call of an unknown kind is taken to use (1).
    estimate: int
    # Calls at once, for all credentials together.
    concurrency: int | None
    # Jobs at once with one group key.
    per_key: int | None
    # When to stop calling an upstream that fails.
    breaker: Breaker | None
    # Names; what they stand for stays in the application.
    credentials: Sequence[str]
    # A longer Retry-After is not believed: after so long one call asks again ("15m").
    silence_max: float | str


def read(
    name: str,
    *,
    rate: str | None = None,
    burst: int = 10,
    reserve: float | str = 0.1,
    permit: float | str | None = None,
    deadline: float | str = DEADLINE_SECONDS,
    budget: str | None = None,
    budget_resets: str | None = None,
    budget_stop: float | str = 0.95,
    budget_background_stop: float | str = 0.8,
    estimate: int = 1,
    concurrency: int | None = None,
    per_key: int | None = None,
    breaker: Breaker | None = None,
    credentials: Sequence[str] = (),
    silence_max: float | str = "15m",
) -> Limits:
    """Check every number; a limiter that could never let anything through is refused here."""
    what = f"limiter {name}"
    columns: dict[str, Any] = {
        "burst": written.positive(burst, f"{what}: burst", required=True),
        "reserve": written.share(reserve, f"{what}: reserve", below=0.99),
        "permit_seconds": 1.0 if permit is None else written.span(permit, f"{what}: permit", 0.001, 60),
        "deadline_seconds": written.span(deadline, f"{what}: deadline", 0.01, 3600),
        "estimate_units": estimate,
        "concurrency": written.positive(concurrency, f"{what}: concurrency"),
        "per_key": written.positive(per_key, f"{what}: per_key"),
        "quiet_seconds_max": written.span(silence_max, f"{what}: silence_max", 1, 86400),
    }
    if isinstance(estimate, bool) or not isinstance(estimate, int) or not 0 <= estimate <= 2**62:
        raise ConfigurationError(f"{what}: estimate {estimate!r}: a whole number of units from 0 on is allowed")
    if rate is not None:
        limit = written.rate(rate, what)
        columns |= {"rate_calls": limit.calls, "rate_seconds": limit.seconds}
        if permit is None:
            columns["permit_seconds"] = min(1.0, max(_PERMIT_SECONDS_MIN, limit.seconds / 60))
        if math.floor(limit.calls * (1 - columns["reserve"])) < 1:
            raise ConfigurationError(
                f"{what}: reserve {reserve!r} of {rate} leaves nothing for the background lane; with reserve=0 "
                "it has all of it"
            )
    if budget is not None:
        columns |= _budget(what, budget, budget_resets, budget_stop, budget_background_stop)
    elif budget_resets is not None:
        raise ConfigurationError(f"{what}: budget_resets without a budget")
    if breaker is not None:
        if not isinstance(breaker, Breaker):
            raise ConfigurationError(f"{what}: breaker {breaker!r}: livewell.Breaker(…) is allowed, or None")
        columns |= _breaker(f"{what}: breaker", breaker)
    _check_credentials(what, credentials)
    return Limits(columns, tuple(credentials))


def _check_credentials(what: str, credentials: Sequence[str]) -> None:
    if isinstance(credentials, str) or not all(isinstance(credential, str) for credential in credentials):
        raise ConfigurationError(
            f'{what}: credentials {credentials!r}: a list of names is allowed, as in ["main", "spare"]'
        )
    twice = {credential for credential in credentials if list(credentials).count(credential) > 1}
    if twice:
        raise ConfigurationError(f"{what}: credential {min(twice)!r} is named twice")
    for credential in credentials:
        if not 1 <= len(credential.encode(errors="replace")) <= _NAME_BYTES_MAX or "\x00" in credential:
            raise ConfigurationError(f"{what}: a credential's name has 1 to {_NAME_BYTES_MAX} bytes, without NUL")


def _budget(
    what: str, budget: str, resets: str | None, stop: float | str, background_stop: float | str
) -> dict[str, Any]:
    units = written.budget(budget, what)
    columns: dict[str, Any] = {
        "budget_units": units.units,
        "budget_unit": units.unit,
        "budget_seconds": units.seconds,
        "budget_stop": written.share(stop, f"{what}: budget_stop"),
        "budget_background_stop": written.share(background_stop, f"{what}: budget_background_stop"),
    }
    if not 0 < columns["budget_background_stop"] <= columns["budget_stop"]:
        raise ConfigurationError(
            f"{what}: budget_stop {stop!r}, budget_background_stop {background_stop!r}: the second must be more "
            "than 0 and at most the first"
        )
    if units.seconds is None:
        instant, zone = written.resets(resets or "00:00", what)
        columns |= {"budget_resets": instant.isoformat(), "budget_zone": zone}
    elif resets is not None:
        raise ConfigurationError(f"{what}: budget {budget!r} is rolling: only a budget per day has budget_resets")
    return columns


def _breaker(what: str, breaker: Breaker) -> dict[str, Any]:
    columns = {
        "breaker_failures": written.positive(breaker.failures, f"{what}: failures", required=True),
        "breaker_share": written.share(breaker.share, f"{what}: share"),
        "breaker_seconds": written.span(breaker.within, f"{what}: within", 1, 86400),
        "breaker_in_row": written.positive(breaker.in_row, f"{what}: in_row", required=True),
        "open_seconds": written.span(breaker.open_for, f"{what}: open_for", 0.01, 604800),
        "open_seconds_max": written.span(breaker.open_max, f"{what}: open_max", 0.01, 604800),
        "wall_seconds": written.span(breaker.wall, f"{what}: wall", 1, 604800),
    }
    if columns["open_seconds_max"] < columns["open_seconds"]:  # type: ignore[operator] # spans are numbers, only positive() may be None
        raise ConfigurationError(f"{what}: open_max {breaker.open_max!r} is shorter than open_for")
    return columns


class Limiter:
    """The handle that app.limiter() gives: tell it what the upstream says about its limits."""

    def __init__(self, name: str, limits: Limits, call: Call, walls: Walls | None = None) -> None:
        self.name = name
        self._walls = walls or Walls()
        self.limits = limits
        self._call = call

    async def observe(self, headers: Mapping[str, str], *, credential: str | None = None) -> bool:
        """Take in x-ratelimit-* and Retry-After of an answer to a call under job.credential.

        They only ever tighten; False when they say nothing.
        """
        if (credential or "") not in (self.limits.credentials or ("",)):
            known = ", ".join(self.limits.credentials) or "none: give no credential"
            raise InvalidOption(
                f"limiter {self.name}: credential {credential!r} is not one of its credentials ({known})"
            )
        said = {name.lower(): value for name, value in headers.items()}
        limit = _number(said, "x-ratelimit-limit", "ratelimit-limit")
        remaining = _number(said, "x-ratelimit-remaining", "ratelimit-remaining")
        reset = _number(said, "x-ratelimit-reset", "ratelimit-reset")
        retry = _number(said, "retry-after")
        until = _instant(said.get("retry-after")) if retry is None else None
        if limit is None and remaining is None and retry is None and until is None:
            return False
        is_instant = reset is not None and reset > _EPOCH_LIKELY
        heard = self._walls.keep(
            Heard(
                self.name,
                credential or "",
                limit=_whole(limit),
                remaining=_whole(remaining),
                reset_seconds=None if is_instant else reset,
                reset_at=reset if is_instant else None,
                retry_seconds=retry,
                retry_at=until,
            )
        )
        told = await heard.tell(self._call)  # while the database is away it is kept, and told before the next claim
        self._walls.told([heard])
        return told


def _whole(number: float | None) -> int | None:
    return None if number is None else min(int(number), 1_000_000)


def _number(headers: Mapping[str, str], *names: str) -> float | None:
    """The first header that is a number from 0 on; upstreams write all sorts of things."""
    for name in names:
        try:
            number = float(headers.get(name, "").split(",")[0].split(";")[0])
        except ValueError:
            continue
        if math.isfinite(number) and number >= 0:
            return number
    return None


def _instant(text: str | None) -> float | None:
    """A date, as seconds since 1970."""
    if text is None:
        return None
    try:
        instant = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return instant.timestamp() if instant.tzinfo else None
