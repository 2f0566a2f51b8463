"""What the first page names: the watched key that is due for longest, and what this server has pushed."""

from __future__ import annotations

import pytest

from livewell.telemetry.last_hour import LastHour
from tests.support.http import Web

DUE = """
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, status_at, due_at, demand_class)
SELECT 'quote', k.key, 'fmp', 0, 1, now(), now() - k.age * interval '1 minute', k.class
FROM (VALUES ('UNWATCHED', 90, 0), ('A/B', 40, 2), ('YOUNG', 3, 4)) AS k (key, age, class)
"""


async def test_the_watched_key_that_is_due_for_longest_is_named_with_a_link(market: Web) -> None:
    """Keys that nobody watches are not in question."""
    market.rows(DUE)
    page = (await market.as_key("observe").get("/")).text
    assert 'watched: <a href="/types/quote/A%2FB">quote A/B</a>, 40 min' in page


async def test_what_was_pushed_is_said_with_how_long_that_took(market: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """By this server: another one counts for itself."""
    counted = LastHour()
    monkeypatch.setattr("livewell.server.dashboard.pages.overview.READINGS_PUSHED", counted)
    counted.add(1234)
    page = (await market.as_key("observe").get("/")).text
    assert "Pushed by this server, since it began" in page
    assert "1,234 <small>readings" in page
