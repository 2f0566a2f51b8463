"""The task livewell.refresh: one call for the keys of claimed jobs.

It goes from the question to what is stored. Every worker of refresh queues has it.

    jobs of one call ──▶ fetch ──body──▶ validate ──results──▶ store ──committed──▶ jobs ended, viewers nudged
                          │  └──no body: one result for every key──────▲
                          ├──permit too late: nobody was called, the jobs go back
                          └──the type has changed since the job was made: no call, the key is due again

Results are checked for proof (ADR 0011) and secrets are hidden in them (M3) on the one way to the
store. The jobs' ends are part of the storer's transaction, so each job is FinishedElsewhere and the
worker writes nothing. Beside the handlers runs a loop that keeps the HTTP client open and asks for
the database's time now and then.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog
from pydantic import SecretStr

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseError, OwnershipLost, UnknownType
from livewell.limits.walls import Walls
from livewell.model import Blame, Failed, FinishedElsewhere, Lane, Release, TaskPolicy
from livewell.outbound import Outbound
from livewell.queue.definition import TaskDefinition, define
from livewell.queue.job import Job
from livewell.refresh.added_fields import AddedFields
from livewell.refresh.definition.credentials import Credentials, secrets_for
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.fetch.answer_origin import check_proof
from livewell.refresh.fetch.batch_endpoints import BatchEndpoints
from livewell.refresh.fetch.conditional import add_validators
from livewell.refresh.fetch.upstream_call import Fetched, fetch
from livewell.refresh.fetch.upstream_limits import UpstreamLimits
from livewell.refresh.job_payload import Wanted
from livewell.refresh.nudges import CHANGED
from livewell.refresh.queues import ALL_QUEUES
from livewell.refresh.reasons import Reason
from livewell.refresh.redaction import hide_secrets
from livewell.refresh.refusal_log import RefusalLog
from livewell.refresh.registry.registry import Registry
from livewell.refresh.result import Failure, Result, Results, Singly
from livewell.refresh.store.database_clock import DatabaseClock
from livewell.refresh.store.entry import Entry
from livewell.refresh.store.storer import Stored, Storer
from livewell.refresh.validate.answer import Transform, validate
from livewell.telemetry.measures import LENGTHLESS, REFRESHES
from livewell.telemetry.secret_forms import secrets_of

log = structlog.get_logger("livewell.refresh")

KIND = "livewell.refresh"

_KEYS_MAX = 1000  # of one call, whatever a type says
_TIMEOUT_SECONDS = 60.0  # a call has 10, and an outage of the database is waited out for a while
_LOOK_SECONDS = 5.0
_FIRST_LOOK_SECONDS = 0.2  # until the database has answered once, nothing is fetched
_THREAD_BYTES = 262_144  # a larger body is read in a thread: it would hold up the heartbeat's answers for milliseconds

JobEnd = FinishedElsewhere | OwnershipLost | Release


@dataclass(frozen=True, slots=True)
class KnownType:
    """A type with its upstream, as the registry has them."""

    definition: TypeDefinition
    upstream: UpstreamDefinition
    version: int


class RefreshTask:
    """Fetches, validates and stores for one worker process."""

    def __init__(
        self,
        database: Database,
        nudger: Nudger,
        *,
        outbound: Outbound,
        transforms: Mapping[str, Transform],
        walls: Walls,
    ) -> None:
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
        self._batch_endpoints = BatchEndpoints()
        self._limits = UpstreamLimits(database.call, walls)
        self._added_fields = AddedFields(database.call)
        self._refusals = RefusalLog()
        self._credentials = Credentials(database.settings)

    @property
    def task(self) -> TaskDefinition:
        """What the worker runs."""
        policy = TaskPolicy(ALL_QUEUES, 4, _TIMEOUT_SECONDS, Lane.PEOPLE, 0, _KEYS_MAX)
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

    async def refresh(self, wanted: list[Wanted], jobs: list[Job]) -> list[JobEnd]:
        """One call for the keys of one type; how each job ended."""
        await self._ready.wait()
        first = wanted[0]
        known = await self._read(first)
        mine = [place for place, one in enumerate(wanted) if one.type == first.type and one.version == first.version]
        allowed = known.definition.keys_max if isinstance(known, KnownType) else _KEYS_MAX
        mine = mine[: max(1, allowed)]
        taken = [(wanted[place], jobs[place]) for place in mine]
        ends: list[JobEnd] = [Release("it does not fit into this call")] * len(jobs)
        for place in set(range(len(jobs))) - set(mine):
            jobs[place].used(0)
        for place, end in zip(mine, await self._refresh(known, taken), strict=True):
            ends[place] = end
        return ends

    async def _read(self, first: Wanted) -> KnownType | Failure:
        try:
            found = await self._registry.type(first.type, version=first.version)
            upstream = await self._registry.upstream(found.definition.upstream)
        except UnknownType as error:
            # Gone, which the store sees for itself, or not readable by this release.
            return Failure(Reason.TYPE_CHANGED, str(error)[:300], Blame.OURS)
        return KnownType(found.definition, upstream.definition, found.version)

    async def _refresh(self, known: KnownType | Failure, taken: Sequence[tuple[Wanted, Job]]) -> Sequence[JobEnd]:
        """Fetch, validate, store."""
        first, job = taken[0]
        keys = list(dict.fromkeys(one.key for one, _ in taken))
        if isinstance(known, Failure):
            return await self._store(taken, dict.fromkeys(keys, known), version=first.version)
        obstacle = self._obstacle(known, first, keys)
        if obstacle is not None:
            return await self._store(taken, dict.fromkeys(keys, obstacle), version=known.version)
        secret = self._secret([job for _, job in taken])
        fetched = await self._fetch(known, keys, taken, secret)
        results = await self._validate(known, keys, first, fetched, secret)
        self._note(known, results, fetched)
        results = await self._limits.observe(known.upstream, job.credential or "", results, fetched.headers)
        self._limits.keep_bandwidth_wall(job.claimed.queue, job.permitted, results)
        used = fetched.counted(known.upstream.counts)
        return await self._store(taken, results, version=known.version, fetched=fetched, used=used)

    def _obstacle(self, known: KnownType, first: Wanted, keys: Sequence[str]) -> Result | None:
        """Why no call is made; None where nothing stands in the way."""
        if known.version != first.version:
            # The store looks for itself, and ends the jobs as type_changed.
            return Failure(Reason.TYPE_CHANGED, "the type has changed", Blame.OURS)
        if len(keys) > 1 and self._batch_endpoints.is_closed((known.definition.name, known.version)):
            return Singly("the batch endpoint was refused before")
        return None

    def _secret(self, jobs: Sequence[Job]) -> SecretStr | None:
        credential = jobs[0].credential
        secret = self._credentials.read(credential) if credential else None
        if credential and not secret:
            # A worker without it does not claim (Credentials.can_use), so somebody took it away
            # meanwhile. Not the job's fault, nor the key's.
            for job in jobs:
                job.used(0)
            raise Release(f"environment variable {credential} is not set here, or may not be used", after="30s")
        return secret

    async def _fetch(
        self,
        known: KnownType,
        keys: Sequence[str],
        taken: Sequence[tuple[Wanted, Job]],
        secret: SecretStr | None,
    ) -> Fetched:
        definition, first = known.definition, taken[0][0]
        tail, days = first.tail(definition), definition.fetch.revision_days

        def spend() -> None:
            for _, job in taken:
                job.spend_permit()

        return await fetch(
            self._outbound,
            definition,
            known.upstream,
            keys,
            now=self._clock.now,
            secret=secret,
            before_write=spend,
            validator=first.validator,
            fresh=any(one.fresh for one, _ in taken) or self._registry.has_twin(definition.name),
            since=tail.since(days) if tail and days else None,
        )

    async def _validate(
        self, known: KnownType, keys: Sequence[str], first: Wanted, fetched: Fetched, secret: SecretStr | None
    ) -> Results:
        """What became of each key, as far as it is proven, and with no secret in it."""
        definition, came = known.definition, fetched.came
        # Whichever credential the call was made with, the upstream may know them all.
        secrets = secrets_for(known.upstream) or secrets_of(*([secret.get_secret_value()] if secret else []))
        results: Results
        if isinstance(came, bytes):
            judge = partial(
                validate,
                definition,
                keys,
                came,
                content_type=fetched.headers.get("content-type"),
                now=self._clock.now(),
                transforms=self._transforms,
                tail=first.tail(definition),
                secrets=secrets,
            )
            results = await asyncio.to_thread(judge) if len(came) > _THREAD_BYTES else judge()
            results = add_validators(results, fetched.headers)
        else:
            results = dict.fromkeys(keys, came)
        return hide_secrets(check_proof(results, fetched.connection), secrets)

    def _note(self, known: KnownType, results: Results, fetched: Fetched) -> None:
        """Remember what the call says about its endpoint."""
        name = known.definition.name
        if len(results) > 1:
            self._batch_endpoints.note((name, known.version), results)
        if not fetched.had_length:
            LENGTHLESS.add(known.upstream.name)
        self._added_fields.note(name, results)

    async def _store(
        self,
        taken: Sequence[tuple[Wanted, Job]],
        results: Results,
        *,
        version: int,
        fetched: Fetched | None = None,
        used: int = 0,
    ) -> Sequence[JobEnd]:
        """Store the results of one call; without fetched no call was made.

        Its first job carries what it cost.
        """
        sent = time.monotonic() if fetched is None else fetched.sent
        entries = [
            Entry.of(job, one.type, one.key, version=version, result=results[one.key], sent=sent) for one, job in taken
        ]
        if fetched is not None:
            entries[0] = replace(
                entries[0], used=used, wire_bytes=fetched.wire_bytes, decoded_bytes=fetched.decoded_bytes
            )
        for entry, (_, job) in zip(entries, taken, strict=True):
            job.used(entry.used)
        stored = await self._storer.store(taken[0][1].worker, entries)
        return [self._end(one, job, said, results[one.key]) for (one, job), said in zip(taken, stored, strict=True)]

    def _end(self, one: Wanted, job: Job, said: Stored, result: Result) -> JobEnd:
        REFRESHES.add(one.type, said.reason or said.answer)
        if said.answer == "fenced":
            return OwnershipLost(f"job {job.id}: another worker owns it by now; nothing was written")
        if said.answer != "rejected":
            return FinishedElsewhere()
        self._refusals.tell(one.type, one.key, said.reason or "", result)
        return FinishedElsewhere(Failed(f"{one.type} {one.key}: {said.reason}"))
