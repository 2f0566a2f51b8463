"""Ask the upstream for the keys of one call, and say for each what came. Never touches the database: bytes in, values out.

    request ──▶ answer ──304──▶ Same                          what we have is still right
       │          ├──wall──▶ Failure(rate_wall, auth, …)      the upstream refuses, and says why
       │          ├──4xx for many keys──▶ Singly              each is asked for alone before anyone is blamed
       │          ├──other status──▶ Failure(status)
       │          └──200──▶ validate ──▶ Value | Absent | Failure, for each key on its own
       └──no whole answer──▶ Failure(deadline, connection, …)

A key that a whole batch answer does not contain fails alone. What was received is counted in every case.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from pydantic import SecretStr

from livewell.errors import CallFailed, InvalidOption
from livewell.model import Blame
from livewell.outbound import Answer, Outbound, Wall, classify
from livewell.refresh.definition import TypeDefinition, UpstreamDefinition
from livewell.refresh.reasons import BLAME, Reason
from livewell.refresh.request import build, with_credential
from livewell.refresh.validate import Missing, Rejected, Transform, Valid, validate

_DETAIL_CHARS_MAX = 300
_THREAD_BYTES = 262_144  # a larger body is read in a thread: it would hold up the heartbeat's answers for milliseconds

_WALLS: Mapping[str, Reason] = {
    "rate": Reason.RATE_WALL,
    "bandwidth": Reason.BANDWIDTH_WALL,
    "entitlement_key": Reason.ENTITLEMENT_KEY,
    "entitlement_type": Reason.ENTITLEMENT_TYPE,
    "auth": Reason.AUTH,
    "suspended": Reason.SUSPENDED,
    "legacy_path": Reason.LEGACY_PATH,
    "transient": Reason.TRANSIENT,
}
# These concern the account or the moment, whatever was asked for; any other refusal of a call for many keys may be about one of them.
_FOR_ALL = frozenset({Reason.RATE_WALL, Reason.BANDWIDTH_WALL, Reason.AUTH, Reason.SUSPENDED, Reason.TRANSIENT})
# Stop and tell a person: the breaker is what stops, so it must count them.
_BREAKS = frozenset({Reason.AUTH, Reason.SUSPENDED})


@dataclass(frozen=True, slots=True)
class Validator:
    """What to ask "has it changed since?" with: the upstream's own words, and the hash of what it gave then."""

    etag: str | None
    last_modified: str | None
    content_hash: bytes

    @property
    def headers(self) -> dict[str, str]:
        """The conditional headers."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}


@dataclass(frozen=True, slots=True)
class Value:
    """Rows that fit the type, and how to ask for changes next time."""

    valid: Valid
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Same:
    """Not modified since the value with this hash."""

    content_hash: bytes


@dataclass(frozen=True, slots=True)
class Absent:
    """The upstream answered that there is no such key."""


@dataclass(frozen=True, slots=True)
class Singly:
    """A call for many keys was refused; nobody is to blame before each has been asked for alone."""

    detail: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Nothing to store, and why."""

    reason: Reason
    detail: str
    blame: Blame
    retry_after_seconds: float | None = None


