"""Pages of schedules, runs, alerts, warnings and the doctor, and what their forms do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from livewell.finding import Finding
from livewell.server.dashboard import form
from livewell.server.dashboard.manual import blocks
from livewell.server.findings import FRESH_SECONDS, Findings
from livewell.settings import Settings
from tests.support.http import Web

SECRET = "a" * 32
HOSTILE = "<script>alert(1)</script>\u202e"
SCHEDULES = """
SELECT livewell.declare_schedule('nightly', 'cron', '30 2 * * *', 'Europe/Paris', NULL, NULL, 'once', interval '1 hour', false, false);
SELECT livewell.declare_schedule('poll', 'interval', NULL, NULL, interval '5 minutes', NULL, 'once', interval '1 hour', false, false);
SELECT livewell.declare_schedule('livewell.sweep', 'interval', NULL, NULL, interval '1 minute', NULL, 'once', interval '1 hour', true, false);
UPDATE livewell.schedule SET due_at = livewell.now() - interval '1 day' WHERE name = 'poll';
INSERT INTO livewell.run (schedule, due_at, last_due_at, started_at, finished_at, fence, state, holder, error, rows_affected)
VALUES ('nightly', now() - interval '2 days', now() - interval '2 days', now() - interval '2 days', now() - interval '47 hours', 1, 'succeeded', 'worker-1', NULL, 12),
       ('nightly', now() - interval '1 day', now() - interval '1 day', now() - interval '1 day', now() - interval '23 hours', 2, 'failed', 'worker-1', '{hostile}', NULL);
