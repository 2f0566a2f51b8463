"""Evaluate every alert rule, each by itself (R23).

    per rule ──▶ evaluate_rule ──▶ evaluated: alerts fired, cooled, armed again
                      ├──its query fails──▶ a warning; its alerts stay as they are
                      └──it takes too long, or loses its connection──▶ a warning, and the next rule

The conditions are SQL functions, rule_<name>; livewell.alert_rules() lists them. Here is only the
loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from livewell.db import Database
from livewell.errors import DatabaseError

log = structlog.get_logger("livewell.rules")

_RULES = "SELECT name FROM livewell.alert_rules() ORDER BY level, name"
_EVALUATE = "SELECT answer, fired, cooled, rearmed FROM livewell.evaluate_rule(%s)"
_WARN = "SELECT livewell.warn('alerts.rules', %s, %s)"
_RULE_SECONDS = 5.0  # far less than a minute: some sixteen rules, and most take a millisecond


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What one evaluation came to."""

    rules: int
    failed: tuple[str, ...]
    fired: int
    cooled: int
    rearmed: int


async def evaluate(database: Database, *, rules: Sequence[str] | None = None) -> Evaluated:
    """Ask every rule, or these; raises DatabaseError only when none could be asked."""
    names = [row[0] for row in await database.call(_RULES)] if rules is None else list(rules)
    failed: list[str] = []
    counts = [0, 0, 0]
    trouble: DatabaseError | None = None
    for name in names:
        try:
            answer, *moved = (await database.call(_EVALUATE, (name,), seconds=_RULE_SECONDS))[0]
        except DatabaseError as error:
            trouble = error
            failed.append(name)
            log.warning("a rule was not evaluated", rule=name, error=str(error))
            continue
        if answer == "failed":
            failed.append(name)
        counts = [count + n for count, n in zip(counts, moved, strict=True)]
    if trouble is not None:
        if len(failed) == len(names):
            raise trouble
        what = trouble.sqlstate or type(trouble).__name__
        await database.call(_WARN, (f"rules could not be evaluated: {what}", f"{', '.join(failed)}: {trouble}"))
    return Evaluated(len(names), tuple(failed), *counts)
