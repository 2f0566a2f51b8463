"""What administrators do with keys and logins through a server.

    page ──form──▶ Access.create(…) ──hash of the asking key's secret──▶ mint_key: compares it, gives no more than it has

The server's role may not write keys. The database makes or revokes one only for a key or login with
the scope admin, which it looks up itself; a token of an issuer is not in the database, so whoever
comes with one cannot do this here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livewell.db import Database
from livewell.db.acts import located, origin
from livewell.errors import InvalidOption
from livewell.server.answers.problems import Problem, not_allowed
from livewell.server.auth.api_keys import Keys, NewKey
from livewell.server.auth.caller import Caller
from livewell.server.auth.key_admin import check_key, check_types

_MINT = located("livewell.mint_key(%s, %s, %s, %s, %s, %s, %s, %s, %s)")
_WITHDRAW = located("livewell.withdraw_keys(%s, %s, %s, %s)")
_KEYS = """
SELECT k.*, a.sessions_max FROM livewell.list_keys(false, %s, %s) k JOIN livewell.api_key a ON a.id = k.id
ORDER BY k.created_at DESC, k.id
"""
_LOGINS = "SELECT * FROM livewell.list_logins(%s)"
_ORIGINS = "SELECT id, origin FROM livewell.list_login_origins(%s)"
_LOGINS_A_TIME = 1000
_PAGES_MAX = 100


class Access:
    """The keys of one database, for one administrator."""

    def __init__(self, database: Database, keys: Keys, caller: Caller) -> None:
        self._database = database
        self._keys = keys
        self._caller = caller

    async def create(
        self,
        name: str,
        *,
        scopes: Sequence[str],
        types: Sequence[str] = (),
        public: bool = False,
        seconds: float | None = None,
    ) -> NewKey:
        """Make a key with no scope that the caller lacks, and answer its text."""
        check_key(name, scopes, types, seconds, public=public)
        await check_types(self._database.call, types)
        made = NewKey.make()
        row = (made.id, made.hash, name, sorted(set(scopes)), sorted(set(types)) or None, public, seconds)
        [(answer,)] = await self._database.call(_MINT, (origin(), *await self._proof(), *row))
        if answer == "too_much":
            raise InvalidOption("scope: a key can get no scope that your own key or login does not have")
        if answer != "made":
            raise not_allowed("admin")
        return made

    async def withdraw(self, ids: Sequence[str], *, everything: bool = False) -> int:
        """Refuse these keys, links and logins from now on; how many could be used until now.

        everything: they are all logins; the audit says so.
        """
        given = (origin(), *await self._proof(), list(ids), everything)
        answer: int | None = (await self._database.call(_WITHDRAW, given))[0][0]
        for one in ids:
            self._keys.forget(one)
        if answer is None:
            raise not_allowed("admin")
        return answer

    async def end_logins(self) -> int:
        """Log every browser out, and use up the login links that nobody followed yet.

        The caller's own login goes last: it is what allows the others to be ended.
        """
        own = [self._caller.key_id] if self._caller.kind == "login" and self._caller.key_id is not None else []
        ended = 0
        for _ in range(_PAGES_MAX):
            rows = await self._database.call(_LOGINS, (_LOGINS_A_TIME,))
            others = [row[0] for row in rows if row[0] not in own][: _LOGINS_A_TIME - 1]
            is_last = len(rows) < _LOGINS_A_TIME
            ended += await self.withdraw([*others, *own] if is_last else others, everything=True)
            if is_last:
                break
        self._keys.forget_all()
        return ended

    async def _proof(self) -> tuple[str, bytes]:
        """Id of the asking key, and the hash of its secret."""
        key = None if self._caller.key_id is None else await self._keys.find(self._caller.key_id)
        if key is None:
            raise Problem(
                403,
                "Keys are made and revoked with a login by link or a key of this database; a token of an issuer "
                "cannot. Use: livewell keys create",
                word="no-key",
            )
        return key.id, key.hash


async def read_keys(database: Database, *, after: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
    """A page of keys, the newest first; never a secret, nor its hash."""
    return await database.call_dicts(_KEYS, (limit, after))


async def read_logins(database: Database, *, limit: int = 50) -> list[dict[str, Any]]:
    """Logins of browsers and links that can be used now, the newest first, and from where they began if that is known."""
    found = await database.call_dicts(_LOGINS, (limit,))
    rows = await database.call(_ORIGINS, ([one["id"] for one in found],)) if found else []
    origins: dict[str, str | None] = {row[0]: row[1] for row in rows}
    return [{**one, "origin": origins.get(one["id"])} for one in found]
