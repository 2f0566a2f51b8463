"""Ask the upstream for the keys of one call, and say for each what came. Never touches the database: bytes in, values out.

    request ──▶ answer ──304──▶ Same                          what we have is still right
       │          ├──wall──▶ Failure(rate_wall, auth, …)      the upstream refuses, and says why
       │          ├──4xx for many keys──▶ Singly              each is asked for alone before anyone is blamed
       │          ├──other status──▶ Failure(status)
       │          └──200──▶ validate ──▶ Value | Absent | Failure, for each key on its own
       │                       └──refused as a whole, for many keys──▶ Singly
       └──no whole answer──▶ Failure(deadline, connection, …)

A key that a whole batch answer does not contain fails alone. What was received is counted in every case.

An answer proves its question when a row repeats a key that was asked: the call's connection carries questions of one endpoint only, and no key twice, so it can be nobody else's
answer. An answer that proves nothing (a refusal, no rows, "not modified") is believed only if its connection had carried no other question; otherwise it is Unproven, and asked
again on a connection of its own (ADR 0011). Where no answer could prove anything the call has a connection of its own at once. A rate wall is believed in any case.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from pydantic import SecretStr

from livewell.errors import CallFailed, InvalidOption
from livewell.model import Blame
from livewell.outbound import Answer, Outbound, Share, Wall, classify
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.fetch.request import build, with_credential
from livewell.refresh.reasons import BLAME, MEANING, Reason
from livewell.refresh.validate.answer import Contradicted, Missing, Rejected, Transform, Valid, Verdict, validate
from livewell.refresh.validate.refusal import clean
from livewell.refresh.validate.tail import Tail
from livewell.telemetry.secret_forms import Secrets, secrets_of

_CONDITION_CHARS_MAX = 100  # of an ETag or Last-Modified
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
_FOR_ALL = frozenset(reason for reason, meaning in MEANING.items() if meaning.for_all)
_OF_BODY = frozenset({Reason.TRUNCATED, Reason.TOO_LARGE, Reason.BOMB, Reason.CONTENT_TYPE})


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
    """A call for many keys was refused, or its answer as a whole; nobody is to blame before each has been asked for alone."""

    detail: str
    endpoint: bool = False  # by its status: the endpoint may be closed to us, whatever is asked


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is stored is not what the question was about; to be asked again without a condition, for all of it."""

    detail: str


@dataclass(frozen=True, slots=True)
class Unproven:
    """The answer may be another question's; to be asked again on a connection of its own. Nobody is to blame."""

    detail: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Nothing to store, and why."""

    reason: Reason
    detail: str
    blame: Blame
    retry_after_seconds: float | None = None


Result = Value | Same | Absent | Singly | Forgotten | Unproven | Failure


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
    fresh: bool = False,
    tail: Tail | None = None,
    transforms: Mapping[str, Transform] | None = None,
    secrets: Secrets | None = None,
) -> Fetched:
    """One call for these keys. What before_write raises is raised here, and nothing was sent; every other end is a result for each key.

    fresh: on a connection of its own. tail: what is stored of a history, of which only the tail is asked for again. secrets: every credential that the upstream may know;
    none of them is in what comes back.
    """
    secrets = secrets or secrets_of(*([secret.get_secret_value()] if secret else []))
    days = definition.fetch.revision_days
    try:
        request = build(definition, keys, upstream, since=tail.since(days) if tail and days else None)
        hidden_headers, hidden_query = with_credential(upstream, secret)
    except InvalidOption as error:
        refused = _failure(Reason.WRONG_KEY, str(error), Blame.OURS)
        return Fetched(_told(dict.fromkeys(keys, refused), secrets), time.monotonic())
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
    shares = not fresh and validator is None and _can_prove(definition)
    try:
        answer = await outbound.get(
            request.url,
            headers=headers,
            query=hidden_query or None,
            body_bytes_max=definition.fetch.body_bytes_max,
            before_write=writing,
            share=Share(_family(definition, upstream, len(keys)), frozenset(keys)) if shares else None,
        )
    except CallFailed as failed:
        results = dict.fromkeys(keys, _failed(failed, upstream, len(keys), now()))
        if not failed.alone and failed.status is not None and not _proven(results):
            results = _unproven(keys, failed.reason)
        return Fetched(_told(results, secrets), sent, wire_bytes=failed.wire_bytes, headers=failed.headers)
    told = _refused(answer, upstream, keys, validator, now())
    results = (
        told
        if told is not None
        else await _read(answer, definition, keys, now(), transforms=transforms, tail=tail, secrets=secrets)
    )
    if not answer.alone and not _proven(results):
        answer.retire()
        results = _unproven(keys, f"status {answer.status}")
    told = _told(results, secrets)
    return Fetched(told, sent, answer.wire_bytes, answer.decoded_bytes, answer.headers, answer.had_length)


def _told(results: Mapping[str, Result], secrets: Secrets) -> dict[str, Result]:
    """The one way out for whatever was said in words: no secret is in it, and only then it is cut (M3)."""
    each = {id(result): result for result in results.values()}  # often one for all keys
    told = {place: _without(secrets, result) for place, result in each.items()}
    return {key: told[id(result)] for key, result in results.items()}


def _without(secrets: Secrets, result: Result) -> Result:
    match result:
        case Singly() | Forgotten() | Unproven() | Failure():
            return replace(result, detail=clean(result.detail, secrets))
        case Value(etag=etag, last_modified=last_modified):
            # What we would send back as a header is stored, too.
            hidden = [text if text and secrets.hide(text) == text else None for text in (etag, last_modified)]
            return replace(result, etag=hidden[0], last_modified=hidden[1])
        case Same() | Absent():
            return result


def _can_prove(definition: TypeDefinition) -> bool:
    """Whether an answer can repeat its key. What a transform makes of an answer may hold keys that the upstream never said."""
    return definition.answer.key is not None and definition.answer.transform is None


def _family(definition: TypeDefinition, upstream: UpstreamDefinition, asked: int) -> str:
    """All of the question but its keys."""
    batch = definition.fetch.batch
    call = batch.call if batch is not None and asked > 1 else definition.fetch.call
    return repr((upstream.base_url, call.path, call.query))


def _proven(results: Mapping[str, Result]) -> bool:
    """Of an answer on a shared connection: it brought what was asked, or a rate wall, which is believed because it only makes us slower, and not for ever."""
    return any(
        isinstance(result, Value | Forgotten) or (isinstance(result, Failure) and result.reason is Reason.RATE_WALL)
        for result in results.values()
    )


def _unproven(keys: Sequence[str], what: str) -> dict[str, Result]:
    return dict.fromkeys(keys, Unproven(f"{what} on a connection that had carried other questions"))


def _failed(failed: CallFailed, upstream: UpstreamDefinition, asked: int, now: datetime) -> Result:
    """No whole answer; but a 429 with half a body is still a 429. A body that is refused may be so because of one key's part of it."""
    wall = classify(upstream.vocabulary, failed.status, failed.headers, b"", now=now) if failed.status else None
    if wall is not None:
        return _at_wall(wall, failed.status or 0, f"status {failed.status}, and {failed.detail}")
    reason = Reason(failed.reason)
    if asked > 1 and reason in _OF_BODY:
        return Singly(f"{reason} for {asked} keys together")
    # Nobody was asked, so it is not about the key.
    blame = Blame.OUTAGE if not failed.sent and BLAME[reason] is Blame.UPSTREAM else BLAME[reason]
    return _failure(reason, failed.detail, blame)


