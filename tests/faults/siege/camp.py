"""A server with its limits as shipped, honest people in it, and what can be seen of its process from outside."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from livewell.settings import Settings
from tests.faults.http_support import QUIET, Site, open_site
from tests.faults.scenario import Findings, Scale
from tests.faults.siege.attackers import Gang
from tests.faults.siege.honest import Honest, honest_people

SHIPPED = {name: Settings.model_fields[name].default for name in QUIET}

STORED = """
INSERT INTO livewell_data.quote (key, price, "timestamp") SELECT 'K' || n, 1, 1784750401 FROM generate_series(1, %s) AS n;
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, fetched_at, checked_at, changed_at, source_at, status_at)
SELECT 'quote', 'K' || n, 'fmp', 1, 1, now(), now(), now(), now(), now() FROM generate_series(1, %s) AS n
"""


@dataclass(slots=True)
class Process:
    """Samples of the server's process, once a second."""

    pid: int
    rss_mb: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def cpu_seconds(self) -> float:
        """Of the processor, so far: unlike the clock on the wall it does not depend on who else is busy."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def sample(self) -> None:
        """Memory and open descriptors now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        self.rss_mb.append(pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000)
        self.descriptors.append(len(os.listdir(f"/proc/{self.pid}/fd")))  # noqa: PTH208 - names are enough

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(1)


@dataclass(slots=True)
class Camp:
    """The server, its honest people, its public key."""

    site: Site
    honest: Honest
    public: str
    process: Process
    log_mark: int

    def log(self) -> list[str]:
        """What the server has logged since everybody was there."""
        return self.site.server.lines("stderr")[self.log_mark :]

    def store_keys(self, n: int) -> None:
        """K1 to Kn have values: nobody needs a budget to look at them."""
        for statement in STORED.strip().split(";\n"):
            self.site.fleet.rows(statement, (n,))

    def report(self, findings: Findings, gang: Gang) -> None:
        """Figures that every scenario has, and the attackers' own mistakes."""
        findings.check(not gang.broken(), f"attackers broke: {gang.broken()[:3]}")
        rss = self.process.rss_mb
        findings.figures |= self.honest.record.figures() | {
            "attackers": dict(sorted(gang.seen().items())),
            "held_seconds_max": gang.held_seconds_max(),
            "rss_mb_before": round(rss[0], 1),
            "rss_mb_max": round(max(rss), 1),
            "descriptors_max": max(self.process.descriptors),
            "log_lines": len(self.log()),
        }


@asynccontextmanager
async def open_camp(scale: Scale, *, descriptors_max: int | None = None, **settings: Any) -> AsyncIterator[Camp]:
    """Ten viewers in the short form, fifty in the full one.

    descriptors_max: the server's `ulimit -n`; people then need no new connection.
    """
    async with open_site(scale, descriptors_max=descriptors_max, **{**SHIPPED, **settings}) as site:
        public = site.key(public=True).text
        async with honest_people(
            site, viewers=scale.pick(10, 50), public=public, connected=descriptors_max is not None
        ) as honest:
            process = Process(site.server.pid)
            process.sample()
            watching = asyncio.create_task(process.watch())
            try:
                yield Camp(site, honest, public, process, len(site.server.lines("stderr")))
            finally:
                watching.cancel()
