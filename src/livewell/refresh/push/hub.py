"""The hub: one reader per process tells everybody here what has changed.

It knows nothing of HTTP: streams, watches and waiting gets are all its followers.

    not started ──somebody follows a key──▶ listening ──nudge, poll interval, a verdict's time, a new follower──▶ reading ──▶ followers told ──▶ listening

A pass:

1. Find the keys that changed since the cursor. Only names and versions are read: the cost grows
   with what changed, not with what is followed.
2. Read three kinds of keys, each once, however many follow it: changed keys that somebody here
   follows, keys whose verdict turns by time alone, and a slice of those that are new here.
3. Tell the followers. Each keeps the latest state per key, never a backlog.

Nothing is missed:

- A follower is registered before anything is read for it, and passes come one after the other. So
  what is told is never older than what was told before.
- status_at is read before its commit, so a slow store becomes visible behind the cursor. At every
  poll interval the last call_timeout_seconds + 1 s are looked at again. Nudges look back half a second
  only: the many wake-ups of a busy database shall not read the same seconds again and again.
- Every push_compare_seconds (60) all followed keys are compared. That is the bound for a commit
  that came later than that, and for whatever else might be missed.
- Verdicts change by the mere passing of time. Each state says when, and is read again then.

Nothing is shown as fresh for longer than it is. When the time of a verdict is over and the database
has not judged anew within half a second, the hub turns it stale (R22). So an outage leaves nobody's
value fresh, and a database that answers late is not waited for.

From the first follower on the hub listens until it is closed: a reader that ended with its last
follower would be deaf to one that comes while it ends. With nobody to tell it reads nothing. Nobody
holds a connection while waiting.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice

import structlog

from livewell.db import Database, Listener
from livewell.db.nudge import Nudger
from livewell.errors import InvalidOption, LivewellError
from livewell.loops import Waker
from livewell.refresh.nudges import CHANGED
from livewell.refresh.push.follower import Follower
from livewell.refresh.push.key_shares import KeyShares
from livewell.refresh.push.key_state import GRACE_SECONDS, KeyState, Pair, missing
from livewell.refresh.push.state_cache import StateCache
from livewell.refresh.verdict_clock import clock
from livewell.shares import Client

log = structlog.get_logger("livewell.hub")

READ = (
    "SELECT data_type, key, verdict, source_at, fetched_at, checked_at, version, status_version, reason, error, "
    "value::text, turns_at, turns_seconds, age_seconds FROM livewell.read_readings(%s::text[], %s::text[], "
    "%s::bigint[], %s::text[], %s::bigint[])"
)
_SINCE = "SELECT at, types, keys, versions, last_at FROM livewell.changed_since(%s, %s, %s, %s, %s, %s)"
_PAGE = 1000
_SLICE = (
    250  # of what is new or compared, in one pass: whoever brings a thousand keys does not hold up everybody's changes
)
_SCAN_PAGE = 5000
_SCAN_PAGES_MAX = 10  # beyond, comparing what is followed is cheaper
_NUDGE_BACK_SECONDS = 0.5
_GAP_SECONDS = 0.005  # between two passes, at least
_FAILED_SECONDS = 1.0
_TURN_SECONDS = 0.005  # after the instant itself: "older than" is true a moment later


class Hub:
    """The reader of one process."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger
        self._settings = database.settings
        self._back_seconds = database.settings.call_timeout_seconds + 1  # no store takes longer
        self._followers: dict[Pair, set[Follower]] = {}
        self._pairs: dict[Pair, Pair] = {}  # each once, however many follow it: a tenth of what a stream needs
        self._shares = KeyShares(database.settings.watched_keys_max, database.settings.client_keys_max)
        self._known = StateCache(database.settings.watched_bytes_max)
        self._wanted: set[Pair] = set()  # changed: to be read in the next pass
        self._new: dict[Pair, None] = {}  # followed, and nothing is known of them yet; in the order they came
        self._comparing: list[Pair] = []  # of a comparison that is under way
        self._turns: dict[Pair, float] = {}  # when the verdict changes by itself, monotonic
        self._heap: list[tuple[float, Pair]] = []  # the same, by time; entries that differ from _turns are void
        self._cursor: datetime | None = None  # on the database's clock
        self._looked_at = self._compared_at = 0.0  # monotonic: the last full look back, the last comparison
        self._passed_at = 0.0
        self._wake = Waker()
        self._hear: list[Callable[[str], None]] = []
        self._reading: asyncio.Task[None] | None = None
        self.reads = 0  # queries for states of keys
        self.scans = 0  # queries for what changed
        self.told = 0

    @property
    def followed(self) -> int:
        """How many keys are followed."""
        return len(self._followers)

    def hear(self, listener: Callable[[str], None]) -> None:
        """Call this for every nudge that the hub hears.

        With an empty name after the listening connection was lost.
        """
        self._hear.append(listener)

    def has_room(self, client: Client | None) -> bool:
        """Whether this client may follow another key."""
        return self._shares.room(client, len(self._followers))

    def follow(self, keys: Iterable[Pair], *, read: bool = True, client: Client | None = None) -> Follower:
        """Begin to follow all of these, or raise.

        With read the current state of each key comes first; without, whoever asks for it otherwise
        does so after this, and misses nothing.
        """
        follower = Follower(client)
        left = self.extend(follower, keys, read=read)
        if left:
            self.unfollow(follower)
            raise InvalidOption(
                f"{len(left)} keys too many: this process follows {len(self._followers)} and may follow "
                f"{self._settings.watched_keys_max} (LIVEWELL_WATCHED_KEYS_MAX)"
            )
        return follower

    def extend(self, follower: Follower, keys: Iterable[Pair], *, read: bool = True) -> Sequence[Pair]:
        """Follow these keys too, in this order.

        Answers those that do not fit into the client's share, or into this process.
        """
        # The very objects that are known here: whatever looks one up below finds it without
        # comparing texts.
        asked = [self._pairs.get(pair, pair) for pair in dict.fromkeys(keys) if pair not in follower.keys]
        new, left = self._shares.fit(follower.client, asked, self._followers)
        if not new:
            return left
        self._start()
        if not self._followers:
            self._wake.set()  # with nobody to tell it does not poll; from now on it does
        for pair in new:
            followers = self._followers.get(pair)
            if followers is None:
                self._followers[pair] = {follower}
                self._pairs[pair] = pair
            else:
                followers.add(follower)
        follower.keys.update(new)
        if follower.client is not None:
            self._shares.take(follower.client, new)
        if read:
            self._show(follower, new)
        return left

    def _show(self, follower: Follower, pairs: Sequence[Pair]) -> None:
        """What others have been told, now.

        Anything newer, and what nobody here knows yet, comes with the next pass.
        """
        known = [(pair, self._known.get(pair)) for pair in pairs]
        follower.begin([state.now() for _, state in known if state is not None and state.has_value])
        unknown = [pair for pair, state in known if state is None or not state.has_value]
        if unknown:
            follower.awaited.update(unknown)
            self._new.update(dict.fromkeys(unknown))
            self._wake.set()

    def reduce(self, follower: Follower, keys: Iterable[Pair]) -> None:
        """Follow these keys no longer."""
        gone = [pair for pair in keys if pair in follower.keys]
        for pair in gone:
            follower.keys.discard(pair)
            follower.forget(pair)
            self._leave(pair, follower)
        if follower.client is not None:
            self._shares.leave(follower.client, gone)

    def unfollow(self, follower: Follower) -> None:
        """Stop following."""
        keys = follower.keys.copy()
        follower.forget_all()
        for pair in keys:
            self._leave(pair, follower)
        if follower.client is not None:
            self._shares.leave(follower.client, keys)

    def _leave(self, pair: Pair, follower: Follower) -> None:
        followers = self._followers.get(pair)
        if followers is None:
            return
        followers.discard(follower)
        if not followers:
            del self._followers[pair]
            del self._pairs[pair]
            self._known.drop(pair)
            self._turns.pop(pair, None)
            self._wanted.discard(pair)
            self._new.pop(pair, None)

    async def close(self) -> None:
        """End the reader."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading], timeout=2)
            self._reading = None

    def start(self) -> None:
        """Listen from now on, though nobody follows anything yet."""
        self._start()

    def _start(self) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._run(), name="hub")

    # -- waking -----------------------------------------------------------------------------------

    def _on_nudge(self, name: str) -> None:
        if name == CHANGED and self._followers:
            self._wake.set()
        for listener in self._hear:
            listener(name)

    def _on_reconnect(self) -> None:
        self._looked_at = 0.0  # nudges were missed
        self._wake.set()
        for listener in self._hear:
            listener("")

    async def _run(self) -> None:
        listener = Listener(
            self._database.listen_conninfo,
            on_nudge=self._on_nudge,
            on_reconnect=self._on_reconnect,
            check_seconds=self._settings.listen_check_seconds,
            connect_seconds=self._settings.connect_timeout_seconds,
        )
        listening = asyncio.create_task(listener.run(), name="hub-listener")
        self._nudger.attach(self._on_nudge)
        try:
            while True:
                began = time.monotonic()
                pause = 0.0
                try:
                    await self._pass_watched(began)
                except LivewellError as error:
                    log.warning("cannot read changes", error=str(error))
                    pause = _FAILED_SECONDS
                    self._turn_overdue()
                # A slow pass must not be all that the database does. Slow is also a pass in a busy
                # process: a quarter, so that changes are not twice as late then.
                await asyncio.sleep(max(pause, _GAP_SECONDS, min(1.0, (time.monotonic() - began) / 4)))
                await self._rest()
        finally:
            self._nudger.detach(self._on_nudge)
            listening.cancel()
            await asyncio.wait([listening], timeout=2)

    async def _rest(self) -> None:
        """Until there is something to do: a wake-up.

        At the latest, with followers, the next verdict that turns or the poll interval.
        """
        limit = self._settings.poll_seconds if self._followers else 3600.0
        if self._heap:
            limit = min(limit, max(0.0, self._heap[0][0] - time.monotonic()))
        await self._wake.wait(limit)

    # -- one pass ---------------------------------------------------------------------------------

    async def _pass_watched(self, now: float) -> None:
        """Make one pass, and turn overdue verdicts meanwhile.

        While the pass waits for the database, verdicts whose time is over are turned without it.
        """
        passing = asyncio.create_task(self._pass(now), name="hub-pass")
        try:
            while not (await asyncio.wait([passing], timeout=GRACE_SECONDS))[0]:
                self._turn_overdue()
        finally:
            if passing.cancel():
                await asyncio.wait([passing], timeout=2)
        passing.result()

    async def _pass(self, now: float) -> None:
        self._wake.clear()
        if not self._followers:
            self._cursor = None
            self._heap.clear()
            return
        if now - self._passed_at > self._settings.push_compare_seconds:
            self._cursor = (
                None  # after a long silence everything is compared, and a scan would go through everything since
            )
        if not await self._scan(now) or now - self._compared_at > self._settings.push_compare_seconds:
            self._comparing = list(self._followers)
            self._compared_at = now
        turning = self._due(now)
        wanted, self._wanted = self._wanted, set()
        new = list(islice(self._new, _SLICE))
        compared = [self._comparing.pop() for _ in range(min(len(self._comparing), _SLICE - len(new)))]
        try:
            await self._read(list(dict.fromkeys([*wanted, *turning, *new, *compared])), anyway={*turning, *new})
        except LivewellError:
            self._wanted |= wanted | turning | set(compared)
            raise
        for pair in new:
            self._new.pop(pair, None)
        self._passed_at = now
        if self._new or self._comparing:
            self._wake.set()

    async def _scan(self, now: float) -> bool:
        """Which followed keys changed since the cursor? They are wanted then.

        False: too many changed to go through them.
        """
        whole = now - self._looked_at >= self._settings.poll_seconds
        back = self._back_seconds if whole or self._cursor is None else _NUDGE_BACK_SECONDS
        cursor, after = self._cursor, (None, None, None)
        for page in range(_SCAN_PAGES_MAX):
            self.scans += 1
            [(at, types, keys, versions, last_at)] = await self._database.call(
                _SINCE, (cursor, back, _SCAN_PAGE, *after)
            )
            if page == 0:
                self._cursor = at
            for pair, version in zip(zip(types, keys, strict=True), versions, strict=True):
                if pair in self._followers:
                    known = self._known.get(pair)
                    if known is None or known.status_version != version:
                        self._wanted.add(pair)
            if len(keys) < _SCAN_PAGE:
                self._looked_at = now if whole else self._looked_at
                return True
            after = (last_at, types[-1], keys[-1])
        return False

    async def _read(self, pairs: list[Pair], *, anyway: set[Pair]) -> None:
        """Tell what differs from what is known.

        Of some we want to hear anyway: a verdict whose time has come says when it turns next, and
        whoever is new has been told nothing.
        """
        waiting = iter([pair for pair in pairs if pair in self._followers])
        while page := list(islice(waiting, _PAGE)):
            # What we say we know is what the answer is measured by, whatever happens to _known
            # meanwhile.
            known = {pair: self._known.get(pair) for pair in page}
            self.reads += 1
            asked_at = clock()
            rows = await self._database.call(
                READ,
                (
                    [data_type for data_type, _ in page],
                    [key for _, key in page],
                    [-1 if one is None or pair in anyway else one.status_version for pair, one in known.items()],
                    [None if one is None else one.verdict for one in known.values()],
                    [-1 if one is None or not one.has_value else one.version for one in known.values()],
                ),
            )
            for data_type, key, *row in rows:
                before = known.pop((data_type, key))
                pair = self._pairs.get((data_type, key))
                if pair is not None:  # somebody follows it still
                    state = KeyState(pair, row, asked_at=asked_at, before=before)
                    self._turn(pair, state.turns_seconds)
                    self._tell(state)
            for pair, before in known.items():
                if before is None and pair in self._followers:
                    self._tell(missing(pair))  # its type is not in the registry
        if len(self._heap) > 2 * len(self._followers) + _PAGE:
            self._heap = [(at, pair) for pair, at in self._turns.items()]
            heapq.heapify(self._heap)

    def _tell(self, state: KeyState) -> None:
        pair, known = state.pair, self._known.get(state.pair)
        same = state.same(known)
        if known is None or not same or not known.has_value:
            self._known.keep(state)
        for follower in self._followers[pair]:
            if not same or pair in follower.awaited:
                follower.tell(state)
                self.told += 1

    # -- verdicts that turn by time alone ---------------------------------------------------------

    def _turn(self, pair: Pair, seconds: float | None) -> None:
        self._turns.pop(pair, None)
        if seconds is not None:
            at = time.monotonic() + seconds + _TURN_SECONDS
            self._turns[pair] = at
            heapq.heappush(self._heap, (at, pair))

    def _turn_overdue(self) -> None:
        """Tell what is overdue by more than a moment.

        The database has not said what it is instead.
        """
        overdue = time.monotonic() - GRACE_SECONDS
        for pair in [pair for pair, at in self._turns.items() if at < overdue]:
            known = self._known.get(pair)
            if known is not None and (state := known.now()) is not known:
                self._tell(state)

    def _due(self, now: float) -> set[Pair]:
        due = set()
        while self._heap and self._heap[0][0] <= now:
            at, pair = heapq.heappop(self._heap)
            if self._turns.get(pair) == at:
                due.add(pair)
        return due
