"""Times: one way to write them, and one way to show them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from livewell.duration import moment
from livewell.errors import InvalidOption
from livewell.server.dashboard import form
from livewell.server.dashboard.rendering import timed
from tests.support.http import Web

SECRET = "a" * 32


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2h", 7200.0),
        ("90 min", 5400.0),
        ("1.5h ago", 5400.0),
        (" 7d ", 604800.0),
        ("2026-11-16 03:00", datetime(2026, 11, 16, 3, tzinfo=UTC)),
        ("2026-11-16T03:00Z", datetime(2026, 11, 16, 3, tzinfo=UTC)),
        ("2026-11-16 03:00+02:00", datetime(2026, 11, 16, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_an_age_or_an_instant_in_utc(text: str, meant: object) -> None:
    """With its own zone, if it names one."""
    assert moment("since", text) == meant


@pytest.mark.parametrize(
    "text", ["yesterday", "", "4000d", "9" * 400 + "d", "0001-01-01 00:00+14:00", "\u0662h", "-2h"]
)
def test_what_is_no_time_is_refused_with_what_is_allowed(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(InvalidOption, match="since"):
        moment("since", text)


@pytest.mark.parametrize("page", ["/work/jobs", "/dead", "/audit"])
async def test_every_filter_reads_the_same_times_and_says_that_they_are_utc(market: Web, page: str) -> None:
    """In the label, which is there when the box is full."""
    operator = market.as_key("operate")
    for since in ("2026-11-16 03:00", "2026-11-16T03:00+02:00", "2h", "30min ago"):
        answer = await operator.get(page, params={"since": since})
        assert answer.status_code == 200
        assert 'data-state="failed"' not in answer.text
    labels = re.findall(r"<label[^>]*>([^<]*?)\s*<input[^>]* name=\"(?:since|until)\"", answer.text)
    assert len(labels) == 2
    assert all(label.endswith(", UTC") for label in labels), labels
    wrong = await operator.get(page, params={"since": "yesterday"})
    assert "write an age such as" in wrong.text


def test_an_instant_in_a_sentence_is_an_element() -> None:
    """Everything else is escaped, also what only looks like an instant."""
    made = timed("it <b> since 2026-11-16 03:00:05 UTC, until 2026-11-17 04:00 UTC; 2026-99-16 03:00:05 UTC")
    assert made.startswith('it &lt;b&gt; since <time datetime="2026-11-16T03:00:05+00:00"')
    assert made.count("<time ") == 2
    assert made.endswith("; 2026-99-16 03:00:05 UTC")


async def test_why_a_key_is_as_it_is_has_times_in_the_zone_of_the_reader(market: Web) -> None:
    """And so has what is said after an act."""
    operator = market.as_key("operate")
    page = (await operator.get("/types/quote/AAPL")).text
    words = re.search(r'<p class="words">It is fresh.*?</p>', page, re.DOTALL)
    assert words is not None
    assert words[0].count("<time ") == 3
    said: dict[str, Any] = {"data": {"token": form.token(SECRET)}}
    market.rows(
        "UPDATE livewell.ledger SET failing_since = now(), failures = 3, reason = 'http_503', retry_at = now() + interval '1 h', "
        "checked_at = now() - interval '30 days' WHERE key = 'AAPL'"
    )
    done = await operator.post("/types/quote/AAPL/refresh", **said, headers={"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"})
    cookie = done.headers["set-cookie"].partition(";")[0]
    shown = (await operator.get(done.headers["location"], headers={"Cookie": cookie})).text
    text = re.search(r'<p class="said"[^>]*>(.*?)</p>', shown, re.DOTALL)
    assert text is not None
    assert "it failed, and is not asked for until <time " in text[1]
