"""What does each part look like? Every component of the dashboard, in every state, on one page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from livewell.errors import DatabaseUnavailable
from livewell.server.dashboard.visit import Loaded, Panel, Visit, loaded

_NOW = datetime(2026, 2, 13, 9, 30, tzinfo=UTC)  # an example: the page is the same whenever it is looked at
_STEPS = [
    ("enqueued", _NOW - timedelta(minutes=9), "none", "by a request"),
    ("first attempt failed", _NOW - timedelta(minutes=8), "bad", "the upstream answered 503"),
    ("running", _NOW - timedelta(seconds=4), "fresh", "second attempt of five"),
]
_POINTS = [None, 3.0, 5.0, 4.0, 8.0, None, 6.0, 7.0, 2.0]


async def panels(visit: Visit) -> list[Panel]:  # noqa: ARG001 - the same for everybody
    """Components first, then the four states of a panel."""

    async def components() -> Loaded:
        bars = [(2.0, "none"), (3.5, "none"), (1.0, "bad"), (2.5, "none"), (6.0, "none")]
        at = [(_NOW + timedelta(minutes=place)).timestamp() for place in range(len(_POINTS))]
        points = {"at": at, "lines": {"one": _POINTS, "other": _POINTS[::-1]}}
        return loaded(steps=_STEPS, bars=bars, points=points, hostile='<script>alert("no")</script>\u202e')

    async def data() -> Loaded:
        return Loaded({"words": "The newest that could be read."}, _NOW)

    async def empty() -> Loaded:
        return Loaded({}, _NOW, is_empty=True)

    async def stale() -> Loaded:
        return Loaded({"words": "What was read last."}, _NOW, "the database did not answer in time")

    async def failed() -> Loaded:
        raise DatabaseUnavailable("the database does not answer")

    return [
        Panel("components", "Components", "ui_components.html", components),
        Panel("data", "Data", "ui_words.html", data, wide=False),
        Panel("empty", "Empty", "ui_words.html", empty, "Nothing has failed: that is fine.", wide=False),
        Panel("stale", "Stale", "ui_words.html", stale, wide=False),
        Panel("failed", "Failed", "ui_words.html", failed, wide=False),
    ]
