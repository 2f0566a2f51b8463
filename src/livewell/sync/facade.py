"""Sync, the object behind `app.sync`: Livewell for Flask, Django and scripts.

with app.sync:                                          opened; closed at the end
    app.sync.enqueue(welcome, user_id=7)                a task, task.options(…) or a name
    with app.sync.transaction() as tx:
        tx.execute("INSERT INTO users …")
        app.sync.enqueue(welcome, user_id=7, tx=tx)
        app.sync.emit("users.created", key="7", payload={"id": 7}, tx=tx)
    app.sync.admin.jobs(queue="mail")
    app.sync.call(anything_async, 1, two=2)             what has no method of its own

Without `with` it opens on first use and closes at exit. Any thread may use it; all share one loop
and one pool. The task comes first, as in app.enqueue(name, …), and not as welcome.sync.enqueue(…):
one object says "blocking", and what never waits (options) stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from livewell.db import Transaction
from livewell.db.foreign import Blocking, Foreign, Lent
from livewell.model import Enqueued
from livewell.outbox.emit import NewEvent
from livewell.outbox.inbox import Sight
from livewell.queue.task import Task
from livewell.settings import Settings
from livewell.sync.admin import SyncAdmin
from livewell.sync.call import Call
from livewell.sync.opening import App, Opening
from livewell.sync.transaction import SyncTransaction, held

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=SyncTransaction | Blocking)


class Sync:
    """The app's methods for threads without an event loop. Each waits at most sync_wait_seconds."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._opening = Opening(app)

    # -- opening ----------------------------------------------------------------------------------

    def open(self, *, settings: Settings | None = None, apply_migrations: bool = False) -> Self:
        """Open the app in the portal thread, as app.open() does.

        Nothing happens where it is open already.
        """
        self._opening.open(settings=settings, apply_migrations=apply_migrations)
        return self

    def close(self) -> None:
        """Close what was opened here.

        Calls of other threads end with an error, their transactions roll back.
        """
        self._opening.close()

    def __enter__(self) -> Self:
        self._opening.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opening.leave()

    # -- using ------------------------------------------------------------------------------------

    def call(self, function: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run any coroutine function in the app's loop, and wait for its answer."""
        return self._opening.portal().run(lambda _: function(*args, **kwargs))

    def enqueue(
        self,
        task: Task[Any, Any] | str,
        /,
        *,
        tx: SyncTransaction | Blocking | None = None,
        **arguments: Any,
    ) -> Enqueued:
        """Enqueue one job; with tx it exists exactly if that transaction commits."""

        def make(call: Call[Enqueued]) -> Coroutine[Any, Any, Enqueued]:
            if isinstance(task, str):
                return self._app.enqueue(task, tx=_lend(tx, call), **arguments)
            return task.enqueue(tx=_lend(tx, call), **arguments)

        return self._opening.portal().run(make)

    def enqueue_many(
        self,
        task: Task[Any, Any],
        many: Iterable[dict[str, Any]],
        *,
        tx: SyncTransaction | Blocking | None = None,
    ) -> list[Enqueued]:
        """Enqueue one job per set of arguments, all or none, in one statement."""
        listed = list(many)  # here, not in the loop: it may be a query of the caller's
        return self._opening.portal().run(lambda call: task.enqueue_many(listed, tx=_lend(tx, call)))

    def emit(
        self,
        topic: str,
        *,
        payload: Any,
        key: str | None = None,
        tenant: str = "",
        tx: SyncTransaction | Blocking | None = None,
    ) -> str:
        """Emit one event, as app.emit; with tx it exists exactly if that transaction commits."""
        return self._opening.portal().run(
            lambda call: self._app.emit(topic, payload=payload, key=key, tenant=tenant, tx=_lend(tx, call))
        )

    def emit_many(self, events: Iterable[NewEvent], *, tx: SyncTransaction | Blocking | None = None) -> list[str]:
        """Emit many events in this order, all or none, in one statement; answers their ids."""
        listed = list(events)  # here, not in the loop: it may be a query of the caller's
        return self._opening.portal().run(lambda call: self._app.emit.many(listed, tx=_lend(tx, call)))

    @overload
    def inbox(self, event_id: str, *, consumer: str) -> AbstractContextManager[Sight[SyncTransaction]]: ...

    @overload
    def inbox(self, event_id: str, *, consumer: str, tx: T) -> AbstractContextManager[Sight[T]]: ...

    def inbox(self, event_id: str, *, consumer: str, tx: Any = None) -> AbstractContextManager[Sight[Any]]:
        """Handle an event once, as app.inbox: `with app.sync.inbox(id, consumer="billing") as first: …`."""
        return self._in(event_id, consumer, tx)

    @contextmanager
    def _in(self, event_id: str, consumer: str, tx: Any) -> Iterator[Sight[Any]]:
        if tx is None:
            with self.transaction() as own, self._in(event_id, consumer, own) as sight:
                yield sight
            return
        is_first = self._opening.portal().run(lambda call: self._app.inbox.see(event_id, consumer, _lend(tx, call)))
        yield Sight(is_first, tx)

    @contextmanager
    def transaction(self) -> Iterator[SyncTransaction]:
        """A transaction on the app's database.

        Commits when the block ends, rolls back when it raises.
        """
        with held(self._opening.portal(), self._app.transaction) as transaction:
            yield transaction

    def reserve_ids(self, n: int = 1) -> list[int]:
        """Job ids to enqueue with, as app.reserve_ids()."""
        return self.call(self._app.reserve_ids, n)

    @property
    def admin(self) -> SyncAdmin:
        """Look at queues, jobs and dead letters, and mend them."""
        return SyncAdmin(self._opening.portal, lambda: self._app.admin)


@overload
def _lend(tx: SyncTransaction | Blocking, call: Call[Any]) -> Transaction | Foreign: ...


@overload
def _lend(tx: SyncTransaction | Blocking | None, call: Call[Any]) -> Transaction | Foreign | None: ...


def _lend(tx: SyncTransaction | Blocking | None, call: Call[Any]) -> Transaction | Foreign | None:
    """The caller's transaction, as the async API takes it."""
    if tx is None:
        return None
    return tx.held if isinstance(tx, SyncTransaction) else Lent(tx, call.ask)
