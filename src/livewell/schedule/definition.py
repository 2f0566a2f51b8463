"""What a schedule is made of: a name, a rule, a handler, and what becomes of missed slots."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from livewell.duration import Duration, seconds
from livewell.errors import ConfigurationError
from livewell.schedule.cron import CronError, check_cron
from livewell.schedule.due_times import Missed, Rule

EVERY_SECONDS_MIN, EVERY_SECONDS_MAX = 0.01, 400 * 86400.0
TIMEOUT_SECONDS_MAX = 86400.0
OURS = "livewell."  # names of what Livewell does itself begin so
_WALK = "walk."  # and those of scheduled types, see refresh/sql/functions/due/sync_walks.sql
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,53}")


@dataclass(frozen=True, slots=True)
class Run:
    """What a handler may ask for, with a parameter called `run`: which slot this is."""

    schedule: str
    due_at: datetime  # of a run that was asked for: when it was
    asked: bool
    id: int


@dataclass(frozen=True, slots=True)
class Duty:
    """Periodic work of Livewell itself.

    It shows in the same list and the same history as any schedule; what it returns is the number of
    rows it touched.
    """

    name: str
    every_seconds: float
    work: Callable[[], Awaitable[int | None]]
    timeout_seconds: float = 600.0

    def definition(self) -> ScheduleDefinition:
        """As a schedule: at once when it is new, and once after an outage."""
        return ScheduleDefinition(
            name=self.name,
            function=self.work,
            rule=Rule("interval", every=timedelta(seconds=self.every_seconds)),
            at=None,
            missed="once",
            timeout_seconds=self.timeout_seconds,
            is_async=True,
            takes_run=False,
            internal=True,
        )


@dataclass(frozen=True, slots=True)
class ScheduleDefinition:
    """Everything about a schedule. `at`: the instant of a one-off."""

    name: str
    function: Callable[..., Any]
    rule: Rule
    at: datetime | None
    missed: Missed
    timeout_seconds: float
    is_async: bool
    takes_run: bool
    internal: bool = False


def declare(
    known: Collection[str],
    function: Callable[..., Any],
    name: str | None,
    *,
    cron: str | None,
    zone: str,
    every: Duration | None,
    at: datetime | None,
    missed: Missed,
    timeout: Duration,
) -> dict[str, ScheduleDefinition]:
    """A schedule as app.schedule() takes it, by its name, which must not be known yet."""
    of = f"schedule {name or function.__name__}:"
    definition = define(
        function,
        name=name,
        cron=cron,
        zone=zone,
        every_seconds=None if every is None else seconds(every, f"{of} every"),
        at=at,
        missed=missed,
        timeout_seconds=seconds(timeout, f"{of} timeout"),
    )
    if definition.name in known:
        raise ConfigurationError(f"schedule {definition.name}: declared twice; give one of them name=…")
    return {definition.name: definition}


def define(
    function: Callable[..., Any],
    *,
    name: str | None,
    cron: str | None,
    zone: str,
    every_seconds: float | None,
    at: datetime | None,
    missed: Missed,
    timeout_seconds: float,
) -> ScheduleDefinition:
    """Check everything that could be wrong while the app is still being declared."""
    chosen = function.__name__ if name is None else name
    what = f"schedule {chosen}"
    if not _NAME.fullmatch(chosen) or chosen.startswith((OURS, _WALK)):
        raise ConfigurationError(
            f"schedule {chosen!r}: 1 to 54 of a-z 0-9 _ . - are allowed, beginning with a letter and not with "
            f"{OURS!r} or {_WALK!r}; give another with name=…"
        )
    if sum(given is not None for given in (cron, every_seconds, at)) != 1:
        raise ConfigurationError(f"{what}: exactly one of a cron text, every=… and at=… is needed")
    if missed not in ("skip", "once", "all"):
        raise ConfigurationError(f"{what}: missed={missed!r}: allowed are skip, once and all")
    if not 0.01 <= timeout_seconds <= TIMEOUT_SECONDS_MAX:
        raise ConfigurationError(f"{what}: timeout {timeout_seconds:g} s: 10 ms to a day are allowed")
    return ScheduleDefinition(
        name=chosen,
        function=function,
        rule=_rule(what, cron, zone, every_seconds, at),
        at=at,
        missed=missed,
        timeout_seconds=timeout_seconds,
        is_async=inspect.iscoroutinefunction(function),
        takes_run=_takes_run(what, function),
    )


def _rule(what: str, cron: str | None, zone: str, every_seconds: float | None, at: datetime | None) -> Rule:
    if cron is not None:
        try:
            check_cron(cron, zone)
        except CronError as error:
            raise ConfigurationError(f"{what}: {error}") from None
        return Rule("cron", cron=cron, zone=zone)
    if every_seconds is not None:
        if not EVERY_SECONDS_MIN <= every_seconds <= EVERY_SECONDS_MAX:
            raise ConfigurationError(f"{what}: every {every_seconds:g} s: 10 ms to 400 days are allowed")
        return Rule("interval", every=timedelta(seconds=every_seconds))
    if at is None or at.tzinfo is None:
        raise ConfigurationError(f"{what}: at={at}: an instant needs a time zone, for example datetime(…, tzinfo=UTC)")
    return Rule("once")


def _takes_run(what: str, function: Callable[..., Any]) -> bool:
    parameters = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    needed = [one.name for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    if needed not in ([], ["run"]):
        raise ConfigurationError(
            f"{what}: its handler needs {', '.join(needed)}; nobody gives it anything but `run`, the run it is "
            "called for"
        )
    return needed == ["run"]
