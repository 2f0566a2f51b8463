"""The task as its callers hold it: call it directly, or enqueue it.

await welcome.enqueue(user_id=7)                                    one job, committed when this returns
await welcome.enqueue(user_id=7, tx=tx)                             in the caller's transaction
await welcome.options(delay="5m", unique_key="u7").enqueue(user_id=7)
await welcome.enqueue_many([{"user_id": n} for n in users])         one statement
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from livewell.db import Transaction
from livewell.db.foreign import Foreign
from livewell.duration import Duration, seconds
from livewell.errors import InvalidOption
from livewell.model import Enqueued, Policy
from livewell.queue.batch import Batch
from livewell.queue.definition import TaskDefinition
from livewell.queue.enqueue import Alike, Request

P = ParamSpec("P")
R = TypeVar("R")


class Submit(Protocol):
    """Takes requests to the database: Livewell provides it."""

    def __call__(
        self, requests: Sequence[Request], tx: Transaction | Foreign | None, alike: Alike | None = None
    ) -> Awaitable[list[Enqueued]]:
        """Enqueue all or none; with alike, so many jobs like the one request."""


@dataclass(frozen=True, slots=True)
class Options:
    """How this job differs from what its task declares."""

    delay_seconds: float = 0.0
    run_at: datetime | None = None
    unique_key: str | None = None
    group_key: str | None = None
    lane: int | None = None
    priority: int | None = None
    attempts: int | None = None
    id: int | None = None
    policy: Policy | None = None
    call_key: str | None = None
    batch_id: int | None = None
    units: int | None = None


Key = str | Callable[[dict[str, Any]], str | None]
"""The same for every job, or made from its arguments."""


class Task(Generic[P, R]):
    """What @app.task makes of a function."""

    def __init__(
        self,
        function: Callable[P, R],
        definition: TaskDefinition,
        submit: Submit,
        payload_bytes_max: Callable[[], int],
        options: Options | None = None,
    ) -> None:
        self._function = function
        self.definition = definition
        self._submit = submit
        self._payload_bytes_max = payload_bytes_max
        self._options = options or Options()
        self._like: Request | None = None  # what its jobs have in common
        self.__doc__ = function.__doc__
        self.__name__ = definition.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, here and now."""
        return self._function(*args, **kwargs)

    def options(
        self,
        *,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        unique_key: str | None = None,
        group: str | None = None,
        lane: int | None = None,
        priority: int | None = None,
        attempts: int | None = None,
        id: int | None = None,  # noqa: A002 - it is the job's id, and called so everywhere
        policy: Policy | str | None = None,
        call_key: str | None = None,
        batch: Batch | None = None,
        units: int | None = None,
    ) -> Task[P, R]:
        """The same task, enqueued differently.

        With an id from app.reserve_ids() the enqueue can be repeated safely after an unknown
        outcome. policy says what happens when a live job has the unique key. call_key: jobs of a
        batch task with the same one may share a call. units: what its call is expected to use of
        the limiter's budget.
        """
        changed: dict[str, Any] = {
            "delay_seconds": None if delay is None else seconds(delay, "delay"),
            "run_at": run_at,
            "unique_key": unique_key,
            "group_key": group,
            "lane": lane,
            "priority": priority,
            "attempts": attempts,
            "id": id,
            "policy": None if policy is None else _policy(policy),
            "call_key": call_key,
            "batch_id": None if batch is None else batch.id,
            "units": units,
        }
        options = replace(self._options, **{name: value for name, value in changed.items() if value is not None})
        return Task(self._function, self.definition, self._submit, self._payload_bytes_max, options)

    async def enqueue(self, *, tx: Transaction | Foreign | None = None, **arguments: Any) -> Enqueued:
        """Enqueue one job; with tx it exists exactly if that transaction commits."""
        return (await self._submit([self.request(arguments)], tx))[0]

    async def enqueue_many(
        self,
        many: Iterable[dict[str, Any]],
        *,
        unique_key: Key | None = None,
        group: Key | None = None,
        call_key: Key | None = None,
        tx: Transaction | Foreign | None = None,
    ) -> list[Enqueued]:
        """Enqueue one job per set of arguments, all or none, in one statement.

        Keys may be made from the arguments: unique_key=lambda a: a["symbol"].
        """
        keys = {"unique_key": unique_key, "group_key": group, "call_key": call_key}
        given = {name: key for name, key in keys.items() if key is not None}
        like = self._alike("null")
        if not given and like.plain:
            many = list(many)
            payloads = self.definition.encode_many(many, self._payload_bytes_max())
            return await self._submit([like], tx, Alike(len(many), payloads)) if many else []
        return await self._submit(
            [
                self.request(arguments, {name: _made(key, arguments) for name, key in given.items()})
                for arguments in many
            ],
            tx,
        )

    def request(self, arguments: dict[str, Any], keys: dict[str, Any] | None = None) -> Request:
        """What would be enqueued: checked, and nothing sent."""
        return self._alike(self.definition.encode(arguments, self._payload_bytes_max()), keys)

    def _alike(self, payload: str, keys: dict[str, Any] | None = None) -> Request:
        if keys:
            return self._made(payload, replace(self._options, **keys))
        if self._like is None:
            self._like = self._made("null", self._options)
        return self._like.with_payload(payload)

    def _made(self, payload: str, options: Options) -> Request:
        policy = self.definition.policy
        return Request(
            queue=policy.queue,
            kind=self.definition.name,
            payload=payload,
            unique_key=options.unique_key,
            group_key=options.group_key,
            lane=policy.lane if options.lane is None else options.lane,
            priority=policy.priority if options.priority is None else options.priority,
            delay_seconds=options.delay_seconds,
            run_at=options.run_at,
            max_attempts=policy.attempts if options.attempts is None else options.attempts,
            id=options.id,
            policy=options.policy or Policy.KEEP,
            call_key=options.call_key,
            batch_id=options.batch_id,
            units=options.units,
        )


def _made(key: Key, arguments: dict[str, Any]) -> str | None:
    return key(arguments) if callable(key) else key


def _policy(policy: Policy | str) -> Policy:
    try:
        return Policy(policy)
    except ValueError:
        raise InvalidOption(f"policy {policy!r}: allowed are {', '.join(Policy)}") from None
