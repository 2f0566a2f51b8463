"""The pages of work: what is stuck and why, jobs by every filter, one job, one batch; and their acts."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from livewell.server.dashboard import form
from tests.support.http import Web

SECRET = "a" * 32
HOSTILE = '<script>alert(1)</script>"\u202e'
BIG = "9223372036854775807"
JOBS = """
INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now()), ('idle', now());
SELECT * FROM livewell.enqueue_jobs('[{"id": 64, "queue": "mail", "kind": "welcome", "payload": {"user": 9223372036854775807, "price": 0.10000000000000000001, "password": "hunter2"}},
    {"id": 128, "queue": "mail", "kind": "welcome", "payload": {}, "delay_seconds": 3600, "unique_key": "k/1", "group_key": "g"}]');
INSERT INTO livewell.dead_job (id, queue, kind, reason, attempt, max_attempts, lost, lane, priority, created_at, died_at, payload, error, traceback, batch_id)
VALUES (192, 'mail', 'welcome', 'attempts', 5, 5, 0, 1, 0, now(), now(), '{}', 'boom at postgresql://u:sekret@h/d', 'Traceback: x', 7);
INSERT INTO livewell.job_history (id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind) VALUES (256, 1, 9, now(), now(), now(), 1, 'succeeded', 'mail', 'done');
INSERT INTO livewell.batch (id, created_at, sealed_at, succeeded, failed, remaining, follow_id, follow_when, follow) VALUES (7, now(), now(), 2, 1, 0, 320, 'succeeded', '{"queue": "mail", "kind": "report", "payload": {}}');
"""


@pytest.fixture
async def mail(web: Web) -> Web:
    """A ready job, a delayed one, a dead letter, a finished one and a batch."""
    web.rows(JOBS)
    return web


def _form(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


async def _page(web: Web, path: str) -> str:
    answer = await web.as_key("operate", "view").get(path)
    assert answer.status_code == 200, answer.text
    assert 'data-state="failed"' not in answer.text
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", answer.text)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text.split("<main", 1)[1])).split())


async def _acted(web: Web, path: str, **fields: str) -> str:
    """Do it, and answer what the next page says."""
    operator = web.as_key("operate", "view")
    done = await operator.post(path, **_form(**fields))
    assert done.status_code == 303, done.text
    shown = await operator.get(done.headers["location"])
    said = re.search(r'class="said" role="status">([^<]*)<', shown.text)
    assert said is not None, shown.text
    return html.unescape(said[1])


async def _ids(web: Web, query: str) -> list[str]:
    answer = await web.as_key("operate", "view").get(f"/work/jobs?{query}")
    assert answer.status_code == 200, answer.text
    return re.findall(r'<th scope="row" class="n"><a href="/work/jobs/(\d+)"', answer.text)


async def test_queues_with_trouble_come_first_and_say_why_jobs_wait(mail: Web) -> None:
    """Each with its figures; reasons counted."""
    page = await _page(mail, "/work")
    assert "no worker works their queue: 1 ." in page
    assert "their time has not come: 1 ." in page
    assert page.index("no worker works it") < page.index("idle")
    mail.rows("UPDATE livewell.queue SET paused_at = now() WHERE name = 'mail'")
    mail.state.looks.sampler._tried_at = float("-inf")
    page = await _page(mail, "/work")
    assert "their queue is paused: 1 ." in page
    assert "paused, and jobs wait" in page


async def test_what_a_sample_has_not_seen_is_trouble_all_the_same(mail: Web) -> None:
    """Estimates say that they are, and of when.

    Seen failing: the queue was idle, with 0 ready.
    """
    mail.rows(
        "INSERT INTO livewell.state_sample (name, at, value) VALUES ('queue', now(), "
        '\'{"how": "estimated", "jobs": [["idle", "delayed", 70]], "dead": []}\') '
        "ON CONFLICT (name) DO UPDATE SET at = excluded.at, value = excluded.value"
    )
    mail.state.looks.sampler._tried_at = float("-inf")
    page = await _page(mail, "/work")
    assert "no worker works their queue: 1 or more ." in page
    assert "their time has not come: about 70 ." in page
    assert "mail no worker works it 1 or more" in page
    assert "Ready, delayed, held and dead are estimated from a sample of 20" in page
    first = await _page(mail, "/")
    assert "queue mail: 1 or more wait, nobody works it" in first
    assert "Ready, delayed, held and failed are estimated from a sample of 20" in first
    assert "1 or more" in await _page(mail, "/work?name=mail")


async def test_the_first_page_says_since_when_no_worker_keeps_points(mail: Web) -> None:
    """And a minute without a point is a gap."""
    mail.rows("DELETE FROM livewell.state_minute")
    assert "none was kept yet" in await _page(mail, "/")
    points = (
        "INSERT INTO livewell.state_minute (minute, figures) SELECT date_trunc('minute', now()) - n * interval '1 minute', "
        "'{\"waiting\": 3}' FROM unnest(ARRAY[20, 12, 11]) n"
    )
    mail.rows(points)
    assert "no worker has kept a point since 20" in await _page(mail, "/")
    shown = (await mail.as_key("operate", "view").get("/")).text
    assert '"jobs": [null, ' in html.unescape(shown)
    mail.rows(points.replace("20, 12, 11", "1, 0"))
    assert "no worker has kept a point" not in await _page(mail, "/")


async def test_of_very_many_queues_a_page_is_shown_and_any_can_be_found(mail: Web) -> None:
    """The state has 1,000 of them; the page says so, and looks others up by name."""
    mail.rows("INSERT INTO livewell.queue (name, created_at) SELECT 'q' || n, now() FROM generate_series(1, 100000) n")
    page = await _page(mail, "/work")
    assert page.count("Pause") <= 52  # a button for each of 50, one for the page that follows itself, one for all
    assert "The first 1,000 queues by name are listed here" in page
    assert "Next page" in page
    assert "mail" not in await _page(mail, "/work?from=100")
    found = await _page(mail, "/work?name=q2999")
    assert "1 queues begin with q2999" in found
    assert "q2999 idle" in found
    assert "No queue's name begins with zzz." in await _page(mail, "/work?name=zzz")
    assert "More than 10,000 queues match" in await _page(mail, "/work/pause?act=pause")
    refused = await mail.as_key("operate").post("/work/pause", **_form(act="pause", count="10001", typed="10001"))
    assert refused.status_code == 400
    assert "choose a longer beginning" in refused.text


async def test_all_queues_whose_names_begin_so_are_paused_once_their_number_is_typed(mail: Web) -> None:
    """The audit has one line with how many were changed; who comes second changes nothing."""
    mail.rows(
        "INSERT INTO livewell.queue (name, created_at, paused_at) VALUES ('m2', now(), NULL), ('m3', now(), now())"
    )
    paused = "SELECT array_agg(name ORDER BY name) FROM livewell.queue WHERE paused_at IS NOT NULL"
    page = await _page(mail, "/work/pause?act=pause&name=m")
    assert "Pause 3 queues" in page
    assert "paused now 1" in page
    asked = {"act": "pause", "name": "m", "count": "3"}
    wrong = await _acted(mail, "/work/pause", **asked, typed="2")
    assert wrong == "Nothing was done: you typed 2, and the number is 3."
    mail.rows("INSERT INTO livewell.queue (name, created_at) VALUES ('m4', now())")
    wrong = await _acted(mail, "/work/pause", **asked, typed="3")
    assert wrong == "4 match by now, and you confirmed 3: nothing was done. Count again."
    assert mail.rows(paused) == [(["m3"],)]
    for said in (
        "3 queues are paused: what runs may end, nothing more is begun. 1 were so already.",
        "0 queues are paused: what runs may end, nothing more is begun. 4 were so already.",
    ):
        assert await _acted(mail, "/work/pause", **{**asked, "count": "4"}, typed="4") == said
    assert mail.rows(paused) == [(["m2", "m3", "m4", "mail"],)]
    line = "SELECT subject, answer, n, before, after FROM livewell.audit WHERE action = 'queues.pause' ORDER BY id"
    was, now = (dict.fromkeys(("m2", "m4", "mail"), is_paused) for is_paused in (False, True))
    assert mail.rows(line)[0] == ("queues that begin with m", "3 changed", 3, was, now)
    said = await _acted(mail, "/work/pause", act="resume", name="", count="5", typed="5")
    assert said == "4 queues are resumed. 1 were so already."
    assert "There is nothing to do" in await _page(mail, "/work/pause?act=resume&name=zzz")
    refused = await mail.as_key("operate", "view").post("/work/pause", **_form(act="stop", name="m", count="5"))
    assert refused.status_code == 400


async def test_the_address_holds_every_filter(mail: Web) -> None:
    """Live jobs, newest first, and those that ended; empty parts leave the address."""
    assert await _ids(mail, "") == ["128", "64"]
    assert await _ids(mail, "order=oldest") == ["64", "128"]
    assert await _ids(mail, "queue=mail&state=delayed&task=welcome&group=g&key=k%2F1&since=1h") == ["128"]
    assert await _ids(mail, "state=failed&batch=7") == ["192"]
    assert await _ids(mail, "state=succeeded&task=done") == ["256"]
    assert await _ids(mail, "until=1h") == []
    moved = await mail.as_key("operate", "view").get("/work/jobs?queue=mail&task=&state=ready")
    assert (moved.status_code, moved.headers["location"]) == (303, "/work/jobs?queue=mail&state=ready")


async def test_pages_of_jobs_follow_each_other(mail: Web) -> None:
    """By keyset; the count is exact to 10,000."""
    mail.rows(
        "INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, payload) "
        "SELECT 1000 + n, n, now(), now(), 'ready', 5, 'mail', 'many', '{}' FROM generate_series(1, 10100) n"
    )
    operator = mail.as_key("operate", "view")
    first = (await operator.get("/work/jobs?task=many&since=10h")).text
    assert "10,000+ jobs match" in first
    link = html.unescape(re.search(r'<a href="([^"]+)" rel="next">Next page', first)[1])  # type: ignore[index]
    assert "task=many" in link
    assert "since=10h" in link
    assert (await _ids(mail, link.partition("?")[2]))[0] == "11050"


async def test_a_look_that_found_little_says_so_and_goes_on(mail: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not shown as empty."""
    monkeypatch.setattr("livewell.queue.admin.LOOK_ROWS", 1)
    page = await _page(mail, "/work/jobs?task=none")
    assert "1 jobs were looked at, and none matches" in page
    assert "Go on" in page
    assert "at least 0" in page


