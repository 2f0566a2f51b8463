"""What capabilities do in a worker, and how a worker is put together from it.

WorkerContext ──▶ each capability's work() ──▶ Work: duties, tasks, what runs beside, what hears
                                                 │
tasks and schedules of the app ──────────────────┴──▶ one Scheduler, one Worker
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from livewell.capability import capabilities, offered
from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import ConfigurationError
from livewell.limits.walls import Walls
from livewell.queue.definition import TaskDefinition
from livewell.queue.worker.worker import Worker
from livewell.schedule.definition import Duty, ScheduleDefinition
from livewell.schedule.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What a capability may use in one worker.

    transforms: the app's, by name; declared: what capabilities declared on the app, by attribute.
    """

    database: Database
    nudger: Nudger
    queues: tuple[str, ...]
    holder: str
    walls: Walls
    transforms: Mapping[str, Callable[..., Any]]
    declared: Mapping[str, Any] = field(default_factory=dict)

    def works(self, prefix: str) -> bool:
        """True if the worker has queues whose names begin so."""
        return any(queue.startswith(prefix) or queue == "*" for queue in self.queues)


@dataclass(frozen=True, slots=True)
class Work:
    """What a capability does in one worker.

    duties   periodic work; only one of all workers does it at a time
    tasks    what this worker can run, by the name that its jobs have
    beside   runs until it is cancelled, while the worker works
    hear     is called with the name of every nudge
    can_use  (queue, credential) → whether this process may make the queue's calls with it
    """

    duties: Sequence[Duty] = ()
    tasks: Mapping[str, TaskDefinition] = field(default_factory=dict)
    beside: Sequence[Callable[[], Awaitable[None]]] = ()
    hear: Sequence[Callable[[str], None]] = ()
    can_use: Callable[[str, str], bool] | None = None


def default_queues(tasks: Mapping[str, TaskDefinition]) -> list[str]:
    """What a worker works that was not told its queues.

    Those of the tasks, then of capabilities.
    """
    named = {definition.policy.queue for definition in tasks.values()}
    offered_queues = [queue for one in capabilities() for queue in one.queues if queue not in named]
    return [*sorted(named), *offered_queues]


def make_worker(
    context: WorkerContext,
    tasks: Mapping[str, TaskDefinition],
    schedules: Iterable[ScheduleDefinition],
    *,
    slots: int | None,
    name: str | None,
    on_hang: Callable[[], None] | None,
) -> Worker:
    """A worker for the app's tasks and schedules and for everything that capabilities do."""
    works = [(one.name, work(context)) for one, work in offered("work")]
    duties = [(of, duty) for of, work in works for duty in work.duties]
    _refuse_twins(
        "schedule", [*(("the app", one.name) for one in schedules), *((of, duty.name) for of, duty in duties)]
    )
    _refuse_twins(
        "task", [*(("the app", one) for one in tasks), *((of, one) for of, work in works for one in work.tasks)]
    )
    definitions = [*schedules, *(duty.definition() for _, duty in duties)]
    scheduler = Scheduler(context.database, context.nudger, definitions, holder=context.holder)
    listeners = [scheduler.wake, *(hear for _, work in works for hear in work.hear)]
    judges = [work.can_use for _, work in works if work.can_use is not None]

    def hear(heard: str) -> None:
        for listener in listeners:
            listener(heard)

    return Worker(
        context.database,
        {**tasks, **{kind: task for _, work in works for kind, task in work.tasks.items()}},
        queues=context.queues,
        beside=[scheduler.run, *(run for _, work in works for run in work.beside)],
        hear=hear,
        settle=scheduler.settle,
        nudger=context.nudger,
        slots=slots,
        name=name,
        on_hang=on_hang,
        walls=context.walls,
        can_use=lambda queue, credential: all(judge(queue, credential) for judge in judges),
    )


def _refuse_twins(what: str, named: Iterable[tuple[str, str]]) -> None:
    owners: dict[str, str] = {}
    for owner, name in named:
        if name in owners:
            raise ConfigurationError(
                f"{what} {name}: both {owners[name]} and {owner} have one of that name; rename one of them"
            )
        owners[name] = owner