Result = Value | Same | Absent | Singly | Failure


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one call brought, by key, and what it cost."""

    results: Mapping[str, Result]
    sent: float  # monotonic, just before the request was written
    wire_bytes: int = 0
    decoded_bytes: int = 0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    had_length: bool = True


async def fetch(
    outbound: Outbound,
    definition: TypeDefinition,
    upstream: UpstreamDefinition,
    keys: Sequence[str],
    *,
    now: Callable[[], datetime],
    secret: SecretStr | None = None,
    before_write: Callable[[], None] | None = None,
    validator: Validator | None = None,
    transforms: Mapping[str, Transform] | None = None,
) -> Fetched:
    """One call for these keys. What before_write raises is raised here, and nothing was sent; every other end is a result for each key."""
    try:
        request = build(definition, keys, upstream)
        hidden_headers, hidden_query = with_credential(upstream, secret)
    except InvalidOption as error:
        refused = _failure(Reason.WRONG_KEY, str(error), Blame.OURS)
        return Fetched(dict.fromkeys(keys, refused), time.monotonic())
    sent = time.monotonic()

    def writing() -> None:
        nonlocal sent
        if before_write is not None:
            before_write()
        sent = time.monotonic()

    headers: dict[str, str | SecretStr] = dict(request.headers)
    if validator is not None and len(keys) == 1:
        headers |= validator.headers
    headers |= hidden_headers
    try:
        answer = await outbound.get(
            request.url,
            headers=headers,
            query=hidden_query or None,
            body_bytes_max=definition.fetch.body_bytes_max,
            before_write=writing,
        )
    except CallFailed as failed:
        return Fetched(
            dict.fromkeys(keys, _failed(failed, upstream, now())),
            sent,
            wire_bytes=failed.wire_bytes,
            headers=failed.headers,
        )
    results = _refused(answer, upstream, keys, validator, now())
    if results is None:
        results = await _read(answer, definition, keys, now(), transforms)
    return Fetched(results, sent, answer.wire_bytes, answer.decoded_bytes, answer.headers, answer.had_length)


def _failed(failed: CallFailed, upstream: UpstreamDefinition, now: datetime) -> Result:
    """No whole answer; but a 429 with half a body is still a 429."""
    wall = classify(upstream.vocabulary, failed.status, failed.headers, b"", now=now) if failed.status else None
    if wall is not None:
        return _at_wall(wall, f"status {failed.status}, and {failed.detail}")
    reason = Reason(failed.reason)
    return _failure(reason, failed.detail, BLAME[reason])


def _refused(
    answer: Answer, upstream: UpstreamDefinition, keys: Sequence[str], validator: Validator | None, now: datetime
) -> dict[str, Result] | None:
    """What the answer means before anybody looks at its rows; None when it is time to do so."""
    if answer.status == 304 and validator is not None and len(keys) == 1:
        return {keys[0]: Same(validator.content_hash)}
    wall = classify(upstream.vocabulary, answer.status, answer.headers, answer.body[:2048], now=now)
    result: Result | None = None
    if wall is not None:
        result = _at_wall(wall, f"status {answer.status}")
        if len(keys) > 1 and result.reason not in _FOR_ALL:
            result = Singly(f"{result.reason} for {len(keys)} keys together")
    elif answer.status != 200:
        if len(keys) > 1 and 400 <= answer.status < 500:
            result = Singly(f"status {answer.status} for {len(keys)} keys together")
        else:
            blame = Blame.DATA if 400 <= answer.status < 500 else Blame.UPSTREAM
            result = _failure(Reason.STATUS, f"status {answer.status}", blame)
    return None if result is None else dict.fromkeys(keys, result)


async def _read(
    answer: Answer,
    definition: TypeDefinition,
    keys: Sequence[str],
    now: datetime,
    transforms: Mapping[str, Transform] | None,
) -> dict[str, Result]:
    content_type = answer.headers.get("content-type")
    judge = partial(validate, definition, keys, answer.body, content_type=content_type, now=now, transforms=transforms)
    verdicts = await asyncio.to_thread(judge) if len(answer.body) > _THREAD_BYTES else judge()
    # A validator belongs to the whole answer, so only to an answer about one key.
    etag = answer.headers.get("etag") if len(keys) == 1 else None
    last_modified = answer.headers.get("last-modified") if len(keys) == 1 else None
    return {key: _result(verdicts[key], etag, last_modified) for key in keys}


def _result(verdict: Valid | Rejected | Missing, etag: str | None, last_modified: str | None) -> Result:
    match verdict:
        case Valid():
            return Value(verdict, etag, last_modified)
        case Missing():
            return Absent()
        case Rejected():
            return _failure(Reason(verdict.reason), verdict.detail, verdict.blame)


def _at_wall(wall: Wall, detail: str) -> Failure:
    reason = _WALLS[wall.kind]
    return _failure(reason, detail, Blame.UPSTREAM if reason in _BREAKS else BLAME[reason], wall.retry_after_seconds)


def _failure(reason: Reason, detail: str, blame: Blame, retry_after_seconds: float | None = None) -> Failure:
    return Failure(reason, detail[:_DETAIL_CHARS_MAX], blame, retry_after_seconds)
