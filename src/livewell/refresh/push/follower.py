"""A follower waits for changes: it is a stream, a watch or a waiting get.

It holds its own latest states, and nothing older.
"""

from __future__ import annotations

import asyncio

from livewell.refresh.push.key_state import KeyState, Pair
from livewell.shares import Client


class Follower:
    """Waits for changes of some keys, and holds the latest state of each until it is taken.

    Its size is bounded by its keys.
    """

    __slots__ = ("_latest", "awaited", "client", "has", "keys", "wake")

    def __init__(self, client: Client | None = None) -> None:
        self.client = client  # whose share its keys count for; None: this process itself
        self.keys: set[Pair] = set()
        self.awaited: set[Pair] = set()  # nothing was told of these yet
        self.has: dict[Pair, int] = {}  # for whoever passes values on: the version of each that was passed on
        self.wake = asyncio.Event()
        self._latest: dict[Pair, KeyState] = {}

    @property
    def waiting(self) -> int:
        """How many keys have something new that was not taken."""
        return len(self._latest)

    def tell(self, state: KeyState) -> None:
        """A newer state takes the place of one that was not taken yet."""
        pair = state.pair
        self._latest[pair] = state
        self.awaited.discard(pair)
        self.wake.set()

    def begin(self, states: list[KeyState]) -> None:
        """What is known of keys that are followed from now on."""
        self._latest.update((state.pair, state) for state in states)
        if states:
            self.wake.set()

    def forget(self, pair: Pair) -> None:
        """Not followed any more: what was not taken is not given."""
        self._latest.pop(pair, None)
        self.has.pop(pair, None)
        self.awaited.discard(pair)

    def forget_all(self) -> None:
        """Nothing is followed any more."""
        for part in (self.keys, self.awaited, self.has, self._latest):
            part.clear()

    def pop(self) -> KeyState | None:
        """Take the state that has waited longest, as it is now; None when nothing waits.

        For a client that is slower than the changes.
        """
        if not self._latest:
            return None
        return self._latest.pop(next(iter(self._latest)))

    async def take(self) -> list[KeyState]:
        """Wait for something new, and take all of it."""
        await self.wake.wait()
        self.wake.clear()
        taken, self._latest = self._latest, {}
        return list(taken.values())
