"""Links of our own: whoever has one may load one file of one user, for at most an hour.

    <version> <id of the key> <export> <end> <user> <HMAC-SHA256 of all of it>      in base64url

A link says which user it stands for, because the server reads the export under that user's row
security: a link of a file that was deleted, or that is another's, finds nothing. It is not
encrypted. Whether it has ended is asked with the database's clock, which the caller hands in.

What is wrong with a link is not told: check() answers None.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from livewell.errors import ConfigurationError
from livewell.exports.artifacts.link_keys import VARIABLE, LinkKey, keep_link_key, parse_link_keys
from livewell.exports.artifacts.open import StoreSettings, store_folder

LINK_SECONDS_MAX = 3_600
USER_BYTES_MAX = 512
_SLACK_SECONDS = 60  # the database's clock may have been set back since the link was made
_DOMAIN = b"livewell export link\0"
_VERSION = 1
_TEXT_MAX = 1_024
_MAC_BYTES = 32
_SHORTEST = 2 + 1 + 16 + 8 + _MAC_BYTES


@dataclass(frozen=True, slots=True)
class Link:
    """What a good link gives: this export, as this user, until this second."""

    export: UUID
    user: str
    until: int


class LinkKeys:
    """The first key signs; every key is good."""

    def __init__(self, keys: tuple[LinkKey, ...]) -> None:
        self._keys = keys

    @classmethod
    def of(cls, settings: StoreSettings) -> Self:
        """The keys of the settings, or those that the folder keeps, or none."""
        if settings.export_link_keys is not None:
            return cls(parse_link_keys(settings.export_link_keys.get_secret_value()))
        folder = store_folder(settings)
        return cls(() if folder is None else keep_link_key(folder))

    def sign(self, export: UUID, user: str, until: int) -> str:
        """A link that is good until this second, of the database's clock."""
        if not self._keys:
            raise ConfigurationError(
                f"{VARIABLE}: links for this export store need a key, because its own cannot be made with "
                "credentials that are temporary; make one with: echo k1:$(openssl rand -hex 32)"
            )
        name = user.encode()
        if len(name) > USER_BYTES_MAX:
            raise ValueError(f"a user of {len(name)} bytes; at most {USER_BYTES_MAX} fit into a link")
        key = self._keys[0]
        said = bytes((_VERSION, len(key.id))) + key.id.encode() + export.bytes + until.to_bytes(8, "big") + name
        return base64.urlsafe_b64encode(said + _mac(key, said)).rstrip(b"=").decode()

    def check(self, text: str, now: int) -> Link | None:
        """What the link gives; None if it is forged, cut, ended, or of a key that is no longer one."""
        whole = _decode(text)
        if whole is None or len(whole) < _SHORTEST:
            return None
        said, mac = whole[:-_MAC_BYTES], whole[-_MAC_BYTES:]
        version, id_end = said[0], 2 + said[1]
        key = next((key for key in self._keys if key.id.encode() == said[2:id_end]), None)
        if version != _VERSION or key is None or not hmac.compare_digest(mac, _mac(key, said)):
            return None
        # From here on it is our own writing.
        export, until = UUID(bytes=said[id_end : id_end + 16]), int.from_bytes(said[id_end + 16 : id_end + 24], "big")
        if not now < until <= now + LINK_SECONDS_MAX + _SLACK_SECONDS:
            return None
        return Link(export, said[id_end + 24 :].decode(), until)


def _mac(key: LinkKey, said: bytes) -> bytes:
    return hmac.new(key.secret.get_secret_value().encode(), _DOMAIN + said, hashlib.sha256).digest()


def _decode(text: str) -> bytes | None:
    """The bytes, if this is the one way to write them: no other text is the same link."""
    if not text.isascii() or len(text) > _TEXT_MAX:
        return None
    try:
        whole = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return whole if base64.urlsafe_b64encode(whole).rstrip(b"=").decode() == text else None
