"""Be the only one who does some periodic work, on any number of machines (R21).

    nobody ──acquired──▶ held ──renewed──▶ held
                          ├──trust over (database away, we were frozen)──▶ nobody
                          ├──released──▶ nobody
                          └──somebody else's fence──▶ nobody

The lease is a row with a fence, on the database's clock. Locally a term is trusted for less than
the lease, counted on the monotonic clock from before the call that got it was sent. So we stop
believing before anybody else can begin. If we believe wrongly after all (a process frozen between
the check and the work), the work itself asks for the fence under the row's lock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from livewell.db.link import Link

_ACQUIRE = (
    "SELECT answer, fence, holder, wait_seconds FROM livewell.acquire_singleton(%s, %s, %s, %s * interval '1 second')"
)
_RELEASE = "SELECT livewell.release_singleton(%s, %s)"
_MARGIN = 0.2  # of the lease: what we stop trusting early
_RENEW = 1 / 3  # of the lease


@dataclass(frozen=True, slots=True)
class Held:
    """The term is ours, under this fence."""

    fence: int


@dataclass(frozen=True, slots=True)
class HeldByOther:
    """Somebody else has it, for so long unless they renew it."""

    holder: str
    wait_seconds: float


class Singleton:
    """One name, seen from one process.

    It must not be used by several tasks at once: its link is one connection.
    """

    def __init__(self, link: Link, name: str, *, holder: str, lease_seconds: float) -> None:
        self._link = link
        self._name = name
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._fence: int | None = None
        self._asked = 0.0
        self._trusted_until = 0.0

    @property
    def fence(self) -> int | None:
        """The fence of our term; None when we hold none, or can no longer be sure."""
        return self._fence if time.monotonic() < self._trusted_until else None

    async def keep(self) -> Held | HeldByOther:
        """Acquire it, or renew it if a third of the lease has passed; otherwise costs nothing."""
        fence = self.fence
        if fence is not None and time.monotonic() - self._asked < self._lease_seconds * _RENEW:
            return Held(fence)
        asked = time.monotonic()
        rows = await self._link.call(_ACQUIRE, (self._name, self._holder, self._fence, self._lease_seconds))
        answer, got, holder, wait_seconds = rows[0]
        if answer != "held":
            self.lose()
            return HeldByOther(holder, wait_seconds)
        self._fence, self._asked = got, asked
        self._trusted_until = asked + self._lease_seconds * (1 - _MARGIN)
        return Held(got)

    def lose(self) -> None:
        """Forget our term: the database said that its fence is not ours any more."""
        self._fence, self._trusted_until = None, 0.0

    async def release(self) -> bool:
        """Give it back; false when it was not ours."""
        fence, self._fence = self._fence, None
        self._trusted_until = 0.0
        return fence is not None and bool((await self._link.call(_RELEASE, (self._name, fence)))[0][0])
