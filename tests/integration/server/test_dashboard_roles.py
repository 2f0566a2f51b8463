"""Who may act: every act of every page and every route that changes something × every kind of caller.

The acts come from the capabilities, the routes from the OpenAPI document. Whoever may not act gets a
refusal, and no table of the database is changed; what an operator or administrator does is in the
audit.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx2
import psycopg
import pytest
from starlette.datastructures import Headers

from livewell.capability import Act, capabilities
from livewell.errors import DatabaseUnavailable, LivewellError
from livewell.server.auth.api_keys import NewKey
from livewell.server.dashboard import form
from livewell.server.dashboard.withheld import NO_ANSWER, NO_WORDS, NOTHING_NEWER, WORDS
from tests.integration.server.test_route_rights import PATH, ROUTES, ask, token
from tests.integration.server.test_route_rights import server_settings as with_issuer
from tests.support.http import Web

SECRET = "a" * 32
MARK = "MARKED-5e1f"  # stands in every payload and error of the stage
ACTS = [act for one in capabilities() for act in one.acts]
VIEWS = [view for one in capabilities() for view in one.views]
server_settings = with_issuer

STAGE = f"""
INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now()) ON CONFLICT DO NOTHING;
INSERT INTO livewell.job (id, queue, kind, payload, state, rank, max_attempts, run_at, created_at, last_error)
VALUES (64, 'mail', 'send', '{{"note": "{MARK}"}}', 'delayed', 0, 4, now() + interval '1 hour', now(), '{MARK}');
INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload, error)
VALUES (65, now(), now(), 1, 1, 0, 0, 1, 'mail', 'send', 'attempts', '{{"note": "{MARK}"}}', '{MARK}');
INSERT INTO livewell.schedule (name, seen_at, created_at, every, timeout, kind, missed) VALUES ('nightly', now(), now(), '1 hour', '1 minute', 'interval', 'skip');
INSERT INTO livewell.run (due_at, last_due_at, started_at, finished_at, fence, state, schedule, holder, error)
VALUES (now(), now(), now(), now(), 1, 'failed', 'nightly', 'test', '{MARK}');
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, fetched_at, checked_at, changed_at, source_at, status_at, error, failures, failing_since, reason, retry_at)
SELECT 'quote', 'FAILING', 'fmp', 1, 1, old, old, old, old, now(), '{MARK}', 3, now(), 'http_503', now() + interval '1 hour'
FROM (SELECT now() - interval '30 days' AS old) o;
INSERT INTO livewell.alert_channel (name, kind, source, level, repeats, since) VALUES ('hook', 'webhook', 'env:HOOK', 'P0', false, now());
INSERT INTO livewell.alert_firing (fired_at, ended_at, rule, subject, level, summary) VALUES (now(), now(), 'channel_test', 'hook', 'P2', 'a test');
INSERT INTO livewell.notification (firing_id, next_at, settled_at, attempts, state, channel)
SELECT id, now(), now(), 1, 'refused', 'hook' FROM livewell.alert_firing;
INSERT INTO livewell.notification_attempt (firing_id, started_at, lease_until, ended_at, status, outcome, channel, detail)
SELECT id, now(), now(), now(), 400, 'refused', 'hook', '{MARK}' FROM livewell.alert_firing;
SELECT livewell.warn('place', 'thing', '{MARK}');
SELECT livewell.ensure_event_days(3);
SELECT livewell.declare_topic('orders.created', '{{}}'), livewell.declare_sink('shop', 'webhook', ARRAY['*'], '{{}}');
INSERT INTO livewell.event (number, created_at, day, topic, tenant, key, payload)
SELECT n, now(), (now() AT TIME ZONE 'UTC')::date, 'orders.created', '', 'a', '{{"note": "{MARK}"}}' FROM generate_series(64, 65) n;
INSERT INTO livewell.dead_event (number, key_hash, died_at, day, tenant_hash, sink, shard, attempt, lost, parks, topic, reason, detail)
SELECT 64, 1, now(), (now() AT TIME ZONE 'UTC')::date, 1, id, 1, 1, 0, false, 'orders.created', 'refused', '{MARK}' FROM livewell.event_sink;
INSERT INTO livewell.event_delivery (number, key_hash, day, tenant_hash, sink, shard, attempt, aside)
SELECT 65, 2, (now() AT TIME ZONE 'UTC')::date, 1, id, 2, 1, true FROM livewell.event_sink;
INSERT INTO livewell.event_block (key_hash, number, retry_at, since, sink, shard, state, reason)
SELECT 2, 65, now() + interval '1 hour', now(), id, 2, 'failed', '{MARK}' FROM livewell.event_sink;
SELECT livewell.renew_relay(livewell.register_relay('shop', 'test', '1', 3600), 3600, NULL, '{MARK}');
INSERT INTO livewell.event_replay
    (id, created_at, from_at, to_at, fed_at, rate, first_number, last_number, place, day, sink, request_key)
