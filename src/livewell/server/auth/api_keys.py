"""API keys: how they look, and what a server remembers of them.

lw_<id>_<secret>      the id finds the row, the secret is compared by its SHA-256 in constant time

A server remembers a key, and that there is none, for key_cache_seconds: a revoked key is refused
after that at the latest.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from livewell.db import Database
from livewell.errors import DatabaseError

log = structlog.get_logger("livewell.server")
T = TypeVar("T")

_SHAPE = re.compile(r"lw_([A-Za-z0-9]{8,32})_([A-Za-z0-9_-]{27,100})")
_ID_CHARS = 16
_SECRET_BYTES = 24  # 192 bits
_LETTERS = string.ascii_letters + string.digits
_REMEMBERED_MAX = 10_000
_TOUCH_SECONDS = 60.0

_FIND = "SELECT secret_hash, kind, scopes, types, public, seconds_left, sessions_max FROM livewell.find_api_key(%s)"
# What operators see and do concerns every type. The table refuses such rows; this is for one that
# was written without its checks.
OF_EVERY_TYPE = frozenset({"observe", "operate", "admin"})


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made: shown once, and never again."""

    id: str
    secret: str = field(repr=False)

    @classmethod
    def make(cls) -> NewKey:
        """Random, from the system's own source."""
        return cls("".join(secrets.choice(_LETTERS) for _ in range(_ID_CHARS)), secrets.token_urlsafe(_SECRET_BYTES))

    @property
    def text(self) -> str:
        """What its holder sends."""
        return f"lw_{self.id}_{self.secret}"

    @property
    def hash(self) -> bytes:
        """What the database keeps."""
        return hash_of(self.secret)


@dataclass(frozen=True, slots=True)
class Key:
    """What the database knows of a key that may be used."""

    id: str
    hash: bytes = field(repr=False)
    kind: str
    scopes: frozenset[str]
    types: frozenset[str] | None
    public: bool
    good_until: float | None  # monotonic
    sessions_max: int | None = None  # of a public key: how many its strangers may have; None: what the setting says


def hash_of(secret: str) -> bytes:
    """SHA-256: the secret has 192 random bits, so a slow hash would protect nothing."""
    return hashlib.sha256(secret.encode()).digest()


def split(text: str) -> tuple[str, str] | None:
    """Id and secret of a key's text, None when it does not look like one."""
    match = _SHAPE.fullmatch(text)
    return (match[1], match[2]) if match else None


class Keys:
    """The keys of one database, as one process remembers them."""

    def __init__(
        self, database: Database, *, cache_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Key | None]] = OrderedDict()
        self._touched: OrderedDict[str, float] = OrderedDict()

    async def check(self, text: str) -> Key | None:
        """The key that this text is, if it may be used now."""
        parts = split(text)
        if parts is None:
            return None
        key = await self.find(parts[0])
        # Compared even when there is none: an id that exists must not be told from one that does
        # not by the time it takes.
        right = hmac.compare_digest(hash_of(parts[1]), key.hash if key else bytes(32))
        if key is None or not right:
            return None
        await self._touch(key.id)
        return key

    async def find(self, key_id: str) -> Key | None:
        """By its id, from memory if that is young enough."""
        now = self._clock()
        then, key = self._known.get(key_id, (-float("inf"), None))
        if now - then >= self._cache_seconds:
            key = await self._read(key_id)
            _remember(self._known, key_id, (now, key))
        if key is not None and key.good_until is not None and key.good_until <= now:
            return None
        return key

    def remembers(self, text: str) -> bool:
        """Whether this is the text of a key that we know; asks nobody."""
        parts = split(text)
        key = self._known.get(parts[0], (0.0, None))[1] if parts else None
        return parts is not None and key is not None and hmac.compare_digest(hash_of(parts[1]), key.hash)

    def forget(self, key_id: str) -> None:
        """It has just changed."""
        self._known.pop(key_id, None)

    def forget_all(self) -> None:
        """Many have just changed."""
        self._known.clear()

    async def _read(self, key_id: str) -> Key | None:
        now = self._clock()
        rows = await self._database.call(_FIND, (key_id,))
        if not rows:
            return None
        hashed, kind, scopes, types, public, left, sessions_max = rows[0]
        return Key(
            id=key_id,
            hash=bytes(hashed),
            kind=kind,
            scopes=frozenset(scopes) - (frozenset() if types is None else OF_EVERY_TYPE),
            types=None if types is None else frozenset(types),
            public=public,
            good_until=None if left is None else now + left,
            sessions_max=sessions_max,
        )

    async def _touch(self, key_id: str) -> None:
        now = self._clock()
        if now - self._touched.get(key_id, -float("inf")) < _TOUCH_SECONDS:
            return
        _remember(self._touched, key_id, now)
        try:
            await self._database.call("SELECT livewell.touch_key(%s)", (key_id,))
        except DatabaseError as error:
            log.warning("could not note that a key was used", key=key_id, error=str(error))


def _remember(memory: OrderedDict[str, T], key_id: str, value: T) -> None:
    """Bounded: what was learnt longest ago goes first."""
    memory.pop(key_id, None)
    memory[key_id] = value
    while len(memory) > _REMEMBERED_MAX:
        memory.popitem(last=False)