SELECT livewell.observe_alerts('queue_deep', 'P1', '10 minutes', ARRAY['mail', '{hostile}'], ARRAY['queue mail is deep', '{hostile}']);
SELECT livewell.declare_channels('[{"name": "ops", "kind": "discord", "source": "env:OPS", "level": "P2", "repeats": false}]', 100);
SELECT livewell.settle_attempt(a.attempt_id, 'refused', 410, 'the receiver is gone', false, NULL, true) FROM livewell.begin_attempt('ops', 30) a;
SELECT livewell.warn('refresh', 'quote: older', '{hostile}')
"""


@pytest.fixture
def night(market: Web) -> Web:
    """Something is late, something failed, and nobody was told."""
    for statement in SCHEDULES.strip().split(";\n"):
        market.rows(statement.replace("{hostile}", HOSTILE))
    return market


def _form(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


async def _main(night: Web, path: str) -> str:
    answer = await night.as_key("operate", "view").get(path)
    assert answer.status_code == 200, answer.text
    main = answer.text.split("<main", 1)[1]
    assert 'data-state="failed"' not in main
    assert "<script>alert" not in main
    assert "\u202e" not in main
    return main


async def test_schedules_are_in_words_late_ones_first_and_ours_are_folded(night: Web) -> None:
    """The rule, the next slot, the last run, and bars of the latest."""
    page = await _main(night, "/schedules")
    assert page.index(">poll<") < page.index(">nightly<") < page.index("<details") < page.index(">livewell.sweep<")
    assert "every day at 02:30 Europe/Paris" in page
    assert "every 5 minutes" in page
    assert "The latest runs: 1 succeeded, 1 failed" in page
    assert 'href="/runs?outcome=failed"' in page


async def test_one_schedule_has_its_facts_and_its_history(night: Web) -> None:
    """Filtered by outcome; what was never there is a 404, what is gone keeps its history."""
    page = await _main(night, "/schedules/nightly")
    assert "<code>30 2 * * *</code> in Europe/Paris" in page
    assert "worker-1" in page
    assert "succeeded" in (await _main(night, "/schedules/nightly?outcome=succeeded")).split('id="runs"')[1]
    failed = (await _main(night, "/schedules/nightly?outcome=failed")).split('id="runs"')[1]
    assert "&lt;script&gt;alert(1)" in failed
    assert '<th scope="row" class="n">' in failed
    assert "No run that is kept ended so." in await _main(night, "/schedules/nightly?outcome=skipped")
    assert (await night.as_key("operate").get("/schedules/nothing")).status_code == 404
    night.rows("DELETE FROM livewell.schedule WHERE name = 'nightly'")
    assert "It is not scheduled any more" in await _main(night, "/schedules/nightly")


async def test_a_run_tells_its_slot_its_times_its_worker_and_its_error(night: Web) -> None:
    """From the lists of runs; who only looks is told no error. A run that is gone is 404."""
    [(number,)] = night.rows("SELECT id FROM livewell.run WHERE state = 'failed'")
    for path in ("/schedules", "/schedules/nightly", "/runs"):
        assert f'href="/runs/{number}"' in await _main(night, path), path
    page = await _main(night, f"/runs/{number}")
    assert f"Run {number} of nightly" in page
    assert all(word in page for word in ("Slot", "Started", "Failed", "after 1 h", "worker-1"))
    assert "&lt;script&gt;alert(1)" in page
    assert "alert(1)" not in (await night.as_key("observe").get(f"/runs/{number}")).text
    [(ended,)] = night.rows("SELECT id FROM livewell.run WHERE state = 'succeeded'")
    assert "<dt>Rows</dt>" in await _main(night, f"/runs/{ended}")
    for wrong in ("999999", "9223372036854775807", "0", "x"):
        assert (await night.as_key("operate").get(f"/runs/{wrong}")).status_code == 404


async def test_a_run_leads_to_its_worker_and_says_why_it_never_began(night: Web) -> None:
    """A worker that lives has a page; a slot that was skipped has a reason."""
    night.rows(
        "INSERT INTO livewell.worker (id, started_at, renewed_at, expires_at, steady_since, lease, slots, queues, kinds, "
        "name, version) VALUES (5, now(), now(), now() + interval '1 hour', now(), '1 hour', 8, '{}', '{}', 'worker-1', '1')"
    )
    [(number,)] = night.rows("SELECT id FROM livewell.run WHERE state = 'failed'")
    assert 'href="/work/workers/5"' in await _main(night, f"/runs/{number}")
    night.rows("UPDATE livewell.run SET state = 'skipped', reason = 'paused', slots = 3 WHERE id = %s", number)
    skipped = await _main(night, f"/runs/{number}")
    assert "the schedule was paused" in skipped
    assert "3, one after another" in skipped


async def test_what_failed_last_night_is_two_clicks_away(night: Web) -> None:
    """The page of all runs has the filter in its address."""
    assert "nightly" in await _main(night, "/runs?outcome=failed")
    assert "nightly" not in await _main(night, "/runs?outcome=skipped")


async def test_schedules_are_run_paused_and_resumed(night: Web) -> None:
    """Each act is said, done and written down."""
    operator = night.as_key("operate", "view")
    for act, said in (("run", "is asked for"), ("pause", "is paused"), ("resume", "goes on")):
        done = await operator.post(f"/schedules/nightly/{act}", **_form())
        assert said in (await operator.get(done.headers["location"])).text
    assert (await operator.post("/schedules/nothing/run", **_form())).status_code == 404
    assert [row[0] for row in night.rows("SELECT action FROM livewell.audit ORDER BY id")][:3] == [
        "schedules.run",
        "schedules.pause",
        "schedules.resume",
    ]


async def test_an_alert_says_who_knows_and_what_to_do(night: Web) -> None:
    """Every attempt with its outcome, and the page of the rule."""
    assert "1 refused" in await _main(night, "/alerts")
    [(number,)] = night.rows("SELECT id FROM livewell.alert WHERE subject <> 'mail'")
    page = await _main(night, f"/alerts/{number}")
    assert "the receiver is gone" in page
    assert "What to do" in page
    assert "<code>livewell jobs why" in page or "<code>livewell queues" in page
    assert (await night.as_key("operate").get("/alerts/999999")).status_code == 404
    assert (await night.as_key("operate").get("/alerts/x")).status_code == 404


async def test_an_alert_is_silenced_and_told_of_again(night: Web) -> None:
    """With an end, alone or with its whole rule; shown in both lists."""
    operator = night.as_key("operate", "view")
    [(number,)] = night.rows("SELECT id FROM livewell.alert WHERE subject = 'mail'")
    done = await operator.post(f"/alerts/{number}/silence", **_form(of="subject", **{"for": "4h"}))
    assert "Nobody is told of this alert for 4 h" in (await operator.get(done.headers["location"])).text
    assert night.rows("SELECT subject, until > now() + interval '3 hours' FROM livewell.alert_silence") == [
        ("mail", True)
    ]
    page = await _main(night, "/alerts")
    assert page.count(">silenced<") == 1
    assert "nobody until" in page
    ended = await operator.post("/alerts/unsilence", **_form(rule="queue_deep", subject="mail"))
    assert "People are told of queue_deep, mail again." in (await operator.get(ended.headers["location"])).text
    assert (await operator.post("/alerts/unsilence", **_form(rule="queue_deep", subject="mail"))).status_code == 404
    await operator.post(f"/alerts/{number}/silence", **_form(of="rule", **{"for": "1h"}))
    assert (await _main(night, "/alerts")).count(">silenced<") == 2
    for length in ("8d", "0s", "", "x"):
        answer = await operator.post(f"/alerts/{number}/silence", **_form(of="rule", **{"for": length}))
        assert answer.status_code == 400


async def test_a_channel_is_enabled_and_tested(night: Web) -> None:
    """A disabled one has to be enabled first."""
    operator = night.as_key("operate", "view")
    refused = await operator.post("/alerts/channels/ops/test", **_form())
    assert (refused.status_code, "is disabled" in refused.text) == (400, True)
    assert "its receiver is gone" in await _main(night, "/alerts")
    await operator.post("/alerts/channels/ops/enable", **_form())
    done = await operator.post("/alerts/channels/ops/test", **_form())
    shown = (await operator.get(done.headers["location"])).text
    assert "A test of ops is asked for." in shown
    assert night.rows("SELECT count(*) FROM livewell.alert_firing WHERE rule = 'channel_test'") == [(1,)]
    assert {row[0] for row in night.rows("SELECT action FROM livewell.audit")} == {"alerts.enable", "alerts.test"}


async def test_warnings_have_their_rates(night: Web) -> None:
    """By time, and by type."""
    assert "quote: older" in await _main(night, "/warnings")
    assert "quote: older" in await _main(night, "/warnings?hours=168&type=quote")
    assert "Nothing had to be tolerated" in await _main(night, "/warnings?type=other")
    assert (await night.as_key("operate").get("/warnings?after=%21")).status_code == 200  # a panel that failed


async def test_lists_go_on_where_they_ended(night: Web) -> None:
    """Fifty at a time: schedules, alerts that fire and are over, warnings."""
    night.rows(
        "SELECT livewell.declare_schedule('s' || n, 'interval', NULL, NULL, interval '1 hour', NULL, 'once', "
        "interval '1 hour', false, false) FROM generate_series(100, 160) n"
    )
    night.rows(
        "SELECT livewell.observe_alerts('sky', 'P2', '0', (SELECT array_agg('a' || n) FROM generate_series(100, 160) n),"
        " (SELECT array_agg('a' || n) FROM generate_series(100, 160) n))"
    )
    night.rows("SELECT livewell.warn('place', 'w' || n, NULL) FROM generate_series(100, 160) n")
    for path, name, first, last in (
        ("/schedules", "after", ">s100<", ">s160<"),
        ("/alerts", "firing", ">a100<", ">a160<"),
        ("/warnings", "after", ">w100<", ">w160<"),
    ):
        page = await _main(night, path)
        assert (first in page, last in page) == (True, False), path
        following = page.split(f"{name}=")[1].split('"')[0]
        assert last in await _main(night, f"{path}?{name}={following}")


async def test_the_doctor_is_asked_once_for_many_looks(livewell_settings: Settings) -> None:
    """Also by those who come while it examines; later looks get what is known, and do not wait."""
    asked: list[float] = []
    now = 0.0

    async def examine(*_: object) -> list[Finding]:
        asked.append(now)
        await asyncio.sleep(0)
        return [
            Finding("dead_letters", "mail", "seen", "means", "command"),
            Finding("schedule_late", "poll", "seen", "means", "command", level="P0"),
        ]

    findings = Findings("", livewell_settings, examine=examine, clock=lambda: now)
    assert findings.peek() is None
    looks = await asyncio.gather(*(findings.look() for _ in range(10)))
    assert len(asked) == 1
    assert [one.level for one in looks[0].findings] == ["P0", "P1"]  # type: ignore[union-attr]
    now = FRESH_SECONDS
    assert await findings.look() is looks[0]
    await asyncio.sleep(0.01)
    assert len(asked) == 2
    assert findings.peek() is not looks[0]
    await findings.close()


async def test_a_doctor_with_a_fault_is_not_a_clean_bill(livewell_settings: Settings) -> None:
    """It says so, with what was known before."""

    async def examine(*_: object) -> list[Finding]:
        raise ZeroDivisionError

    findings = Findings("", livewell_settings, examine=examine)
    found = await findings.look()
    assert found is not None
    assert "ZeroDivisionError" in (found.error or "")


async def test_findings_are_grouped_and_counted_on_the_first_page(night: Web) -> None:
    """Each with what was seen, what it means and the command that mends it."""
    page = await _main(night, "/doctor")
    assert page.index(">P0<") < page.index("schedule late")
    assert "livewell alerts enable ops" in page
    assert "The doctor</a> has" in await _main(night, "/")


def test_a_page_of_the_manual_is_html_and_nothing_else() -> None:
    """Headings, paragraphs, steps, points and code; everything is escaped."""
    text = "# title\n\n**Bold <b>** and `code <x>`, [a link](javascript:alert(1)).\n\n## Do\n\n1. one\n   goes on\n2. two\n\n- p\n\n```\na\n\nb\n```\n"
    made = [(one.kind, [str(line) for line in one.lines]) for one in blocks(text)]
    assert made == [
        ("text", ["<strong>Bold &lt;b&gt;</strong> and <code>code &lt;x&gt;</code>, a link)."]),
        ("heading", ["Do"]),
        ("steps", ["one goes on", "two"]),
        ("points", ["p"]),
        ("code", ["a\n\nb"]),
    ]
