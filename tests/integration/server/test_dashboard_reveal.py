"""Secrets in payloads: masked on every page, and shown only to whoever is written down for it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from livewell.server.dashboard import form
from tests.support.http import Web

SECRET = "a" * 32
PAYLOAD = '{"price": 0.10000000000000000001, "password": "hunter2"}'
ROWS = """
INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.job (id, queue, kind, payload, state, rank, max_attempts, run_at, created_at)
VALUES (64, 'mail', 'send', '{payload}', 'delayed', 0, 4, now() + interval '1 hour', now());
INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload, error, traceback)
VALUES (65, now(), now(), 1, 1, 0, 0, 1, 'mail', 'send', 'refused', '{payload}', 'password=hunter2 boom', 'password=hunter2 trace')
"""
PAGES = {"/work/jobs/64": "jobs", "/dead/65": "dead"}


def sent(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


@pytest.fixture
def stage(market: Web) -> Web:
    """A job and a dead letter with a secret in each."""
    for statement in ROWS.replace("{payload}", PAYLOAD).strip().split(";\n"):
        market.rows(statement)
    return market


@pytest.mark.parametrize("page", PAGES)
async def test_a_payload_is_masked_on_its_page(stage: Web, page: str) -> None:
    """Also in the form that edits it, in its error, and whatever the address says; digits are kept."""
    for address in (page, f"{page}?reveal=1"):
        shown = await stage.as_key("operate").get(address)
        assert shown.status_code == 200
        assert "hunter2" not in shown.text
        assert "0.10000000000000000001" in shown.text
        assert "Show it as it is stored" in shown.text
    assert stage.rows("SELECT count(*) FROM livewell.audit") == [(0,)]


@pytest.mark.parametrize("page", PAGES)
async def test_who_looks_at_a_secret_is_written_down(stage: Web, page: str) -> None:
    """By name, and before it is shown; the page has no address that could be opened or followed again."""
    key = stage.key("operate")
    act = page.removeprefix("/work") + "/reveal"
    answer = await stage.bearer(key.text).post(act, **sent())
    assert answer.status_code == 200
    assert "hunter2" in answer.text
    assert 'data-page="' not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    number = page.rpartition("/")[2]
    assert stage.rows("SELECT actor, action, subject, answer FROM livewell.audit") == [
        (f"key:{key.id}", f"{PAGES[page]}.reveal", f"job {number}", "revealed")
    ]
    assert "hunter2" not in stage.rows("SELECT a::text FROM livewell.audit a")[0][0]


@pytest.mark.parametrize("page", PAGES)
async def test_without_a_line_in_the_audit_nothing_is_shown(
    stage: Web, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line comes first."""
    monkeypatch.setattr("livewell.server.dashboard.pages.payload._REVEALED", "SELECT 1 / 0, %s, %s, %s, %s, %s, %s, %s")
    answer = await stage.as_key("operate").post(page.removeprefix("/work") + "/reveal", **sent())
    assert answer.status_code == 503
    assert "hunter2" not in answer.text


async def test_a_letter_with_secrets_is_edited_where_it_was_revealed(stage: Web) -> None:
    """The form holds the payload as it is stored, so nothing masked is ever saved."""
    operator = stage.as_key("operate")
    shown = await operator.post("/dead/65/reveal", **sent())
    was = re.search(r'name="was" value="(\w+)"', shown.text)
    assert was is not None
    text = PAYLOAD.replace("0.1", "0.2")
    done = await operator.post("/dead/65/edit", **sent(was=was[1], payload=text))
    assert (done.status_code, done.headers["location"]) == (303, "/dead/65")
    assert stage.rows("SELECT payload::text FROM livewell.dead_job") == [(text,)]


async def test_a_letter_says_what_to_do_next(stage: Web) -> None:
    """By the reason why it died."""
    page = (await stage.as_key("operate").get("/dead/65")).text
    assert "Redriving it as it is fails again: edit its payload, or discard it." in page
    assert "the server does not know its code" in (await stage.as_key("operate").post("/dead/65/reveal", **sent())).text
    stage.rows("UPDATE livewell.dead_job SET reason = 'attempts'")
    page = (await stage.as_key("operate").get("/dead/65")).text
    assert 'href="/dead?queue=mail&amp;task=send&amp;reason=attempts"' in page
