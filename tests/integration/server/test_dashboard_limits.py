"""The page of limits: rate, budget, breaker, the plan, and what each act does, says and leaves in the audit."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from livewell.errors import DatabaseUnavailable
from livewell.refresh.plan.budget import pace_of_day
from livewell.refresh.plan.facts import BudgetFacts
from livewell.server.dashboard import form
from livewell.server.dashboard.pages.limits import today, used_by_day
from livewell.server.plan_sampler import PlanSampler
from tests.support.http import Web

SECRET = "a" * 32
LIMITS = (
    '{"rate_calls": 300, "rate_seconds": 60, "breaker_failures": 10, "budget_units": 1000000, "budget_unit": "bytes", '
    '"budget_seconds": 2592000, "estimate_units": 1000}'
)
OPEN = """
UPDATE livewell.limiter_credential SET breaker = 'open', open_until = now() + interval '1 hour', opened_at = now(), opened_reason = 'deadline', opened_keys = 3
WHERE limiter = 'fmp' AND name = 'FMP_TEST_KEY'
"""


def _form(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


def _panel(page: str, panel: str) -> str:
    found = re.search(rf'<section[^>]* id="{panel}".*?</section>', page, re.S)
    assert found is not None, page
    return found[0]


async def _done(web: Web, path: str, **fields: str) -> str:
    operator = web.as_key("operate", "view")
    done = await operator.post(path, **_form(**fields))
    assert done.status_code == 303, done.text
    page = await operator.get(done.headers["location"])
    assert 'data-state="failed"' not in page.text
    return page.text


@pytest.fixture
def limited(market: Web) -> Web:
    """The upstream fmp with a rate, a budget and a breaker."""
    market.rows("SELECT livewell.declare_limiter('fmp', %s, ARRAY['FMP_TEST_KEY'])", LIMITS)
    return market


async def test_the_worst_window_is_the_one_with_the_most_calls(limited: Web) -> None:
    """Of all windows of 60 s, in steps of ten; calls of two hours ago are not in it."""
    ten = "date_bin(interval '10 seconds', now() - interval '%s seconds', timestamptz 'epoch')"
    for ago, calls in ((600, 100), (590, 100), (550, 50), (540, 20), (30, 120), (7200, 999)):
        limited.rows(f"INSERT INTO livewell.limiter_calls VALUES ('fmp', 'FMP_TEST_KEY', {ten % ago}, %s, 0)", calls)
    [(seconds, allowed, worst, minutes)] = limited.rows(
        "SELECT window_seconds, allowed, worst, minutes FROM livewell.list_worst_windows(ARRAY['fmp'], ARRAY['FMP_TEST_KEY'])"
    )
    assert (seconds, allowed, worst) == (60, 300, 250)
    assert (len(minutes), sum(minutes)) == (60, 390)
    page = await limited.as_key("operate", "view").get("/limits")
    assert "250 of 300" in _panel(page.text, "limiters")


async def test_a_rate_of_a_day_and_one_of_a_second_have_no_wrong_window(limited: Web) -> None:
    """Ten seconds of five calls a second are fifty; a day is not looked at."""
    for name, seconds, calls in (("a_day", 86400, 1000), ("a_second", 1, 5)):
        limited.rows(
            "SELECT livewell.declare_limiter(%s, %s, ARRAY[''])",
            name,
            f'{{"rate_calls": {calls}, "rate_seconds": {seconds}, "breaker_failures": 10}}',
        )
    rows = limited.rows(
        "SELECT limiter, window_seconds, allowed FROM livewell.list_worst_windows(ARRAY['a_day', 'a_second'], ARRAY['', '']) ORDER BY 1"
    )
    assert rows == [("a_day", None, None), ("a_second", 10, 50)]


async def test_the_budget_says_when_it_ends(limited: Web) -> None:
    """At the pace of the last day, with what is burnt."""
    limited.rows(
        "INSERT INTO livewell.limiter_usage SELECT 'fmp', 'FMP_TEST_KEY', date_trunc('hour', now()) - n * interval '1 hour', 20000, 10 "
        "FROM generate_series(0, 23) n"
    )
    panel = _panel((await limited.as_key("operate", "view").get("/limits")).text, "hold")
    assert "480 kB of 1 MB in 30 d" in panel
    assert "it ends" in panel
    assert "fmp: no, the budget ends" in panel


async def test_an_upstream_is_paused_and_resumed(limited: Web) -> None:
    """Each is said and written down."""
    page = await _done(limited, "/upstreams/fmp/pause")
    assert "fmp is paused: nothing of it is fetched until it is resumed." in page
    assert "until resumed" in _panel(page, "upstreams")
    page = await _done(limited, "/upstreams/fmp/resume")
    assert "fmp is called again." in page
    assert limited.rows("SELECT action, subject FROM livewell.audit ORDER BY id") == [
        ("upstreams.pause", "fmp"),
        ("upstreams.resume", "fmp"),
    ]


async def test_a_breaker_says_its_cause_is_probed_and_closed_after_a_warning(limited: Web) -> None:
    """The page before closing says what closing means; both acts are written down."""
    limited.rows(OPEN)
    operator = limited.as_key("operate", "view")
    panel = _panel((await operator.get("/limits")).text, "upstreams")
    assert "The source did not answer in time" in panel
    assert "/upstreams/fmp/close?credential=FMP_TEST_KEY" in panel
    warning = (await operator.get("/upstreams/fmp/close?credential=FMP_TEST_KEY")).text
    assert "Closing lets all waiting calls go at once" in warning
    assert limited.rows("SELECT breaker FROM livewell.limiter_credential WHERE name = 'FMP_TEST_KEY'") == [("open",)]
    assert "the next call tries whether it is back" in await _done(
        limited, "/upstreams/fmp/probe", credential="FMP_TEST_KEY"
    )
    assert "is closed: all calls are allowed again" in await _done(
        limited, "/upstreams/fmp/close", credential="FMP_TEST_KEY"
    )
    assert limited.rows("SELECT action, answer FROM livewell.audit ORDER BY id") == [
        ("upstreams.probe", "probing"),
        ("upstreams.close", "closed"),
    ]


async def test_a_breaker_that_is_closed_meanwhile_says_so(limited: Web) -> None:
    """The page of a stale link, and a form of one."""
    page = await limited.as_key("operate", "view").get("/upstreams/fmp/close?credential=FMP_TEST_KEY")
    assert "nothing is to be closed" in page.text
    assert "was closed already" in await _done(limited, "/upstreams/fmp/close", credential="FMP_TEST_KEY")


async def test_an_upstream_that_is_not_there_is_not_found(limited: Web) -> None:
    """For each act."""
    operator = limited.as_key("operate", "view")
    for act in ("pause", "resume", "probe", "close"):
        assert (await operator.post(f"/upstreams/nothing/{act}", **_form())).status_code == 404


async def test_a_plan_that_takes_long_does_not_hold_up_the_page(limited: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it is being made; one plan is made, however many look."""
    made = 0
    go = asyncio.Event()

    async def slow(_: object) -> None:
        nonlocal made
        made += 1
        await go.wait()
        raise DatabaseUnavailable("the database is away")

    monkeypatch.setattr("livewell.server.plan_sampler.make_plan", slow)
    sampler = PlanSampler(limited.state.pools.operate)
    assert [one.plan for one in await asyncio.gather(*(sampler.look() for _ in range(5)))] == [None] * 5
    assert made == 1
    go.set()
    await asyncio.sleep(0)
    assert (await sampler.look()).error == "the database is away"
    await sampler.close()