async def test_a_filter_that_cannot_be_meant_says_what_is_allowed(mail: Web) -> None:
    """And keeps what was typed."""
    answer = await mail.as_key("operate", "view").get("/work/jobs?since=yesterday&queue=mail")
    assert answer.status_code == 200
    assert "write an age such as 90s" in answer.text
    assert 'value="yesterday"' in answer.text


async def test_one_job_says_why_with_all_that_is_known(mail: Web) -> None:
    """Digits exact, secrets hidden unless asked for."""
    page = await _page(mail, "/work/jobs/64")
    assert "No worker works its queue mail" in page
    assert BIG in page
    assert "0.10000000000000000001" in page
    assert "hunter2" not in page
    assert "hunter2" not in await _page(mail, "/work/jobs/64?reveal=1"), "an address reveals nothing"
    dead = await _page(mail, "/work/jobs/192")
    assert "every attempt failed" in dead
    assert "boom" in dead
    assert "sekret" not in dead
    assert "Batch 7" in dead
    assert "Succeeded" in await _page(mail, "/work/jobs/256")


async def test_acts_on_a_job_are_said_and_written_down(mail: Web) -> None:
    """Run now, retry, cancel; each by whom."""
    assert await _acted(mail, "/jobs/128/retry", seen="delayed") == "Job 128 runs as soon as a worker is free."
    assert await _acted(mail, "/jobs/192/retry", seen="failed") == "Job 192 runs as soon as a worker is free."
    assert await _acted(mail, "/jobs/64/cancel") == "Job 64 is cancelled: it does not run."
    assert await _acted(mail, "/queues/mail/pause") == "mail is paused: what runs may end, nothing more is begun."
    assert await _acted(mail, "/queues/mail/resume", job="128") == "mail goes on."
    rows = mail.rows("SELECT actor, action FROM livewell.audit ORDER BY at")
    assert [action for _, action in rows if action != "dead.redrive"] == [
        "jobs.retry",
        "jobs.cancel",
        "queues.pause",
        "queues.resume",
    ]
    assert all(actor.startswith("key:") for actor, _ in rows)
    changed = "SELECT before ->> 'state', after ->> 'state', n FROM livewell.audit WHERE action = %s"
    assert mail.rows(changed, "jobs.retry") == [("delayed", "ready", 1)]
    assert mail.rows(changed, "jobs.cancel") == [("ready", "cancelled", 1)]