def _refused(
    answer: Answer, upstream: UpstreamDefinition, keys: Sequence[str], validator: Validator | None, now: datetime
) -> dict[str, Result] | None:
    """What the answer means before anybody looks at its rows; None when it is time to do so."""
    if answer.status == 304 and validator is not None and len(keys) == 1:
        return {keys[0]: Same(validator.content_hash)}
    wall = classify(upstream.vocabulary, answer.status, answer.headers, answer.body[:2048], now=now)
    result: Result | None = None
    if wall is not None:
        result = _at_wall(wall, answer.status, f"status {answer.status}")
        if len(keys) > 1 and result.reason not in _FOR_ALL:
            result = Singly(f"{result.reason} for {len(keys)} keys together", endpoint=True)
    elif answer.status != 200:
        if len(keys) > 1 and 400 <= answer.status < 500:
            result = Singly(f"status {answer.status} for {len(keys)} keys together", endpoint=True)
        else:
            blame = Blame.DATA if 400 <= answer.status < 500 else Blame.UPSTREAM
            result = _failure(Reason.STATUS, f"status {answer.status}", blame)
    return None if result is None else dict.fromkeys(keys, result)


async def _read(
    answer: Answer,
    definition: TypeDefinition,
    keys: Sequence[str],
    now: datetime,
    *,
    transforms: Mapping[str, Transform] | None,
    tail: Tail | None,
    secrets: Secrets,
) -> dict[str, Result]:
    content_type = answer.headers.get("content-type")
    judge = partial(
        validate,
        definition,
        keys,
        answer.body,
        content_type=content_type,
        now=now,
        transforms=transforms,
        tail=tail,
        secrets=secrets,
    )
    verdicts = await asyncio.to_thread(judge) if len(answer.body) > _THREAD_BYTES else judge()
    # A validator belongs to the whole answer, so only to an answer about one key.
    etag = _condition(answer, "etag") if len(keys) == 1 else None
    last_modified = _condition(answer, "last-modified") if len(keys) == 1 else None
    first = verdicts[keys[0]]
    if len(keys) > 1 and isinstance(first, Rejected) and first.whole:
        what = f"{first.reason} for {len(keys)} keys together: {first.detail}"
        return dict.fromkeys(keys, Singly(what, endpoint=first.reason is Reason.EMPTY))
    return {key: _result(verdicts[key], etag, last_modified) for key in keys}


def _condition(answer: Answer, name: str) -> str | None:
    """What may be sent back as a header; whatever else an upstream makes of it is not kept."""
    text = answer.headers.get(name, "").strip()
    return text if 0 < len(text) <= _CONDITION_CHARS_MAX and text.isascii() and text.isprintable() else None


def _result(verdict: Verdict, etag: str | None, last_modified: str | None) -> Result:
    match verdict:
        case Valid():
            return Value(verdict, etag, last_modified)
        case Missing():
            return Absent()
        case Contradicted():
            return Forgotten("days that were settled have changed")
        case Rejected():
            return _failure(Reason(verdict.reason), verdict.detail, verdict.blame)


def _at_wall(wall: Wall, status: int, detail: str) -> Failure:
    reason = _WALLS[wall.kind]
    # A 403 may be about one key: it counts when several keys show it. Whoever is not known, or suspended, is so for every key.
    blame = Blame.UPSTREAM if reason is Reason.AUTH and status == 403 else BLAME[reason]
    return _failure(reason, detail, blame, wall.retry_after_seconds)


def _failure(reason: Reason, detail: str, blame: Blame, retry_after_seconds: float | None = None) -> Failure:
    return Failure(reason, detail, blame, retry_after_seconds)
