"""Signed HTTP to one endpoint, as Standard Webhooks and CloudEvents say.

    answer                      verdict
    2xx                         delivered
    408, 425, 429, 500-503      failed; again when Retry-After says, if it does
    401, 403, 404               failed: our login or its address may be wrong
    other 4xx, 410 among them   refused
    3xx                         failed: nobody else is told in its place
    502, 504, other 5xx         unknown: a gateway does not know what the one behind it did
    nothing was sent            the sink is away
    sent, and no answer came    unknown

The id of the event is the webhook-id of every attempt: a receiver drops repeats by it. One request
of a lane is under way at a time. Calls go through Outbound, under its address guard.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import SecretStr

from livewell.errors import CallFailed, ConfigurationError
from livewell.outbound import Outbound
from livewell.outbound.retry_after import retry_after
from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict, send_by_lane
from livewell.outbox.sinks.address import Address
from livewell.outbox.sinks.cloud_events import http_headers
from livewell.outbox.sinks.kind import SinkKind, SinkParts
from livewell.outbox.sinks.library import library
from livewell.outbox.sinks.options import AtOnce, Bytes, Options, Seconds, Variable
from livewell.outbox.sinks.oversize import oversize

if TYPE_CHECKING:
    from standardwebhooks import Webhook

_ANSWER_BYTES_MAX = 65_536
_AGAIN = frozenset({408, 425, 429, 500, 501, 503})
_OURS = frozenset({401, 403, 404})
_KEY = re.compile(r"(whsec_)?[A-Za-z0-9+/]{24,}={0,2}")
_HOST = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?]|$)")


class WebhookOptions(Options):
    """How it is signed, and how much may be under way.

    secret       whsec_… or base64, at least 24 characters
    old_secret   signs as well while receivers change to the new one
    bearer       a token for the Authorization header
    """

    secret: Variable
    old_secret: Variable | None = None
    bearer: Variable | None = None
    at_once: AtOnce = 10
    answer_seconds: Seconds = 10.0
    event_bytes_max: Bytes = 262_144


class WebhookSink:
    """One endpoint."""

    dedupes = False

    def __init__(self, parts: SinkParts) -> None:
        self._address = parts.where()
        self._options: WebhookOptions = parts.options
        self.event_bytes_max: int | None = parts.options.event_bytes_max
        secrets = [("secret", self._options.secret), ("old_secret", self._options.old_secret)]
        self._signers = [_signer(parts.secret(name, given), name) for name, given in secrets if given is not None]
        bearer = self._options.bearer
        self._bearer = None if bearer is None else parts.secret("bearer", bearer)
        host = _HOST.match(self._address.reveal())
        if host is None:
            raise ConfigurationError(
                f"sink of kind webhook: the variable {self._address.variable} holds no address like https://host/path"
            )
        self._allowed, self._private = [host[1].lower()], list(parts.context.private_hosts)
        self._outbound: Outbound | None = None
        self._slots = asyncio.Semaphore(self._options.at_once)  # also of calls that overlap

    async def open(self) -> None:
        """Make a client that may call this host, and nobody else."""
        if self._outbound is None:
            client = Outbound(
                allowed_hosts=self._allowed,
                private_hosts=self._private,
                deadline_seconds=self._options.answer_seconds,
                connections_max=self._options.at_once,
            )
            self._outbound = await client.__aenter__()

    async def close(self) -> None:
        """End every connection."""
        outbound, self._outbound = self._outbound, None
        if outbound is not None:
            await outbound.close()

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """One request for each event, lanes beside each other."""
        await self.open()
        await send_by_lane(events, settle, self._send_one, at_once=self._options.at_once)

    async def _send_one(self, event: Event) -> Outcome:
        body = event.payload.encode()
        refusal = oversize(body, self.event_bytes_max, "webhook")
        if refusal is not None:
            return refusal
        outbound = self._outbound
        if outbound is None:
            raise SinkAway("the webhook sink was closed")
        try:
            async with self._slots:  # not in the client, where waiting would count as its deadline
                answer = await outbound.post(
                    self._address.reveal(), body, headers=self._headers(event), body_bytes_max=_ANSWER_BYTES_MAX
                )
        except CallFailed as error:
            return self._failed(error)
        return answered(answer.status, answer.headers)

    def _headers(self, event: Event) -> Mapping[str, str | SecretStr]:
        now = datetime.now(UTC)  # of the signature: the receiver compares it with its own clock, we never do
        signatures = [signer.sign(event.id, now, event.payload) for signer in self._signers]
        headers: dict[str, str | SecretStr] = {
            **http_headers(event),
            "webhook-id": event.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        }
        if self._bearer is not None:
            headers["authorization"] = SecretStr(f"Bearer {self._bearer.reveal()}")
        return headers

    def _failed(self, error: CallFailed) -> Outcome:
        """No whole answer came; of one whose head did, the head counts."""
        if error.status is not None:
            return answered(error.status, error.headers)
        if error.sent:
            return Outcome(Verdict.UNKNOWN, f"sent, and no answer came: {self._address.hide(error.reason)}")
        raise SinkAway(f"nothing was sent: {self._address.hide(str(error))}")


def answered(status: int, headers: Mapping[str, str]) -> Outcome:
    """What the head of an answer says. Its words are not repeated: they may hold anything."""
    if 200 <= status <= 299:
        return DELIVERED
    if status in _AGAIN:
        return Outcome(Verdict.FAILED, f"the endpoint answered {status}", retry_after(headers))
    if status in _OURS:
        # Our login or address may be wrong, which is no fault of this event; one event that is not
        # allowed must not stop the others either. So it is tried again, and its key alone waits.
        return Outcome(Verdict.FAILED, f"the endpoint answered {status}: look at its address and at our login")
    if 400 <= status <= 499:
        return Outcome(Verdict.REFUSED, f"the endpoint answered {status}: it does not take this event")
    if 300 <= status <= 399:
        return Outcome(Verdict.FAILED, f"the endpoint answered {status}, a redirect; put its new address in the sink")
    return Outcome(Verdict.UNKNOWN, f"the endpoint answered {status}: nobody knows what became of it")


def _signer(secret: Address, option: str) -> Webhook:
    webhooks = library("standardwebhooks", "webhooks")
    where = f"sink of kind webhook: option {option}: the variable {secret.variable}"
    mend = "make one with: echo whsec_$(openssl rand -base64 32)"
    if not _KEY.fullmatch(secret.reveal()):
        raise ConfigurationError(f"{where} holds no key for signing, or fewer than 24 characters of base64; {mend}")
    try:
        made: Webhook = webhooks.Webhook(secret.reveal())
    except ValueError:  # of base64
        raise ConfigurationError(f"{where} holds no key for signing: it is no base64; {mend}") from None
    return made


KIND = SinkKind(options=WebhookOptions, make=WebhookSink)