OVERRIDING SYSTEM VALUE SELECT 64, now(), now(), now(), now(), 1, 1, 2, 1, now(), id, 'a request' FROM livewell.event_sink
"""
# What stands in the path of an act, and what its form holds, so that there is something to do.
FILLED = {"{name}": "quote", "{id}": "64", "{key:path}": "AAPL", "{sink}": "shop"}
PLACES = {"/queues/": "mail", "/schedules/": "nightly", "/upstreams/": "fmp", "/outbox/": "shop"}
FIELDS = {
    "/contacts/find": {"type": "email", "value": "ann@example.com"},
    "/types/{name}/{key:path}/ttl": {"ttl": "5m"},
    "/access/keys": {"name": "robot", "scope": "view"},
    "/work/pause": {"act": "pause", "name": "mail", "count": "1", "typed": "1"},
    "/outbox/dead/redrive": {"sink": "shop", "topic": "orders.created", "reason": "refused"},
    "/outbox/dead/discard": {"sink": "shop", "topic": "orders.created", "reason": "refused"},
}
# Acts that need more than a row to act on; each is driven, with its line in the audit, by the test that is named.
ELSEWHERE = {
    "/acts": "test_dashboard_dead.py",
    "/acts/{id}/cancel": "test_dashboard_dead.py",
    "/alerts/{id}/silence": "test_dashboard_alerts.py",
    "/alerts/unsilence": "test_dashboard_alerts.py",
    "/alerts/channels/{name}/test": "test_dashboard_alerts.py",
    "/alerts/channels/{name}/enable": "test_dashboard_alerts.py",
    "/dead/{id}/edit": "test_dashboard_dead.py",
    "/contacts/conflicts/{id}/decide": "test_contact_pages.py",
    "/contacts/merges/{id}/undo": "test_contact_pages.py",
    "/contacts/{id}/erase": "test_contact_pages.py",
}
# Acts that leave no line, each with its reason.
SILENT = {
    "/logout": "only the login of a browser can end itself; see test_access.py",
}
TABLES = """
SELECT relname::text FROM pg_class WHERE relnamespace = 'livewell'::regnamespace AND relkind = 'r' AND relname <> 'state_sample'
"""


def filled(path: str, **others: str) -> str:
    """The path of an act, to something that is there."""
    place = next((name for start, name in PLACES.items() if path.startswith(start)), FILLED["{name}"])
    for part, value in {**FILLED, "{name}": place, **others}.items():
        path = path.replace(part, value)
    return path


def digest(web: Web) -> list[tuple[str, str]]:
    """Of every table, but for what is written by looking: samples, and when a key was last used."""
    each = [
        f"SELECT '{name}', md5(coalesce(string_agg(r.one, ',' ORDER BY r.one), '')) "
        f"FROM (SELECT (to_jsonb(t) - 'last_used_at')::text AS one FROM livewell.{name} t) r"
        for (name,) in web.rows(TABLES)
    ]
    return sorted(web.rows(" UNION ALL ".join(each)))


async def post(client: httpx2.AsyncClient, path: str, fields: dict[str, str] | None = None) -> httpx2.Response:
    """A form of ours with its token."""
    data = {"token": form.token(SECRET), **(fields or {})}
    return await client.post(path, data=data, headers={"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"})


def with_key(web: Web, key: NewKey) -> httpx2.AsyncClient:
    return web.bearer(key.text)


@pytest.fixture
def stage(market: Web) -> Web:
    """A server with something to act on everywhere."""
    for statement in STAGE.strip().split(";\n"):
        market.rows(statement)
    return market


def callers(web: Web) -> dict[str, tuple[httpx2.AsyncClient, bool]]:
    """Clients who may not act, and whether the server knows them."""
    wrong, expired = web.key("operate", "admin"), web.key("operate", "admin", seconds=3600)
    revoked = web.key("operate", "admin")
    web.rows("UPDATE livewell.api_key SET expires_at = now() - interval '1 s' WHERE id = %s", expired.id)
    web.rows("SELECT livewell.revoke_key(%s)", revoked.id)
    return {
        "nobody": (web.client, False),
        "wrong": (web.bearer(f"lw_{wrong.id}_{'x' * 32}"), False),
        "expired": (web.bearer(expired.text), False),
        "revoked": (web.bearer(revoked.text), False),
        "public": (web.as_key(public=True), True),
        "view": (web.as_key("view"), True),
        "observe": (web.as_key("observe"), True),
        "default token": (web.bearer(token(["view", "subscribe"])), True),
        "observe token": (web.bearer(token(["observe", "view"])), True),
    }


async def test_no_act_is_done_for_whoever_may_not(stage: Web) -> None:
    """303 to the login for strangers, 403 for the others; operate alone does nothing that admin may."""
    known = callers(stage)
    operator = stage.as_key("operate", "observe", "view", "subscribe", "export")
    before = digest(stage)
    wrong: list[tuple[str, str, object]] = []
    for act in ACTS:
        for name, (client, is_known) in known.items():
            answer = await post(client, filled(act.path), FIELDS.get(act.path))
            if answer.status_code != (403 if is_known else 303):
                wrong.append((act.path, name, answer.status_code))
        if act.scope == "admin" and (await post(operator, filled(act.path), FIELDS.get(act.path))).status_code != 403:
            wrong.append((act.path, "operate", "it was let in"))

    assert wrong == []
    assert digest(stage) == before


async def test_no_route_changes_anything_for_whoever_may_not(stage: Web) -> None:
    """401 or 403 on every route below /v1 that changes something; those for viewers are theirs."""
    known = callers(stage)
    before = digest(stage)
    document = (await stage.client.get("/v1/openapi.json")).json()
    changing = [
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
        if method != "get" and path != "/v1/login"
    ]
    wrong = []
    for route in changing:
        method, path = route.split()
        for name, (client, is_known) in known.items():
            if "subscribe" in ROUTES[route].scopes and name in ("public", "default token"):
                continue  # the data plane: whoever subscribes changes their own sessions
            status = (await ask(client, method, path)).status_code
            if status != (403 if is_known else 401):
                wrong.append((route, name, status))

    assert len(changing) > 20
    assert wrong == []
    assert digest(stage) == before


@pytest.mark.parametrize("act", [act for act in ACTS if act.path not in ELSEWHERE], ids=lambda act: act.path)
async def test_every_act_is_in_the_audit(stage: Web, act: Act) -> None:
    """Who, from where, what; and the act itself went well."""
    key = stage.key("view", "subscribe", "observe", "operate", "admin")
    other = stage.key("view")
    count = "SELECT count(*) FROM livewell.audit WHERE actor = %s AND origin = 'page 127.0.0.1'"
    numbers = {"/access": other.id, "/dead": "65"}
    number = next((text for start, text in numbers.items() if act.path.startswith(start)), FILLED["{id}"])
    path = filled(act.path, **{"{id}": number})

    answer = await post(with_key(stage, key), path, FIELDS.get(act.path))

    if act.path == "/logout":
        assert answer.status_code == 403
    else:
        assert answer.status_code in (200, 303), answer.text
    if act.path not in SILENT:
        assert stage.rows(count, f"key:{key.id}") == [(1,)]


async def test_who_observes_sees_every_page_and_no_payload_error_or_button(stage: Web) -> None:
    """All pages but those of operators; the same pages show it to an operator."""
    observer, operator = stage.as_key("observe"), stage.as_key("operate")
    marked = 0
    for view in VIEWS:
        path = view.path.replace("{key:path}", "FAILING")
        for number in ("64", "65"):
            where = filled(path, **{"{id}": number})
            seen, full = await observer.get(where), await operator.get(where)
            assert MARK not in seen.text, where
            assert full.status_code in (200, 303, 404), where  # 404: no batch has this number
            if view.scope == "operate":
                assert seen.status_code == 403, where
                continue
            assert seen.status_code == full.status_code, where
            assert 'method="post"' not in seen.text, where
            marked += MARK in full.text

    assert marked >= 5
    failing = "/types/quote/FAILING"
    assert f"({MARK})" in (await operator.get(failing)).text, "the key really fails, and its sentence quotes the error"
    assert "failing since" in (await observer.get(failing)).text
    assert MARK in (await operator.get("/alerts")).text, "what the test of a channel was answered"
    assert WORDS.split(":", maxsplit=1)[0] in (await observer.get("/work/jobs/64")).text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DatabaseUnavailable(f"no answer; it was running: SELECT '{MARK}'"), NO_ANSWER),
        (LivewellError(f"the part is broken: {MARK}"), NO_WORDS),
    ],
)
async def test_who_observes_is_not_told_what_the_database_said(
    stage: Web, monkeypatch: pytest.MonkeyPatch, error: LivewellError, told: str
) -> None:
    """A panel and a page that cannot be read say that they cannot; an operator is told why."""
    observer, operator = stage.as_key("observe"), stage.as_key("operate")

    async def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("livewell.server.state_sampler.read_state", broken)
    monkeypatch.setattr("livewell.queue.admin.QueueAdmin.job", broken)
    for path, status in (("/", 200), ("/limits", 200), ("/work/jobs/64", 503)):
        seen, full = await observer.get(path), await operator.get(path)
        assert (seen.status_code, full.status_code) == (status, status)
        assert MARK in full.text
        assert MARK not in seen.text
        assert "SELECT" not in seen.text
    assert told in (await observer.get("/work/jobs/64")).text


async def test_who_observes_is_not_told_why_a_part_of_the_state_is_stale_or_broken(
    stage: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before is shown with the words that nothing newer could be read."""
    observer, operator = stage.as_key("observe"), stage.as_key("operate")
    sampler = stage.state.looks.sampler
    await operator.get("/")
    assert sampler._sample is not None
    broken = {**sampler._sample.document, "limits": {"how": "failed", "error": MARK}}
    monkeypatch.setattr(sampler, "_sample", replace(sampler._sample, document=broken))
    monkeypatch.setattr(sampler, "_error", f"it was running: SELECT '{MARK}'")
    monkeypatch.setattr(sampler, "_tried_at", float("inf"))
    seen, full = await observer.get("/"), await operator.get("/")
    assert MARK in full.text
    assert MARK not in seen.text
    assert NOTHING_NEWER in seen.text
    assert "the part limits could not be read" in seen.text


