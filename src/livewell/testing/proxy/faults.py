"""What goes wrong at this moment, how long bytes wait for it, and how often each fault has struck."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from livewell.errors import LivewellError
from livewell.testing.proxy.flow import Flow, Piece

__all__ = ["Faults", "Policy", "ProxyCounts", "ProxyError", "Verb"]

Verb = Literal["cut", "delay", "freeze", "refuse", "reset", "reset_after", "throttle"]

THROTTLE_SLICES_PER_SECOND = 20  # a throttled flow moves every 50 ms: smooth enough, and still cheap


class ProxyError(LivewellError):
    """The proxy was used when it was not running, or the fault that a test waited for never struck."""


@dataclass(frozen=True, slots=True)
class ProxyCounts:
    """What passed and what went wrong so far.

    fired: connections broken (cut, reset, reset_after), pieces held up (delay, throttle, freeze; a
    newcomer held by a freeze counts too), times the proxy stopped listening (refuse: the kernel
    refuses for us, unseen).
    """

    connections: int
    live: int
    bytes_up: int
    bytes_down: int
    fired: dict[Verb, int]


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens to bytes at this moment."""

    delay_seconds: float = 0.0
    bytes_per_second: int | None = None
    frozen: bool = False


class Faults:
    """The policy in force, and the count of what it did."""

    def __init__(self) -> None:
        self.policy = Policy()
        self.fired: Counter[Verb] = Counter()
        self._changed = asyncio.Event()
        self._noticed = asyncio.Event()

    def set_policy(self, policy: Policy) -> None:
        """Put a policy in force; what waits looks again."""
        self.policy = policy
        self._changed.set()
        self._changed = asyncio.Event()

    def fire(self, verb: Verb) -> None:
        """Count that a fault has struck."""
        self.fired[verb] += 1
        self._noticed.set()
        self._noticed = asyncio.Event()

    async def until_fired(self, verb: Verb, *, times: int, timeout: float) -> bool:
        """Wait until a verb has struck so many times since the start; false when it does not."""
        try:
            async with asyncio.timeout(timeout):
                while self.fired[verb] < times:
                    await self._noticed.wait()
        except TimeoutError:
            return False
        return True

    async def hold(self, *, arrived: float | None) -> None:
        """Wait until a piece that arrived then may leave: thawed, delay over. A newcomer (None)
        waits to thaw.
        """
        counted: set[Verb] = set()
        while True:
            policy, now = self.policy, asyncio.get_running_loop().time()
            wait_seconds = 0.0 if arrived is None else arrived + policy.delay_seconds - now
            if not policy.frozen and wait_seconds <= 0:
                return
            verb: Verb = "freeze" if policy.frozen else "delay"
            if verb not in counted:
                counted.add(verb)
                self.fire(verb)
            await self._pause(None if policy.frozen else wait_seconds)

    async def may_send(self, flow: Flow, piece: Piece, wanted: int) -> int:
        """Wait for the policy's leave to send; answer how many bytes."""
        while True:
            await self.hold(arrived=piece.arrived)
            rate = self.policy.bytes_per_second
            if rate is None:
                return wanted
            size = min(wanted, max(1, rate // THROTTLE_SLICES_PER_SECOND))
            now = asyncio.get_running_loop().time()
            free_at = max(flow.free_at, now) + size / rate
            self.fire("throttle")
            if not await self._pause(free_at - now):
                flow.free_at = free_at
                return size

    async def _pause(self, seconds: float | None) -> bool:
        """Wait so long, or until a verb changes the policy; True when it did."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True
