"""The task livewell.refresh: from claimed jobs of one call to what is stored. Every worker of refresh queues has it.

    jobs of one call ──definition, credential──▶ fetch ──▶ results ──▶ storer ──committed──▶ jobs ended, viewers nudged
                          │                        └──permit too late: nobody was called, the jobs go back
                          └──changed since the job was made: no call, the key is due again

The job's end is part of the storer's transaction, so the worker has nothing left to finish. What runs beside the handlers keeps the HTTP client open and asks for the database's time now and then.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from pydantic import BaseModel, ConfigDict

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseError, OwnershipLost, UnknownType
from livewell.limits.limiter import Limiter, Limits
from livewell.limits.walls import BandwidthWall, Walls
from livewell.model import Blame, Lane, Release, Retry, TaskPolicy
from livewell.outbound import Outbound
from livewell.queue.definition import TaskDefinition, define
from livewell.queue.job import Job
from livewell.refresh.definition.credentials import Credentials, secrets_for
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.fetch.upstream_call import (
    Absent,
    Failure,
    Fetched,
    Forgotten,
    Result,
    Same,
    Singly,
    Unproven,
    Validator,
    Value,
    fetch,
)
from livewell.refresh.nudges import CHANGED
from livewell.refresh.reasons import Reason
from livewell.refresh.refusal_log import RefusalLog
from livewell.refresh.registry.registry import Registry
from livewell.refresh.store.database_clock import DatabaseClock
from livewell.refresh.store.storer import Entry, Stored, Storer
from livewell.refresh.validate.answer import Transform
from livewell.refresh.validate.tail import stored_tail
from livewell.telemetry.measures import LENGTHLESS, REFRESHES

log = structlog.get_logger("livewell.refresh")

KIND = "livewell.refresh"
QUEUES = "refresh.*"

_KEYS_MAX = 1000  # of one call, whatever a type says
_TIMEOUT_SECONDS = 60.0  # a call has 10, and an outage of the database is waited out for a while
_LOOK_SECONDS = 5.0
_FIRST_LOOK_SECONDS = 0.2  # until the database has answered once, nothing is fetched
_OBSERVE_SECONDS = 1.0  # an upstream that states its limits with every answer is listened to this often
_REFUSED_MAX = (
    3  # calls in a row: one of them may have been refused for one of its keys, which is asked alone from then on
)
_ALONE_SECONDS = 3600.0  # a batch endpoint that was refused so often is not tried again for so long
_RATE_SECONDS = 5.0
_RATE_SECONDS_MAX = 300.0
_SEVERAL = 2
_OTHER_SECONDS = 1.0


class Wanted(BaseModel):
    """What one job asks for: a key of a type, as the type was when the job was made."""

    model_config = ConfigDict(extra="ignore")

    type: str
    key: str
    version: int
    fresh: bool = (
        False  # an answer on a shared connection proved nothing, or would prove nothing: on a connection of its own
    )
    etag: str | None = None  # of what is stored, with its hash
    last_modified: str | None = None
    hash: str | None = None
    since: datetime | None = None  # of a history: the source's time of what is stored

    @property
    def validator(self) -> Validator | None:
        """What to ask "has it changed?" with."""
        if self.hash is None or not (self.etag or self.last_modified):
            return None
        return Validator(self.etag, self.last_modified, bytes.fromhex(self.hash))


@dataclass(frozen=True, slots=True)
class KnownType:
    """A type with its upstream, as the registry has them."""

    definition: TypeDefinition
    upstream: UpstreamDefinition
    version: int


class Refresher:
    """Fetches and stores for one worker process."""

    def __init__(
        self,
        database: Database,
        nudger: Nudger,
        *,
        outbound: Outbound,
        transforms: Mapping[str, Transform],
        walls: Walls,
    ) -> None:
        self._walls = walls  # kept until the database knows them
        self._database = database
        self._outbound = outbound
        self._transforms = transforms
        self._clock = DatabaseClock()
        self._registry = Registry(database.call)
        self._storer = Storer(
            database,
            batch_max=database.settings.store_batch_max,
            on_time=self._clock.set,
            on_changed=lambda: nudger.nudge(CHANGED),
        )
        self._ready = asyncio.Event()
        self._refused: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._alone_until: dict[tuple[str, int], float] = {}
        self._observed: dict[tuple[str, str], float] = {}
        self._rate_walls: dict[tuple[str, str], int] = {}
        self._warned: set[tuple[str, str]] = set()
        self._refusals = RefusalLog()
        self._credentials = Credentials(database.settings)

    @property
    def task(self) -> TaskDefinition:
        """What the worker runs."""
        policy = TaskPolicy(QUEUES, 4, _TIMEOUT_SECONDS, Lane.PEOPLE, 0, _KEYS_MAX)
        return define(self.refresh, name=KIND, policy=policy)

    async def run(self) -> None:
        """What runs beside the handlers, until the worker has stopped."""
        try:
            async with self._outbound:
                while True:
                    await self._look()
                    self._refusals.flush()
                    if self._clock.known:
                        self._ready.set()
                    pause = _LOOK_SECONDS if self._clock.known else _FIRST_LOOK_SECONDS
                    await asyncio.sleep(pause * random.uniform(0.9, 1.1))  # noqa: S311 - jitter
        finally:
            self._refusals.flush(everything=True)
            await self._storer.close()

    async def _look(self) -> None:
        try:
            self._clock.set((await self._database.call("SELECT livewell.now()"))[0][0])
        except DatabaseError as error:
            log.warning("cannot ask for the time", error=str(error))

    async def refresh(self, wanted: list[Wanted], jobs: list[Job]) -> list[Exception | None]:
        """One call for the keys of one type; an outcome for each job."""
        await self._ready.wait()
        first = wanted[0]
        known = await self._read(first)
        mine = [place for place, one in enumerate(wanted) if one.type == first.type and one.version == first.version]
        allowed = known.definition.keys_max if isinstance(known, KnownType) else _KEYS_MAX
        mine = mine[: max(1, allowed)]
        taken = [(wanted[place], jobs[place]) for place in mine]
        outcomes: list[Exception | None] = [Release("it does not fit into this call")] * len(jobs)
        for place in set(range(len(jobs))) - set(mine):
            jobs[place].used(0)
        for place, outcome in zip(mine, await self._refresh(known, taken), strict=True):
            outcomes[place] = outcome
        return outcomes

    async def _read(self, first: Wanted) -> KnownType | Failure:
        try:
            found = await self._registry.type(first.type, version=first.version)
            upstream = await self._registry.upstream(found.definition.upstream)
        except UnknownType as error:
            # Gone, which the store sees for itself, or not readable by this release.
            return Failure(Reason.TYPE_CHANGED, str(error)[:300], Blame.OURS)
        return KnownType(found.definition, upstream.definition, found.version)

    async def _refresh(self, known: KnownType | Failure, taken: Sequence[tuple[Wanted, Job]]) -> list[Exception | None]:
        first, job = taken[0]
        keys = list(dict.fromkeys(one.key for one, _ in taken))
        if isinstance(known, Failure):
            fetched = _no_call(keys, known)
        elif known.version != first.version:
            # The store looks for itself, and ends the jobs as type_changed.
            fetched = _no_call(keys, Failure(Reason.TYPE_CHANGED, "the type has changed", Blame.OURS))
        else:
            fetched = await self._call(known, keys, taken)
        version = known.version if isinstance(known, KnownType) else first.version
        counted = _counted(fetched, known.upstream.counts) if isinstance(known, KnownType) else 0
        entries = [
            self._entry(one, held, fetched, version=version, first=place == 0, counted=counted)
            for place, (one, held) in enumerate(taken)
        ]
        for place, (_, held) in enumerate(taken):
            held.used(counted if place == 0 else 0)
        self._note_wall(job, fetched)
        stored = await self._storer.store(job.worker, entries)
        return [
            self._outcome(one, held, said, fetched.results.get(one.key))
            for (one, held), said in zip(taken, stored, strict=True)
        ]

    def _note_wall(self, job: Job, fetched: Fetched) -> None:
        """A bandwidth wall stands also if what it was found by cannot be stored: the database may be away."""
        met = [
            one for one in fetched.results.values() if isinstance(one, Failure) and one.reason is Reason.BANDWIDTH_WALL
        ]
        if met and job.permitted is not None:
            self._walls.keep(BandwidthWall(job.claimed.queue, job.permitted.credential or "", job.permitted.call))

    async def _call(self, known: KnownType, keys: list[str], taken: Sequence[tuple[Wanted, Job]]) -> Fetched:
        definition, upstream = known.definition, known.upstream
        first, jobs = taken[0][0], [job for _, job in taken]
        refused = (definition.name, known.version)
        if len(keys) > 1 and self._alone_until.get(refused, 0.0) > time.monotonic():
            return _no_call(keys, Singly("the batch endpoint was refused before"))
        credential = jobs[0].credential
        secret = self._credentials.read(credential) if credential else None
        if credential and not secret:
            # A worker without it does not claim (Credentials.can_use), so somebody took it away meanwhile. Not the job's fault, nor the key's.
            for job in jobs:
                job.used(0)
            raise Release(f"environment variable {credential} is not set here, or may not be used", after="30s")

        def spend() -> None:
            for job in jobs:
                job.spend_permit()

        fetched = await fetch(
            self._outbound,
            definition,
            upstream,
            keys,
            now=self._clock.now,
            secret=secret,
            before_write=spend,
            validator=first.validator if len(keys) == 1 else None,
            fresh=any(one.fresh for one, _ in taken) or self._registry.has_twin(definition.name),
            tail=stored_tail(definition, first.since, bytes.fromhex(first.hash) if first.hash else None),
            transforms=self._transforms,
            secrets=secrets_for(upstream),
        )
        if len(keys) > 1:
            self._rest(refused, fetched)
        if not fetched.had_length:
            LENGTHLESS.add(upstream.name)
        self._warn_of_added(definition.name, fetched)
        return await self._observe(known, credential or "", fetched)

    def _rest(self, place: tuple[str, int], fetched: Fetched) -> None:
        """A batch endpoint that was refused several times in a row, whatever keys it was asked for, is left alone for a while."""
        result = next(iter(fetched.results.values()))
        in_row = self._refused[place] + 1 if isinstance(result, Singly) and result.endpoint else 0
        self._refused[place] = in_row
        if in_row >= _REFUSED_MAX:
            self._alone_until[place] = time.monotonic() + _ALONE_SECONDS

    async def _observe(self, known: KnownType, credential: str, fetched: Fetched) -> Fetched:
        """Tell the limiter what the upstream says about its limits; a rate wall always silences it for a while."""
        upstream = known.upstream
        place = (upstream.name, credential)
        walls = [
            result
            for result in fetched.results.values()
            if isinstance(result, Failure) and result.reason is Reason.RATE_WALL
        ]
        headers = dict(fetched.headers)
        if walls:
            in_row = self._rate_walls[place] = self._rate_walls.get(place, 0) + 1
            seconds = walls[0].retry_after_seconds
            if seconds is None:
                seconds = min(_RATE_SECONDS_MAX, _RATE_SECONDS * 2 ** min(in_row - 1, 10)) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
            headers["retry-after"] = f"{seconds:.3f}"
            # The limiter keeps this credential silent for so long. With another one the jobs need not wait for that.
            pause = seconds if len(upstream.credentials) < _SEVERAL else min(seconds, _OTHER_SECONDS)
            waiting = Failure(Reason.RATE_WALL, walls[0].detail, walls[0].blame, pause)
            fetched = Fetched(
                dict.fromkeys(fetched.results, waiting),
                fetched.sent,
                fetched.wire_bytes,
                fetched.decoded_bytes,
                fetched.headers,
            )
        else:
            self._rate_walls.pop(place, None)
        if walls or self._worth_observing(place, headers):
            limiter = Limiter(upstream.name, Limits({}, upstream.credentials), self._database.call, self._walls)
            try:
                await limiter.observe(headers, credential=credential or None)
            except DatabaseError as error:
                log.warning("cannot tell the limiter", upstream=upstream.name, error=str(error))
        return fetched

    def _worth_observing(self, place: tuple[str, str], headers: Mapping[str, str]) -> bool:
        if not any(name == "retry-after" or "ratelimit-" in name for name in headers):
            return False
        now = time.monotonic()
        if "retry-after" not in headers and now < self._observed.get(place, 0.0):
            return False
        self._observed[place] = now + _OBSERVE_SECONDS
        return True

    def _warn_of_added(self, name: str, fetched: Fetched) -> None:
        """A field the upstream added is accepted, not stored, and counted (R14): once per field and process here."""
        added = {
            field
            for result in fetched.results.values()
            if isinstance(result, Value)
            for field in result.valid.added_fields
        }
        new = sorted(field for field in added if (name, field) not in self._warned)[:20]
        if new and len(self._warned) < 10_000:
            self._warned |= {(name, field) for field in new}
            asyncio.get_running_loop().create_task(self._warn(f"{name}: the upstream added fields", ", ".join(new)))

    async def _warn(self, what: str, sample: str) -> None:
        try:
            await self._database.call("SELECT livewell.warn('refresh', %s, %s)", (what, sample))
        except DatabaseError as error:
            log.warning("cannot warn", what=what, error=str(error))

    def _entry(self, one: Wanted, job: Job, fetched: Fetched, *, version: int, first: bool, counted: int) -> Entry:
        """One result as store_refreshes takes it. The first job of a call carries what the call cost."""
        permit = job.permitted
        entry: Entry = {
            "id": job.id,
            "fence": job.claimed.fence,
            "call": permit.call if permit is not None else job.claimed.fence,
            "queue": job.claimed.queue,
            "kind": job.claimed.kind,
            "credential": permit.credential if permit is not None else None,
            "type": one.type,
            "key": one.key,
            "version": version,
            "used": counted if first else 0,
            "wire": fetched.wire_bytes if first else 0,
            "decoded": fetched.decoded_bytes if first else 0,
            "sent": fetched.sent,
        }
        return entry | _told(fetched.results[one.key])

    def _outcome(self, one: Wanted, job: Job, said: Stored, seen: Result | None) -> Exception | None:
        REFRESHES.add(one.type, said.reason or said.answer)
        if said.answer == "fenced":
            return OwnershipLost(f"job {job.id}: another worker owns it by now; nothing was written")
        job.finished = True
        if said.answer != "rejected":
            return None
        self._refusals.tell(one.type, one.key, said.reason or "", seen)
        return Retry(f"{one.type} {one.key}: {said.reason}")


_ASKED_AGAIN: Mapping[type[Result], str] = {Singly: "singly", Unproven: "unproven", Forgotten: "forgotten"}


def _told(result: Result) -> Entry:
    match result:
        case Value(valid, etag, last_modified):
            return {
                "outcome": "value",
                "rows": valid.rows,
                "source_at": valid.source_at,
                "event_at": valid.event_at,
                "hash": valid.content_hash.hex(),
                "etag": etag,
                "last_modified": last_modified,
            }
        case Same(content_hash):
            return {"outcome": "same", "hash": content_hash.hex()}
        case Absent():
            return {"outcome": "missing"}
        case Singly() | Unproven() | Forgotten():
            return {"outcome": _ASKED_AGAIN[type(result)], "error": result.detail}
        case Failure(reason, detail, blame, retry_after):
            return {
                "outcome": "failed",
                "reason": reason.value,
                "error": detail,
                "blame": blame.value,
                "delay_seconds": retry_after,
            }


def _counted(fetched: Fetched, counts: str) -> int:
    """Which bytes the budget counts is the upstream's setting (R16)."""
    match counts:
        case "wire":
            return fetched.wire_bytes
        case "decoded":
            return fetched.decoded_bytes
        case _:
            return max(fetched.wire_bytes, fetched.decoded_bytes)


def _no_call(keys: Sequence[str], result: Result) -> Fetched:
    return Fetched(dict.fromkeys(keys, result), time.monotonic())
