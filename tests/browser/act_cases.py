"""Every form of the dashboard: where it is, what it says, what it changes.

The order matters where one act makes the next one possible. GIVEN comes before all of them.
"""

from __future__ import annotations

from datetime import timedelta

from tests.browser.act_case import ActCase, number, paused
from tests.browser.contact_cases import CONTACTS
from tests.browser.contact_cases import GIVEN as PEOPLE
from tests.browser.other_cases import ACCESS, ALERTS, LEAVING, OUTGOING
from tests.browser.outbox_rows import OUTBOX

_BULK = ("acts.begin act", "acts.end act")
_WORK = "SELECT livewell.step_bulk_act(100) FROM generate_series(1, 3)"

GIVEN = (
    """
INSERT INTO livewell.queue (name, created_at)
SELECT name, now() FROM unnest(string_to_array('mail asleep b-cancel b-hasten b-redrive b-discard b-group b-all p-one p-two', ' ')) AS name;
UPDATE livewell.queue SET paused_at = now() WHERE name = 'asleep';
SELECT * FROM livewell.enqueue_jobs('[{"id": 7001, "queue": "mail", "kind": "send", "payload": {}},
    {"id": 7002, "queue": "mail", "kind": "send", "payload": {}, "delay_seconds": 3600},
    {"id": 7003, "queue": "mail", "kind": "send", "payload": {"password": "hunter2"}},
    {"id": 7004, "queue": "asleep", "kind": "send", "payload": {}},
    {"id": 7011, "queue": "b-cancel", "kind": "send", "payload": {}},
    {"id": 7012, "queue": "b-cancel", "kind": "send", "payload": {}},
    {"id": 7021, "queue": "b-hasten", "kind": "send", "payload": {}, "delay_seconds": 3600},
    {"id": 7022, "queue": "b-hasten", "kind": "send", "payload": {}, "delay_seconds": 3600}]');
INSERT INTO livewell.dead_job
    (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload)
SELECT 7100 + n, now(), now(), 5, 5, 0, 0, 1,
    (ARRAY['mail', 'b-redrive', 'b-discard', 'b-group', 'b-all'])[1 + n / 10], 'send', 'attempts',
    CASE WHEN n = 3 THEN '{"password": "hunter2"}' ELSE '{"order": 1}' END::jsonb
FROM generate_series(0, 49) n WHERE mod(n, 10) < 5;
UPDATE livewell.data_type SET paused_at = now() WHERE name = 'profile';
UPDATE livewell.data_type SET parked_reason = 'HTTP 402' WHERE name = 'end_of_day';
INSERT INTO livewell.schedule (name, seen_at, created_at, every, timeout, kind, missed, internal)
SELECT name, now(), now(), '1 hour', '1 minute', 'interval', 'skip', name <> 'nightly'
FROM unnest(ARRAY['nightly', 'livewell.sweep']) AS name;
SELECT livewell.observe_alerts('queue_deep', 'P1', '10 minutes', ARRAY['mail'], ARRAY['mail is deep']);
INSERT INTO livewell.alert_channel (name, kind, source, level, repeats, since, disabled_at)
VALUES ('ops', 'webhook', 'env:OPS', 'P2', false, now(), NULL),
    ('phone', 'apprise', 'env:PHONE', 'P2', false, now(), now());
SELECT livewell.create_key('robot00001', sha256('x'), 'key', 'old robot', '{view}', NULL, false, NULL);
SELECT livewell.create_key('login00001', sha256('x'), 'login', 'ann', '{view}', NULL, false, 600)
"""
    ";\n" + PEOPLE.strip().rstrip(";")
)
GIVEN += ";\n" + OUTBOX.strip().replace("%", "%%")


def _limit(column: str) -> str:
    return f"SELECT {column} FROM livewell.limiter_credential WHERE limiter = 'fmp' AND name = 'FMP_API_KEY'"


def _many(at: str, link: str, press: str, query: str, found: object) -> ActCase:
    """All that match: a link of the list, the number, Enter; the workers do the rest."""
    n = press.rpartition(" ")[2]
    typed = {f"Type the number {n} to confirm": n}
    return ActCase("/acts", at, press, "has begun.", _BULK, query, found, link=link, typed=typed, then=_WORK)


