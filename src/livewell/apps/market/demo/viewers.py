"""Viewers who come, look at a few symbols, and go.

Each viewer is a session like a browser's: opened, subscribed, kept alive by heartbeats, closed. The
symbols follow Zipf's law: everybody looks at the first ones, hardly anybody at the last. While the
database is away nobody comes or goes. Afterwards they go on, and a viewer whose session was
forgotten comes again.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from livewell.apps.market.demo.scenario import Scenario
from livewell.errors import LivewellError
from livewell.refresh.subscribe.subscriptions import Pair, Subscriptions, UnknownSession

PAGES = ("news", "earnings", "end_of_day", "income_statement", "balance_sheet_statement", "cash_flow_statement")

_STAY_SECONDS = 45.0
_STAY_SECONDS_MIN = 5.0
_HEARTBEAT_SECONDS = 20.0
_TURN_SECONDS = 0.1
_LOOKS_MAX = 20
_AT_ONCE = 6
_PAGE_SHARE = 0.15
_PAUSE_SECONDS = 0.3


@dataclass(slots=True)
class _Viewer:
    pairs: list[Pair]
    leaves_at: float
    beats_at: float
    session: uuid.UUID = field(default_factory=uuid.uuid4)


class SimulatedViewers:
    """Simulated viewers, until cancelled.

    The first viewer looks at what the screen shows, so that there is something to see at once.
    """

    def __init__(
        self, viewers: Subscriptions, scenario: Scenario, symbols: Sequence[str], *, rng: random.Random
    ) -> None:
        self._viewers = viewers
        self._scenario = scenario
        self._symbols = list(symbols)
        self._weights = [1 / (place + 1) ** scenario.steepness for place in range(len(symbols))]
        self._rng = rng
        self._there: list[_Viewer] = []
        self.came = 0

    @property
    def present(self) -> int:
        """How many are there now."""
        return len(self._there)

    async def run(self) -> None:
        """Fill the room, then let people come and go."""
        first = self._viewer([("quote", symbol) for symbol in self._symbols[: self._scenario.pages]])
        while True:
            try:
                if not self.came:
                    await self._come(first)
                await self._turn()
            except LivewellError:
                await asyncio.sleep(_PAUSE_SECONDS)  # the database is away; the figures show it
            await asyncio.sleep(_TURN_SECONDS)

    async def _turn(self) -> None:
        now = time.monotonic()
        gone = [viewer for viewer in self._there if viewer.leaves_at <= now]
        late = [viewer for viewer in self._there if viewer.beats_at <= now < viewer.leaves_at]
        missing = self._scenario.sessions - len(self._there) + len(gone)
        comers = [self._viewer(self._choice()) for _ in range(min(missing, 10 * _AT_ONCE))]
        acts = [*map(self._leave, gone), *map(self._beat, late), *map(self._come, comers)]
        for start in range(0, len(acts), _AT_ONCE):
            results = await asyncio.gather(*acts[start : start + _AT_ONCE], return_exceptions=True)
            failed = [result for result in results if isinstance(result, BaseException)]
            if failed:
                for act in acts[start + _AT_ONCE :]:
                    act.close()
                raise failed[0]

    def _viewer(self, pairs: list[Pair]) -> _Viewer:
        now = time.monotonic()
        stays = max(_STAY_SECONDS_MIN, self._rng.expovariate(1 / _STAY_SECONDS))
        return _Viewer(pairs, now + stays, now + _HEARTBEAT_SECONDS * self._rng.uniform(0.8, 1.0))

    def _choice(self) -> list[Pair]:
        looks = min(_LOOKS_MAX, 1 + int(self._rng.expovariate(1 / self._scenario.looks)))
        chosen = dict.fromkeys(self._rng.choices(self._symbols, self._weights, k=looks))
        pairs = [("quote", symbol) for symbol in chosen]
        if self._rng.random() < _PAGE_SHARE:
            place = self._rng.randrange(self._scenario.pages)
            pairs.append((self._rng.choice(PAGES), self._symbols[place]))
        return pairs

    async def _come(self, viewer: _Viewer) -> None:
        await self._viewers.open(session=viewer.session)
        answer = await self._viewers.subscribe(viewer.session, None, viewer.pairs)
        if not isinstance(answer, UnknownSession):
            self.came += 1
            self._there.append(viewer)

    async def _beat(self, viewer: _Viewer) -> None:
        if not await self._viewers.heartbeat(viewer.session):
            self._there.remove(viewer)
            return
        viewer.beats_at = time.monotonic() + _HEARTBEAT_SECONDS * self._rng.uniform(0.8, 1.0)

    async def _leave(self, viewer: _Viewer) -> None:
        await self._viewers.close(viewer.session)
        self._there.remove(viewer)
