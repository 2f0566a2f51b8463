"""Jobs, queues and dead letters over HTTP, as an operator uses them."""

from __future__ import annotations

import pytest

from livewell.errors import UnknownQueue
from livewell.queue.admin import QueueAdmin
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


async def test_jobs_are_found_by_every_part_of_the_filter(mail: Web) -> None:
    """Live ones and those that ended; what cannot be meant is a 400."""
    client = mail.as_key("operate")

    async def ids(**wanted: str | int) -> list[int]:
        answer = await client.get("/v1/jobs", params=wanted)
        assert answer.status_code == 200, answer.text
        return [row["id"] for row in answer.json()["items"]]

    assert await ids(task="welcome", order="newest") == [128, 64]
    assert await ids(task="other") == []
    assert await ids(state="failed", queue="mail") == [192]
    assert await ids(state="succeeded") == []
    assert await ids(group="g") == await ids(key="k") == await ids(batch=1) == []
    assert await ids(since="1h") == [64, 128]
    assert await ids(until="2020-01-01") == []
    for bad in ({"since": "yesterday"}, {"state": "succeeded", "key": "k"}, {"order": "any"}, {"batch": "0"}):
        assert (await client.get("/v1/jobs", params=bad)).status_code == 400


async def test_a_rare_job_is_found_in_bounded_looks(mail: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without items still says where to go on; only `next: null` is the end."""
    monkeypatch.setattr("livewell.queue.admin.LOOK_ROWS", 1)
    client = mail.as_key("operate")
    first = (await client.get("/v1/jobs?state=held")).json()
    assert (first["items"], first["looked"]) == ([], 1)
    second = (await client.get("/v1/jobs", params={"state": "held", "after": first["next"]})).json()
    assert second == {"items": [], "next": None, "looked": 1}


async def test_what_is_done_to_jobs_and_queues_is_written_down(mail: Web) -> None:
    """Who, what, to which, and what became of it; also if nothing did."""
    key = mail.key("operate")
    client = mail.bearer(key.text)
    for path in ("jobs/64/cancel", "jobs/64/cancel", "jobs/128/retry", "queues/mail/pause", "queues/mail/resume"):
        assert (await client.post(f"/v1/{path}")).status_code < 300
    rows = mail.rows("SELECT actor, action, subject, answer FROM livewell.audit ORDER BY at")
    assert [row[1:] for row in rows] == [
        ("jobs.cancel", "job 64", "cancelled"),
        ("jobs.cancel", "job 64", "finished"),
        ("jobs.retry", "job 128", "true"),
        ("queues.pause", "mail", "true"),
        ("queues.resume", "mail", "true"),
    ]
    assert {row[0] for row in rows} == {f"key:{key.id}"}


async def test_an_unknown_queue_names_a_few_that_there_are(mail: Web) -> None:
    """Not a hundred thousand, and without counting their jobs."""
    mail.rows("INSERT INTO livewell.queue (name, created_at) SELECT 'q' || n, now() FROM generate_series(1, 1000) n")
    with pytest.raises(UnknownQueue, match=r"there are: mail, q1, .* and more") as caught:
        await QueueAdmin(mail.state.pools.operate, mail.state.nudger).pause("nothing")
    assert len(str(caught.value)) < 300


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
