"""Ask the upstream for the keys of one call.

The outcome is a body to validate, or already a result. The database is never touched here.

    request ──▶ answer ──200──▶ the body
       │          ├──304──▶ Same                              what we have is still right
       │          ├──wall──▶ Failure(rate_wall, auth, …)      the upstream refuses, and says why
       │          ├──4xx for several keys──▶ Singly           each is asked for alone before anyone is blamed
       │          └──other status──▶ Failure(status)
       └──no whole answer──▶ Failure(deadline, connection, …)

Received bytes are counted in every case. Whether the answer belongs to the question is decided in
answer_origin.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from pydantic import SecretStr

from livewell.errors import CallFailed, InvalidOption
from livewell.model import Blame
from livewell.outbound import Answer, Outbound, Wall, classify
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.fetch.answer_origin import Connection, share_of
from livewell.refresh.fetch.conditional import Validator
from livewell.refresh.fetch.request import build, with_credential
from livewell.refresh.reasons import BLAME, MEANING, Reason
from livewell.refresh.result import Failure, Result, Same, Singly

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
# These concern the account or the moment, whatever was asked for; any other refusal of a call for
# many keys may be about one of them.
_FOR_ALL = frozenset(reason for reason, meaning in MEANING.items() if meaning.for_all)
_OF_BODY = frozenset({Reason.TRUNCATED, Reason.TOO_LARGE, Reason.BOMB, Reason.CONTENT_TYPE})


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one call brought, and what it cost."""

    came: bytes | Result = field(repr=False)  # the body to validate; or the result of every key, where there is none
    sent: float  # monotonic, just before the request was written
    connection: Connection | None = None  # None: no answer came
    wire_bytes: int = 0
    decoded_bytes: int = 0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # lower-case names
    had_length: bool = True

    def counted(self, counts: str) -> int:
        """The bytes that the budget counts, which is the upstream's setting (R16).

        That is wire, decoded, or the larger.
        """
        match counts:
            case "wire":
                return self.wire_bytes
            case "decoded":
                return self.decoded_bytes
            case _:
                return max(self.wire_bytes, self.decoded_bytes)


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
    since: date | None = None,
) -> Fetched:
    """One call for these keys. What before_write raises is raised here, and nothing was sent.

    validator: asks whether the value has changed; not used for several keys, for it belongs to one.
    fresh: on a connection of its own. since: of a history, only the days from this one on. The
    upstream's words are in a result as they came: whoever stores or logs them calls hide_secrets()
    first.
    """
    validator = validator if len(keys) == 1 else None
    try:
        request = build(definition, keys, upstream, since=since)
        hidden_headers, hidden_query = with_credential(upstream, secret)
    except InvalidOption as error:
        return Fetched(Failure(Reason.WRONG_KEY, str(error), Blame.OURS), time.monotonic())
    sent = time.monotonic()

    def writing() -> None:
        nonlocal sent
        if before_write is not None:
            before_write()
        sent = time.monotonic()

    headers: dict[str, str | SecretStr] = dict(request.headers)
    if validator is not None:
        headers |= validator.headers
    headers |= hidden_headers
    try:
        answer = await outbound.get(
            request.url,
            headers=headers,
            query=hidden_query or None,
            body_bytes_max=definition.fetch.body_bytes_max,
            before_write=writing,
            share=None if fresh or validator is not None else share_of(definition, upstream, keys),
        )
    except CallFailed as failed:
        return Fetched(
            _failed(failed, upstream, len(keys), now()),
            sent,
            None if failed.status is None else Connection(failed.alone, failed.reason),
            wire_bytes=failed.wire_bytes,
            headers=failed.headers,
        )
    refused = _refused(answer, upstream, len(keys), validator, now())
    return Fetched(
        answer.body if refused is None else refused,
        sent,
        Connection(answer.alone, f"status {answer.status}", answer.retire),
        answer.wire_bytes,
        answer.decoded_bytes,
        answer.headers,
        answer.had_length,
    )


def _failed(failed: CallFailed, upstream: UpstreamDefinition, asked: int, now: datetime) -> Result:
    """No whole answer; but a 429 with half a body is still a 429.

    A body that is refused may be so because of one key's part of it.
    """
    wall = classify(upstream.vocabulary, failed.status, failed.headers, b"", now=now) if failed.status else None
    if wall is not None:
        return _at_wall(wall, failed.status or 0, f"status {failed.status}, and {failed.detail}")
    reason = Reason(failed.reason)
    if asked > 1 and reason in _OF_BODY:
        return Singly(f"{reason} for {asked} keys together")
    # Nobody was asked, so it is not about the key.
    blame = Blame.OUTAGE if not failed.sent and BLAME[reason] is Blame.UPSTREAM else BLAME[reason]
    return Failure(reason, failed.detail, blame)


def _refused(
    answer: Answer, upstream: UpstreamDefinition, asked: int, validator: Validator | None, now: datetime
) -> Result | None:
    """What the answer means before anybody looks at its rows; None when it is time to do so."""
    if answer.status == 304 and validator is not None:
        return Same(validator.content_hash)
    wall = classify(upstream.vocabulary, answer.status, answer.headers, answer.body[:2048], now=now)
    if wall is not None:
        met = _at_wall(wall, answer.status, f"status {answer.status}")
        if asked > 1 and met.reason not in _FOR_ALL:
            return Singly(f"{met.reason} for {asked} keys together", endpoint=True)
        return met
    if answer.status == 200:
        return None
    is_clients = 400 <= answer.status < 500
    if asked > 1 and is_clients:
        return Singly(f"status {answer.status} for {asked} keys together", endpoint=True)
    return Failure(Reason.STATUS, f"status {answer.status}", Blame.DATA if is_clients else Blame.UPSTREAM)


def _at_wall(wall: Wall, status: int, detail: str) -> Failure:
    reason = _WALLS[wall.kind]
    # A 403 may be about one key: it counts when several keys show it. An account that is unknown or
    # suspended is so for every key.
    blame = Blame.UPSTREAM if reason is Reason.AUTH and status == 403 else BLAME[reason]
    return Failure(reason, detail, blame, wall.retry_after_seconds)
