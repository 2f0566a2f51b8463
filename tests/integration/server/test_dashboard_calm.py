"""What failed is never shown as calm: a plan, the doctor, the rules of alerts, a channel."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from livewell.db import Database
from livewell.errors import DatabaseUnavailable
from livewell.operations.state import read_state
from livewell.server.dashboard.pages.unjudged import unjudged
from livewell.server.dashboard.rendering import paint
from livewell.server.dashboard.visit import Loaded, Panel, Rights
from livewell.server.findings import Diagnosis
from livewell.server.plan_sampler import PlanSampler
from livewell.server.state_sampler import StateSampler
from tests.support.http import Web

JUDGED = (
    "INSERT INTO livewell.alert_rule (name, level, hysteresis, evaluated_at) VALUES ('one', 'P0', '1 minute', now())"
)


def panel_of(page: str, name: str) -> str:
    """One panel of a page."""
    found = re.search(rf'<section class="panel[^"]*" id="{name}".*?</section>', page, re.DOTALL)
    assert found is not None, page
    return found[0]


@pytest.fixture
def calm(market: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    """A server of which all was read, and nothing is wrong."""
    market.rows(JUDGED)

    async def on_time(database: Database) -> Any:
        """As it is, but that no worker is here and its loops are late is no matter of these tests."""
        document = await read_state(database)
        return {**document, "schedules": {**document["schedules"], "late": []}}

    monkeypatch.setattr("livewell.server.state_sampler.read_state", on_time)
    monkeypatch.setattr(market.state.looks.findings, "peek", lambda: Diagnosis((), datetime.now(UTC)))
    return market


async def wrong_now(web: Web) -> str:
    return panel_of((await web.as_key("operate").get("/")).text, "wrong")


async def test_all_that_is_calm_is_said_to_be(calm: Web) -> None:
    """So that the others prove something."""
    assert 'data-state="empty"' in await wrong_now(calm)
    assert 'data-state="empty"' in panel_of((await calm.as_key("operate").get("/alerts")).text, "firing")


@pytest.mark.parametrize("error", [DatabaseUnavailable("no plan today"), ValueError("a fault of ours")])
async def test_a_plan_that_could_not_be_made_is_no_advice(
    calm: Web, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The panel has failed; the other says that it does not know whether limits hold."""

    async def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("livewell.server.plan_sampler.make_plan", broken)
    page = (await calm.as_key("operate").get("/limits")).text
    assert 'data-state="failed"' in panel_of(page, "slow")
    assert "Nothing needs to be slowed down" not in page
    assert "The plan is being made" not in page
    hold = panel_of(page, "hold")
    assert "not known, the plan could not be made" in hold
    assert '<p class="as-of">tried ' in hold, "there is no instant since which it is stale"


async def test_limits_hold_only_if_their_state_was_read(calm: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it nobody knows whether calls are stopped."""
    sampler = calm.state.looks.sampler
    await calm.as_key("operate").get("/")
    assert sampler._sample is not None
    broken = {**sampler._sample.document, "limits": {"how": "failed", "error": "boom"}}
    monkeypatch.setattr(sampler, "_sample", replace(sampler._sample, document=broken))
    monkeypatch.setattr(sampler, "_tried_at", float("inf"))
    assert 'data-state="failed"' in panel_of((await calm.as_key("operate").get("/limits")).text, "hold")


async def test_samplers_survive_any_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """They say that there is a fault, and ask again only when it is time."""
    asked: list[str] = []

    async def broken(*_: object) -> None:
        asked.append("asked")
        raise ValueError("boom")

    monkeypatch.setattr("livewell.server.plan_sampler.make_plan", broken)
    monkeypatch.setattr("livewell.server.state_sampler.read_state", broken)
    nowhere: Any = Database
    state, plans = StateSampler(nowhere, lambda: 100.0), PlanSampler(nowhere, lambda: 100.0)
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable, match="reading the state has a fault"):
            await state.look()
    assert asked == ["asked"]
    assert "has a fault" in ((await plans.look()).error or "")


async def test_a_doctor_who_has_not_answered_found_not_nothing(calm: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one whose examination failed."""
    monkeypatch.setattr(calm.state.looks.findings, "peek", lambda: None)
    page = await wrong_now(calm)
    assert "has not answered yet" in page
    assert 'data-state="data"' in page
    failed = Diagnosis((), datetime.now(UTC), "the examination failed: TimeoutError")
    monkeypatch.setattr(calm.state.looks.findings, "peek", lambda: failed)
    assert "could not examine everything: the examination failed" in await wrong_now(calm)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM livewell.alert_rule", "no rule of an alert was ever evaluated"),
        (
            "UPDATE livewell.alert_rule SET evaluated_at = now() - interval '1 hour'",
            "no rule of an alert was evaluated for",
        ),
        ("UPDATE livewell.alert_rule SET failed_at = now(), error = 'boom'", "these rules could not be evaluated: one"),
    ],
)
async def test_rules_that_were_not_evaluated_are_not_calm(calm: Web, change: str, said: str) -> None:
    """On the first page, and on the page of alerts."""
    calm.rows(change)
    assert said in await wrong_now(calm)
    page = panel_of((await calm.as_key("operate").get("/alerts")).text, "firing")
    assert f"An alert may be missing: {said}" in page
    assert "Nothing: no alert fires." not in page


async def test_a_channel_that_is_disabled_is_on_the_first_page(calm: Web) -> None:
    """Nobody is told by it; alerts that fire are not listed twice."""
    calm.rows(
        "INSERT INTO livewell.alert_channel (name, kind, source, level, repeats, since, disabled_at) "
        "VALUES ('hook', 'webhook', 'env:HOOK', 'P0', false, now(), now())"
    )
    assert "alert channel hook is disabled" in await wrong_now(calm)


async def test_a_stale_panel_without_an_instant_says_when_it_was_tried() -> None:
    """It never claims to be stale since the present."""

    async def load() -> Loaded:
        return Loaded({"words": "old"}, stale="nothing newer")

    painted = await paint(Panel("one", "One", "ui_words.html", load), Rights(operate=True))
    assert '<p class="as-of">tried ' in painted.html


def test_rules_of_a_capability_that_is_gone_are_not_asked_for() -> None:
    """Their rows stay; what counts is that any rule was evaluated just now."""
    rules = [
        {"name": "old", "failed": False, "evaluated_seconds": 1e6},
        {"name": "new", "failed": False, "evaluated_seconds": 30.0},
    ]
    assert unjudged({"alerts": {"rules": rules}}) == []
