"""The attackers of a scenario, in processes of their own.

The event loop that is judged is the server's, and theirs must not be ours.

async with attackers(site, crews, seconds=6, seed=scale.seed) as gang:
    …                                       honest people meanwhile
gang.seen("cookies")["401"]                 after the block
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import livewell
from livewell.testing.processes import ChildProcess
from tests.faults.http_support import Site

ROOT = Path(__file__).parents[3]
PROCESSES = 2
SLACK_SECONDS = 60.0  # for a process that gets little of a busy machine
ADDRESSES = [f"127.0.0.{number}" for number in range(2, 10)]  # nobody honest is there


@dataclass(slots=True)
class Gang:
    """What all crews saw; empty until the attack has ended."""

    crews: list[dict[str, Any]] = field(default_factory=list)

    def seen(self, *kinds: str) -> Counter[str]:
        """Counts of these kinds, of all if none is named; of what ends in _max the largest."""
        total: Counter[str] = Counter()
        for crew in self._of(kinds):
            for name, n in crew["seen"].items():
                total[name] = max(total[name], n) if name.endswith("_max") else total[name] + n
        return total

    def held_seconds_max(self, *kinds: str) -> float:
        """The longest that one connection was held."""
        return max((crew["held_seconds_max"] for crew in self._of(kinds)), default=0.0)

    def broken(self) -> list[str]:
        """Mistakes of the attackers' own."""
        return [text for crew in self.crews for text in crew["broken"]]

    def _of(self, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
        return [crew for crew in self.crews if not kinds or crew["kind"] in kinds]


def crew(
    kind: str, connections: int, addresses: Sequence[str] = ADDRESSES, *, key: str = "", **options: Any
) -> dict[str, Any]:
    """Who is to attack, as the process is told; key: a public one, for those that need it."""
    return {"kind": kind, "connections": connections, "addresses": list(addresses), "key": key, "options": options}


@asynccontextmanager
async def attackers(site: Site, crews: Sequence[dict[str, Any]], *, seconds: float, seed: int) -> AsyncIterator[Gang]:
    """The attack has begun when the block begins; the block ends when the attack has."""
    parts, gang = urlsplit(site.base), Gang()
    shares = [share for number in range(PROCESSES) if (share := list(crews[number::PROCESSES]))]
    path = os.pathsep.join([str(ROOT), str(Path(livewell.__file__).parents[1])])
    with ExitStack() as stack:
        children: list[ChildProcess] = []
        for number, share in enumerate(shares):
            order = {
                "host": parts.hostname,
                "port": parts.port,
                "seconds": seconds,
                "seed": seed + number,
                "crews": share,
            }
            command = ["-m", "tests.faults.siege.attack", json.dumps(order)]
            children.append(stack.enter_context(ChildProcess(command, cwd=ROOT, env={"PYTHONPATH": path})))
        for child in children:
            await asyncio.to_thread(child.wait_for, "begun", SLACK_SECONDS)
        yield gang
        for child in children:
            code = await asyncio.to_thread(child.wait, seconds + SLACK_SECONDS)
            assert code == 0, child.describe()
            gang.crews += json.loads(child.lines("stdout")[-1])
