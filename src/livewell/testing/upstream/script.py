"""Which behaviour answers a call.

Those with `times` come first, in the order they were given; then the newest that stands.

The optional limit stands before all: a credential's calls above n in a sliding window are refused
with 429. The window is half-open like those of livewell.testing.call_windows: two calls exactly one
window apart do not share one.
"""

import random
from collections import defaultdict, deque
from dataclasses import dataclass, replace

from livewell.testing.http import Request
from livewell.testing.upstream.behaviour import Behaviour
from livewell.testing.upstream.request import credential_of, keys_of

__all__ = ["REFUSED", "Limit", "Script"]

REFUSED = "limit"  # the name that a refusal has in the log
DEFAULT = Behaviour(name="default")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many admitted calls per credential in any window."""

    calls: int
    window_seconds: float

    @property
    def window_ns(self) -> int:
        """The window in the log's unit."""
        return round(self.window_seconds * 1e9)


class Script:
    """The behaviours in force, and the limit's memory."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - drawn for repeatable tests, not for secrets
        self.limit: Limit | None = None
        self._counted: list[tuple[Behaviour, int]] = []
        self._standing: list[Behaviour] = []
        self._given = 0
        self._admitted: dict[str, deque[int]] = defaultdict(deque)

    def add(self, behaviour: Behaviour) -> str:
        """Put a behaviour in force and give its name."""
        self._given += 1
        named = replace(behaviour, name=behaviour.name or f"behaviour-{self._given}")
        if named.times is None:
            self._standing.insert(0, named)
        else:
            self._counted.append((named, named.times))
        return named.name

    def forget(self) -> None:
        """Drop every behaviour; the limit stays."""
        self._counted.clear()
        self._standing.clear()

    def choose(self, request: Request) -> Behaviour:
        """Decide for one call; a counted behaviour is one nearer to its end."""
        if self.limit is not None:
            refusal = self._over(self.limit, request)
            if refusal is not None:
                return refusal
        for index, (behaviour, left) in enumerate(self._counted):
            if self._fits(behaviour, request):
                self._counted[index : index + 1] = [(behaviour, left - 1)] if left > 1 else []
                return behaviour
        return next((behaviour for behaviour in self._standing if self._fits(behaviour, request)), DEFAULT)

    def remember(self, credential: str, at_ns: int) -> None:
        """Count a call that was admitted, also one of a server before this."""
        self._admitted[credential].append(at_ns)

    def _fits(self, behaviour: Behaviour, request: Request) -> bool:
        return (
            behaviour.path in (None, request.path)
            and (behaviour.key is None or behaviour.key in keys_of(request))
            and behaviour.credential in (None, credential_of(request))
            and (behaviour.share == 1 or self.random.random() < behaviour.share)
        )

    def _over(self, limit: Limit, request: Request) -> Behaviour | None:
        admitted = self._admitted[credential_of(request)]
        while admitted and request.at_ns - admitted[0] >= limit.window_ns:
            admitted.popleft()
        if len(admitted) < limit.calls:
            admitted.append(request.at_ns)
            return None
        free_in_ns = admitted[-limit.calls] + limit.window_ns - request.at_ns
        return Behaviour(
            name=REFUSED,
            status=429,
            message="Limit Reach . Please upgrade your plan.",
            headers={
                "Retry-After": str(-(-free_in_ns // 1_000_000_000)),
                "X-RateLimit-Limit": str(limit.calls),
                "X-RateLimit-Remaining": "0",
            },
        )
