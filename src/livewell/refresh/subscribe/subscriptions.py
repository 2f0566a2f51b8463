"""Sessions, heartbeats and subscriptions, as Python calls them.

The rules are in the SQL functions of the same names.

A subscription that finds something stale wakes the due check at once; a viewer should not wait for
its next turn.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.refresh.nudges import DUE

SESSIONS_MAX = 1000  # that one user may have

Answer = Literal["subscribed", "unknown_type", "bad_key", "capped", "cold_budget"]
Verdict = Literal["fresh", "stale", "lagging", "unverifiable", "missing", "failing"]
Pair = tuple[str, str]

_SUBSCRIBE = """
SELECT data_type, key, answer, verdict, wanted, version, status_version, source_at, fetched_at, checked_at, age_seconds
FROM livewell.subscribe(%s, %s, %s::text[], %s::text[], %s, %s)
"""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What became of one pair, and how fresh it is.

    `wanted`: it is stale and may be asked for now.
    """

    data_type: str
    key: str
    answer: Answer
    verdict: Verdict
    wanted: bool
    version: int | None
    status_version: int | None
    source_at: datetime | None
    fetched_at: datetime | None
    checked_at: datetime | None
    age_seconds: float | None


@dataclass(frozen=True, slots=True)
class UnknownSession:
    """No such session, or somebody else's: open a new one."""


class Subscriptions:
    """The subscription functions on one database."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger

    async def open(
        self, user: str | None = None, *, session: uuid.UUID | None = None, sessions_max: int = SESSIONS_MAX
    ) -> uuid.UUID | Literal["too_many", "refused"]:
        """Open a session for a user, or for somebody anonymous; answers its id.

        With an id of your own the call may be repeated.

        user: here and below, public:<key>@<network> is somebody anonymous: the session belongs to
        that public key, and shares its budgets. sessions_max: of the user, or of the public key.
        """
        session = session or uuid.uuid4()
        opened = "SELECT livewell.open_session(%s, %s, %s)"
        answer = (await self._database.call(opened, (session, user, sessions_max)))[0][0]
        return session if answer == "open" else answer

    async def heartbeat(self, session: uuid.UUID, user: str | None = None) -> bool:
        """A message came from the client.

        False when there is no such session, or it is somebody else's.
        """
        rows = await self._database.call("SELECT livewell.heartbeat_session(%s, %s)", (session, user))
        return bool(rows[0][0] == "alive")

    async def close(self, session: uuid.UUID, user: str | None = None) -> bool:
        """End a session and everything it watched; false as above."""
        rows = await self._database.call("SELECT livewell.close_session(%s, %s)", (session, user))
        return bool(rows[0][0] == "closed")

    async def subscribe(
        self,
        session: uuid.UUID,
        user: str | None,
        pairs: Sequence[Pair],
        *,
        subscriptions_max: int | None = None,
        cold_max: int | None = None,
    ) -> list[Subscription] | UnknownSession:
        """Watch (type, key) pairs, at most 1,000 in a call.

        Answers for each distinct pair, in the order given. cold_max: keys nobody knew that a
        stranger may bring up in a minute.
        """
        types, keys = [one for one, _ in pairs], [key for _, key in pairs]
        most = self._database.settings.subscriptions_max if subscriptions_max is None else subscriptions_max
        rows = await self._database.call(_SUBSCRIBE, (session, user, types, keys, most, cold_max))
        if rows and rows[0][2] == "unknown_session":
            return UnknownSession()
        watched = [Subscription(*row) for row in rows]
        if any(one.wanted for one in watched):
            self._nudger.nudge(DUE)
        return watched

    async def unsubscribe(self, session: uuid.UUID, user: str | None, pairs: Sequence[Pair]) -> int | UnknownSession:
        """Stop watching pairs; answers how many were watched."""
        rows = await self._database.call(
            "SELECT livewell.unsubscribe(%s, %s, %s::text[], %s::text[])",
            (session, user, [one for one, _ in pairs], [key for _, key in pairs]),
        )
        ended = int(rows[0][0])
        return UnknownSession() if ended < 0 else ended

    async def count(self, data_type: str, key: str) -> int:
        """Distinct users who look at a key now, up to 1,000."""
        rows = await self._database.call("SELECT livewell.count_viewers(%s, %s)", (data_type, key))
        return int(rows[0][0])