async def test_a_stale_form_does_nothing_and_says_so(mail: Web) -> None:
    """The job has run meanwhile, has ended, or is gone."""
    mail.rows("SELECT livewell.hasten_job(128)")
    assert "was delayed and is ready by now: nothing was done" in await _acted(mail, "/jobs/128/retry", seen="delayed")
    await _acted(mail, "/jobs/128/cancel")
    assert "had ended already: nothing was done" in await _acted(mail, "/jobs/128/cancel")
    for act in ("cancel", "retry"):
        gone = await mail.as_key("operate", "view").post(f"/jobs/99999/{act}", **_form(seen="delayed"))
        assert gone.status_code == 404
        assert "It is gone: nothing was done." in gone.text
    assert mail.rows("SELECT count(*) FROM livewell.audit WHERE action = 'jobs.retry'") == [(0,)]


async def test_a_batch_shows_its_counts_and_what_follows(mail: Web) -> None:
    """Open, running, failed or ended; an unknown one is 404."""
    page = await _page(mail, "/work/batches/7")
    assert "All have ended, but not all succeeded" in page
    assert "report in queue mail, only if all succeed" in page
    mail.rows("INSERT INTO livewell.batch (id, created_at) VALUES (8, now())")
    assert "It is open" in await _page(mail, "/work/batches/8")
    assert (await mail.as_key("operate", "view").get("/work/batches/9")).status_code == 404


