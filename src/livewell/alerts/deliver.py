"""One turn of telling people.

All channels are served at once. Within a channel one notification follows the other, and each is
recorded before it is sent.

    turn ──▶ attempts nobody will settle become unknown ──▶ new firings become notifications ──▶ per channel: begin ▶ send ▶ settle, until nothing is due
                                                                                                        │ commit   │ killed here: unknown once its lease is over
                                                                                                        └──────────┘

Channels do not wait for each other. A channel that took its whole time to answer is left alone
until the next turn, so a receiver that hangs delays the others by one deadline at most. Any number
of processes may deliver at once: the one that begins an attempt has locked its channel.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from livewell.alerts import message as words
from livewell.alerts.apprise_sender import send_by_apprise
from livewell.alerts.channel import Channel, declared
from livewell.alerts.delivery_verdict import Verdict, answered, failed
from livewell.alerts.message import Message
from livewell.db import Database
from livewell.errors import CallFailed, PermitLate
from livewell.outbound import Outbound

log = structlog.get_logger("livewell.alerts")

_DECLARE = "SELECT livewell.declare_channels(%s::jsonb, %s)"
_EXPIRE = "SELECT livewell.expire_attempts(%s)"
_WAITING = "SELECT DISTINCT n.channel FROM livewell.notification n WHERE n.state = 'waiting' AND n.channel = ANY (%s)"
_BEGIN = (
    "SELECT attempt_id, message_id, rule, subject, level, summary, fired_at, started_at FROM "
    "livewell.begin_attempt(%s, %s)"
)
_SETTLE = "SELECT livewell.settle_attempt(%s, %s, %s, %s, %s, %s, %s)"
_PRUNE = "SELECT livewell.prune_alerts(%s, %s)"

_FIRINGS_MAX = 200
_EXPIRED_MAX = 200
_MESSAGES_MAX = 50  # of one channel, in one turn
_ANSWER_BYTES_MAX = 65_536
_LEASE_MARGIN_SECONDS = 20.0
_PAGE = 500
_PAGES_MAX = 100


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one turn came to."""

    sent: int = 0
    refused: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, verdicts: Sequence[Verdict], expired: int) -> Delivered:
        """Count them."""
        counts = [sum(one.outcome == outcome for one in verdicts) for outcome in ("sent", "refused", "unknown")]
        return cls(counts[0], counts[1], counts[2] + expired)


async def deliver(database: Database, channels: Sequence[Channel], *, outbound: Outbound | None = None) -> Delivered:
    """Tell every channel what it has not been told yet.

    Without channels, firings are only to be seen in the lists.
    """
    expired = (await database.call(_EXPIRE, (_EXPIRED_MAX,)))[0][0]
    if not channels:
        return Delivered.of((), expired)
    await database.call(_DECLARE, (declared(channels), _FIRINGS_MAX))
    waiting = {row[0] for row in await database.call(_WAITING, ([one.name for one in channels],))}
    due = [one for one in channels if one.name in waiting]
    if not due:
        return Delivered.of((), expired)
    if outbound is not None:
        return Delivered.of(await _tell_all(database, due, outbound), expired)
    async with outbound_to(database, due) as opened:
        return Delivered.of(await _tell_all(database, due, opened), expired)


async def prune(database: Database) -> int:
    """Forget what ended long ago; answers how much."""
    gone = 0
    for _ in range(_PAGES_MAX):
        page = (await database.call(_PRUNE, (database.settings.stat_days, _PAGE)))[0][0]
        gone += page
        if not page:
            break
    return gone


def outbound_to(database: Database, channels: Sequence[Channel]) -> Outbound:
    """A client that may call the hosts of these channels, and nobody else.

    On our own network only what the settings name.
    """
    settings = database.settings
    return Outbound(
        allowed_hosts=sorted({one.host for one in channels if one.host is not None}),
        private_hosts=settings.outbound_private_hosts,
        deadline_seconds=settings.alert_send_seconds,
    )


async def _tell_all(database: Database, channels: Sequence[Channel], outbound: Outbound) -> list[Verdict]:
    told = await asyncio.gather(*(_tell(database, one, outbound) for one in channels), return_exceptions=True)
    for one in told:
        if isinstance(one, BaseException):
            raise one  # after the others have finished: one channel's trouble with the database is not theirs
    return [verdict for one in told if not isinstance(one, BaseException) for verdict in one]


async def _tell(database: Database, channel: Channel, outbound: Outbound) -> list[Verdict]:
    """One channel's turn."""
    verdicts: list[Verdict] = []
    seconds = database.settings.alert_send_seconds
    ends = time.monotonic() + seconds
    while len(verdicts) < _MESSAGES_MAX and (not verdicts or time.monotonic() < ends):
        begun = time.monotonic()
        rows = await database.call(_BEGIN, (channel.name, seconds + _LEASE_MARGIN_SECONDS))
        if not rows:
            break
        attempt, message = rows[0][0], Message(*rows[0][1:])
        verdict = await _send(channel, message, outbound, begun + _LEASE_MARGIN_SECONDS / 2)
        log.info("alert told", channel=channel.name, rule=message.rule, urgency=message.level, outcome=verdict.outcome)
        await database.call(
            _SETTLE,
            (
                attempt,
                verdict.outcome,
                verdict.status,
                verdict.detail,
                verdict.again,
                verdict.quiet_seconds,
                verdict.gone,
            ),
        )
        verdicts.append(verdict)
    return verdicts


async def _send(channel: Channel, message: Message, outbound: Outbound, not_after: float) -> Verdict:
    """Send one message; nothing leaves once our attempt may be taken for dead."""

    def still_ours() -> None:
        if time.monotonic() > not_after:
            raise PermitLate("the attempt is too old to be sent")

    if channel.kind == "apprise":
        return await send_by_apprise(channel, message, outbound, still_ours)
    letter = (
        words.webhook(message, channel.secret)
        if channel.kind == "webhook" and channel.secret is not None
        else words.discord(message)
    )
    try:
        answer = await outbound.post(
            channel.address.get_secret_value(),
            letter.body,
            headers=letter.headers,
            body_bytes_max=_ANSWER_BYTES_MAX,
            before_write=still_ours,
        )
    except CallFailed as error:
        return failed(error)
    except PermitLate:
        return Verdict("refused", "the sender was held up, and nothing was sent", again=True)
    return answered(answer.status, answer.headers)
