"""Who did what? Every act by page, HTTP or command line, the newest first."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from livewell.errors import InvalidOption
from livewell.operations.audit import Audit, Filters
from livewell.server.answers.json_answer import cursor
from livewell.server.answers.problems import Problem
from livewell.server.dashboard.visit import PAGE_ROWS, Loaded, Panel, Visit, loaded

_NAMES = ("actor", "action", "subject", "since", "until")


async def panels(visit: Visit) -> list[Panel]:
    """Filters of the address, and a page of acts."""
    asked = {name: visit.asked(name) for name in _NAMES}
    given = {name: text for name, text in asked.items() if text is not None}
    try:
        wish = Filters(**asked)
    except InvalidOption as error:
        raise Problem(400, str(error), word="invalid", field="query") from None

    async def filters() -> Loaded:
        return loaded(asked={name: text or "" for name, text in asked.items()}, is_filtered=bool(given))

    async def load() -> Loaded:
        found = await Audit(visit.database).acts(wish, before=visit.after or None, limit=PAGE_ROWS)
        return loaded(
            acts=[_shown(row, given) for row in found.rows],
            next=None if found.next is None else cursor(found.next),
            query=urlencode(given),
            is_empty=not found.rows and found.next is None,
        )

    empty = "Nothing that was done matches." if given else "Nobody has done anything by hand yet."
    return [
        Panel("filters", "Which acts", "audit_filter.html", filters),
        Panel("audit", "The newest first", "audit.html", load, empty),
    ]


def _shown(row: dict[str, Any], given: dict[str, str]) -> dict[str, Any]:
    """A row with what changed, and the addresses that show all of the same actor, action or subject."""
    links = {name: f"?{urlencode({**given, name: row[name]})}" for name in ("actor", "action", "subject")}
    return {**row, "changes": changes(row["before"], row["after"]), "given": facts(row["arguments"]), "links": links}


def changes(before: object, after: object) -> list[tuple[str, str | None, str | None]]:
    """What differs: name, before, after. None: it is not known, or was not there."""
    old, new = (one if isinstance(one, dict) else {} for one in (before, after))
    names = [name for name in {**old, **new} if name not in old or name not in new or old[name] != new[name]]
    return [(name, *(_text(side[name]) if name in side else None for side in (old, new))) for name in names]


def facts(document: object) -> list[tuple[str, str]]:
    """Names and values, as texts."""
    return [(name, _text(value)) for name, value in document.items()] if isinstance(document, dict) else []


def _text(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
