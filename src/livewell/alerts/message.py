"""What is said of a firing, in the words of each kind of receiver. Pure.

webhook   JSON, signed as Standard Webhooks: webhook-id, webhook-timestamp, webhook-signature = v1,base64(HMAC-SHA256(secret, id.timestamp.body))
discord   {"content": …} with no mentions, at most 2,000 characters
apprise   a title and a text
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import SecretStr

_DISCORD_CHARS_MAX = 2_000
TEST_RULE = "channel_test"  # of messages that test a channel, see sql/functions/test_channel.sql
_NO_MENTION = "@\u200b"  # a mention needs its @ and its word side by side


@dataclass(frozen=True, slots=True)
class Message:
    """A firing as it is told.

    `message_id` is the same in every attempt; `sent_at` is the database's clock.
    """

    message_id: UUID
    rule: str
    subject: str
    level: str
    summary: str
    fired_at: datetime
    sent_at: datetime

    @property
    def is_test(self) -> bool:
        """True if nothing is wrong: somebody asked whether this channel works."""
        return self.rule == TEST_RULE

    @property
    def title(self) -> str:
        """One line for people."""
        if self.is_test:
            return "[test] Livewell alert channel"
        return f"[{self.level}] {self.rule.replace('_', ' ')}"

    @property
    def text(self) -> str:
        """What it is about, and where to read on."""
        if self.is_test:
            return self.summary
        return f"{self.summary}\nWhat to do: livewell docs operations/alerts/{self.rule}"


@dataclass(frozen=True, slots=True)
class Letter:
    """A body and its headers."""

    body: bytes
    headers: Mapping[str, str]


def webhook(message: Message, secret: SecretStr) -> Letter:
    """For a program: every field, signed."""
    body = json.dumps(
        {
            "type": "livewell.alert.test" if message.is_test else "livewell.alert.fired",
            "id": str(message.message_id),
            "timestamp": message.fired_at.isoformat(),
            "data": {
                "rule": message.rule,
                "subject": message.subject,
                "level": message.level,
                "summary": message.summary,
            },
        },
        ensure_ascii=False,
    ).encode()
    timestamp = str(int(message.sent_at.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "webhook-id": str(message.message_id),
        "webhook-timestamp": timestamp,
        "webhook-signature": sign(secret, str(message.message_id), timestamp, body),
    }
    return Letter(body, headers)


def discord(message: Message) -> Letter:
    """For a chat room: nobody is pinged, whatever the text says."""
    text = f"**{message.title}**\n{message.text}".replace("@", _NO_MENTION)
    content = text if len(text) <= _DISCORD_CHARS_MAX else text[: _DISCORD_CHARS_MAX - 1] + "…"
    body = json.dumps({"content": content, "allowed_mentions": {"parse": []}}, ensure_ascii=False).encode()
    return Letter(body, {"Content-Type": "application/json"})


def sign(secret: SecretStr, message_id: str, timestamp: str, body: bytes) -> str:
    """The signature over what a receiver must be able to trust.

    Which message, when, and its words.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(_key(secret.get_secret_value()), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def _key(secret: str) -> bytes:
    """`whsec_` and base64, as the standard writes it; anything else is taken as it is."""
    if secret.startswith("whsec_"):
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            return secret.encode()
    return secret.encode()
