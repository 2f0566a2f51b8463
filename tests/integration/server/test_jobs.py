"""Jobs, queues and dead letters over HTTP, as an operator uses them."""

from __future__ import annotations

import pytest

from tests.support.http import Web

JOBS = """
INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now());
SELECT * FROM livewell.enqueue_jobs('[{"id": 64, "queue": "mail", "kind": "welcome", "payload": {"user": 7}}, {"id": 128, "queue": "mail", "kind": "welcome", "payload": {}, "delay_seconds": 3600}]');
INSERT INTO livewell.dead_job (id, queue, kind, reason, attempt, max_attempts, lost, lane, priority, created_at, died_at, payload, error) VALUES (192, 'mail', 'welcome', 'attempts', 5, 5, 0, 1, 0, now(), now(), '{}', 'boom');
"""


@pytest.fixture
async def mail(web: Web) -> Web:
    """A ready job, a delayed one and a dead letter."""
    web.rows(JOBS)
    return web


async def test_jobs_are_listed_by_queue_and_state_in_pages(mail: Web) -> None:
    """Without payloads; one job has its own."""
    client = mail.as_key("operate")
    first = (await client.get("/v1/jobs?limit=1")).json()
    second = (await client.get("/v1/jobs", params={"limit": 1, "after": first["next"]})).json()
    delayed = (await client.get("/v1/jobs?queue=mail&state=delayed")).json()

    assert [row["id"] for row in first["items"] + second["items"]] == [64, 128]
    assert [row["id"] for row in delayed["items"]] == [128]
    assert "payload" not in first["items"][0]
    assert "user" in (await client.get("/v1/jobs/64")).json()["payload"]
    assert (await client.get("/v1/jobs?state=finished")).status_code == 400


async def test_a_job_says_why_and_is_cancelled(mail: Web) -> None:
    """As `livewell jobs` does."""
    client = mail.as_key("operate")

    assert (await client.get("/v1/jobs/64/why")).json()["reason"] == "no_worker"
    assert (await client.post("/v1/jobs/64/cancel")).json() == {"answer": "cancelled"}
    assert (await client.post("/v1/jobs/128/retry")).json() == {"retried": True}
    assert (await client.get("/v1/jobs/128")).json()["state"] == "ready"


async def test_dead_letters_get_another_life(mail: Web) -> None:
    """But not all of them by mistake."""
    client = mail.as_key("operate")

    assert [row["id"] for row in (await client.get("/v1/dead?queue=mail")).json()["items"]] == [192]
    [letter] = (await client.get("/v1/dead", params={"task": "welcome"})).json()["items"]
    assert letter["task"] == "welcome"
    assert "kind" not in letter
    assert (await client.get("/v1/dead", params={"task": "other"})).json()["items"] == []
    assert (await client.post("/v1/dead/redrive", json={"kind": "welcome"})).status_code == 400
    assert (await client.post("/v1/dead/redrive", json={})).status_code == 400
    assert (await client.post("/v1/dead/redrive", json={"ids": [192]})).json() == {"redriven": 1, "kept": 0}


async def test_a_queue_is_paused_and_resumed(mail: Web) -> None:
    """And an unknown one is not there."""
    client = mail.as_key("operate")

    assert (await client.post("/v1/queues/mail/pause")).status_code == 204
    [queue] = (await client.get("/v1/queues")).json()["items"]
    assert queue["paused_at"] is not None
    assert (await client.post("/v1/queues/mail/resume")).status_code == 204
    assert (await client.post("/v1/queues/nothing/pause")).status_code == 404


@pytest.mark.parametrize("job", ["999", "9223372036854775807"])
async def test_a_job_that_is_not_there_is_one_answer(mail: Web, job: str) -> None:
    """On every route of a job."""
    client = mail.as_key("operate")
    answers = [
        await client.get(f"/v1/jobs/{job}"),
        await client.get(f"/v1/jobs/{job}/why"),
        await client.post(f"/v1/jobs/{job}/cancel"),
        await client.post(f"/v1/jobs/{job}/retry"),
    ]

    assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}


@pytest.mark.parametrize("job", ["0", "-1", "x", "9223372036854775808", "1.5", "%00", "1e3"])
async def test_what_cannot_be_a_job_is_a_400(mail: Web, job: str) -> None:
    """And no mistake of the server."""
    assert (await mail.as_key("operate").get(f"/v1/jobs/{job}")).status_code in (400, 404)