WORK = [
    ActCase(
        "/queues/mail/pause",
        "/work",
        "Pause mail",
        "mail is paused: what runs may end",
        ("queues.pause mail",),
        paused("queue", "mail"),
        True,
    ),
    ActCase(
        "/queues/asleep/resume",
        "/work/jobs/7004",
        "Resume queue asleep",
        "asleep goes on.",
        ("queues.resume asleep",),
        paused("queue", "asleep"),
        False,
    ),
    ActCase(
        "/jobs/7001/cancel",
        "/work/jobs/7001",
        "Cancel job 7001",
        "Job 7001 is cancelled: it does not run.",
        ("jobs.cancel job 7001",),
        number("job", "id = 7001"),
        0,
    ),
    ActCase(
        "/jobs/7002/retry",
        "/work/jobs/7002",
        "Run now",
        "Job 7002 runs as soon as a worker is free.",
        ("jobs.retry job 7002",),
        "SELECT state::text FROM livewell.job WHERE id = 7002",
        "ready",
    ),
    ActCase(
        "/jobs/7003/reveal",
        "/work/jobs/7003",
        "Show it as it is stored",
        "hunter2",
        ("jobs.reveal job 7003",),
        number("audit", "action = 'jobs.reveal'"),
        1,
        where="#payload",
    ),
    ActCase(
        "/dead/7101/redrive",
        "/dead",
        "Redrive 7101",
        "Dead letter 7101 is redriven",
        ("dead.redrive job 7101",),
        number("job", "id = 7101"),
        1,
    ),
    ActCase(
        "/dead/7102/discard",
        "/dead/7102",
        "Discard this letter",
        "Dead letter 7102 is discarded.",
        ("dead.discard job 7102",),
        number("dead_job", "id = 7102"),
        0,
    ),
    ActCase(
        "/dead/7103/reveal",
        "/dead/7103",
        "Show it as it is stored, and edit it",
        "hunter2",
        ("dead.reveal job 7103",),
        number("audit", "action = 'dead.reveal'"),
        1,
        where="#payload",
    ),
    ActCase(
        "/dead/7104/edit",
        "/dead/7104",
        "Save the payload",
        "Dead letter 7104 has a new payload.",
        ("dead.edit job 7104",),
        "SELECT payload->>'order' FROM livewell.dead_job WHERE id = 7104",
        "20000000000000000001",
        opens="Edit the payload",
        typed={"The arguments of the task": '{"order": 20000000000000000001}'},
    ),
    ActCase(
        "/dead/7104/redrive",
        "/dead/7104",
        "Redrive",
        "Dead letter 7104 is redriven",
        ("dead.redrive job 7104",),
        number("job", "id = 7104 AND payload->>'order' = '20000000000000000001'"),
        1,
    ),
]

MANY = [
    _many(
        "/work/jobs?queue=b-cancel",
        "Cancel all that match…",
        "Cancel 2",
        number("job", "queue = 'b-cancel'"),
        0,
    ),
    _many(
        "/work/jobs?queue=b-hasten&state=delayed",
        "Run all that match now…",
        "Run now 2",
        number("job", "queue = 'b-hasten' AND state = 'ready'"),
        2,
    ),
    _many(
        "/work/jobs?queue=b-redrive&state=failed",
        "Retry all that match…",
        "Redrive 5",
        number("job", "queue = 'b-redrive'"),
        5,
    ),
    _many(
        "/work/jobs?queue=b-discard&state=failed",
        "Discard all that match…",
        "Discard 5",
        number("dead_job", "queue = 'b-discard'"),
        0,
    ),
    _many(
        "/dead",
        "Redrive b-group, send, attempts…",
        "Redrive 5",
        number("job", "queue = 'b-group'"),
        5,
    ),
    _many(
        "/dead?queue=b-all",
        "Discard all that match…",
        "Discard 5",
        number("dead_job", "queue = 'b-all'"),
        0,
    ),
    ActCase(
        "/work/pause",
        "/work?name=p-",
        "Pause 2 queues",
        "2 queues are paused: what runs may end, nothing more is begun.",
        ("queues.pause queues that begin with p-",),
        number("queue", "starts_with(name, 'p-') AND paused_at IS NOT NULL"),
        2,
        link="Pause all queues that begin with p-…",
        typed={"Type the number 2 to confirm": "2"},
    ),
    ActCase(
        "/work/pause",
        "/work?name=p-",
        "Resume 2 queues",
        "2 queues are resumed.",
        ("queues.resume queues that begin with p-",),
        number("queue", "starts_with(name, 'p-') AND paused_at IS NULL"),
        2,
        link="Resume all queues that begin with p-…",
        typed={"Type the number 2 to confirm": "2"},
    ),
    ActCase(
        "/acts/900/cancel",
        "/acts/900",
        "Cancel the rest",
        "Act 900 is cancelled: what is done stays done.",
        ("acts.cancel act 900",),
        "SELECT state FROM livewell.bulk_act WHERE id = 900",
        "cancelled",
        given="INSERT INTO livewell.bulk_act "
        "(id, asked_at, before_at, stepped_at, from_id, up_to_id, expected, action, asked_by, filter) "
        "OVERRIDING SYSTEM VALUE VALUES (900, now(), now(), now(), 0, 0, 9, 'cancel', 'cli:ann', '{}')",
    ),
]