async def test_batches_are_listed(mail: Web) -> None:
    """The newest first, with a way to each and to what failed in it."""
    mail.rows("INSERT INTO livewell.batch (id, created_at) VALUES (8, now())")
    page = await _page(mail, "/work/batches")
    assert page.index("8 open") < page.index("7 not all succeeded, and what follows waits")
    shown = (await mail.as_key("operate", "view").get("/work/batches")).text
    assert "/work/jobs?batch=7&amp;state=failed" in shown
    assert "/work/batches" in (await mail.as_key("operate", "view").get("/work")).text
    mail.rows("DELETE FROM livewell.batch")
    assert "No batch was made yet" in await _page(mail, "/work/batches")


WORKER = """
INSERT INTO livewell.worker (id, started_at, renewed_at, expires_at, steady_since, lease, slots, queues, kinds, name, version)
VALUES (%s, now() - interval '3 hours', now() - interval '7 s', now() + interval '23 s', now(), '30 s', 8, '{mail,idle}', '{}', 'host:41', '0.8.0')
"""


async def test_a_worker_tells_its_lease_its_queues_and_what_it_runs(mail: Web) -> None:
    """Linked from the list of workers and from a job that it runs."""
    mail.rows(WORKER, 5)
    mail.rows(
        "UPDATE livewell.job SET state = 'running', worker = 5, started_at = now(), attempt = 1, fence = 1, "
        "progress_note = 'sekret note' WHERE id = 64"
    )
    page = await _page(mail, "/work/workers/5")
    assert "Worker host:41" in page
    assert re.search(r"Last heartbeat [789] s ago, of a lease of 30 s", page)
    assert "Slots busy 1 of 8" in page
    assert "mail , idle" in page
    assert re.search(r"What it runs now .* 64 mail welcome 1 of", page)
    assert "None: it lives" in page
    operator = mail.as_key("operate", "view")
    for path in ("/work", "/work/jobs/64"):
        assert 'href="/work/workers/5"' in (await operator.get(path)).text, path
    assert "sekret note" in (await operator.get("/work/workers/5")).text
    assert "sekret note" not in (await mail.as_key("observe").get("/work/workers/5")).text


async def test_a_worker_that_was_buried_tells_which_jobs_were_lost_with_it(mail: Web) -> None:
    """The errors of the job lead there; one that never was is 404."""
    mail.rows(
        "INSERT INTO livewell.job_failure (job_id, fence, failed_at, attempt, outcome, error, worker) "
        "VALUES (64, 1, now(), 3, 'lost', 'its worker died', 6), (128, 1, now(), 1, 'retry', 'no', 6)"
    )
    page = await _page(mail, "/work/workers/6")
    assert "it was buried" in page
    assert "64" in page.split("lost with it")[1]
    assert "128" not in page.split("lost with it")[1]
    operator = mail.as_key("operate", "view")
    assert 'href="/work/workers/6"' in (await operator.get("/work/jobs/64")).text
    for wrong in ("7", "0", "x", "99999999999999999999"):
        assert (await operator.get(f"/work/workers/{wrong}")).status_code == 404


