"""One Postgres connection with a deadline on every call, and Postgres errors turned into ours.

A half-open connection ignores every TCP setting, and cancelling a psycopg call costs ten seconds
more (its own cancel request must fail first). So a deadline here does neither: it shuts the socket
down, libpq sees the end of the stream, and the call fails at once as DatabaseUnavailable. The
connection is then closed and never used again.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors as pg

from livewell.errors import (
    BatchSealed,
    DatabaseConflict,
    DatabaseError,
    DatabaseUnavailable,
    InvalidDefinition,
    InvalidOption,
    InvalidPayload,
    LivewellError,
    ReplicaRefused,
    UnknownLimiter,
    UnknownQueue,
    UnknownType,
)
from livewell.telemetry.redact import redact

Row = tuple[Any, ...]
Connection = psycopg.AsyncConnection[Row]
Cursor = psycopg.AsyncCursor[Row]

_STATEMENT_CHARS_MAX = 120
_WRAPPED_MAX = 4  # SQLAlchemy wraps its adapter's error, which wraps the driver's
_CONFLICTS = ("40001", "40P01")
_ENDED = ("25P03", "25P04", "57P05")  # the server ended us: idle in transaction, transaction or session too long
_OURS: dict[str, type[LivewellError]] = {
    "LW001": ReplicaRefused,
    "25006": ReplicaRefused,
    "LW002": UnknownQueue,
    "LW003": InvalidOption,
    "LW004": InvalidOption,
    "LW005": InvalidPayload,
    "LW006": UnknownLimiter,
    "LW007": BatchSealed,
    "LW020": InvalidDefinition,
    "LW022": UnknownType,
    "22P05": InvalidPayload,
    "22P02": InvalidPayload,
}


class Deadline:
    """Cuts the connection after so many seconds, and reports that it did.

    The report is needed because the error that libpq then gives looks like a crash of the server.
    """

    def __init__(self, connection: Connection, seconds: float, running: str) -> None:
        self._connection = connection
        self._seconds = seconds
        self._running = running
        self._passed = False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._cut)

    def cancel(self) -> None:
        """It is over in time, or failed."""
        self._timer.cancel()

    def explain(self, doing: str) -> DatabaseUnavailable | None:
        """What to raise instead of libpq's words, if it was we who cut."""
        if not self._passed:
            return None
        statement = redact(" ".join(self._running.split()))[:_STATEMENT_CHARS_MAX]
        return DatabaseUnavailable(
            f"{doing}: no answer within our own deadline of {self._seconds:g} s, so we closed the connection"
            + (f"; it was running: {statement}" if statement else "")
        )

    def _cut(self) -> None:
        self._passed = True
        sever(self._connection)


@contextmanager
def deadline(connection: Connection, seconds: float, doing: str = "call", running: str = "") -> Iterator[None]:
    """Cut the connection if the block takes longer than this.

    The error then names the deadline and what was running.
    """
    limit = Deadline(connection, seconds, running)
    try:
        yield
    except psycopg.Error as error:
        ours = limit.explain(doing)
        if ours is None:
            raise
        raise ours from error
    finally:
        limit.cancel()


def sever(connection: Connection) -> None:
    """Shut the socket down under libpq; whoever waits on it fails at once."""
    try:
        duplicate = os.dup(connection.fileno())
    except (psycopg.Error, OSError):
        return  # it is closed already, which is all we wanted
    with socket.socket(fileno=duplicate) as end:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # not connected any more


@contextmanager
def translated(doing: str, *, foreign: bool = False) -> Iterator[None]:
    """Raise our errors instead of Postgres's.

    An error of the caller's own (foreign) SQL passes as it is.
    """
    try:
        yield
    except psycopg.Error as error:
        ours = translate(error, doing)
        if ours is None and foreign:
            raise
        raise ours or other(error, doing) from error


def other(error: psycopg.Error, doing: str) -> DatabaseError:
    """An error that means nothing in particular to us."""
    return DatabaseError(f"{doing}: {redact(str(error))}", sqlstate=error.sqlstate or "")


def translate(error: psycopg.Error, doing: str) -> LivewellError | None:
    """What a Postgres error means to a caller, or None when it is the caller's own SQL that failed."""
    state = error.sqlstate or ""
    text = redact(error.diag.message_primary or str(error))
    if state in _CONFLICTS:
        return DatabaseConflict(f"{doing}: {text}", sqlstate=state)
    if state in _OURS:
        return _OURS[state](f"{doing}: {text}")
    if isinstance(error, pg.CheckViolation) and (error.diag.table_name or "") in {"job", "queue", "dead_job"}:
        return InvalidOption(f"{doing}: refused by {error.diag.constraint_name}: {text}")
    # An answer without a state is libpq's own word for a connection that broke in the middle of it:
    # psycopg makes a bare DatabaseError of that.
    broken = not state and type(error) is psycopg.DatabaseError
    if broken or state in _ENDED or isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return DatabaseUnavailable(f"{doing}: {text}", sqlstate=state)
    return None


def refusal(error: BaseException) -> LivewellError | None:
    """What one of our functions refused, whichever library wrapped it; None for any other error.

    A library's own error, and a conflict that its retries look for, stay what they are.
    """
    found: LivewellError | None = None
    one: BaseException | None = error
    for _ in range(_WRAPPED_MAX):
        if one is None:
            break
        state = getattr(one, "sqlstate", None) or getattr(one, "pgcode", None)
        if isinstance(state, str) and state.startswith("LW") and state in _OURS:
            said = getattr(getattr(one, "diag", None), "message_primary", None) or getattr(one, "message", None)
            found = _OURS[state](redact(str(said or one)))
        one = getattr(one, "orig", None) or one.__cause__
    return found


def has_rows(cursor: Cursor) -> bool:
    """Whether the statement answers rows.

    cursor.description says so too, but describes each column for it: 15 µs.
    """
    return cursor.pgresult is not None and cursor.pgresult.status == psycopg.pq.ExecStatus.TUPLES_OK


async def connect(conninfo: str, *, seconds: float, prepare: bool, options: str = "") -> Connection:
    """Open one autocommit connection within this many seconds."""
    arguments: dict[str, Any] = {
        "connect_timeout": max(2, round(seconds)),
        "application_name": "livewell",
        "client_encoding": "utf8",
    }
    if options:
        arguments["options"] = options
    with translated("connect"):
        try:
            async with asyncio.timeout(seconds + 1):
                return await psycopg.AsyncConnection.connect(
                    conninfo, autocommit=True, prepare_threshold=5 if prepare else None, **arguments
                )
        except TimeoutError as error:
            raise DatabaseUnavailable(f"connect: no answer within {seconds:g} s") from error