def test_the_pace_of_a_day_is_that_since_the_first_use() -> None:
    """Two hours of use are not spread over a day, and a minute is not a pace."""
    assert pace_of_day(BudgetFacts("bytes", 1e9, 0.95, ((1.0, 5400.0), (0.0, 0.0))), 1800.0) == 1.0
    assert pace_of_day(BudgetFacts("bytes", 1e9, 0.95, ((0.0, 3600.0),)), 10.0) == 1.0
    assert pace_of_day(BudgetFacts("bytes", 1e9, 0.95, ((30.0, 3600.0),)), 10.0) == 0.0


def test_a_pace_that_fits_the_span_lasts() -> None:
    """What leaves a rolling budget makes room for what comes."""
    facts = BudgetFacts(
        "bytes", 24_000.0, 1.0, tuple((float(hour), 30.0) for hour in range(24)), span_seconds=30 * 86_400.0
    )
    assert today(facts, datetime.now(UTC), 3600.0)["ends_at"] is None
    assert today(BudgetFacts("bytes", 1000.0, 1.0, facts.used, 30 * 86_400.0), datetime.now(UTC), 3600.0)["ends_at"]


def test_used_by_day_has_a_bar_for_each_day() -> None:
    """The oldest first, and none left out."""
    assert used_by_day(BudgetFacts("bytes", 1.0, 1.0, ((0.0, 1.0), (49.0, 3.0)))) == [
        (3.0, "none"),
        (0.0, "none"),
        (1.0, "none"),
    ]
