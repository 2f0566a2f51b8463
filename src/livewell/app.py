"""Livewell: the object users hold, and the place where everything is put together.

app = Livewell()                     nothing happens yet: declare tasks on it
async with app: …                    opens the database (DATABASE_URL, or the embedded server)
await app.work()                     be a worker until stopped
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from livewell.db import Database, Transaction, embedded, migrate
from livewell.db.database import Foreign
from livewell.duration import Duration, seconds
from livewell.errors import ConfigurationError, LivewellError, UnknownTask
from livewell.model import Backoff, Enqueued, Lane, TaskPolicy
from livewell.queue.admin import QueueAdmin
from livewell.queue.enqueue import Enqueuer, Request
from livewell.queue.handle import Options, Task
from livewell.queue.nudge import Nudger
from livewell.queue.task import TaskDefinition, define
from livewell.queue.worker.worker import Worker
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
        self._handles: dict[str, Task[Any, Any]] = {}
        self._queues: dict[str, tuple[int, Backoff]] = {}
        self._declared: set[str] = set()
        self._database: Database | None = None
        self._enqueuer: Enqueuer | None = None
        self._nudger: Nudger | None = None
        self._sync = Sync(self)

    @property
    def settings(self) -> Settings:
        """The validated configuration, read when it is first needed."""
        if self._given is None:
            self._given = Settings.load(**self._flags)
        return self._given

    # -- declaring ---------------------------------------------------------------------------------------------------

    def queue(self, name: str, *, attempts: int = 5, backoff: Backoff | None = None) -> None:
        """State a queue's policy; a queue that tasks merely name has the defaults."""
        backoff = backoff or Backoff()
        if not 1 <= attempts <= 100:
            raise ConfigurationError(f"queue {name}: attempts {attempts}: allowed are 1 to 100")
        if not 0 <= backoff.base_seconds <= backoff.cap_seconds <= 604800:
            raise ConfigurationError(f"queue {name}: {backoff}: allowed is 0 ≤ base ≤ cap ≤ 604800 s")
        self._queues[name] = (attempts, backoff)
        self._declared.discard(name)

    def task(
        self,
        *,
        queue: str = "default",
        name: str | None = None,
        attempts: int | None = None,
        timeout: Duration | None = None,
        lane: Lane = Lane.BACKGROUND,
        priority: int = 0,
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Declare a function as a task: `@app.task(queue="mail", attempts=5)`."""

        def decorate(function: Callable[P, R]) -> Task[P, R]:
            limit = self.settings.task_timeout_seconds if timeout is None else seconds(timeout, "timeout")
            if not 0 < limit <= _TASK_TIMEOUT_SECONDS_MAX:
                raise ConfigurationError(f"task timeout {timeout!r}: more than 0 and at most a day is allowed")
            policy = TaskPolicy(queue, attempts, limit, lane, priority)
            definition = define(function, name=name, policy=policy)
            if definition.name in self.tasks:
                raise ConfigurationError(f"task {definition.name}: declared twice; give one of them name=…")
            self.tasks[definition.name] = definition
            if queue not in self._queues:
                self.queue(queue)
            handle = Task(function, definition, self._submit, lambda: self.settings.payload_bytes_max, Options())
            self._handles[definition.name] = handle
            return handle

        return decorate

    # -- opening -----------------------------------------------------------------------------------------------------

    async def open(self, *, settings: Settings | None = None, apply_migrations: bool = False) -> Self:
        """Connect; check that the schema fits, or bring it up to date if asked to. Other settings may be given, as tests do."""
        self._given = settings or self._given
        conninfo = await asyncio.to_thread(database_address, self.settings)
        await asyncio.to_thread(prepare_schema, conninfo, self.settings, apply=apply_migrations)
        listen = self.settings.listen_url
        self._database = Database(
            conninfo, self.settings, listen_conninfo=listen.get_secret_value() if listen is not None else None
        )
        await self._database.open()
        self._enqueuer = Enqueuer(self._database)
        self._nudger = Nudger(self._database)
        if not self._database.address.replica:
            await self._database.call("SELECT livewell.ensure_history_days(%s)", (self.settings.history_days_ahead,))
            for name in self._queues:
                await self._declare(name)
        return self

    async def close(self) -> None:
        """Disconnect. The embedded server goes on running; stop it with `livewell db stop`."""
        if self._nudger is not None:
            await self._nudger.close()
        if self._database is not None:
            await self._database.close()
        self._database = self._enqueuer = self._nudger = None
        self._declared.clear()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def database(self) -> Database:
        """The open database."""
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
    def sync(self) -> Sync:
        """The same for blocking code: `with app.sync:`, `app.sync.enqueue(task, …)`; see docs/howto/blocking_code.md."""
        return self._sync

    # -- using -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A transaction on the app's database; give it as tx= to whatever shall commit with it."""
        async with self.database.transaction() as transaction:
            yield transaction

    async def enqueue(self, name: str, *, tx: Transaction | Foreign | None = None, **arguments: Any) -> Enqueued:
        """Enqueue a task by its name."""
        if name not in self._handles:
            raise UnknownTask(f"task {name!r} is not declared; there are: {', '.join(sorted(self._handles)) or 'none'}")
        return await self._handles[name].enqueue(tx=tx, **arguments)

    async def reserve_ids(self, n: int = 1) -> list[int]:
        """Job ids to enqueue with: `task.options(id=…)`. Sent again after an unknown outcome, the same id is the same job."""
        self.database  # noqa: B018 - raises when the app is not open
        assert self._enqueuer is not None  # noqa: S101 - set together with the database
        return await self._enqueuer.reserve(n)

    def worker(
        self,
        *,
        queues: Sequence[str] | None = None,
        slots: int | None = None,
        name: str | None = None,
        on_hang: Callable[[], None] | None = None,
    ) -> Worker:
        """A worker for these queues (all that the tasks name, if not given).

        on_hang is called, in a thread, when a handler has blocked the event loop for two leases: only a new process helps then.
        """
        known = sorted({definition.policy.queue for definition in self.tasks.values()})
        return Worker(
            self.database,
            self.tasks,
            queues=queues or known,
            nudger=self.nudger,
            slots=slots,
            name=name,
            on_hang=on_hang,
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

    async def _submit(self, requests: Sequence[Request], tx: Transaction | Foreign | None) -> list[Enqueued]:
        self.database  # noqa: B018 - raises when the app is not open
        assert self._enqueuer is not None  # noqa: S101 - set together with the database
        queues = {request.queue for request in requests}
        for queue in queues - self._declared:
            await self._declare(queue)
        answers = await self._enqueuer.enqueue(requests, tx=tx)
        for queue in queues:
            if tx is None:
                self.nudger.nudge(queue)
            elif isinstance(tx, Transaction):
                tx.on_commit.append(lambda queue=queue: self.nudger.nudge(queue))  # type: ignore[misc] # mypy cannot infer a lambda with a default
        return answers

    async def _declare(self, name: str) -> None:
        if name in self._queues:
            attempts, backoff = self._queues[name]
            await self.database.call(
                "SELECT livewell.declare_queue(%s, %s, %s, %s, %s)",
                (name, attempts, backoff.base_seconds, backoff.cap_seconds, self.settings.lost_max),
            )
            self._declared.add(name)


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
