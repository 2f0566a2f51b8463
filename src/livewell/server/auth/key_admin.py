"""Make, list and revoke keys, as the owner of the database. The command line uses this."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from livewell.db import Database, Row
from livewell.db.acts import audited, line
from livewell.errors import DatabaseError, InvalidOption, LivewellError, UnknownType
from livewell.server.auth.api_keys import OF_EVERY_TYPE, NewKey
from livewell.server.auth.web_tokens import SCOPES

_NOT_ALLOWED = "42501"
_CREATE = "SELECT m.answer, livewell.limit_key(%s, %s) FROM ({made}) AS m".format(  # noqa: S608 - constants of ours
    made=audited("livewell.create_key(%s, %s, 'key', %s, %s, %s, %s, %s)")
)
_REVOKED = "SELECT jsonb_build_object('revoked', k.revoked_at IS NOT NULL) FROM livewell.api_key k WHERE k.id = %s"
_REVOKE = audited("livewell.revoke_key(%s)", before=_REVOKED)
_LIST = """
SELECT k.*, a.sessions_max FROM livewell.list_keys(%s, %s, %s) k JOIN livewell.api_key a ON a.id = k.id ORDER BY k.created_at DESC, k.id
"""
_PUBLIC = frozenset({"view", "subscribe"})
_SPAN_SECONDS_MAX = 3660 * 86_400.0
_SESSIONS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Created:
    """A key that was just made. Its text is shown once, and never again."""

    id: str
    text: str = field(repr=False)
    expires_at: datetime | None


class KeyAdmin:
    """The keys of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        name: str,
        *,
        scopes: Sequence[str],
        types: Sequence[str] = (),
        public: bool = False,
        seconds: float | None = None,
        sessions_max: int | None = None,
    ) -> Created:
        """Make one, and answer its text.

        sessions_max: how many sessions the strangers of a public key may have; as the setting says
        if not given.
        """
        check_key(name, scopes, types, seconds, public=public)
        _check_sessions(sessions_max, public=public)
        await check_types(self._call, types)
        made = NewKey.make()
        row = (made.id, made.hash, name, sorted(set(scopes)), sorted(set(types)) or None, public, seconds)
        kept = {"scopes": row[3], "types": row[4], "public": public, "sessions_max": sessions_max, "seconds": seconds}
        act = line("keys.create", made.id, after={one: value for one, value in kept.items() if value}, name=name)
        [(expires_at, _)] = await self._call(_CREATE, (made.id, sessions_max, *row, *act))
        return Created(made.id, made.text, expires_at)

    async def keys(
        self, *, everything: bool = False, after: str | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """The newest first, after the one with a given id.

        With everything also login links and logins.
        """
        try:
            return await self._database.call_dicts(_LIST, (everything, limit, after))
        except DatabaseError as error:
            raise _told(error) from error

    async def revoke(self, key_id: str) -> bool:
        """Refuse it from now on; false when there is none of that id."""
        act = line("keys.revoke", key_id, after={"revoked": True})
        return bool((await self._call(_REVOKE, (key_id, key_id, *act)))[0][0])

    async def _call(self, query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return await self._database.call(query, params)
        except DatabaseError as error:
            raise _told(error) from error


async def check_types(call: Callable[[str, Sequence[Any]], Awaitable[list[Row]]], types: Sequence[str]) -> None:
    """Raise if a type is unknown: a slip of the pen would be a key that reads nothing."""
    known = {name for (name,) in await call("SELECT name FROM livewell.data_type", ())} if types else set()
    unknown = sorted(set(types) - known)
    if unknown:
        raise UnknownType(f'type "{unknown[0]}" is not in the registry; see: livewell types list')


def _told(error: DatabaseError) -> LivewellError:
    if error.sqlstate != _NOT_ALLOWED:
        return error
    return LivewellError(
        "keys are the owner's: connect as a member of livewell_owner, or as whoever ran `livewell migrate`"
    )


def check_key(name: str, scopes: Sequence[str], types: Sequence[str], seconds: float | None, *, public: bool) -> None:
    """Raise if there cannot be such a key."""
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise InvalidOption(f"name {name[:40]!r}: 1 to 100 printable characters are allowed")
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise InvalidOption(f"scope {', '.join(unknown) or '(none)'}: allowed are {', '.join(SCOPES)}")
    if public and not set(scopes) <= _PUBLIC:
        raise InvalidOption("a public key may live in a web page, so it may have the scopes view and subscribe only")
    if types and not OF_EVERY_TYPE.isdisjoint(scopes):
        raise InvalidOption(
            "a key that is bound to types cannot operate or observe: what operators see and do concerns every "
            "type. Name no type, or make two keys"
        )
    if len(set(types)) > 100 or not all(one.isidentifier() and one.isascii() and len(one) <= 48 for one in types):
        raise InvalidOption("type: at most 100 names of types are allowed, as `livewell types list` shows them")
    if seconds is not None and not 0 < seconds <= _SPAN_SECONDS_MAX:
        raise InvalidOption("expires: more than 0 and at most ten years is allowed")


def _check_sessions(sessions_max: int | None, *, public: bool) -> None:
    if sessions_max is None:
        return
    if not public:
        raise InvalidOption(
            "sessions-max is for public keys: a key that is not public is one user, with at most 1,000 sessions"
        )
    if not 1 <= sessions_max <= _SESSIONS_MAX:
        raise InvalidOption(f"sessions-max {sessions_max}: 1 to {_SESSIONS_MAX:,} are allowed")