_TTL = "SELECT ttl_override FROM livewell.ledger WHERE data_type = 'quote' AND key = 'MSFT'"

VALUES = [
    ActCase(
        "/types/quote/pause",
        "/types/quote",
        "Pause",
        "quote is paused: nothing of it is fetched until it is resumed.",
        ("types.pause quote",),
        paused("data_type", "quote"),
        True,
    ),
    ActCase(
        "/types/profile/resume",
        "/types/profile",
        "Resume",
        "profile is fetched again.",
        ("types.resume profile",),
        paused("data_type", "profile"),
        False,
    ),
    ActCase(
        "/types/end_of_day/resume",
        "/types/end_of_day",
        "Resume the parked type",
        "end_of_day is fetched again.",
        ("types.resume end_of_day",),
        "SELECT parked_reason FROM livewell.data_type WHERE name = 'end_of_day'",
        None,
    ),
    ActCase(
        "/types/quote/MSFT/ttl",
        "/types/quote/MSFT",
        "Set",
        "quote MSFT is fresh for 7 min after each check, from now on.",
        ("types.set_ttl quote MSFT",),
        _TTL,
        timedelta(minutes=7),
        typed={"A TTL of its own": "7m"},
    ),
    ActCase(
        "/types/quote/MSFT/ttl/clear",
        "/types/quote/MSFT",
        "Take it away",
        "quote MSFT has the TTL of its type again.",
        ("types.clear_ttl quote MSFT",),
        _TTL,
        None,
    ),
    ActCase(
        "/types/income_statement/MSFT/refresh",
        "/types/income_statement/MSFT",
        "Refresh now",
        "income_statement MSFT: a refresh is queued.",
        ("types.refresh income_statement MSFT",),
        number("job", "position('MSFT' in payload::text) > 0"),
        1,
    ),
]

UPSTREAMS = [
    ActCase(
        "/upstreams/fmp/pause",
        "/limits",
        "Pause fmp",
        "fmp is paused: nothing of it is fetched until it is resumed.",
        ("upstreams.pause fmp",),
        paused("upstream", "fmp"),
        True,
    ),
    ActCase(
        "/upstreams/fmp/resume",
        "/limits",
        "Resume fmp",
        "fmp is called again.",
        ("upstreams.resume fmp",),
        paused("upstream", "fmp"),
        False,
    ),
    ActCase(
        "/upstreams/fmp/resume",
        "/limits",
        "End the silence of fmp",
        "fmp is called again.",
        ("upstreams.resume fmp",),
        _limit("quiet_until"),
        None,
        given="UPDATE livewell.limiter_credential "
        "SET quiet_until = now() + interval '1 hour', quiet_since = now() WHERE name = 'FMP_API_KEY'",
    ),
    ActCase(
        "/upstreams/fmp/probe",
        "/limits",
        "Probe fmp FMP_API_KEY",
        "fmp: the next call tries whether it is back",
        ("upstreams.probe fmp",),
        _limit("open_until <= now()"),
        True,
    ),
    ActCase(
        "/upstreams/fmp/close",
        "/limits",
        "Close the breaker of fmp",
        "The breaker of fmp is closed: all calls are allowed again.",
        ("upstreams.close fmp",),
        _limit("breaker"),
        "closed",
        link="Close the breaker of fmp FMP_API_KEY…",
    ),
]

SCHEDULES = [
    ActCase(
        "/schedules/nightly/run",
        "/schedules",
        "Run now nightly",
        "A run of nightly is asked for.",
        ("schedules.run nightly",),
        "SELECT asked_at IS NOT NULL FROM livewell.schedule WHERE name = 'nightly'",
        True,
    ),
    ActCase(
        "/schedules/nightly/pause",
        "/schedules/nightly",
        "Pause nightly",
        "nightly is paused: slots that come are skipped.",
        ("schedules.pause nightly",),
        paused("schedule", "nightly"),
        True,
    ),
    ActCase(
        "/schedules/nightly/resume",
        "/schedules/nightly",
        "Resume nightly",
        "nightly goes on with its next slot.",
        ("schedules.resume nightly",),
        paused("schedule", "nightly"),
        False,
    ),
    ActCase(
        "/schedules/livewell.sweep/pause",
        "/schedules/livewell.sweep",
        "Pause livewell.sweep",
        "livewell.sweep is paused: slots that come are skipped.",
        ("schedules.pause livewell.sweep",),
        paused("schedule", "livewell.sweep"),
        True,
    ),
]

CASES = [*WORK, *MANY, *VALUES, *UPSTREAMS, *SCHEDULES, *ALERTS, *OUTGOING, *CONTACTS, *ACCESS, *LEAVING]
