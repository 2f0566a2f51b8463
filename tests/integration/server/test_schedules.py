"""Schedules and runs over HTTP as an operator uses them, and what a watchdog is told without a login (S5, R24)."""

from __future__ import annotations

import pytest

from tests.support.http import Web

SCHEDULES = """
SELECT livewell.declare_schedule('nightly', 'interval', NULL, NULL, interval '1 minute', NULL, 'once', interval '1 hour', false, true);
SELECT livewell.declare_schedule('hourly', 'interval', NULL, NULL, interval '1 hour', NULL, 'once', interval '1 hour', false, false);
SELECT livewell.finish_run(run_id, fence, false, 'password=hunter2 was refused', 3) FROM livewell.begin_run('nightly', 'me', (SELECT due_at FROM livewell.schedule WHERE name = 'nightly'), (SELECT due_at FROM livewell.schedule WHERE name = 'nightly'), livewell.now() + interval '1 minute', interval '1 minute', 0, NULL, interval '1 minute')
"""


@pytest.fixture
async def clocks(web: Web) -> Web:
    """Two schedules; one has failed once."""
    for statement in SCHEDULES.strip().split(";\n"):
        web.rows(statement)
    return web


async def test_schedules_are_listed_with_their_latest_run_and_next_slot(clocks: Web) -> None:
    """In pages, by name."""
    client = clocks.as_key("operate")
    first = (await client.get("/v1/schedules?limit=1")).json()
    second = (await client.get("/v1/schedules", params={"limit": 1, "after": first["next"]})).json()

    assert [row["name"] for row in first["items"] + second["items"]] == ["hourly", "nightly"]
    [row] = second["items"]
    assert (row["state"], row["last_state"], row["last_rows"], row["late"]) == ("waiting", "failed", 3, False)
    assert "hunter2" not in row["last_error"]


async def test_a_run_is_asked_for_and_schedules_are_paused(clocks: Web) -> None:
    """And what is not there is one answer."""
    client = clocks.as_key("operate")

    asked = await client.post("/v1/schedules/nightly/run")
    assert (asked.status_code, asked.json()) == (202, {"answer": "asked"})
    assert clocks.rows("SELECT asked_at IS NOT NULL FROM livewell.schedule WHERE name = 'nightly'") == [(True,)]
    assert (await client.post("/v1/schedules/nightly/pause")).status_code == 204
    assert clocks.rows("SELECT paused_at IS NOT NULL FROM livewell.schedule WHERE name = 'nightly'") == [(True,)]
    assert (await client.post("/v1/schedules/nightly/resume")).status_code == 204
    answers = [await client.post(f"/v1/schedules/nothing/{act}") for act in ("run", "pause", "resume")]
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}
    assert (await client.post("/v1/schedules/%00/run")).status_code == 404


async def test_runs_are_read_newest_first(clocks: Web) -> None:
    """Of all, and of one; a cursor goes on."""
    clocks.rows("SELECT livewell.skip_slots('hourly', livewell.now(), livewell.now(), 1, 'missed', 'me')")
    client = clocks.as_key("operate")
    first = (await client.get("/v1/runs?limit=1")).json()
    second = (await client.get("/v1/runs", params={"limit": 1, "after": first["next"]})).json()

    assert [row["schedule"] for row in first["items"] + second["items"]] == ["hourly", "nightly"]
    assert [row["state"] for row in (await client.get("/v1/runs/nightly")).json()["items"]] == ["failed"]
    assert (await client.get("/v1/runs/nothing")).json() == {"items": [], "next": None}


async def test_runs_are_found_by_how_they_ended(clocks: Web) -> None:
    """Of all, and of one; failed means crashed too."""
    clocks.rows("SELECT livewell.skip_slots('hourly', livewell.now(), livewell.now(), 1, 'missed', 'me')")
    client = clocks.as_key("operate")

    async def found(path: str) -> list[str]:
        return [row["state"] for row in (await client.get(path)).json()["items"]]

    assert await found("/v1/runs?outcome=failed") == ["failed"]
    assert await found("/v1/runs?outcome=skipped") == ["skipped"]
    assert await found("/v1/runs/hourly?outcome=failed") == []
    assert await found("/v1/runs/nightly?outcome=failed") == ["failed"]
    clocks.rows("UPDATE livewell.run SET state = 'crashed' WHERE state = 'failed'")
    assert await found("/v1/runs?outcome=failed") == ["crashed"]
    assert (await client.get("/v1/runs?outcome=other")).status_code == 400


async def test_a_look_for_few_among_many_is_bounded_and_goes_on(clocks: Web) -> None:
    """Ten thousand runs are looked at for one page; the next one finds what is older."""
    clocks.rows(
        "INSERT INTO livewell.run (schedule, due_at, last_due_at, started_at, finished_at, fence, state, holder) "
        "SELECT 'nightly', t, t, t, t, 1, 'succeeded', 'me' FROM (SELECT livewell.now() - n * interval '1 minute' AS t "
        "FROM generate_series(1, 10050) n) s"
    )
    client = clocks.as_key("operate")
    for path in ("/v1/runs", "/v1/runs/nightly"):
        first = (await client.get(path, params={"outcome": "failed"})).json()
        assert first["items"] == []
        second = (await client.get(path, params={"outcome": "failed", "after": first["next"]})).json()
        assert [row["state"] for row in second["items"]] == ["failed"]
        assert second["next"] is None
    assert (await client.get("/v1/runs?after=x!")).status_code == 400


@pytest.mark.parametrize("path", ["/v1/schedules", "/v1/runs", "/v1/runs/nightly"])
async def test_only_operators_see_them(clocks: Web, path: str) -> None:
    """Errors of runs may hold anything."""
    assert (await clocks.as_key("view").get(path)).status_code == 403
    assert (await clocks.client.get(path)).status_code == 401


async def test_a_watchdog_is_told_names_and_nothing_else(clocks: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 while the scheduler turns, 503 with names when it has stopped.

    Without login, by any name of the server.
    """
    monkeypatch.setattr("livewell.server.late_schedules._FRESH_SECONDS", 0.0)
    client = clocks.client_with({"Host": "watchdog.example.com"})
    clocks.rows("SELECT * FROM livewell.tick_schedules('{nightly,hourly}', 'me')")
    good = await client.get("/health/schedules")
    clocks.rows("UPDATE livewell.schedule SET due_at = due_at - interval '10 minutes', gap = '1 minute'")
    clocks.rows("UPDATE livewell.pulse SET last_at = last_at - interval '10 minutes'")
    bad = await client.get("/health/schedules")

    assert (good.status_code, good.json()) == (200, {"ok": True, "late": []})
    assert bad.status_code == 503
    assert [one["name"] for one in bad.json()["late"]] == ["nightly", "schedule.loop"]
    assert {key for one in bad.json()["late"] for key in one} == {"name", "late_seconds"}
    assert "hunter2" not in bad.text


async def test_many_watchdogs_cost_one_query(clocks: Web) -> None:
    """Nobody who has no login can keep the database busy."""
    before = clocks.state.lateness._asked
    for _ in range(20):
        await clocks.client.get("/health/schedules")
    first = clocks.state.lateness._asked
    assert before < first
    assert clocks.state.lateness._asked - first == 0
