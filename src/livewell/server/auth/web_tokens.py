"""JSON Web Tokens: who a person is, said by an issuer that the settings name.

token ──its iss──▶ issuer ──the issuer's one algorithm and key──▶ signature, iss, aud, exp, sub ──▶ user and scopes

What a token says of its own algorithm decides nothing. Its expiry is the one instant that is
compared with this machine's own clock, by the library: the issuer wrote it, not our database.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt

from livewell.errors import ConfigurationError
from livewell.settings import Issuer

SCOPES = ("view", "subscribe", "export", "observe", "operate", "admin")
DEFAULT_SCOPES = frozenset({"view", "subscribe"})
_TOKEN_CHARS_MAX = 8192
_LEEWAY_SECONDS = 5.0
_SUBJECT_BYTES_MAX = 200
_USER_BYTES_MAX = 200
_KEY_BYTES_MAX = 65_536
_SECRET_BYTES_MIN = 32


@dataclass(frozen=True, slots=True)
class Token:
    """What a good token says."""

    user: str
    issuer: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Trusted:
    """An issuer with its key, ready to verify."""

    issuer: Issuer
    key: Any = field(repr=False)

    def verify(self, text: str) -> Token | None:
        """What the token says, or None when anything at all is wrong with it."""
        try:
            claims = jwt.decode(
                text,
                self.key,
                algorithms=[self.issuer.algorithm],
                issuer=self.issuer.issuer,
                audience=self.issuer.audience,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        subject = claims["sub"]
        if not isinstance(subject, str) or not 1 <= len(subject.encode(errors="replace")) <= _SUBJECT_BYTES_MAX:
            return None
        if "\x00" in subject or not subject.isprintable():
            return None
        scopes = _scopes(claims.get(self.issuer.scopes_claim))
        return Token(user_of(self.issuer.name, subject), self.issuer.name, scopes)


class Tokens:
    """All issuers of one server."""

    def __init__(self, issuers: Sequence[Issuer]) -> None:
        self._trusted = {issuer.issuer: Trusted(issuer, _key(issuer)) for issuer in issuers}

    def check(self, text: str) -> Token | None:
        """Find the issuer that the token names, and ask its key."""
        if not self._trusted or len(text) > _TOKEN_CHARS_MAX:
            return None
        try:
            claims = jwt.decode(text, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return None
        named = claims.get("iss")
        trusted = self._trusted.get(named) if isinstance(named, str) else None
        return trusted.verify(text) if trusted is not None else None


def user_of(issuer: str, subject: str) -> str:
    """jwt:<issuer's name>:<subject>.

    One that would be too long is known by its hash, under a prefix that no other has.
    """
    user = f"jwt:{issuer}:{subject}"
    if len(user.encode()) <= _USER_BYTES_MAX:
        return user
    return f"jwt-sha256:{issuer}:{hashlib.sha256(subject.encode()).hexdigest()}"


def _scopes(claim: object) -> frozenset[str]:
    """A list, or words with blanks between; without the claim a person may view and subscribe."""
    if claim is None:
        return DEFAULT_SCOPES
    words = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return frozenset(word for word in words if isinstance(word, str)) & frozenset(SCOPES)


def _key(issuer: Issuer) -> Any:
    """The key that the setting refers to, read and tried once, at the start."""
    place, _, name = issuer.key.partition(":")
    text = _environment(issuer, name) if place == "env" else _file(issuer, name)
    if issuer.algorithm == "HS256":
        if "-----BEGIN" in text or len(text.encode()) < _SECRET_BYTES_MIN:
            raise ConfigurationError(
                f"jwt {issuer.name}: key {issuer.key}: HS256 needs a secret of {_SECRET_BYTES_MIN} bytes or "
                "more, not a PEM key"
            )
        return text
    try:
        return jwt.get_algorithm_by_name(issuer.algorithm).prepare_key(text)
    except (jwt.PyJWTError, ValueError, TypeError):
        raise ConfigurationError(
            f"jwt {issuer.name}: key {issuer.key} is no public key in PEM that {issuer.algorithm} can use"
        ) from None


def _environment(issuer: Issuer, name: str) -> str:
    text = os.environ.get(name, "").strip()
    if not text:
        raise ConfigurationError(f"jwt {issuer.name}: key env:{name}: that variable is not set")
    return text


def _file(issuer: Issuer, name: str) -> str:
    try:
        with Path(name).expanduser().open("rb") as file:
            return file.read(_KEY_BYTES_MAX).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"jwt {issuer.name}: key file:{name} cannot be read: {error}") from None
