"""Livewell: the object users hold, and the place where everything is put together.

app = Livewell()                     nothing happens yet: declare tasks on it
async with app: …                    opens the database (DATABASE_URL, or the embedded server)
await app.work()                     be a worker until stopped
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from livewell.alerts.admin import AlertAdmin
from livewell.db import Database, Row, Transaction, embedded, migrate
from livewell.db.database import Foreign
from livewell.db.nudge import Nudger
from livewell.duration import Duration, seconds
from livewell.duties import duties
from livewell.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    InvalidOption,
    LivewellError,
    UnknownLimiter,
    UnknownTask,
)
from livewell.limits import notation as written
from livewell.limits.limiter import DEADLINE_SECONDS, Breaker, Limiter
from livewell.limits.limiter import read as read_limits
from livewell.limits.walls import Walls
from livewell.model import Backoff, Enqueued, JobState, Lane, QueuePolicy, TaskPolicy
from livewell.operations.warnings import Warnings
from livewell.queue.admin import QueueAdmin
from livewell.queue.batch import Batch
from livewell.queue.definition import TaskDefinition, check_policy, check_queue_name, define
from livewell.queue.enqueue import Alike, Enqueuer, Request
from livewell.queue.task import Options, Task
from livewell.queue.worker.worker import Worker
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.fetch.request import Request as RefreshRequest
from livewell.refresh.read.reads import Reads
from livewell.refresh.reading import Reading
from livewell.refresh.registry.sample_record import Fetched
from livewell.refresh.validate.answer import Transform
from livewell.schedule.admin import ScheduleAdmin
from livewell.schedule.definition import ScheduleDefinition
from livewell.schedule.definition import define as define_schedule
from livewell.schedule.due_times import Missed
from livewell.schedule.scheduler import Scheduler
from livewell.settings import Settings
from livewell.sync import Sync

P = ParamSpec("P")
R = TypeVar("R")

_TASK_TIMEOUT_SECONDS_MAX = 86400.0


class Livewell:
    """Tasks are declared on it; opening it connects; everything else goes through it."""

    def __init__(self, settings: Settings | None = None, **flags: Any) -> None:
        self._given = settings
        self._flags = flags
        self.tasks: dict[str, TaskDefinition] = {}
        self._away: DatabaseUnavailable | None = None  # what the last open() ran into
        self.schedules: dict[str, ScheduleDefinition] = {}
        self._handles: dict[str, Task[Any, Any]] = {}
        self._queues: dict[str, QueuePolicy] = {}
        self._limiters: dict[str, Limiter] = {}
        self._walls = Walls()
        self._declared: set[str] = set()
        self._declared_limiters: set[str] = set()
        self._database: Database | None = None
        self._enqueuer: Enqueuer | None = None
        self._nudger: Nudger | None = None
        self._reads: Reads | None = None
        self._transforms: dict[str, Transform] = {}
        self._sync = Sync(self)

    @property
    def settings(self) -> Settings:
        """The validated configuration, read when it is first needed."""
        if self._given is None:
            self._given = Settings.load(**self._flags)
        return self._given

    # -- declaring ---------------------------------------------------------------------------------------------------

    def queue(
        self,
        name: str,
        *,
        attempts: int = 5,
        backoff: Backoff | None = None,
        concurrency: int | None = None,
        group_limit: int | None = None,
        limiter: str | Limiter | None = None,
    ) -> None:
        """State a queue's policy. A queue that tasks merely name has the defaults, unless some process has stated others.

        concurrency: jobs that run at once in the whole fleet; group_limit: the same for each group key; limiter: whose limits its calls are under.
        """
        backoff = backoff or Backoff()
        check_queue_name(name, "queue ")
        if not 1 <= attempts <= 100:
            raise ConfigurationError(f"queue {name}: attempts {attempts}: allowed are 1 to 100")
        if not 0 <= backoff.base_seconds <= backoff.cap_seconds <= 604800:
            raise ConfigurationError(f"queue {name}: {backoff}: allowed is 0 ≤ base ≤ cap ≤ 604800 s")
        written.positive(concurrency, f"queue {name}: concurrency")
        written.positive(group_limit, f"queue {name}: group_limit")
        if isinstance(limiter, Limiter):
            limiter = limiter.name
        if limiter is not None and limiter not in self._limiters:
            known = ", ".join(sorted(self._limiters)) or "none"
            raise UnknownLimiter(f"queue {name}: limiter {limiter!r} is not declared; there are: {known}")
        self._queues[name] = QueuePolicy(attempts, backoff, concurrency, group_limit, limiter)
        self._declared.discard(name)

    def limiter(
        self,
        name: str,
        *,
        rate: str | None = None,
        burst: int = 10,
        reserve: float | str = 0.1,
        permit: float | str | None = None,
        deadline: float | str = DEADLINE_SECONDS,
        budget: str | None = None,
        budget_resets: str | None = None,
        budget_stop: float | str = 0.95,
        budget_background_stop: float | str = 0.8,
        estimate: int = 1,
        concurrency: int | None = None,
        per_key: int | None = None,
        breaker: Breaker | None = None,
        credentials: Sequence[str] = (),
        silence_max: float | str = "15m",
    ) -> Limiter:
        """State the limits of an outside resource, for the queues that name it: `app.limiter("fmp", rate="300/min", budget="20GB/30d")`.

        rate: calls in any such window, as the receiver counts them; burst of them may go at once, and reserve is the share that only lane 0 may use. permit: how long
        after its claim was sent a call may still be made (a sixtieth of the window, 0.25 to 1 s). deadline: how long after that a call without an answer may still reach the
        upstream, at least the longest timeout of the calls; so long it counts. budget: bytes, calls or tokens, rolling ("20GB/30d") or by the day ("5000 calls/day", budget_resets="17:00 America/New_York");
        everything stops at budget_stop of it, lane 1 at budget_background_stop; estimate is what a call of an unknown kind is taken to use. concurrency: calls at once; per_key: jobs at once
        with one group key. Rate, budget and breaker are kept for each of the credentials. silence_max: a longer Retry-After is not believed, and after so long one call asks again.
        """
        if name in self._limiters:
            raise ConfigurationError(f"limiter {name}: declared twice")
        if not re.fullmatch(r"[a-z][a-z0-9_.-]{0,62}", name):
            raise ConfigurationError(f"limiter {name!r}: 1 to 63 of a-z 0-9 _ . - are allowed, beginning with a letter")
        limits = read_limits(
            name,
            rate=rate,
            burst=burst,
            reserve=reserve,
            permit=permit,
            deadline=deadline,
            budget=budget,
            budget_resets=budget_resets,
            budget_stop=budget_stop,
            budget_background_stop=budget_background_stop,
            estimate=estimate,
            concurrency=concurrency,
            per_key=per_key,
            breaker=breaker,
            credentials=credentials,
            silence_max=silence_max,
        )
        self._limiters[name] = Limiter(name, limits, self._call, self._walls)
        return self._limiters[name]

    def task(
        self,
        *,
        queue: str = "default",
        name: str | None = None,
        attempts: int | None = None,
        timeout: Duration | None = None,
        lane: Lane = Lane.BACKGROUND,
        priority: int = 0,
        batch: int = 1,
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Declare a function as a task: `@app.task(queue="mail", attempts=5)`. With batch=50 it takes up to fifty jobs at once, as a list."""

        def decorate(function: Callable[P, R]) -> Task[P, R]:
            limit = self.settings.task_timeout_seconds if timeout is None else seconds(timeout, "timeout")
            if not 0 < limit <= _TASK_TIMEOUT_SECONDS_MAX:
                raise ConfigurationError(f"task timeout {timeout!r}: more than 0 and at most a day is allowed")
            if not isinstance(batch, int) or isinstance(batch, bool) or not 1 <= batch <= 1000:
                raise ConfigurationError(f"task batch {batch}: allowed are 1 to 1000")
            policy = TaskPolicy(queue, attempts, limit, lane, priority, batch)
            check_policy(f"task {name or function.__name__}", policy)
            definition = define(function, name=name, policy=policy)
            if definition.name in self.tasks:
                raise ConfigurationError(f"task {definition.name}: declared twice; give one of them name=…")
            self.tasks[definition.name] = definition
            if queue not in self._queues:
                self._queues[queue] = QueuePolicy(5, Backoff(), None, None, None, stated=False)
            handle = Task(function, definition, self._submit, lambda: self.settings.payload_bytes_max, Options())
            self._handles[definition.name] = handle
            return handle

        return decorate

    def schedule(
        self,
        cron: str | None = None,
        *,
        zone: str = "UTC",
        every: Duration | None = None,
        at: datetime | None = None,
        missed: Missed = "once",
        timeout: Duration = 3600,
        name: str | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Run a function by the clock, in one worker of all at a time: `@app.schedule("0 2 * * *", zone="Europe/Paris")`, `every="5m"`, or `at=` an instant.

        missed: what becomes of slots that nobody could run: none of them (skip), the latest (once), or each of the latest hundred, late (all). The function is async or plain, may have a
        parameter `run` that says which slot it is, and may return how many rows it touched. After timeout it is cancelled and has failed.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            of = f"schedule {name or function.__name__}:"
            definition = define_schedule(
                function,
                name=name,
                cron=cron,
                zone=zone,
                every_seconds=None if every is None else seconds(every, f"{of} every"),
                at=at,
                missed=missed,
                timeout_seconds=seconds(timeout, f"{of} timeout"),
            )
            if definition.name in self.schedules:
                raise ConfigurationError(f"schedule {definition.name}: declared twice; give one of them name=…")
            self.schedules[definition.name] = definition
            return function

        return decorate

    def transform(self, name: str) -> Callable[[Transform], Transform]:
        """Register what an odd type's file names as its transform: a function of the parsed answer and the keys that gives the list of rows."""

        def decorate(function: Transform) -> Transform:
            if name in self._transforms:
                raise ConfigurationError(f"transform {name}: registered twice")
            self._transforms[name] = function
            return function

        return decorate

    # -- opening -----------------------------------------------------------------------------------------------------

    async def open(self, *, settings: Settings | None = None, apply_migrations: bool = False) -> Self:
        """Connect; check that the schema fits, or bring it up to date if asked to. Other settings may be given, as tests do."""
        self._given = settings or self._given
        try:
            await self._open(apply_migrations=apply_migrations)
        except BaseException as error:
            # All or nothing: what is half open belongs to a loop that may end, and answers nobody.
            await self.close()
            self._away = error if isinstance(error, DatabaseUnavailable) else None
            raise
        self._away = None
        return self

    async def _open(self, *, apply_migrations: bool) -> None:
        conninfo = await asyncio.to_thread(database_address, self.settings)
        await asyncio.to_thread(prepare_schema, conninfo, self.settings, apply=apply_migrations)
        listen = self.settings.listen_url
        self._database = Database(
            conninfo, self.settings, listen_conninfo=listen.get_secret_value() if listen is not None else None
        )
        await self._database.open()
        self._nudger = Nudger(self._database)
        self._enqueuer = Enqueuer(self._database, self._nudger)
        self._reads = Reads(self._database, self._nudger)
        if not self._database.address.replica:
            await self._database.call("SELECT livewell.ensure_history_days(%s)", (self.settings.history_days_ahead,))
            for limiter in self._limiters.values():
                await self._declare_limiter(limiter)
            for name in self._queues:
                await self._declare(name)

    async def close(self) -> None:
        """Disconnect. The embedded server goes on running; stop it with `livewell db stop`."""
        if self._reads is not None:
            await self._reads.close()
        if self._nudger is not None:
            await self._nudger.close()
        if self._enqueuer is not None:
            await self._enqueuer.close()
        if self._database is not None:
            await self._database.close()
        self._database = self._enqueuer = self._nudger = self._reads = None
        self._declared.clear()
        self._declared_limiters.clear()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def database(self) -> Database:
        """The open database."""
        if self._database is None and self._away is not None:
            raise DatabaseUnavailable(
                f"the app is not open, because the database was away: {self._away}; open it again"
            )
        if self._database is None:
            raise LivewellError("the app is not open: use `async with app:` or `await app.open()`")
        return self._database

    @property
    def nudger(self) -> Nudger:
        """Wakes waiting workers."""
        self.database  # noqa: B018 - raises when the app is not open
        assert self._nudger is not None  # noqa: S101 - set together with the database
        return self._nudger

    @property
    def admin(self) -> QueueAdmin:
        """Look at queues, jobs and dead letters, and mend them."""
        return QueueAdmin(self.database, self.nudger)

    @property
    def schedule_admin(self) -> ScheduleAdmin:
        """Look at schedules and their runs, ask for one, pause and remove."""
        return ScheduleAdmin(self.database, self.nudger)

    @property
    def alerts(self) -> AlertAdmin:
        """Look at alerts and channels."""
        return AlertAdmin(self.database)

    @property
    def warnings(self) -> Warnings:
        """Look at what was tolerated."""
        return Warnings(self.database)

    @property
    def sync(self) -> Sync:
        """The same for blocking code: `with app.sync:`, `app.sync.enqueue(task, …)`; see docs/howto/blocking_code.md."""
        return self._sync

    # -- using -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A transaction on the app's database; give it as tx= to whatever shall commit with it."""
        async with self.database.transaction() as transaction:
            yield transaction

    async def enqueue(self, name: str, /, *, tx: Transaction | Foreign | None = None, **arguments: Any) -> Enqueued:
        """Enqueue a task by its name."""
        if name not in self._handles:
            raise UnknownTask(f"task {name!r} is not declared; there are: {', '.join(sorted(self._handles)) or 'none'}")
        return await self._handles[name].enqueue(tx=tx, **arguments)

    async def batch(
        self,
        *,
        follow_up: Task[Any, Any] | None = None,
        arguments: dict[str, Any] | Callable[[int], dict[str, Any]] | None = None,
        when: Literal["done", "succeeded"] = "done",
        tx: Transaction | None = None,
    ) -> Batch:
        """Open a batch: `async with await app.batch(follow_up=report) as batch:`, and enqueue with `task.options(batch=batch)`.

        arguments of the follow-up, or a function that makes them from the batch's id. when: it is enqueued when all jobs have ended, or only when all have succeeded (a dead
        letter that is redriven counts again). With tx the batch is opened and sealed in that transaction.
        """
        if when not in ("done", "succeeded"):
            raise InvalidOption(f"when {when!r}: allowed are done (all have ended) and succeeded (all have succeeded)")
        if follow_up is None and arguments is not None:
            raise InvalidOption("arguments without follow_up: whose are they?")
        batch_id, follow_id = await self.reserve_ids(2)
        follow = None
        if follow_up is not None:
            given = arguments(batch_id) if callable(arguments) else arguments
            request = follow_up.request(given or {})
            request.check()
            await self._declare(request.queue)
            follow = request.document()
        call = self.database.call if tx is None else tx.fetch
        await call(
            "SELECT livewell.create_batch(%s, %s, %s, %s::jsonb)",
            (batch_id, follow_id if follow else None, when if follow else None, follow),
        )
        return Batch(batch_id, call)

    def find_batch(self, batch_id: int) -> Batch:
        """A batch by its id."""
        return Batch(batch_id, self.database.call)

    async def reserve_ids(self, n: int = 1) -> list[int]:
        """Job ids to enqueue with: `task.options(id=…)`. Sent again after an unknown outcome, the same id is the same job."""
        self.database  # noqa: B018 - raises when the app is not open
        assert self._enqueuer is not None  # noqa: S101 - set together with the database
        return await self._enqueuer.reserve(n)

    async def follow(self, job_id: int, *, every: float = 0.5) -> AsyncIterator[dict[str, Any]]:
        """The job's record whenever its state, progress or note has changed, until it has ended: `async for record in app.follow(id)`."""
        admin = self.admin
        last: tuple[Any, ...] | None = None
        while True:
            record = await admin.job(job_id)
            seen = tuple(record[name] for name in ("state", "attempt", "progress", "progress_note"))
            if seen != last:
                yield record
            if record["state"] in (JobState.SUCCEEDED, JobState.CANCELLED, JobState.FAILED):
                return
            last = seen
            await asyncio.sleep(every)

    @property
    def reads(self) -> Reads:
        """What get and watch are made of."""
        self.database  # noqa: B018 - raises when the app is not open
        assert self._reads is not None  # noqa: S101 - set together with the database
        return self._reads

    async def get(
        self,
        type: str,  # noqa: A002 - it is the type's name, and called so everywhere
        key: str,
        *,
        max_age: Duration | None = None,
        wait: Duration | None = None,
        user: str | None = None,
    ) -> Reading:
        """One key with its verdict: `quote = await app.get("quote", "AAPL", max_age="1m", wait="2s")`.

        Not fresh enough (max_age since the last check; without it, by the type's own rule), a refresh is demanded; with wait it is waited for, that long at most, and otherwise what there is is
        given at once. A known absence, and a failure that is backed off, are answered without a call. user: whose budget of unknown keys this counts for.
        """
        return await self.reads.get(type, key, max_age=max_age, wait=wait, user=user)

    def watch(
        self,
        type: str,  # noqa: A002 - see get
        keys: Sequence[str],
        *,
        user: str | None = None,
    ) -> AsyncGenerator[Reading, None]:
        """First the current state of each key, then every change: `async for reading in app.watch("quote", ["AAPL", "MSFT"]): …`.

        While it is followed it is a viewer, and what it watches is kept fresh. Only the latest state of a key is given, never a backlog.
        """
        return self.reads.watch(type, keys, user=user)

    async def fetch_sample(
        self, request: RefreshRequest, definition: TypeDefinition, upstream: UpstreamDefinition
    ) -> Fetched:
        """Make one call by hand, under the upstream's limits: `livewell types sample`."""
        from livewell.outbound import Outbound  # noqa: PLC0415 - aiohttp is a tenth of the start-up, and few processes call upstreams
        from livewell.refresh.registry.sample_call import Sampler  # noqa: PLC0415 - see above

        async with Outbound.from_settings(self.settings) as outbound:
            return await Sampler(self.database, outbound).fetch(request, definition, upstream)

    def worker(
        self,
        *,
        queues: Sequence[str] | None = None,
        slots: int | None = None,
        name: str | None = None,
        on_hang: Callable[[], None] | None = None,
    ) -> Worker:
        """A worker for these queues (all that the tasks name, and refreshes, if not given). refresh.* stands for every queue that begins so.

        on_hang is called, in a thread, when a handler has blocked the event loop for two leases: only a new process helps then.
        """
        # aiohttp is a tenth of the start-up, and only workers need it
        from livewell.outbound import Outbound  # noqa: PLC0415 - see above
        from livewell.refresh.definition.credentials import Credentials  # noqa: PLC0415 - see above
        from livewell.refresh.due.check import DueCheck  # noqa: PLC0415 - see above
        from livewell.refresh.task import KIND, QUEUES, RefreshTask  # noqa: PLC0415 - see above

        chosen = list(queues or [*sorted({definition.policy.queue for definition in self.tasks.values()}), QUEUES])
        holder = name or f"{socket.gethostname()}:{os.getpid()}"
        refreshes = any(queue.startswith("refresh.") or queue == "*" for queue in chosen)
        scheduler = Scheduler(
            self.database,
            self.nudger,
            [*self.schedules.values(), *(duty.definition() for duty in duties(self.database, refreshes=refreshes))],
            holder=holder,
        )
        tasks, beside = self.tasks, [scheduler.run]
        hear = [scheduler.wake]
        if refreshes:
            refresher = RefreshTask(
                self.database,
                self.nudger,
                outbound=Outbound.from_settings(self.settings),
                transforms=self._transforms,
                walls=self._walls,
            )
            tasks = {**self.tasks, KIND: refresher.task}
            due_check = DueCheck(self.database, self.nudger, holder=holder)
            beside += [refresher.run, due_check.run]
            hear.append(due_check.wake)
        return Worker(
            self.database,
            tasks,
            queues=chosen,
            beside=beside,
            hear=lambda heard: _tell(hear, heard),
            settle=scheduler.settle,
            nudger=self.nudger,
            slots=slots,
            name=name,
            on_hang=on_hang,
            walls=self._walls,
            can_use=Credentials(self.settings).can_use,
        )

    async def work(self, *, queues: Sequence[str] | None = None, slots: int | None = None) -> None:
        """Be a worker until cancelled; then finish or hand back what is held."""
        worker = self.worker(queues=queues, slots=slots)
        try:
            running = asyncio.create_task(worker.run())
            await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.stop()
            await running

    async def _submit(
        self, requests: Sequence[Request], tx: Transaction | Foreign | None, alike: Alike | None = None
    ) -> list[Enqueued]:
        self.database  # noqa: B018 - raises when the app is not open
        assert self._enqueuer is not None  # noqa: S101 - set together with the database
        queues = {request.queue for request in requests}
        for queue in queues - self._declared:
            await self._declare(queue)
        if alike is None:
            return await self._enqueuer.enqueue(requests, tx=tx)
        return await self._enqueuer.enqueue_alike(requests[0], alike, tx=tx)

    async def _call(self, query: str, params: Sequence[Any]) -> list[Row]:
        return await self.database.call(query, params)

    async def _declare_limiter(self, limiter: Limiter) -> None:
        await self.database.call(
            "SELECT livewell.declare_limiter(%s, %s::jsonb, %s)",
            (limiter.name, json.dumps(dict(limiter.limits.columns)), list(limiter.limits.credentials)),
        )
        self._declared_limiters.add(limiter.name)

    async def _declare(self, name: str) -> None:
        if name in self._queues:
            policy = self._queues[name]
            if policy.limiter is not None and policy.limiter not in self._declared_limiters:
                await self._declare_limiter(self._limiters[policy.limiter])
            limits = {name: getattr(policy, name) for name in ("concurrency", "group_limit", "limiter")}
            await self.database.call(
                "SELECT livewell.declare_queue(%s, %s, %s, %s, %s, %s::jsonb, %s)",
                (
                    name,
                    policy.attempts,
                    policy.backoff.base_seconds,
                    policy.backoff.cap_seconds,
                    self.settings.lost_max,
                    json.dumps(limits),
                    not policy.stated,
                ),
            )
            self._declared.add(name)


def _tell(listeners: Sequence[Callable[[str], None]], heard: str) -> None:
    for listener in listeners:
        listener(heard)


def database_address(settings: Settings) -> str:
    """The configured server's address; without one, the embedded server is started or found."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return embedded.start(settings.data_dir or embedded.default_data_dir(), bin_dir=settings.postgres_bin).dsn


def prepare_schema(conninfo: str, settings: Settings, *, apply: bool) -> None:
    """Bring the schema up to date, or insist that it is."""
    if apply:
        migrate.migrate(conninfo, roles=settings.roles)
    else:
        migrate.require_current(conninfo)
