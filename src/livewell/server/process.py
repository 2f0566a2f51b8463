"""What one server process holds, from its start to its end.

made ──open──▶ serving ──stopping.set()──▶ streams say goodbye ──close──▶ gone
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from livewell.db import Presence
from livewell.db.nudge import Nudger
from livewell.exports.exports import Exports
from livewell.queue.progress import JobProgress
from livewell.refresh.push.streamed_sessions import StreamedSessions
from livewell.refresh.read.reads import Reads
from livewell.server.answers.problems import too_many
from livewell.server.auth.api_keys import Keys
from livewell.server.auth.caller import Auth
from livewell.server.auth.owner import Owners
from livewell.server.auth.web_tokens import Tokens
from livewell.server.bounds.client_rates import ClientRates, Kind
from livewell.server.bounds.request_slots import RequestSlots
from livewell.server.bounds.waiting_reads import WaitingReads
from livewell.server.connection.refusals import Refusals
from livewell.server.late_schedules import Lateness
from livewell.server.looks import Looks
from livewell.server.plan_sampler import PlanSampler
from livewell.server.pools import Addresses, Pools
from livewell.server.previews import Previews
from livewell.server.streams.stream import Streams
from livewell.settings import Settings
from livewell.telemetry import measures

DOWNLOADS_MAX = 200  # each has one piece of a megabyte in memory at most
USER_DOWNLOADS_MAX = 8


class ServerProcess:
    """Pools, keys, limits and streams of one process.

    `async with ServerProcess(addresses, settings) as state:`. Routes make anything else they need
    from a pool, whose role bounds what they may do.
    """

    def __init__(self, where: Addresses, settings: Settings) -> None:
        self.settings = settings
        self.pools = Pools.of(where, settings)
        self.buckets = ClientRates.from_settings(settings)
        self.refusals = Refusals()
        self.auth = Auth(Keys(self.pools.api, cache_seconds=settings.key_cache_seconds), Tokens(settings.jwt))
        self.owners = Owners(self.pools.api)
        self.waits = WaitingReads(max(1, settings.requests_max // 2))
        self.stopping = asyncio.Event()
        self.presence = Presence(self.pools.hub)
        self.streams = Streams(settings, self.auth, self.stopping, self.presence)
        self.progress = JobProgress(self.pools.operate)
        self.lateness = Lateness(self.pools.hub)
        self.looks = Looks(where.operate, settings)
        self.plans = PlanSampler(self.pools.operate)
        self.previews = Previews(settings)
        self.downloads = RequestSlots("downloads", DOWNLOADS_MAX, USER_DOWNLOADS_MAX)
        self._nudger: Nudger | None = None
        self._reads: Reads | None = None
        self._sessions: StreamedSessions | None = None
        self._exports: Exports | None = None

    async def open(self) -> Self:
        """Connect."""
        await self.pools.open()
        self._nudger = Nudger(self.pools.api)
        self._reads = Reads(self.pools.api, self._nudger, follow=self.pools.hub)
        self._sessions = StreamedSessions(self.pools.hub, self._reads.hub)
        self._exports = Exports(self.pools.api, nudger=self._nudger)
        self._reads.hub.hear(self._exports.hear)
        self._reads.hub.start()
        self.presence.start()
        measures.started()
        return self

    async def close(self) -> None:
        """End what runs beside requests, and disconnect."""
        self.stopping.set()
        await self.streams.close()
        await self.presence.close()
        await self.progress.close()
        if self._exports is not None:
            await self._exports.close()
        if self._sessions is not None:
            await self._sessions.stop()
        if self._reads is not None:
            await self._reads.close()
        if self._nudger is not None:
            await self._nudger.close()
        await self.previews.close()
        await self.plans.close()
        await self.looks.close()
        await self.pools.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def count(self, client: str, kind: Kind, n: float) -> None:
        """Take n of what a client may ask for, or say when there will be as much."""
        wait = self.buckets.take(client, kind, n)
        if wait > 0:
            raise too_many("Too many requests; wait as long as Retry-After says.", seconds=wait)

    @property
    def nudger(self) -> Nudger:
        """Wakes waiting readers and workers, here and elsewhere."""
        assert self._nudger is not None  # noqa: S101 - routes run while the server is open
        return self._nudger

    @property
    def reads(self) -> Reads:
        """Reading through, as livewell_api; what it waits for is read as livewell_hub."""
        assert self._reads is not None  # noqa: S101 - see above
        return self._reads

    @property
    def exports(self) -> Exports:
        """Exports, as livewell_api: whatever is asked, it is for one user."""
        assert self._exports is not None  # noqa: S101 - see above
        return self._exports

    @property
    def sessions(self) -> StreamedSessions:
        """What the sessions that are streamed to from here look at, as livewell_hub."""
        assert self._sessions is not None  # noqa: S101 - see above
        return self._sessions
