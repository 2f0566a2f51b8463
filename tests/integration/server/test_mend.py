"""R25 over HTTP: what mends is for operators of everything, does it, and names its caller in the audit."""

from __future__ import annotations

import pytest

from tests.support.http import Web

SILENT = "UPDATE livewell.limiter_credential SET quiet_until = now() + interval '23 hours' WHERE limiter = 'fmp'"
OPEN = (
    "UPDATE livewell.limiter_credential SET breaker = 'open', open_until = now() + interval '1 hour' WHERE "
    "limiter = 'fmp'"
)


@pytest.fixture
async def stopped(web: Web) -> Web:
    """An upstream's limiter that is silent and open, and a singleton whose holder is dead."""
    web.rows(
        "SELECT livewell.declare_limiter('fmp', '{\"rate_calls\": 300, \"rate_seconds\": 60, \"breaker_failures\": 10}', ARRAY[''])"
    )
    web.rows(SILENT)
    web.rows(OPEN)
    web.rows("SELECT livewell.acquire_singleton('schedule.report', 'gone:1', NULL, interval '1 hour')")
    return web


async def test_an_operator_ends_a_silence_probes_and_closes(stopped: Web) -> None:
    """Each answers what became of it."""
    client = stopped.as_key("operate")
    answers = [
        (await client.post(f"/v1/upstreams/fmp/{act}")).json()["answer"]
        for act in ("probe", "resume", "resume", "probe", "close", "close")
    ]
    assert answers == ["silent", "resumed", "not_stopped", "probing", "closed", "was_closed"]
    assert stopped.rows("SELECT breaker, quiet_until FROM livewell.limiter_credential") == [("closed", None)]


async def test_one_credential_is_named_in_the_body(stopped: Web) -> None:
    """What is not there is not found."""
    client = stopped.as_key("operate")
    assert (await client.post("/v1/upstreams/fmp/close", json={"credential": ""})).json() == {"answer": "closed"}
    assert (await client.post("/v1/upstreams/fmp/close", json={"credential": "NO_SUCH"})).status_code == 404
    assert (await client.post("/v1/upstreams/fmp/close", json={"credentials": ""})).status_code == 400


async def test_a_singleton_of_a_dead_holder_is_taken(stopped: Web) -> None:
    """And the list says who had it."""
    client = stopped.as_key("operate")
    [one] = (await client.get("/v1/singletons")).json()["items"]
    assert (one["name"], one["holder"], one["held"]) == ("schedule.report", "gone:1", True)
    assert (await client.post("/v1/singletons/schedule.report/take")).json() == {"answer": "taken"}
    assert (await client.post("/v1/singletons/schedule.report/take")).json() == {"answer": "free"}
    assert (await client.post("/v1/singletons/nothing/take", json={"force": True})).status_code == 404


async def test_the_audit_is_filtered_by_who_what_and_when(stopped: Web) -> None:
    """Each filter leaves out the others; what is no time is refused with what is."""
    key = stopped.key("operate")
    client = stopped.bearer(key.text)
    await client.post("/v1/upstreams/fmp/resume")
    await client.post("/v1/upstreams/fmp/probe")

    async def actions(**params: str) -> list[str]:
        return [one["action"] for one in (await client.get("/v1/audit", params=params)).json()["items"]]

    both = ["upstreams.probe", "upstreams.resume"]
    assert await actions(actor=f"key:{key.id}", since="1h") == both
    assert await actions(action="upstreams", subject="fmp") == both
    assert await actions(action="upstreams.probe") == both[:1]
    assert await actions(actor="key:other") == []
    assert await actions(until="1h") == []
    assert await actions(since="2000-01-01T00:00Z", actor=f"key:{key.id}") == both
    [first, *_] = (await client.get("/v1/audit")).json()["items"]
    assert first["origin"] == "http 127.0.0.1"
    assert (await client.get("/v1/audit", params={"since": "yesterday"})).status_code == 400


async def test_the_audit_names_the_key_and_what_it_did(stopped: Web) -> None:
    """Also of what could be done before: pauses and runs by hand. The newest first, in pages."""
    client = stopped.as_key("operate")
    await client.post("/v1/upstreams/fmp/resume")
    stopped.rows("INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now())")
    await client.post("/v1/queues/mail/pause")
    first = (await client.get("/v1/audit?limit=1")).json()
    second = (await client.get("/v1/audit", params={"limit": 1, "after": first["next"]})).json()
    lines = first["items"] + second["items"]

    assert [(line["action"], line["subject"], line["answer"]) for line in lines] == [
        ("queues.pause", "mail", "true"),
        ("upstreams.resume", "fmp", "resumed"),
    ]
    assert all(line["actor"].startswith("key:") for line in lines)


@pytest.mark.parametrize(
    "path", ["upstreams/fmp/resume", "upstreams/fmp/probe", "upstreams/fmp/close", "singletons/x/take"]
)
async def test_it_is_for_operators_of_everything(stopped: Web, path: str) -> None:
    """Not for viewers; and nothing is done or written down.

    (Keys that may read some types do not operate, test_route_rights.py.)
    """
    assert (await stopped.as_key("view", "subscribe").post(f"/v1/{path}")).status_code == 403
    assert (
        await stopped.as_key("operate").post(f"/v1/{path.replace('fmp', '%00').replace('x/', '%00/')}")
    ).status_code == 404
    assert stopped.rows("SELECT count(*) FROM livewell.audit") == [(0,)]
    assert stopped.rows("SELECT breaker FROM livewell.limiter_credential") == [("open",)]
