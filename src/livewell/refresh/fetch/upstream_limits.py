"""Pass on what upstreams say about their limits.

It goes to the limiter, and to the walls this process keeps until the database knows them.

answer ──x-ratelimit-*──▶ limiter, once a second
   ├──rate wall──▶ limiter, at once: silence for as long as the upstream says, or longer with every wall in a row
   └──bandwidth wall──▶ kept; it must stand also if the result it came with cannot be stored
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import replace

import structlog

from livewell.errors import DatabaseError
from livewell.limits.limiter import Limiter, Limits
from livewell.limits.walls import BandwidthWall, Call, Walls
from livewell.model import Permit
from livewell.refresh.definition.model import UpstreamDefinition
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Failure, Results

log = structlog.get_logger("livewell.refresh")

_OBSERVE_SECONDS = 1.0  # an upstream that states its limits with every answer is listened to this often
_RATE_SECONDS = 5.0
_RATE_SECONDS_MAX = 300.0
_SEVERAL = 2
_OTHER_SECONDS = 1.0


class UpstreamLimits:
    """What the upstreams of one process have said. `call` reaches the database."""

    def __init__(self, call: Call, walls: Walls) -> None:
        self._call = call
        self._walls = walls
        self._next_look: dict[tuple[str, str], float] = {}
        self._rate_walls: dict[tuple[str, str], int] = {}

    def keep_bandwidth_wall(self, queue: str, permit: Permit | None, results: Results) -> None:
        """If the call met the bandwidth wall, remember it: the database may be away."""
        if permit is not None and _first(results, Reason.BANDWIDTH_WALL) is not None:
            self._walls.keep(BandwidthWall(queue, permit.credential or "", permit.call))

    async def observe(
        self, upstream: UpstreamDefinition, credential: str, results: Results, headers: Mapping[str, str]
    ) -> Results:
        """Tell the limiter what an answer says.

        At a rate wall the results say how long their jobs wait.
        """
        place = (upstream.name, credential)
        wall = _first(results, Reason.RATE_WALL)
        if wall is None:
            self._rate_walls.pop(place, None)
            if self._is_worth_telling(place, headers):
                await self._tell(upstream, credential, headers)
            return results
        in_row = self._rate_walls[place] = self._rate_walls.get(place, 0) + 1
        seconds = wall.retry_after_seconds
        if seconds is None:
            seconds = min(_RATE_SECONDS_MAX, _RATE_SECONDS * 2 ** min(in_row - 1, 10)) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
        await self._tell(upstream, credential, {**headers, "retry-after": f"{seconds:.3f}"})
        # The limiter keeps this credential silent for so long. With another one the jobs need not
        # wait for that.
        pause = seconds if len(upstream.credentials) < _SEVERAL else min(seconds, _OTHER_SECONDS)
        return dict.fromkeys(results, replace(wall, retry_after_seconds=pause))

    def _is_worth_telling(self, place: tuple[str, str], headers: Mapping[str, str]) -> bool:
        if not any(name == "retry-after" or "ratelimit-" in name for name in headers):
            return False
        now = time.monotonic()
        if "retry-after" not in headers and now < self._next_look.get(place, 0.0):
            return False
        self._next_look[place] = now + _OBSERVE_SECONDS
        return True

    async def _tell(self, upstream: UpstreamDefinition, credential: str, headers: Mapping[str, str]) -> None:
        limiter = Limiter(upstream.name, Limits({}, upstream.credentials), self._call, self._walls)
        try:
            await limiter.observe(headers, credential=credential or None)
        except DatabaseError as error:
            log.warning("cannot tell the limiter", upstream=upstream.name, error=str(error))


def _first(results: Results, reason: Reason) -> Failure | None:
    """The first failure for this reason."""
    return next((one for one in results.values() if isinstance(one, Failure) and one.reason is reason), None)
