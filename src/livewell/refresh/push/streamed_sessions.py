"""Which keys the clients of this process look at, kept the same as the database has it.

    opened ──subscriptions read──▶ following ──changed here, or elsewhere──▶ read again ──▶ following
                                       ├──more keys than the client's share──▶ the rest is capped, until there is room
                                       └──closed, swept──▶ ended

A change that came through this process is heard at once (touch). A change that came through another
server is heard by the nudge refresh.sessions. Any change is heard at the next poll interval, when
subs_version of all sessions is compared in one query. The database says what is subscribed, never
the message: two changes that overtake each other on the way cannot leave a session with the wrong
keys.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import structlog

from livewell.db import Database
from livewell.errors import LivewellError
from livewell.loops import Waker
from livewell.refresh.nudges import SESSIONS
from livewell.refresh.push.follower import Follower
from livewell.refresh.push.hub import Hub
from livewell.refresh.push.key_state import Pair
from livewell.shares import Client
from livewell.telemetry.repeats import Repeats

log = structlog.get_logger("livewell.sessions")


_READ = "SELECT session, subs_version, types, keys FROM livewell.keys_of_sessions(%s::uuid[], %s::text[], %s::bigint[])"
_PAGE = 1000
_OPEN_PAGE = (
    10  # sessions that open in one query: they may have a thousand keys each, and reading those takes everybody's time
)
_GAP_SECONDS = 0.1  # between two looks at all sessions, at least: each nudge concerns one of them
_FAILED_SECONDS = 1.0

_Row = tuple[uuid.UUID, int | None, list[str], list[str]]  # session, subs_version, types, keys
Allowed = Callable[[str], bool]  # may this client see this type?


class StreamedSession:
    """One client's session and the follower of its keys.

    `ended` is set when there is no such session any more; `capped` are the keys that do not fit
    into the client's share.
    """

    def __init__(self, session: uuid.UUID, user: str | None, follower: Follower, allowed: Allowed) -> None:
        self.session = session
        self.user = user  # whose it must be; public:<key>@<network> of somebody anonymous
        self.follower = follower
        self.allowed = allowed
        self.version = -1
        self.opening = True
        self.missed = False  # something may have changed while it was opening
        self.ended = False
        self.capped: dict[Pair, None] = {}  # in the order of the subscriptions; followed as soon as there is room
        self.untold: dict[Pair, None] = {}  # of these, what the client does not know yet

    def cap(self, keys: Sequence[Pair]) -> None:
        """Cap these keys, which do not fit, and no others.

        If the client does not know it yet, this wakes the task that waits on the follower.
        """
        before, self.capped = self.capped, dict.fromkeys(keys)
        self.untold = {key: None for key in self.capped if key not in before or key in self.untold}
        if self.untold:
            self.follower.wake.set()

    def end(self) -> None:
        """Mark the session as gone, and wake the task that waits on the follower."""
        self.ended = True
        self.follower.wake.set()


class StreamedSessions:
    """The sessions that are streamed to from this process."""

    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._hub = hub
        self._settings = database.settings
        self._streamed: dict[uuid.UUID, set[StreamedSession]] = {}
        self._capped: set[StreamedSession] = set()  # that have keys which do not fit
        self._touched: set[uuid.UUID] = set()
        self._all_due = False
        self._wake = Waker()
        self._watching: asyncio.Task[None] | None = None
        self._asked: dict[tuple[uuid.UUID, str | None], list[asyncio.Future[_Row]]] = {}  # sessions that open
        self._asking: asyncio.Task[None] | None = None
        self._repeats = Repeats()
        self.queries = 0
        hub.hear(self._on_nudge)

    @property
    def count(self) -> int:
        """How many are streamed to."""
        return len(self._streamed)

    async def open(
        self,
        session: uuid.UUID,
        user: str | None,
        allowed: Allowed = lambda _: True,
        *,
        client: Client | None = None,
    ) -> StreamedSession | None:
        """Follow what a session is subscribed to, as far as it fits into the client's share.

        None when there is no such session, or it is somebody else's.
        """
        streamed = StreamedSession(session, user, Follower(client), allowed)
        # Known before it is read: a change from here on is touched or nudged, and it is read again
        # afterwards.
        self._streamed.setdefault(session, set()).add(streamed)
        try:
            _, version, types, keys = await self._first(session, user)
            if version is None:
                self.close(streamed)
                return None
            self._follow(streamed, version, types, keys)
        except BaseException:
            self.close(streamed)
            raise
        streamed.opening = False
        if streamed.missed:
            self.touch(session)
        self._start()
        return streamed

    def close(self, streamed: StreamedSession) -> None:
        """Nobody looks any more."""
        self._hub.unfollow(streamed.follower)
        self._capped.discard(streamed)
        of_session = self._streamed.get(streamed.session, set())
        of_session.discard(streamed)
        if not of_session:
            self._streamed.pop(streamed.session, None)

    def touch(self, session: uuid.UUID) -> None:
        """Its subscriptions changed, or it was closed, through this process."""
        if session in self._streamed:
            self._touched.add(session)
            self._wake.set()

    def allow(self, streamed: StreamedSession, allowed: Allowed) -> None:
        """Its client may see other types than before: what it follows is looked at anew."""
        streamed.allowed = allowed
        self._hub.reduce(streamed.follower, [pair for pair in streamed.follower.keys if not allowed(pair[0])])
        streamed.cap([pair for pair in streamed.capped if allowed(pair[0])])  # else room would be filled with them
        streamed.version = -1
        self.touch(streamed.session)

    async def stop(self) -> None:
        """End the tasks."""
        for task in (self._watching, self._asking):
            if task is not None:
                task.cancel()
                await asyncio.wait([task], timeout=2)
        self._watching = self._asking = None

    def _on_nudge(self, name: str) -> None:
        if name in (SESSIONS, "") and self._streamed:
            self._all_due = True
            self._wake.set()

    def _start(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._run(), name="sessions")

    async def _first(self, session: uuid.UUID, user: str | None) -> _Row:
        """What a session is subscribed to.

        Whoever comes while a question is under way shares the next one: a crowd that comes back at
        once is few queries.
        """
        answer: asyncio.Future[_Row] = asyncio.get_running_loop().create_future()
        self._asked.setdefault((session, user), []).append(answer)
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="sessions-open")
        return await answer

    async def _ask(self) -> None:
        while self._asked:
            # One of a session in a query: who asks for somebody else's has an answer of their own.
            asked = {session: (session, user) for session, user in islice(self._asked, _OPEN_PAGE)}
            page = {session: self._asked.pop(one) for session, one in asked.items()}
            try:
                users = [user for _, user in asked.values()]
                rows = {row[0]: row for row in await self._read(list(page), users, [-1] * len(page))}
            except LivewellError as error:
                for answer in (answer for answers in page.values() for answer in answers if not answer.done()):
                    answer.set_exception(error)
                continue
            for session, answers in page.items():
                for answer in answers:
                    if not answer.done():
                        answer.set_result(rows[session])
                await asyncio.sleep(0)  # whoever opens then follows its keys: one of them in each round of the loop

    async def _run(self) -> None:
        looked_at = time.monotonic()
        while True:
            await self._rest(looked_at)
            now = time.monotonic()
            touched, self._touched = self._touched, set()
            everybody = now - looked_at >= (_GAP_SECONDS if self._all_due else self._settings.poll_seconds)
            try:
                await self._compare(list(self._streamed) if everybody else list(touched))
                if everybody:
                    looked_at, self._all_due = now, False
                    self._fill()
            except LivewellError as error:
                log.warning("cannot read subscriptions", error=str(error))
                self._touched |= touched
                await asyncio.sleep(_FAILED_SECONDS)

    async def _rest(self, looked_at: float) -> None:
        """Until somebody was touched, or all are to be looked at."""
        self._wake.clear()
        if self._touched:
            return
        wait = _GAP_SECONDS if self._all_due else self._settings.poll_seconds
        await self._wake.wait(max(0.0, looked_at + wait - time.monotonic()))

    async def _compare(self, sessions: list[uuid.UUID]) -> None:
        waiting = iter([session for session in sessions if not self._opens(session)])
        while page := list(islice(waiting, _PAGE)):
            users = self._users(page)
            known = [self._known(session) for session in users]
            for session, version, types, keys in await self._read(list(users), list(users.values()), known):
                for streamed in list(self._streamed.get(session, ())):
                    if version is None:
                        streamed.end()
                    else:
                        self._follow(streamed, version, types, keys)

    def _opens(self, session: uuid.UUID) -> bool:
        """It is being read for the first time: it is compared afterwards.

        Two hundred that come at once would otherwise be read twice, all their keys in one go.
        """
        of_session = self._streamed.get(session, ())
        for streamed in of_session:
            streamed.missed = True
        return all(streamed.opening for streamed in of_session)

    def _users(self, sessions: list[uuid.UUID]) -> dict[uuid.UUID, str | None]:
        """Of those that are open still, whose each was found to be."""
        return {
            session: streamed.user
            for session in sessions
            for streamed in self._streamed.get(session, ())
            if not streamed.opening
        }

    def _known(self, session: uuid.UUID) -> int:
        """The version that all streams of it have; -1 where they differ, or it is gone."""
        versions = {streamed.version for streamed in self._streamed.get(session, ())}
        return versions.pop() if len(versions) == 1 else -1

    def _follow(self, streamed: StreamedSession, version: int, types: list[str], keys: list[str]) -> None:
        """A thousand keys take 3 ms of everybody's time, and took 6 when each was asked for its right."""
        if version <= streamed.version:
            return  # read before what is known by now
        wanted: dict[Pair, None] = dict.fromkeys(zip(types, keys, strict=True))
        forbidden = {data_type for data_type in set(types) if not streamed.allowed(data_type)}
        if forbidden:
            wanted = {pair: None for pair in wanted if pair[0] not in forbidden}
        self._hub.reduce(streamed.follower, streamed.follower.keys - wanted.keys())  # first: it makes room
        self._extend(streamed, wanted)
        streamed.version = version
        streamed.follower.wake.set()

    def _extend(self, streamed: StreamedSession, wanted: Iterable[Pair]) -> None:
        """What does not fit is capped.

        The client is told, and nothing that is followed already suffers for it (H6).
        """
        left = self._hub.extend(streamed.follower, wanted)
        streamed.cap(left)
        if not left:
            self._capped.discard(streamed)
        elif streamed not in self._capped:
            self._capped.add(streamed)
            if self._repeats.passes("capped"):
                client = streamed.follower.client
                log.warning("keys of a stream do not fit", client=client.name if client else None, keys=len(left))

    def _fill(self) -> None:
        """There may be room by now for what did not fit. Whose share is used up costs one look."""
        for streamed in list(self._capped):
            if self._hub.has_room(streamed.follower.client):
                self._extend(streamed, list(streamed.capped))
        for _, n in self._repeats.overdue():
            log.warning("keys of more streams do not fit", streams=n)

    async def _read(self, sessions: list[uuid.UUID], users: list[str | None], known: list[int]) -> list[_Row]:
        self.queries += 1
        rows: list[_Row] = await self._database.call(_READ, (sessions, users, known))
        return rows
