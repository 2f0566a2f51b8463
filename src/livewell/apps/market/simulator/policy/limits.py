"""The simulator's own limits, per credential.

Calls in a sliding window, and bytes in the trailing 30 days.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any

__all__ = ["Bandwidth", "CallWindow"]

HOURS = 720
HOUR_SECONDS = 3_600
CREDENTIALS_MAX = 1_000
OTHERS = "#others"


def _account(known: Mapping[str, Any], credential: str) -> str:
    """Name the account to book on: strangers beyond the first thousand share one."""
    return credential if credential in known or len(known) < CREDENTIALS_MAX else OTHERS


class CallWindow:
    """Which calls were let in.

    A window is half-open, so two calls exactly one window apart do not share one.
    """

    def __init__(self) -> None:
        self._admitted: defaultdict[str, deque[int]] = defaultdict(deque)

    def admit(self, credential: str, at_ns: int, calls_max: int, window_seconds: float) -> bool:
        """Let a call in and remember it, or say no."""
        admitted = self._admitted[_account(self._admitted, credential)]
        window_ns = round(window_seconds * 1e9)
        while admitted and at_ns - admitted[0] >= window_ns:
            admitted.popleft()
        if len(admitted) >= calls_max:
            return False
        admitted.append(at_ns)
        return True

    def left(self, credential: str, calls_max: int) -> int:
        """Say how many more calls the window takes, as it was after the last admit."""
        return max(0, calls_max - len(self._admitted[_account(self._admitted, credential)]))

    def free_in_seconds(self, credential: str, at_ns: int, window_seconds: float) -> int:
        """Say when the oldest call leaves the window, rounded up."""
        admitted = self._admitted[_account(self._admitted, credential)]
        free_ns = admitted[0] + round(window_seconds * 1e9) - at_ns if admitted else 0
        return max(0, -(-free_ns // 1_000_000_000))

    def remember(self, credential: str, at_ns: int, *, window_seconds: float) -> None:
        """Take over a call that an earlier process let in."""
        admitted = self._admitted[_account(self._admitted, credential)]
        admitted.append(at_ns)
        while at_ns - admitted[0] >= window_seconds * 1e9:
            admitted.popleft()


class Bandwidth:
    """Bytes sent, in buckets of an hour."""

    def __init__(self) -> None:
        self._hours: defaultdict[str, deque[list[int]]] = defaultdict(deque)

    def book(self, credential: str, wall: float, sent_bytes: int) -> None:
        """Count what was sent."""
        hours = self._hours[_account(self._hours, credential)]
        hour = int(wall) // HOUR_SECONDS
        if not hours or hours[-1][0] < hour:
            hours.append([hour, 0])
        hours[-1][1] += sent_bytes
        while hours[0][0] <= hour - HOURS:
            hours.popleft()

    def used(self, credential: str, wall: float) -> int:
        """Sum up the trailing 30 days."""
        since = int(wall) // HOUR_SECONDS - HOURS
        return sum(sent for hour, sent in self._hours.get(_account(self._hours, credential), ()) if hour > since)
