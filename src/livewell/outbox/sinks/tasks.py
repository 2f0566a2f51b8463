"""An event becomes a job of a task.

    batch ──one call, all or none──▶ delivered
                ├──no connection──▶ nothing settled, the sink is away
                ├──no answer──────▶ all settled unknown, and the sink is away
                └──an event that no job can carry──▶ one by one: that one is refused

The unique key of the job is the event's id, so a repeat while the job waits or runs is the same
job. After it has ended a repeat is a job again: a task whose effect must happen once keeps the id
in its own transaction. Jobs of one key are made in their order; they run in it only where the queue
lets one job of a group run at a time (`group_by_key`, and a group limit of 1).
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from livewell.errors import (
    ConfigurationError,
    DatabaseConflict,
    DatabaseUnavailable,
    InvalidOption,
    InvalidPayload,
    LivewellError,
)
from livewell.model import Policy
from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict, lanes
from livewell.outbox.sinks.cloud_events import document
from livewell.outbox.sinks.kind import SinkKind, SinkParts, Submit
from livewell.outbox.sinks.options import Bytes, Options
from livewell.outbox.sinks.oversize import oversize
from livewell.queue.enqueue import Request


class TaskOptions(Options):
    """Which task, in which queue; it gets one argument, `event`: a CloudEvents document."""

    task: str = Field(min_length=1, max_length=200)
    queue: str = Field(min_length=1, max_length=200)
    argument: str = Field(default="event", pattern=r"^[a-z_][a-z0-9_]{0,62}$")
    group_by_key: bool = False
    event_bytes_max: Bytes = 100_000


class TaskSink:
    """Enqueues through the app that runs the relay."""

    dedupes = False  # only while the job lives

    def __init__(self, parts: SinkParts) -> None:
        if parts.context.submit is None:
            raise ConfigurationError(
                f"sink of kind {parts.kind}: it enqueues jobs, and whoever made it gave no way to do so: "
                "make_sink(…, SinkContext(submit=…))"
            )
        self._submit: Submit = parts.context.submit
        self._options: TaskOptions = parts.options
        self.event_bytes_max: int | None = parts.options.event_bytes_max

    async def open(self) -> None:
        """The app has its connections already."""

    async def close(self) -> None:
        """Nothing is held."""

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Enqueue all of them in one call, or one by one if one of them is no job."""
        taken: list[Event] = []
        for lane in lanes(events):
            for event in lane:
                refusal = oversize(event.payload.encode(), self.event_bytes_max, "tasks")
                if refusal is not None:
                    settle(event, refusal)
                    break
                taken.append(event)
        taken.sort(key=lambda event: event.number)
        try:
            await self._enqueue(taken, settle)
        except (InvalidOption, InvalidPayload):
            await self._one_by_one(taken, settle)

    async def _one_by_one(self, events: Sequence[Event], settle: Settle) -> None:
        for lane in lanes(events):
            for event in lane:
                try:
                    await self._enqueue([event], settle)
                except (InvalidOption, InvalidPayload) as error:
                    settle(event, Outcome(Verdict.REFUSED, f"no job can carry it: {error}"[:300]))
                    break

    async def _enqueue(self, events: Sequence[Event], settle: Settle) -> None:
        if not events:
            return
        try:
            await self._submit([self._request(event) for event in events])
        except (InvalidOption, InvalidPayload):
            raise
        except DatabaseUnavailable as error:
            if error.was_sent:
                for event in events:
                    settle(event, Outcome(Verdict.UNKNOWN, "the database did not answer"))
            raise SinkAway("the database takes no jobs now; livewell doctor looks why") from error
        except DatabaseConflict as error:
            raise SinkAway("the database ended the transaction again and again") from error
        except LivewellError as error:  # no such queue: nothing was enqueued
            raise SinkAway(f"no job of task {self._options.task} can be enqueued: {error}"[:300]) from error
        for event in events:
            settle(event, DELIVERED)

    def _request(self, event: Event) -> Request:
        return Request(
            queue=self._options.queue,
            kind=self._options.task,
            payload=f'{{"{self._options.argument}":{document(event).decode()}}}',
            unique_key=event.id,
            group_key=(event.key or None) if self._options.group_by_key else None,
            policy=Policy.KEEP,
            trace=event.trace,
        )


KIND = SinkKind(options=TaskOptions, make=TaskSink, has_address=False)
