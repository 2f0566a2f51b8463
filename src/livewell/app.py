"""Livewell: the object users hold. It declares, opens, uses and works.

app = Livewell()                     nothing happens yet: declare tasks on it
async with app: …                    opens the database (DATABASE_URL, or the embedded server)
await app.work()                     be a worker until stopped

It asks capabilities (capability.py) for what they bring: tasks and schedules that they declare,
attributes such as app.alerts, and what a worker does besides.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, Unpack

from livewell.capability import capabilities, offered
from livewell.db import Database, Row, Transaction
from livewell.db.foreign import Foreign
from livewell.db.nudge import Nudger
from livewell.db.prepare import database_address, prepare_schema
from livewell.duration import Duration, seconds
from livewell.errors import DatabaseUnavailable, LivewellError, UnknownTask
from livewell.limits.limiter import Limiter, LimitOptions
from livewell.limits.limiter import read as read_limits
from livewell.limits.walls import Walls
from livewell.model import Backoff, Enqueued, Lane, QueuePolicy, TaskPolicy
from livewell.offers import Offers
from livewell.queue.batch import Batch, create_batch
from livewell.queue.declarations import Declarations
from livewell.queue.enqueue import Alike, Request
from livewell.queue.opened import Opened
from livewell.queue.task import Task
from livewell.queue.worker.worker import Worker
from livewell.refresh.reading import Reading
from livewell.refresh.transforms import Transforms
from livewell.refresh.validate.answer import Transform
from livewell.schedule.definition import ScheduleDefinition
from livewell.schedule.definition import declare as declare_schedule
from livewell.schedule.due_times import Missed
from livewell.schedule.work import WorkerContext, default_queues, make_worker
from livewell.settings import Settings
from livewell.sync import Sync

P = ParamSpec("P")
R = TypeVar("R")


class Livewell(Offers):
    """Tasks are declared on it; opening it connects; everything else goes through it."""

    def __init__(self, settings: Settings | None = None, **flags: Any) -> None:
        self._given = settings
        self._flags = flags
        self._away: DatabaseUnavailable | None = None  # what the last open() ran into
        self._declarations = Declarations()
        self.tasks = self._declarations.tasks
        self._handles = self._declarations.handles
        self.schedules: dict[str, ScheduleDefinition] = {}
        self._transforms = Transforms()
        self._walls = Walls()
        # Imported now, not in the thread that opens: a fork during an import would leave its lock
        # held in the child.
        self._makers = {name: one.load(f"api {name}", at) for one in capabilities() for name, at in one.api.items()}
        self._declared = {
            name: one.load(f"declares {name}", at)(self) for one in capabilities() for name, at in one.declares.items()
        }
        self._declare = [declare for _, declare in offered("declare")]  # each is called once, by the first open()
        self._offers: dict[str, Any] = {}  # attributes of capabilities that were used since open()
        self._opened: Opened | None = None
        self._sync = Sync(self)

    @property
    def settings(self) -> Settings:
        """The validated configuration, read when it is first needed."""
        if self._given is None:
            self._given = Settings.load(**self._flags)
        return self._given

    # -- declaring --------------------------------------------------------------------------------

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
        """State a queue's policy.

        A queue that tasks merely name has the defaults, unless some process has stated others.

        concurrency: jobs that run at once in the whole fleet; group_limit: the same for each group
        key; limiter: whose limits its calls are under.
        """
        limited_by = limiter.name if isinstance(limiter, Limiter) else limiter
        policy = QueuePolicy(attempts, backoff or Backoff(), concurrency, group_limit, limited_by)
        self._declarations.queue(name, policy)

    def limiter(self, name: str, **limits: Unpack[LimitOptions]) -> Limiter:
        """State the limits of an outside resource, for the queues that name it.

        `app.limiter("fmp", rate="300/min", budget="20GB/30d")`.

        LimitOptions says what each limit means.
        """
        self._declarations.check_limiter(name)
        return self._declarations.limiter(Limiter(name, read_limits(name, **limits), self._call, self._walls))

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
        """Declare a function as a task: `@app.task(queue="mail", attempts=5)`.

        With batch=50 it takes up to fifty jobs at once, as a list.
        """

        def decorate(function: Callable[P, R]) -> Task[P, R]:
            limit = self.settings.task_timeout_seconds if timeout is None else seconds(timeout, "timeout")
            policy = TaskPolicy(queue, attempts, limit, lane, priority, batch)
            return self._declarations.task(
                function, name, policy, self._submit, lambda: self.settings.payload_bytes_max
            )

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
        """Run a function by the clock, in one worker of all at a time.

        `@app.schedule("0 2 * * *", zone="Europe/Paris")`, `every="5m"`, or `at=` an instant.

        missed: what becomes of slots that nobody could run: none of them (skip), the latest (once),
        or each of the latest hundred, late (all). The function is async or plain, may have a
        parameter `run` that says which slot it is, and may return how many rows it touched. After
        timeout it is cancelled and has failed.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            self.schedules |= declare_schedule(
                self.schedules, function, name, cron=cron, zone=zone, every=every, at=at, missed=missed, timeout=timeout
            )
            return function

        return decorate

    def transform(self, name: str) -> Callable[[Transform], Transform]:
        """Register what an odd type's file names as its transform.

        A function of the parsed answer and the keys that gives the list of rows.
        """
        return self._transforms.register(name)

    # -- opening ----------------------------------------------------------------------------------

    async def open(self, *, settings: Settings | None = None, apply_migrations: bool = False) -> Self:
        """Connect; check that the schema fits, or bring it up to date if asked to.

        Other settings may be given, as tests do.
        """
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
        while self._declare:
            self._declare.pop(0)(self)
        conninfo = await asyncio.to_thread(database_address, self.settings)
        await asyncio.to_thread(prepare_schema, conninfo, self.settings, apply=apply_migrations)
        self._offers = {}  # after a fork there may be some that are the parent's
        self._opened = await Opened.connect(conninfo, self.settings)
        if not self.database.address.replica:
            await self.database.call("SELECT livewell.ensure_history_days(%s)", (self.settings.history_days_ahead,))
            await self._declarations.write_all(self.database)
            for declared in self._declared.values():
                if hasattr(declared, "write"):
                    await declared.write(self.database)

    async def close(self) -> None:
        """Disconnect. The embedded server goes on running; stop it with `livewell db stop`."""
        for offer in self._offers.values():
            if hasattr(offer, "close"):
                await offer.close()
        if self._opened is not None:
            await self._opened.close()
        self._opened = None
        self._offers.clear()
        self._declarations.forget()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def database(self) -> Database:
        """The open database."""
        return self._is_open().database

    @property
    def nudger(self) -> Nudger:
        """Wakes waiting workers."""
        return self._is_open().nudger

    def _is_open(self) -> Opened:
        if self._opened is not None:
            return self._opened
        if self._away is not None:
            raise DatabaseUnavailable(
                f"the app is not open, because the database was away: {self._away}; open it again"
            )
        raise LivewellError("the app is not open: use `async with app:` or `await app.open()`")

    @property
    def sync(self) -> Sync:
        """The same for blocking code: `with app.sync:`, `app.sync.enqueue(task, …)`.

        See docs/howto/blocking_code.md.
        """
        return self._sync

    if not TYPE_CHECKING:  # or a mistyped name would be no error to a type checker

        def __getattr__(self, name: str) -> Any:
            """What a capability offers under this name: made at its first use, kept until close()."""
            if not name.startswith("_") and name in self._declared:
                return self._declared[name]
            if name.startswith("_") or name not in self._makers:
                raise AttributeError(f"Livewell has no attribute {name!r}, and no capability offers it")
            self._is_open()
            if name not in self._offers:
                self._offers[name] = self._makers[name](self)
            return self._offers[name]

    # -- using ------------------------------------------------------------------------------------

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction on the app's database; give it as tx= to whatever shall commit with it."""
        return self.database.transaction()

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
        """Open a batch: `async with await app.batch(follow_up=report) as batch:`.

        Jobs join it with `task.options(batch=batch)`. arguments: those of the follow-up, or a
        function that makes them from the batch's id. when: the follow-up is enqueued when all jobs
        have ended, or only when all have succeeded (a dead letter that is redriven counts again).
        With tx the batch is opened and sealed in that transaction.
        """
        call = self.database.call if tx is None else tx.fetch
        if follow_up is not None:
            await self._declarations.write(self.database, [follow_up.definition.policy.queue])
        return await create_batch(call, await self.reserve_ids(2), follow_up, arguments, when)

    def find_batch(self, batch_id: int) -> Batch:
        """A batch by its id."""
        return Batch(batch_id, self.database.call)

    async def reserve_ids(self, n: int = 1) -> list[int]:
        """Job ids to enqueue with: `task.options(id=…)`.

        Sent again after an unknown outcome, the same id is the same job.
        """
        return await self._is_open().enqueuer.reserve(n)

    def follow(self, job_id: int, *, every: float = 0.5) -> AsyncIterator[dict[str, Any]]:
        """The job's record whenever its state, progress or note has changed, until it has ended.

        `async for record in app.follow(id)`.
        """
        return self.admin.follow(job_id, every=every)

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

        If the value is too old (max_age since the last check; without it, by the type's own rule) a
        refresh is queued. With `wait` the call waits for it, up to that long; without, it returns
        what is stored. A known absence, and a failure that is backed off, are answered without a
        call. user: whose budget of unknown keys this counts for.
        """
        return await self.reads.get(type, key, max_age=max_age, wait=wait, user=user)

    def watch(
        self,
        type: str,  # noqa: A002 - see get
        keys: Sequence[str],
        *,
        user: str | None = None,
    ) -> AsyncGenerator[Reading, None]:
        """First the current state of each key, then every change.

        `async for reading in app.watch("quote", ["AAPL", "MSFT"]): …`.

        While it is followed it is a viewer, and what it watches is kept fresh. Only the latest
        state of a key is given, never a backlog.
        """
        return self.reads.watch(type, keys, user=user)

    # -- working ----------------------------------------------------------------------------------

    def worker(
        self,
        *,
        queues: Sequence[str] | None = None,
        slots: int | None = None,
        name: str | None = None,
        on_hang: Callable[[], None] | None = None,
    ) -> Worker:
        """Make a worker for these queues; refresh.* stands for every queue that begins so.

        Without queues: all that the tasks name, and those of capabilities. on_hang is called, in a
        thread, when a handler has blocked the event loop for two leases: only a new process helps
        then.
        """
        chosen = tuple(queues or default_queues(self.tasks))
        holder = name or f"{socket.gethostname()}:{os.getpid()}"
        context = WorkerContext(
            self.database, self.nudger, chosen, holder, self._walls, self._transforms, self._declared
        )
        return make_worker(context, self.tasks, self.schedules.values(), slots=slots, name=name, on_hang=on_hang)

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
        opened = self._is_open()
        await self._declarations.write(opened.database, {request.queue for request in requests})
        if alike is None:
            return await opened.enqueuer.enqueue(requests, tx=tx)
        return await opened.enqueuer.enqueue_alike(requests[0], alike, tx=tx)

    async def _call(self, query: str, params: Sequence[Any]) -> list[Row]:
        return await self.database.call(query, params)
