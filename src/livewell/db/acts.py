"""Who is acting and from where, and statements that write down what they do (R25).

    a request ──▶ act_as("key:k1", "page 192.0.2.7") ──▶ an admin's method
                      ──▶ audited(…): the act and its line in livewell.audit, one transaction

Actor and origin are context variables: they belong to one request or one command, and admins need
not carry them through every call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass

# Around calls that are constants of ours; what people say is only ever a parameter.
_DONE = "WITH done AS MATERIALIZED (SELECT {call} AS answer) SELECT d.answer, {kept} FROM done d"
_COMPARED = (
    "WITH was AS MATERIALIZED ({before}), done AS MATERIALIZED ("
    "SELECT {call} AS answer, w.state FROM (SELECT) AS o LEFT JOIN was AS w (state) ON true"
    ") SELECT d.answer, {kept}, d.state FROM done d"
)
_LOCATED = "WITH place AS MATERIALIZED (SELECT set_config('livewell.origin', %s, true)) SELECT {call} FROM place"


@dataclass(slots=True)
class _Act:
    """An act that is under way; the tasks that it begins share it."""

    has_sent: bool = False


_actor: ContextVar[str] = ContextVar("livewell_actor", default="python")
_origin: ContextVar[str] = ContextVar("livewell_origin", default="python")
_under_way: ContextVar[_Act | None] = ContextVar("livewell_act", default=None)

Line = tuple[str, str, str, str, str, str | None, int | None]


def act_as(actor: str, origin: str = "python") -> None:
    """From here on, in this task, acts are this one's.

    origin: page, http, cli or python, and the address of the request where there is one.
    """
    _actor.set(actor)
    _origin.set(origin)
    _under_way.set(_Act())


def sending() -> None:
    """A statement goes out: from here on it may have been done, whatever becomes of the answer."""
    act = _under_way.get()
    if act is not None:
        act.has_sent = True


def has_sent() -> bool:
    """True if the act that is under way has sent a statement, or none is known to be under way."""
    act = _under_way.get()
    return act is None or act.has_sent


def actor() -> str:
    """Whose acts these are: key:<id>, jwt:<issuer>:<sub>, cli:<user>@<machine>, or python."""
    return _actor.get()


def origin() -> str:
    """From where they come: page 192.0.2.7, http 192.0.2.7, cli, or python."""
    return _origin.get()


def audited(call: str, *, before: str | None = None, after: str | None = None, count: str | None = None) -> str:
    """The statement that calls a function and records what it answered.

    before: a query of one jsonb, what is there before the call. If it has FOR NO KEY UPDATE, nobody
    changes the row between this look and the call. If it finds nothing, no `after` is recorded.
    after: an expression of d.answer and d.state (what was before); without it line() says it.
    count: an expression of d.answer, how many were changed; without it line() says it.

    The parameters are those of `before`, those of the function, then line(). The row: what the
    function answered, the line, and with `before` what was there.
    """
    if before is None:
        return _DONE.format(call=call, kept=recorded("d.answer::text", count=count))
    there = f"CASE WHEN d.state IS NOT NULL THEN coalesce(%s::jsonb, {after or 'NULL'}) END"
    kept = recorded("d.answer::text", before="d.state", after=there, count=count)
    return _COMPARED.format(before=before, call=call, kept=kept)


def recorded(answer: str, *, before: str = "NULL", after: str = "%s::jsonb", count: str | None = None) -> str:
    """The call that writes the line, for a statement that audited() cannot make.

    All are expressions; `after` has one parameter. The parameters are those of line().
    """
    n = "%s::bigint" if count is None else f"coalesce(%s::bigint, {count})"
    return f"livewell.audit_act(%s, %s, %s, %s, %s::jsonb, {answer}, {before}, {after}, {n})"


def line(
    action: str,
    subject: str,
    *,
    after: Mapping[str, object] | None = None,
    n: int | None = None,
    **arguments: object,
) -> Line:
    """What audited() wants to know beside the other parameters."""
    changed = None if after is None else json.dumps(after)
    return actor(), origin(), action, subject, json.dumps(arguments), changed, n


def located(call: str) -> str:
    """The statement that calls a function which records by itself, and reads the origin from a setting.

    Its first parameter is origin().
    """
    return _LOCATED.format(call=call)
