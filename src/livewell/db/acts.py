"""Who is acting, and statements that write down what they do (R25).

    a request ──▶ acting("key:k1") ──▶ an admin's method ──▶ audited(…): the act and its line in livewell.audit, one transaction

The actor is a context variable: it belongs to one request or one command, and admins need not carry
it through every call.
"""

from __future__ import annotations

import json
from contextvars import ContextVar

# Around a call that is a constant of ours; what people say is only ever a parameter.
_DONE = "WITH done AS MATERIALIZED (SELECT "
_RECORDED = " AS answer) SELECT d.answer, livewell.record_act(%s, %s, %s, %s::jsonb, d.answer::text) FROM done d"

_actor: ContextVar[str] = ContextVar("livewell_actor", default="python")


def act_as(actor: str) -> None:
    """From here on, in this task, acts are this one's."""
    _actor.set(actor)


def actor() -> str:
    """Whose acts these are: key:<id>, jwt:<issuer>:<sub>, cli:<user>@<machine>, or python."""
    return _actor.get()


def audited(call: str) -> str:
    """The statement that calls a function and records what it answered.

    Its parameters are the function's, then those of line().
    """
    return _DONE + call + _RECORDED


def line(action: str, subject: str, **arguments: object) -> tuple[str, str, str, str]:
    """What audited() wants to know beside the function's own parameters."""
    return actor(), action, subject, json.dumps(arguments)
