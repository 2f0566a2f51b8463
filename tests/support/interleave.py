"""All interleavings of a few sessions, each on its own connection, with blocked steps noticed and continued.

    idle ──step──▶ running ──answer──▶ idle
                      ├──waits for a lock of another session──▶ blocked ──the other goes on──▶ running
                      └──error──▶ rolled back, its remaining steps are skipped

One step runs at a time. After each, every session is idle or blocked by another of ours; that is
read from pg_blocking_pids(), so nothing sleeps and nothing depends on timing. A session that is
blocked when its turn comes takes its turn as soon as it is free.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import psycopg

Row = tuple[Any, ...]
Given = Mapping[str, Any]
Connection = psycopg.AsyncConnection[Row]

_POLL_SECONDS = 0.001
_GIVE_UP_SECONDS = 20.0
_INTERLEAVINGS_MAX = 2000
_ENOUGH = 5


@dataclass(frozen=True, slots=True)
class Session:
    """Statements to run in order; parameters like %(worker)s come from what the set-up gave.

    In one transaction, unless told otherwise.
    """

    name: str
    steps: tuple[str, ...]
    transaction: bool = True

    @property
    def turns(self) -> tuple[str, ...]:
        """The steps, and the commit as the last."""
        return (*self.steps, "COMMIT") if self.transaction else self.steps


def session(name: str, *steps: str, transaction: bool = True) -> Session:
    """One session."""
    return Session(name, steps, transaction)


@dataclass(slots=True)
class Outcome:
    """What one interleaving came to."""

    order: str
    given: Given
    answers: dict[str, list[list[Row]]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)  # session → SQLSTATE
    waited: set[str] = field(default_factory=set)  # sessions that were blocked at least once

    def answer(self, name: str, step: int = 0) -> list[Row]:
        """The rows of one step; none if it failed or was skipped."""
        answers = self.answers.get(name, [])
        return answers[step] if step < len(answers) else []


Prepare = Callable[[], Given]
Judge = Callable[[Outcome], str | None]


async def violations(dsn: str, sessions: Sequence[Session], *, prepare: Prepare, judge: Judge) -> list[str]:
    """Run every interleaving on fresh rows.

    Answers a line for each that the judge objects to, and stops when a few are found.
    """
    found: list[str] = []
    runs = 0
    async with AsyncExitStack() as stack:
        players = [await stack.enter_async_context(_player(dsn, one)) for one in sessions]
        observer = await stack.enter_async_context(await psycopg.AsyncConnection.connect(dsn, autocommit=True))
        for order in orders([len(one.turns) for one in sessions]):
            runs += 1
            assert runs <= _INTERLEAVINGS_MAX, "too many interleavings: use fewer or shorter sessions"
            outcome = await _play(players, order, observer, prepare())
            if objection := judge(outcome):
                found.append(f"[{outcome.order}] {objection}")
                if len(found) == _ENOUGH:
                    break
    return found


def orders(lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every way to merge the turns of the sessions, each keeping its own order."""
    if not any(lengths):
        yield ()
        return
    for index, left in enumerate(lengths):
        if left:
            rest = [*lengths[:index], left - 1, *lengths[index + 1 :]]
            for tail in orders(rest):
                yield (index, *tail)


class _Player:
    """One session on its connection."""

    def __init__(self, what: Session, connection: Connection) -> None:
        self.what = what
        self.connection = connection
        self.pid = connection.info.backend_pid
        self.running: asyncio.Task[list[Row]] | None = None
        self.due = 0  # turns it was given
        self.taken = 0  # turns it has started
        self.failed = False

    def begin(self) -> None:
        self.running, self.due, self.taken, self.failed = None, 0, 0, False

    async def step(self, given: Given) -> list[Row]:
        statement = self.what.turns[self.taken - 1]
        if self.what.transaction and self.taken == 1:
            await self.connection.execute("BEGIN")
        cursor = await self.connection.execute(statement.encode(), given if "%(" in statement else None)
        return await cursor.fetchall() if cursor.description else []


class _player:  # noqa: N801 - reads as a function: async with _player(…)
    def __init__(self, dsn: str, what: Session) -> None:
        self._dsn, self._what = dsn, what

    async def __aenter__(self) -> _Player:
        connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        # Two that wait for each other shall be told soon; the default is a second.
        await connection.execute("SET deadlock_timeout = '20ms'")
        self._player = _Player(self._what, connection)
        return self._player

    async def __aexit__(self, *_: object) -> None:
        await self._player.connection.close()


async def _play(players: Sequence[_Player], order: Sequence[int], observer: Connection, given: Given) -> Outcome:
    outcome = Outcome(" ".join(players[index].what.name for index in order), given)
    for player in players:
        player.begin()
        outcome.answers[player.what.name] = []
    for index in order:
        players[index].due += 1
        await _advance(players, observer, outcome)
    assert all(player.running is None for player in players), f"[{outcome.order}] a session is blocked for ever"
    return outcome


async def _advance(players: Sequence[_Player], observer: Connection, outcome: Outcome) -> None:
    """Start what is due and let everything run until each session is idle or blocked."""
    give_up = time.monotonic() + _GIVE_UP_SECONDS
    while True:
        for player in players:
            if player.running is None and player.taken < player.due and not player.failed:
                player.taken += 1
                player.running = asyncio.create_task(player.step(outcome.given))
                break  # one at a time: the next starts when this one is done or blocked
        running = [player for player in players if player.running is not None]
        if not running:
            return
        assert time.monotonic() < give_up, f"[{outcome.order}] no end within {_GIVE_UP_SECONDS:g} s"
        await asyncio.wait(
            [p.running for p in running if p.running], timeout=_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        finished = [player for player in running if player.running is not None and player.running.done()]
        for player in finished:
            await _collect(player, outcome)
        if finished:
            continue
        blocked = await _blocked(observer, players)
        if all(player.pid in blocked for player in running):
            outcome.waited |= {player.what.name for player in running}
            startable = any(p.running is None and p.taken < p.due and not p.failed for p in players)
            # Who waits for one that waits too is in a deadlock; the server will end it.
            idle = {p.pid for p in players if p.running is None}
            if not startable and any(blocked[p.pid] & idle for p in running):
                return


async def _collect(player: _Player, outcome: Outcome) -> None:
    task, player.running = player.running, None
    assert task is not None
    try:
        outcome.answers[player.what.name].append(task.result())
    except psycopg.Error as error:
        player.failed = True
        outcome.errors[player.what.name] = error.sqlstate or str(error)
        await player.connection.rollback()


async def _blocked(observer: Connection, players: Sequence[_Player]) -> dict[int, set[int]]:
    """Who waits for whom, among ours."""
    pids = [player.pid for player in players]
    cursor = await observer.execute(
        "SELECT pid, blocker FROM unnest(%s::int[]) AS pid, unnest(pg_blocking_pids(pid)) AS blocker", (pids,)
    )
    waits: dict[int, set[int]] = {}
    for pid, blocker in await cursor.fetchall():
        if blocker in pids:
            waits.setdefault(pid, set()).add(blocker)
    return waits
