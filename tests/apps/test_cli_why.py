"""`livewell why` and `livewell plan` as people meet them (X4, X8)."""

from __future__ import annotations

import json

from tests.apps.test_cli_types import Run, applied, run
from tests.support.refresh_sql import RefreshSession

__all__ = ["applied", "run"]


def test_why_answers_in_a_sentence_and_as_json(applied: Run, livewell_dsn: str) -> None:
    """What is watched and has no worker; the command that mends it is in the sentence."""
    with RefreshSession(livewell_dsn) as session:
        session.subscribe(session.open(), "AAPL")
    told = applied("why", "quote", "AAPL")
    assert (told.exit_code, told.output) == (
        0,
        "quote AAPL: there is no value yet, and there is no worker to refresh it; no job yet; start one with: livewell worker --queue refresh.fmp; 1 watch it.\n",
    )
    found = json.loads(applied("why", "quote", "AAPL", "--json").stdout)
    assert (found["reason"], found["verdict"], found["viewers"]) == ("no_worker", "missing", 1)


def test_why_of_what_does_not_exist_is_a_problem(applied: Run) -> None:
    """Exit 1, and where to look."""
    told = applied("why", "nothing", "AAPL")
    assert (told.exit_code, "livewell types list" in told.output) == (1, True)
    assert applied("why", "quote", "no such key").exit_code == 1
    assert applied("why", "quote").exit_code == 2


def test_a_plan_that_fits(applied: Run, livewell_dsn: str) -> None:
    """Exit 0; a line for each type."""
    with RefreshSession(livewell_dsn) as session:
        session.subscribe(session.open(), "AAPL", "MSFT")
    told = applied("plan")
    assert told.exit_code == 0, told.output
    assert told.output.startswith("fmp: 100 % of 2 watched keys, 100 % of what viewers see, can be fresh\n")
    assert "300 are allowed" in told.output


def test_a_plan_that_does_not_fit_says_what_to_slow_down(applied: Run, livewell_dsn: str) -> None:
    """Exit 1: 800 keys, each by a call of its own, and 300 calls a minute."""
    with RefreshSession(livewell_dsn) as session:
        session.rows("UPDATE livewell.data_type SET keys_max = 1")
        session.subscribe(session.open(), *(f"K{n}" for n in range(800)))
    told = applied("plan")
    assert told.exit_code == 1
    assert "quote 1 min → 3 min saves" in told.output
    found = json.loads(applied("plan", "--json").stdout)
    [upstream] = found["upstreams"]
    assert (found["short"], round(upstream["share_fresh"], 2)) == (True, 0.38)
    assert upstream["calls_needed_per_minute"] > 790


def test_without_types_there_is_no_plan(run: Run) -> None:
    """In words, and how to begin."""
    assert "types apply --app market" in run("plan").output