async def test_who_views_sees_no_page(stage: Web) -> None:
    """Nor do public keys, and tokens that say nothing of scopes."""
    clients = [stage.as_key(public=True), stage.as_key("view", "subscribe", "export"), stage.as_key("admin")]
    clients.append(stage.bearer(token(["view", "subscribe"])))
    for client in clients:
        for view in VIEWS:
            assert (await client.get(filled(view.path))).status_code == 403
        assert (await client.get("/v1/pages/stream", params={"page": "/"})).status_code == 403


async def test_live_pages_of_observers_and_operators_are_apart(stage: Web) -> None:
    """One painting for each: what an operator's tab shows never reaches an observer's."""
    seen = {}
    for scope in ("operate", "observe"):
        headers = Headers({"authorization": f"Bearer {stage.key(scope).text}"})
        caller = await stage.state.auth.caller(headers, "GET", "127.0.0.1")
        tab = stage.application._paintings.follow("/work/jobs/64", stage.state, caller, "t")
        try:
            text = b""
            for _ in range(100):
                text += tab.next() or b""
                if text.count(b"event: panel") >= 2:
                    break
                await asyncio.sleep(0.05)
            seen[scope] = text.decode()
        finally:
            tab.close()
    assert MARK in seen["operate"]
    assert "event: panel" in seen["observe"]
    assert MARK not in seen["observe"]


async def test_an_observer_follows_no_page_of_operators(stage: Web) -> None:
    """The stream asks for the view's scope as the page does."""
    answer = await stage.as_key("observe").get("/v1/pages/stream", params={"page": "/access"})
    assert answer.status_code == 403


async def test_whoever_operates_cannot_change_or_delete_what_is_written_down(stage: Web) -> None:
    """As SQL, with the rights that the server itself has."""
    await post(stage.as_key("operate"), "/types/quote/pause")
    with psycopg.connect(stage.dsn, autocommit=True) as session:
        session.execute("SET ROLE livewell_operate")
        for statement in (
            "DELETE FROM livewell.audit",
            "UPDATE livewell.audit SET actor = 'bob'",
            "TRUNCATE livewell.audit",
            "INSERT INTO livewell.audit (at, actor, login, action, subject, arguments, answer) VALUES (now(), 'a', 'b', 'c', 'd', '{}', '')",
            "SELECT livewell.prune_audit(90, 10)",
            "ALTER TABLE livewell.audit DISABLE TRIGGER ALL",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(statement.encode())


def test_what_a_route_asks_for_is_known() -> None:
    """The table of routes names every placeholder that is used here."""
    assert set(PATH) >= {"name", "id", "key", "type"}
