"""To whom documents and exports belong.

    a key, a token ──▶ its user
    a login        ──▶ the person at whose terminal the link was printed: cli:ann@host
    a public key   ──▶ nobody: 403

A login lasts hours and documents last years, so a login is not a user of its own here. Whoever
follows a second link from the same terminal finds what they made after the first one; `livewell
resumes import` at that terminal writes for the same person.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from livewell.db import Database
from livewell.server.answers.problems import Problem
from livewell.server.auth.caller import Caller

_FIND = "SELECT livewell.find_login_owner(%s)"
_REMEMBERED_MAX = 10_000
_BYTES_MAX = 200  # of a user, in every table of documents and exports


class Owners:
    """The owners of the logins of one database, as one process remembers them: they never change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[str, str] = OrderedDict()

    async def of(self, caller: Caller) -> str:
        """The user whose documents a caller sees."""
        if caller.user is None:
            raise Problem(403, "Documents belong to people: come with a key of your own or a token.", word="no-user")
        if caller.kind != "login" or caller.key_id is None:
            return _short(caller.user)
        if caller.key_id not in self._known:
            [(person,)] = await self._database.call(_FIND, (caller.key_id,))
            self._known[caller.key_id] = _short(person or caller.user)
            while len(self._known) > _REMEMBERED_MAX:
                self._known.popitem(last=False)
        return self._known[caller.key_id]


def _short(user: str) -> str:
    """Issuers may give subjects of any length; a long one is told by its hash."""
    text = user.encode()
    if len(text) <= _BYTES_MAX:
        return user
    return f"{text[:100].decode(errors='ignore')}#{hashlib.sha256(text).hexdigest()}"
