"""What a program declares: limiters, queues and tasks; and how that gets into the database.

    declared ──the app opens, or the first job of a queue is enqueued──▶ in the database
        ▲──declared again, or the app closes──┘

A queue that tasks merely name has the defaults, unless some process has stated others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from livewell.db import Database
from livewell.errors import ConfigurationError, UnknownLimiter
from livewell.limits import notation as written
from livewell.limits.limiter import Limiter
from livewell.model import Backoff, QueuePolicy, TaskPolicy
from livewell.queue.definition import TaskDefinition, check_policy, check_queue_name, define
from livewell.queue.task import Options, Submit, Task

P = ParamSpec("P")
R = TypeVar("R")

_TASK_TIMEOUT_SECONDS_MAX = 86400.0
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
_LIMITER = "SELECT livewell.declare_limiter(%s, %s::jsonb, %s)"
_QUEUE = "SELECT livewell.declare_queue(%s, %s, %s, %s, %s, %s::jsonb, %s)"


class Declarations:
    """What one app declares.

    `tasks` are definitions by name, `handles` are the tasks that callers hold.
    """

    def __init__(self) -> None:
        self.tasks: dict[str, TaskDefinition] = {}
        self.handles: dict[str, Task[Any, Any]] = {}
        self._queues: dict[str, QueuePolicy] = {}
        self._limiters: dict[str, Limiter] = {}
        self._written: set[str] = set()  # queues that are in the database
        self._written_limiters: set[str] = set()

    def limiter(self, limiter: Limiter) -> Limiter:
        """Take in a limiter, whose name must be new."""
        self._limiters[limiter.name] = limiter
        return limiter

    def check_limiter(self, name: str) -> None:
        """Refuse a name that is taken, or that no limiter can have."""
        if name in self._limiters:
            raise ConfigurationError(f"limiter {name}: declared twice")
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"limiter {name!r}: 1 to 63 of a-z 0-9 _ . - are allowed, beginning with a letter")

    def queue(self, name: str, policy: QueuePolicy) -> None:
        """State a queue's policy; it replaces the one before."""
        check_queue_name(name, "queue ")
        if not 1 <= policy.attempts <= 100:
            raise ConfigurationError(f"queue {name}: attempts {policy.attempts}: allowed are 1 to 100")
        if not 0 <= policy.backoff.base_seconds <= policy.backoff.cap_seconds <= 604800:
            raise ConfigurationError(f"queue {name}: {policy.backoff}: allowed is 0 ≤ base ≤ cap ≤ 604800 s")
        written.positive(policy.concurrency, f"queue {name}: concurrency")
        written.positive(policy.group_limit, f"queue {name}: group_limit")
        if policy.limiter is not None and policy.limiter not in self._limiters:
            known = ", ".join(sorted(self._limiters)) or "none"
            raise UnknownLimiter(f"queue {name}: limiter {policy.limiter!r} is not declared; there are: {known}")
        self._queues[name] = policy
        self._written.discard(name)

    def task(
        self,
        function: Callable[P, R],
        name: str | None,
        policy: TaskPolicy,
        submit: Submit,
        payload_bytes_max: Callable[[], int],
    ) -> Task[P, R]:
        """Declare a function as a task."""
        if not 0 < policy.timeout_seconds <= _TASK_TIMEOUT_SECONDS_MAX:
            raise ConfigurationError(
                f"task timeout {policy.timeout_seconds:g} s: more than 0 and at most a day is allowed"
            )
        if not isinstance(policy.batch, int) or isinstance(policy.batch, bool) or not 1 <= policy.batch <= 1000:
            raise ConfigurationError(f"task batch {policy.batch}: allowed are 1 to 1000")
        check_policy(f"task {name or function.__name__}", policy)
        definition = define(function, name=name, policy=policy)
        if definition.name in self.tasks:
            raise ConfigurationError(f"task {definition.name}: declared twice; give one of them name=…")
        self.tasks[definition.name] = definition
        if policy.queue not in self._queues:
            self._queues[policy.queue] = QueuePolicy(5, Backoff(), None, None, None, stated=False)
        handle = Task(function, definition, submit, payload_bytes_max, Options())
        self.handles[definition.name] = handle
        return handle

    async def write_all(self, database: Database) -> None:
        """Tell the database everything that is declared."""
        for limiter in self._limiters.values():
            await self._write_limiter(database, limiter)
        await self.write(database, list(self._queues))

    async def write(self, database: Database, queues: Iterable[str]) -> None:
        """Tell the database of these queues, unless it knows them.

        Nothing is known of others' queues.
        """
        for name in queues:
            if name not in self._written and name in self._queues:
                await self._write_queue(database, name, self._queues[name])

    def forget(self) -> None:
        """The next database is told again."""
        self._written.clear()
        self._written_limiters.clear()

    async def _write_queue(self, database: Database, name: str, policy: QueuePolicy) -> None:
        if policy.limiter is not None and policy.limiter not in self._written_limiters:
            await self._write_limiter(database, self._limiters[policy.limiter])
        limits = {"concurrency": policy.concurrency, "group_limit": policy.group_limit, "limiter": policy.limiter}
        backoff, lost_max = policy.backoff, database.settings.lost_max
        await database.call(
            _QUEUE,
            (
                name,
                policy.attempts,
                backoff.base_seconds,
                backoff.cap_seconds,
                lost_max,
                json.dumps(limits),
                not policy.stated,
            ),
        )
        self._written.add(name)

    async def _write_limiter(self, database: Database, limiter: Limiter) -> None:
        await database.call(
            _LIMITER, (limiter.name, json.dumps(dict(limiter.limits.columns)), list(limiter.limits.credentials))
        )
        self._written_limiters.add(limiter.name)
