"""Dangerous acts ask first, and an act is done to what was seen."""

from __future__ import annotations

import re
from typing import Any

import pytest

from livewell.server.auth.api_keys import NewKey
from livewell.server.dashboard import form
from tests.support.http import Web

SECRET = "a" * 32
JOB = """
INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.job (id, queue, kind, payload, state, rank, max_attempts, run_at, created_at)
VALUES (64, 'mail', 'send', '{}', 'delayed', 0, 4, now() + interval '1 hour', now())
"""
SILENT = """
UPDATE livewell.limiter_credential SET quiet_until = now() + interval '1 hour', quiet_since = now()
WHERE limiter = 'fmp'
"""


def sent(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


def questions(page: str) -> dict[str, str]:
    """What a page asks before it acts: the address of the form, and the text of the question."""
    found = re.findall(r'<details class="confirm"(.*?action="([^"]+)".*?)</details>', page, re.DOTALL)
    return {to: re.sub(r"<[^>]+>|\s+", " ", one) for one, to in found}


@pytest.fixture
def stage(market: Web) -> Web:
    """A delayed job, and an upstream."""
    for statement in JOB.strip().split(";\n"):
        market.rows(statement)
    return market


async def test_every_dangerous_act_asks_with_its_meaning_as_text(stage: Web) -> None:
    """No warning is a tooltip, and no button of these acts stands outside its question."""
    made = NewKey.make()
    link = (made.id, made.hash, "link", "login link", ["view"], None, False, 600)
    stage.rows("SELECT livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)", *link)
    admin, other = stage.as_key("operate", "admin", "view"), stage.key("view")
    stage.rows(
        "INSERT INTO livewell.schedule (name, seen_at, created_at, every, timeout, kind, missed, internal) "
        "VALUES ('livewell.own', now(), now(), '1 hour', '1 minute', 'interval', 'skip', true)"
    )
    stage.rows(SILENT)
    for page, act, meaning in (
        ("/access", f"/access/keys/{other.id}/revoke", "it cannot be undone"),
        ("/access", "/access/logins/end", "your own too"),
        ("/limits", "/upstreams/fmp/pause", "Nothing of this upstream is fetched"),
        ("/limits", "/upstreams/fmp/resume", "calls before its end may be refused"),
        ("/types/quote", "/types/quote/pause", "Nothing of this type is fetched"),
        ("/schedules/livewell.own", "/schedules/livewell.own/pause", "Livewell needs this"),
        ("/work/jobs/64", "/jobs/64/cancel", "It leaves the queue and does not run"),
    ):
        html = (await admin.get(page)).text
        asked = questions(html)
        assert meaning in asked[act], act
        assert html.count(f'action="{act}"') == len([one for one in asked if one == act])
        assert not re.search(r"<button[^>]* title=", html.replace('title="End the login', ""))


async def test_who_may_not_act_is_asked_nothing(stage: Web) -> None:
    """Neither the button nor its question is there."""
    for page in ("/limits", "/types/quote", "/work/jobs/64"):
        assert questions((await stage.as_key("observe").get(page)).text) == {}


async def test_a_job_that_began_meanwhile_is_not_cancelled_as_a_waiting_one(stage: Web) -> None:
    """The form says what was seen; the database compares under its lock."""
    operator = stage.as_key("operate")
    assert 'name="seen" value="delayed"' in (await operator.get("/work/jobs/64")).text
    stage.rows("UPDATE livewell.job SET state = 'ready' WHERE id = 64")
    answer = await operator.post("/jobs/64/cancel", **sent(seen="delayed"))
    assert answer.status_code == 303
    assert stage.rows("SELECT state::text, cancel_requested FROM livewell.job WHERE id = 64") == [("ready", False)]
    assert stage.rows("SELECT action, answer FROM livewell.audit") == [("jobs.cancel", "changed")]
    await operator.post("/jobs/64/cancel", **sent(seen="ready"))
    assert stage.rows("SELECT count(*) FROM livewell.job WHERE id = 64") == [(0,)]
    assert "had ended already" in await said(stage, await operator.post("/jobs/64/cancel", **sent(seen="ready")))
    assert (await operator.post("/jobs/65/cancel", **sent(seen="ready"))).status_code == 404


async def said(web: Web, answer: Any) -> str:
    """What the page after an act says."""
    cookie = answer.headers["set-cookie"].partition(";")[0]
    page = await web.as_key("operate").get(answer.headers["location"], headers={"Cookie": cookie})
    found = re.search(r'<p class="said"[^>]*>(.*?)</p>', page.text, re.DOTALL)
    return found[1] if found else ""


async def test_to_resume_an_upstream_warns_of_the_silence_that_it_ends(stage: Web) -> None:
    """A silence that was asked for after the page was painted is not ended unseen."""
    operator = stage.as_key("operate")
    await operator.post("/upstreams/fmp/pause", **sent())
    page = (await operator.get("/limits")).text
    assert "/upstreams/fmp/resume" not in questions(page)
    assert 'name="silent" value="no"' in page
    stage.rows(SILENT)
    silent = "SELECT count(*) > 0 FROM livewell.limiter_credential WHERE quiet_until > now()"
    if stage.rows(silent) == [(False,)]:
        stage.rows(
            "INSERT INTO livewell.limiter_credential (limiter, name, active, quiet_until, quiet_since) "
            "VALUES ('fmp', 'one', true, now() + interval '1 hour', now())"
        )

    late = await operator.post("/upstreams/fmp/resume", **sent(silent="no"))
    assert "has asked for silence meanwhile: nothing was done" in await said(stage, late)
    assert stage.rows("SELECT paused_at IS NOT NULL FROM livewell.upstream WHERE name = 'fmp'") == [(True,)]
    assert "It also ends the silence" in questions((await operator.get("/limits")).text)["/upstreams/fmp/resume"]
    await operator.post("/upstreams/fmp/resume", **sent(silent="yes"))
    assert stage.rows("SELECT paused_at FROM livewell.upstream WHERE name = 'fmp'") == [(None,)]
    assert stage.rows(silent) == [(False,)]


async def test_a_limiter_that_is_no_upstream_has_no_pause(stage: Web) -> None:
    """There would be nothing to pause: its act answers 404."""
    stage.rows("INSERT INTO livewell.limiter (name, created_at) VALUES ('mail-api', now())")
    page = (await stage.as_key("operate").get("/limits")).text
    assert "mail-api" in page
    assert "/upstreams/mail-api/pause" not in page
    assert "/upstreams/fmp/pause" in page
