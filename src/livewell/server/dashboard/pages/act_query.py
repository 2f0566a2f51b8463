"""The filter of a page's address, and the address of the page that asks before an act on many.

To offer "all that match" on a page, give its panel these two and include "bulk_form.html":

    bulk_filter     ActFilter.to_query(): what the page shows
    bulk_actions    [("redrive", "Redrive all that match")]: the actions, with the words of buttons
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlencode

from livewell.db import Database
from livewell.errors import InvalidOption
from livewell.queue.act_filter import ActFilter, needs_now
from livewell.server.answers.problems import Problem

REASONS = ("attempts", "refused", "payload", "lost")


async def filter_of(database: Database, query: Mapping[str, str]) -> ActFilter:
    """The filter of an address; how long ago is counted from the database's clock."""
    try:
        return ActFilter.from_query(query, await database_now(database) if needs_now(query) else None)
    except InvalidOption as error:
        raise Problem(400, str(error), word="invalid") from None


async def database_now(database: Database) -> datetime:
    """What the database's clock says."""
    now: datetime = (await database.call("SELECT livewell.now()"))[0][0]
    return now


def address(path: str, fields: Mapping[str, str]) -> str:
    """A path with these fields as its query."""
    return f"{path}?{urlencode(fields)}" if fields else path
