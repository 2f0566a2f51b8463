"""The filter of a page's address, and the address of the page that asks before an act on many.

To offer "all that match" on a page, give its panel these two and include "bulk_links.html":

    bulk_filter     JobFilter.to_query(): what the page shows
    bulk_actions    [("redrive", "Redrive all that match")]: the actions, with the words of buttons
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlencode

from livewell.db import Database
from livewell.errors import InvalidOption
from livewell.queue.job_filter import JobFilter
from livewell.server.answers.problems import Problem

REASONS = ("attempts", "refused", "payload", "lost")


async def filter_of(database: Database, query: Mapping[str, str]) -> JobFilter:
    """The filter of an address, at rest; how long ago is counted from the database's clock."""
    try:
        return await at_rest(database, JobFilter.from_query(query))
    except InvalidOption as error:
        raise Problem(400, str(error), word="invalid") from None


async def at_rest(database: Database, wanted: JobFilter) -> JobFilter:
    """The same filter with instants, for an address or a form that is sent later."""
    return wanted.at_rest(await database_now(database) if wanted.has_age else None)


async def database_now(database: Database) -> datetime:
    """What the database's clock says."""
    now: datetime = (await database.call("SELECT livewell.now()"))[0][0]
    return now


def address(path: str, fields: Mapping[str, str]) -> str:
    """A path with these fields as its query."""
    return f"{path}?{urlencode(fields)}" if fields else path
