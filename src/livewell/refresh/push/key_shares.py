"""How many keys a client's streams and waiting reads may follow.

It is a share of what the process may follow (H6, X10).

Keys are counted by client, as streams are. A key counts once, however many of the client's streams
follow it. Followers in this process that are no client (`app.watch`, `app.get`) have no share, only
the bound of all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence, Sized
from typing import Protocol

from livewell.refresh.push.key_state import Pair
from livewell.shares import Client, share


class Followed(Container[Pair], Sized, Protocol):
    """All keys that are followed."""


class KeyShares:
    """The shares of all clients of one hub."""

    def __init__(self, keys_max: int, client_max: int) -> None:
        self._keys_max = keys_max
        self._most = client_max
        self._keys: dict[Client, dict[Pair, int]] = {}  # how many of its followers follow each

    def room(self, client: Client | None, used: int) -> bool:
        """Whether the client may follow another key, if so many are followed."""
        if client is None:
            return used < self._keys_max
        return len(self._keys.get(client, ())) < share(self._most, used, self._keys_max, stranger=client.stranger)

    def fit(
        self, client: Client | None, pairs: Sequence[Pair], followed: Followed
    ) -> tuple[Sequence[Pair], Sequence[Pair]]:
        """Those that fit, and those that do not; the first come first.

        Where all fit, which is the rule, each is looked at once or twice.
        """
        mine = self._keys.get(client, {}) if client is not None else {}
        used, has = len(followed), len(mine)
        used_then = used + sum(pair not in followed for pair in pairs)
        has_then = has + (sum(pair not in mine for pair in pairs) if mine else len(pairs))
        if used_then <= self._keys_max and (
            client is None or has_then <= share(self._most, used_then, self._keys_max, stranger=client.stranger)
        ):
            return pairs, ()
        fits: list[Pair] = []
        left: list[Pair] = []
        for pair in pairs:
            more, another = pair not in followed, client is not None and pair not in mine
            most = share(self._most, used, self._keys_max, stranger=client.stranger) if client is not None else 0
            if (more and used >= self._keys_max) or (another and has >= most):
                left.append(pair)
                continue
            fits.append(pair)
            used, has = used + more, has + another
        return fits, left

    def take(self, client: Client, pairs: Sequence[Pair]) -> None:
        """One more of its followers follows these."""
        mine = self._keys.get(client)
        if mine is None:  # its first stream: as a rule the only one
            self._keys[client] = dict.fromkeys(pairs, 1)
            return
        for pair in pairs:
            mine[pair] = mine.get(pair, 0) + 1

    def leave(self, client: Client, pairs: Iterable[Pair]) -> None:
        """One of its followers does not follow these any more."""
        mine = self._keys.get(client, {})
        for pair in pairs:
            n = mine.pop(pair)
            if n > 1:
                mine[pair] = n - 1
        if not mine:
            self._keys.pop(client, None)