async def test_failed_jobs_that_match_are_retried_together(mail: Web) -> None:
    """Those that the list shows: by when they died, and without a state, as acts on dead letters are."""
    mail.rows("UPDATE livewell.dead_job SET created_at = now() - interval '3 hours'")
    assert await _ids(mail, "state=failed&since=1h&queue=mail") == ["192"]
    operator = mail.as_key("operate", "view")
    page = (await operator.get("/work/jobs?state=failed&since=1h&queue=mail")).text
    assert "Retry all that match" in page
    assert "Discard all that match" in page
    assert "Died since" in page
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    assert "state" not in fields
    asked = await operator.get("/acts/new", params={**fields, "action": "redrive"})
    question = (await operator.get(asked.headers["location"])).text
    assert "Redrive <strong>1</strong> dead letters?" in question
    assert "all that match" not in (await operator.get("/work/jobs?state=succeeded")).text


async def test_what_strangers_wrote_is_shown_as_text(mail: Web) -> None:
    """In payloads, errors, keys, groups and tasks."""
    mail.rows(
        "UPDATE livewell.job SET payload = %s::jsonb, last_error = %s, last_traceback = %s, unique_key = %s, group_key = %s, kind = %s, trace = %s WHERE id = 64",
        json.dumps({HOSTILE: [HOSTILE]}),
        *(HOSTILE,) * 6,
    )
    for path in ("/work/jobs", "/work/jobs/64", "/work/jobs?queue=%3Cscript%3Ealert(1)%E2%80%AE"):
        answer = await mail.as_key("operate", "view").get(path)
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert "\u202e" not in answer.text.split("<main", 1)[1]


async def test_every_attempt_that_failed_is_told_to_operators(mail: Web) -> None:
    """On the page of a job and of a letter, by HTTP, as text; who only looks reads no errors."""
    mail.rows(
        "INSERT INTO livewell.job_failure (job_id, fence, failed_at, attempt, outcome, error) "
        "SELECT job, n, now(), n, 'retry', %s || n FROM unnest(ARRAY[64, 192]) AS job, generate_series(1, 2) AS n",
        f"{HOSTILE} went wrong ",
    )
    operator = mail.as_key("operate", "view")
    for path in ("/work/jobs/64", "/dead/192"):
        page = (await operator.get(path)).text
        assert "Each attempt that failed" in page
        assert all(f"went wrong {n}" in page for n in (1, 2))
        assert "<script>alert" not in page
        assert "went wrong" not in (await mail.as_key("observe").get(path)).text
    mail.rows(
        "INSERT INTO livewell.job_failure (job_id, fence, failed_at, attempt, outcome, error) "
        "VALUES (256, 1, now(), 1, 'retry', 'it went wrong once')"
    )
    assert "it went wrong once" in (await operator.get("/work/jobs/256")).text  # it has succeeded since
    errors = (await operator.get("/v1/jobs/64")).json()["errors"]
    assert [(one["attempt"], one["outcome"]) for one in errors] == [(2, "retry"), (1, "retry")]


@pytest.mark.parametrize("path", ["/dead/1001", "/work/jobs/1001"])
async def test_a_payload_of_megabytes_is_cut_and_never_parsed(mail: Web, path: str) -> None:
    """Live jobs are bounded by the table; a dead letter of another program may have any size.

    The page stays small and says how to see all of it.
    """
    mail.rows(
        "INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, "
        "kind, reason, payload) SELECT 1001, now(), now(), 1, 1, 0, 0, 1, 'mail', 'welcome', 'attempts', "
        "jsonb_build_object('password', 'hunter2', 'text', repeat('x', 5000000))"
    )
    text = (await mail.as_key("operate", "view").get(path)).text
    assert len(text) < 100_000
    assert "hunter2" not in text
    assert "characters: livewell jobs show --reveal" in text
    assert 'data-state="failed"' not in text
