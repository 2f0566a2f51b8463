"""What the hub has told of each key that is followed here.

A state is kept for as long as somebody follows the key. A value is kept as long as all values fit
into a bound.

    told ──▶ state and value kept ──others need the room, least recently told first──▶ state kept, value let go ──somebody new follows──▶ read again

A value that was let go costs a read when the next client comes, and nothing else: only versions are
compared, and they stay.
"""

from __future__ import annotations

from collections import OrderedDict

from livewell.refresh.push.key_state import KeyState, Pair


class StateCache:
    """States by key, and at most so many bytes of values."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._states: dict[Pair, KeyState] = {}
        self._sizes: OrderedDict[Pair, int] = OrderedDict()  # of the values that are kept, the one told last at the end
        self.bytes = 0

    def get(self, pair: Pair) -> KeyState | None:
        """The last state, with or without its value."""
        return self._states.get(pair)

    def keep(self, state: KeyState) -> None:
        """This is its state now."""
        self._let_go(state.pair)
        self._states[state.pair] = state
        self._sizes[state.pair] = size = len(state.text or "")
        self.bytes += size
        while self.bytes > self._bytes_max:
            oldest = next(iter(self._sizes))
            self._let_go(oldest)
            # A follower that was told and has not sent it yet still has the state with its value.
            self._states[oldest] = self._states[oldest].without_value()

    def drop(self, pair: Pair) -> None:
        """Nobody follows it any more."""
        self._let_go(pair)
        self._states.pop(pair, None)

    def _let_go(self, pair: Pair) -> None:
        self.bytes -= self._sizes.pop(pair, 0)
