"""What one client may have of something bounded (X10).

The bounded things are streams, keys that are followed, and reads that wait.

    places  ├──────── one client may have its whole share ────────┼── less, as fewer are free ──┼─ not for strangers ─┤

A newcomer may have as many places as any client that takes all it can get, and places that a client
already has are never taken away. Strangers (anonymous clients of public keys) never take the last
tenth: an attacker has as many addresses as it likes, but no login.
"""

from __future__ import annotations

from typing import NamedTuple

_KEPT = 10  # one of so many places is kept from strangers


class Client(NamedTuple):
    """For whom shares are counted: a user, or the strangers of one public key and one network."""

    name: str
    stranger: bool = False


def share(most: int, used: int, places: int, *, stranger: bool = False) -> int:
    """How many of the places one client may have, when so many are used by all.

    `most`, while half of them are free.
    """
    open_places = places - max(1, places // _KEPT) if stranger and places > 1 else places
    free = open_places - used
    if free <= 0:
        return 0
    return most if 2 * free >= open_places else max(1, 2 * most * free // open_places)
