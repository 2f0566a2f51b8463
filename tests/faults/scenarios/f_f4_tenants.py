"""F-F4: everybody asks for everybody else's sessions, streams, types, jobs, documents and exports.

They try every operation of the OpenAPI document.

Two API keys, two people with tokens and two public keys have sessions and open streams. Each is
tried with the ids of all the others, and each time with an id that nobody has: status, body and
headers must be the same, byte for byte. Types belong to somebody too: a key that is bound to some
must not tell another type from none. And asking has changed nothing: sessions, their last signs of
life, subscriptions and jobs are as they were, and no stream was told to go.

One more user has a résumé, exports that came to every end, a batch and a link to a file. Others, who
may export as well, try these ids, and links that are forged, changed or of another user. That the
requests are right otherwise is shown by their owner, at the end.

A second round has everybody at the bound of their streams: what is refused there must not depend on
whether the session of somebody else is being streamed.

Can it fail? Yes: without the comparison of users in refresh/push/streamed_sessions.py 40 streams of
others were opened; and when any stream of the same name passed the bound, 404 instead of 429 told
that a session exists (20 of 20). With one owner for all logins in server/auth/owner.py exports,
batches and résumés of others were shown.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from livewell.exports.artifacts.link_keys import parse_link_keys
from livewell.exports.artifacts.links import LinkKeys
from tests.faults.http_support import LINK_KEY, NOWHERE, Operation, Shelf, Site, Visitor, open_site
from tests.faults.scenario import Findings, Scale

CODE = "F-F4"
TITLE = "everybody with everybody else's ids"

HIDDEN_TYPE, NO_TYPE = "secret_quote", "nobodys_quote"
STREAMS_MAX = 2
SCOPES = ("view", "subscribe", "export")  # of those who have documents of their own; a public key has none
SOMEBODY, OTHER, NOBODY = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
ROOMS: Mapping[str, tuple[object, object]] = {  # somebody's and nobody's, by how a path begins; the first counts
    "/v1/queues/": ("work", "nobodys"),
    "/v1/schedules/": ("somebodys", "nobodys"),
    "/v1/runs/": ("somebodys", "nobodys"),
    "/v1/upstreams/": ("fmp", "nobodys"),
    "/v1/singletons/": ("due", "nobodys"),
    "/v1/alerts/channels/": ("pager", "nobodys"),
    "/v1/alerts/": (1, 2**62),
    "/v1/acts/": (1, 2**62),
    "/v1/outbox/sinks/": ("shop", "nobodys"),
    "/v1/outbox/events/": (1, 2**62),
    "/v1/outbox/replays/": (1, 2**62),
    "/v1/contacts/conflicts/": (1, 2**62),
    "/v1/contacts/merges/": (1, 2**62),
    "/v1/contacts/policies/": ("email", "nobodys"),
    "/v1/contacts/": (SOMEBODY, NOBODY),
}
Ids = tuple[Mapping[str, object], Mapping[str, object]]  # somebody's, and nobody's
STATE = """
SELECT 'session', id::text, user_id, subs_version::text, seen_at::text FROM livewell.viewer_session
UNION ALL SELECT 'subscription', session_id::text, user_id, data_type, key FROM livewell.subscription
UNION ALL SELECT 'job', id::text, queue, kind, state::text FROM livewell.job
UNION ALL SELECT 'queue', name, paused_at::text, NULL, NULL FROM livewell.queue
UNION ALL SELECT 'type', name, ttl::text, paused_at::text, version::text FROM livewell.data_type
UNION ALL SELECT 'schedule', name, asked_at::text, paused_at::text, NULL FROM livewell.schedule
UNION ALL SELECT 'upstream', name, paused_at::text, NULL, NULL FROM livewell.upstream
UNION ALL SELECT 'channel', name, disabled_at::text, quiet_until::text, NULL FROM livewell.alert_channel
UNION ALL SELECT 'act', id::text, action, state, NULL FROM livewell.bulk_act
UNION ALL SELECT 'singleton', name, fence::text, NULL, NULL FROM livewell.singleton
UNION ALL SELECT 'sink', name, paused_at::text, NULL, NULL FROM livewell.event_sink
UNION ALL SELECT 'event', number::text, topic, payload::text, NULL FROM livewell.event
UNION ALL SELECT 'replay', id::text, state::text, ended_at::text, NULL FROM livewell.event_replay
UNION ALL SELECT 'contact', id::text, tenant, fields::text, NULL FROM livewell.contact
UNION ALL SELECT 'identity', contact_id::text, tenant, type, value FROM livewell.contact_identity
UNION ALL SELECT 'conflict', id::text, state, decided_at::text, NULL FROM livewell.contact_conflict
UNION ALL SELECT 'merge', id::text, undone_at::text, NULL, NULL FROM livewell.contact_merge
UNION ALL SELECT 'policy', tenant, type, changed_at::text, NULL FROM livewell.identity_policy
UNION ALL SELECT 'export', id::text, state, seq::text, downloads::text FROM livewell.export
UNION ALL SELECT 'batch', id::text, ended_at::text, NULL, NULL FROM livewell.export_batch
UNION ALL SELECT 'file', path, state, NULL, NULL FROM livewell.export_file
UNION ALL SELECT 'usage', user_id, stored_bytes::text, reserved_bytes::text, day_count::text FROM livewell.export_usage
UNION ALL SELECT 'resume', id::text, user_id, version::text, changed_at::text FROM livewell.resume_document
UNION ALL SELECT 'version', document_id::text, user_id, version::text, hash::text FROM livewell.resume_version
"""
STAGED = (
    (
        "SELECT livewell.declare_schedule('somebodys', 'interval', NULL, NULL, interval '1 hour', NULL, 'once', "
        "interval '1 hour', false, false)"
    ),
    (
        "INSERT INTO livewell.alert_channel (name, kind, source, level, repeats, since) "
        "VALUES ('pager', 'webhook', 'env:PAGER', 'P2', false, now())"
    ),
    (
        "INSERT INTO livewell.bulk_act (asked_at, before_at, stepped_at, from_id, up_to_id, expected, action, asked_by, filter) "
        "VALUES (now(), now(), now(), 0, 0, 0, 'cancel', 'cli:test', '{}')"
    ),
    "SELECT livewell.ensure_event_days(3)",
    "SELECT livewell.declare_sink('shop', 'webhook', ARRAY['orders.*'], '{}')",
    (
        "INSERT INTO livewell.event (number, created_at, day, topic, tenant, key, payload) "
        "VALUES (1, now(), (now() AT TIME ZONE 'UTC')::date, 'orders.created', 'somebody', '42', '{}')"
    ),
    (
        "INSERT INTO livewell.event_replay "
        "(created_at, from_at, to_at, fed_at, rate, first_number, last_number, place, day, sink, request_key) "
        "SELECT now(), now(), now(), now(), 1, 1, 1, 1, (now() AT TIME ZONE 'UTC')::date, id, 'somebodys' "
        "FROM livewell.event_sink"
    ),
    (
        "INSERT INTO livewell.contact (tenant, id, created_at) "
        f"VALUES ('default', '{SOMEBODY}', now()), ('default', '{OTHER}', now())"
    ),
    (
        "INSERT INTO livewell.contact_identity (tenant, type, value, original, added_at, contact_id) "
        f"VALUES ('default', 'email', 'somebody@example.com', 'somebody@example.com', now(), '{SOMEBODY}')"
    ),
    (
        "INSERT INTO livewell.contact_conflict (tenant, one_id, other_id, state, why, opened_at) "
        f"VALUES ('default', '{SOMEBODY}', '{OTHER}', 'waiting', 'a test', now())"
    ),
    (
        "INSERT INTO livewell.contact_merge "
        "(tenant, winner_id, loser_id, loser_born_at, merged_at, why, done_by, moved, fields, gained, aliases) "
        f"VALUES ('default', '{SOMEBODY}', '{uuid.UUID(int=4)}', now(), now(), 'a test', 'a test', '[]', '{{}}', '{{}}', '{{}}')"
    ),
)


@dataclass(slots=True)
class Tried:
    """What was asked, and how long it took; not a judge, a figure."""

    routes: set[str] = field(default_factory=set)
    calls: int = 0
    leaks: int = 0
    foreign: list[float] = field(default_factory=list)
    unknown: list[float] = field(default_factory=list)


async def run(scale: Scale) -> Findings:
    """Everybody with everything."""
    findings, tried = Findings(), Tried()
    async with open_site(scale, user_streams_max=STREAMS_MAX) as site:
        operations = [one for one in await site.operations() if one.parameters]
        people = _people(site)
        sessions = {visitor.name: await visitor.session() for visitor in people}
        held = [await visitor.stream(sessions[visitor.name]) for visitor in people]
        for statement in STAGED:
            site.fleet.rows(statement)
        owner = site.visitor("owner", site.key("export").text)
        shelf = await site.shelf(owner)
        before = _state(site)
        for _ in range(scale.pick(1, 10)):
            for operation in operations:
                for visitor in people:
                    foreign = [one for name, one in sessions.items() if name != visitor.name]
                    await _try(visitor, operation, _values(site, operation, foreign, shelf), tried, findings)
                for visitor in _bound(site):
                    await _try(visitor, operation, _types(operation), tried, findings)
        findings.check(_state(site) == before, "asking for what is not theirs has changed something")
        await _lists(site, people, sessions, tried, findings, shelf=shelf)
        await _crowded(people, sessions, operations, tried, findings, shelf=shelf)
        await _owned(owner, shelf, operations, findings)
        findings.check(not any(stream.ended.is_set() for stream in held), "a stream was ended by somebody else")
        untried = {str(one) for one in operations} - tried.routes
        findings.check(not untried, f"no id was tried on {sorted(untried)}")
        findings.fired = tried.calls
        findings.figures = {
            "leaks": tried.leaks,
            "calls": tried.calls,
            "routes": len(tried.routes),
            "visitors": len(people),
            "foreign_ms_median": round(median(tried.foreign) * 1000, 2),
            "unknown_ms_median": round(median(tried.unknown) * 1000, 2),
        }
    return findings


def _state(site: Site) -> list[str]:
    return sorted(map(str, site.fleet.rows(STATE)))


def _people(site: Site) -> list[Visitor]:
    """Nobody of them operates anything."""
    return [
        site.visitor("key ann", site.key(*SCOPES).text),
        site.visitor("key ben", site.key(*SCOPES).text),
        site.visitor("token ann", site.token("ann", scope=" ".join(SCOPES))),
        site.visitor("token ben", site.token("ben", scope=" ".join(SCOPES))),
        site.visitor("public", site.key(public=True).text),
        site.visitor("other public", site.key(public=True).text),
    ]


def _bound(site: Site) -> list[Visitor]:
    """They may read quotes and nothing else; who is bound operates nothing (M2)."""
    return [
        site.visitor("bound", site.key(types=["quote"]).text),
        site.visitor("bound public", site.key(types=["quote"], public=True).text),
    ]


def _values(site: Site, operation: Operation, sessions: list[str], shelf: Shelf) -> list[Ids]:
    """Ids of others, each with one that nobody has.

    Types are not here: these callers may read all of them.
    """
    if "session" in operation.parameters:
        return [({"session": one}, {"session": str(uuid.uuid4())}) for one in sessions]
    if operation.path.startswith(("/v1/jobs/", "/v1/dead/")):
        [name] = operation.parameters
        return [({name: job}, {name: 2**62 + job}) for job in site.fleet.jobs.values()]
    if shelf.values(operation):
        return _shelved(operation, shelf)
    pair = next((ids for begin, ids in ROOMS.items() if operation.path.startswith(begin)), None)
    if pair is None:
        return []
    [name] = operation.parameters
    return [({name: pair[0]}, {name: pair[1]})]


def _shelved(operation: Operation, shelf: Shelf) -> list[Ids]:
    """Of documents and exports; a link is whole to whoever has it, so those here are not."""
    [name] = operation.parameters
    if name == "signed":
        return [({name: theirs}, {name: nobodys}) for theirs, nobodys in _links(shelf)]
    exports = operation.path.startswith("/v1/exports/{id}")
    theirs = shelf.exports if exports else (str(shelf.values(operation)[name]),)
    return [({name: one}, {name: str(uuid.uuid4())}) for one in theirs]


def _links(shelf: Shelf) -> list[tuple[str, str]]:
    """Links of an export: with a key that is not the server's, with its key but of another user, and changed."""
    until, mine = int(time.time()) + 600, LinkKeys(parse_link_keys(f"k1:{'x' * 64}"))
    servers, nobodys = LinkKeys(parse_link_keys(LINK_KEY)), "key:nobody"
    nowhere = servers.sign(NOWHERE, nobodys, until)
    changed = [shelf.signed[:-9] + "A" * 9, shelf.signed[:-1], shelf.signed + "A", shelf.signed.swapcase()]
    forged = [(mine, "key ann", export) for export in shelf.exports] + [(servers, nobodys, shelf.finished)]
    signed = [keys.sign(uuid.UUID(export), user, until) for keys, user, export in forged]
    return [(one, nowhere) for one in [*signed, *changed]]


def _types(operation: Operation) -> list[Ids]:
    if not operation.path.startswith(("/v1/types/", "/v1/data/")):
        return []
    nobodys = {"key": "AAPL", "name": NO_TYPE, "type": NO_TYPE}
    return [({"key": key, "name": HIDDEN_TYPE, "type": HIDDEN_TYPE}, nobodys) for key in ("AAPL", "NEVER")]


async def _try(
    visitor: Visitor,
    operation: Operation,
    pairs: list[Ids],
    tried: Tried,
    findings: Findings,
) -> None:
    for theirs, nobodys in pairs:
        there, nowhere = await visitor.call(operation, **theirs), await visitor.call(operation, **nobodys)
        tried.routes.add(str(operation))
        tried.calls += 1
        tried.foreign.append(there.seconds)
        tried.unknown.append(nowhere.seconds)
        same = there.seen == nowhere.seen and not there.accepted
        tried.leaks += not same
        findings.check(
            same,
            f"{visitor.name}: {operation}: {there.status} {there.body[:80]!r}, for an id that nobody has "
            f"{nowhere.status} {nowhere.body[:80]!r}",
        )


async def _lists(
    site: Site, people: list[Visitor], sessions: dict[str, str], tried: Tried, findings: Findings, *, shelf: Shelf
) -> None:
    """What has no id in its path must not tell any.

    An id in the body opens nothing that is somebody else's.
    """
    lists = [one for one in await site.operations() if not one.parameters and one.method == "GET"]
    for visitor in [*people, *_bound(site)]:
        secrets = {one for name, one in sessions.items() if name != visitor.name}
        secrets |= {*shelf.exports, shelf.resume, shelf.batch, shelf.signed}
        if visitor.name.startswith("bound"):
            secrets.add(HIDDEN_TYPE)
        for operation in lists:
            answer = await visitor.call(operation)
            told = [one for one in secrets if one.encode() in answer.body]
            tried.calls += 1
            tried.leaks += bool(told)
            findings.check(not told, f"{visitor.name}: {operation} tells {told}")
        for name, session in sessions.items():
            if name == visitor.name or (name == "public" and visitor.name == "bound public"):
                continue  # an anonymous session is of whoever knows its id: F-F7
            answer = await visitor.ask("POST", "/v1/sessions", json={"session": session})
            tried.calls += 1
            tried.leaks += answer.accepted
            findings.check(answer.status == 404, f"{visitor.name}: opened somebody else's session: {answer.status}")


async def _crowded(
    people: list[Visitor],
    sessions: dict[str, str],
    operations: list[Operation],
    tried: Tried,
    findings: Findings,
    *,
    shelf: Shelf,
) -> None:
    """At the bound of their streams."""
    [stream] = [one for one in operations if one.path.endswith("/sessions/{session}/stream")]
    for visitor in people:
        for _ in range(STREAMS_MAX * (10 if visitor.name.endswith("public") else 1) - 1):
            await visitor.stream(await visitor.session())
        full = await visitor.call(stream, session=await visitor.session())
        findings.check(full.status == 429, f"{visitor.name}: one stream more than the bound was answered {full.status}")
    for visitor in people:
        foreign = [one for name, one in sessions.items() if name != visitor.name]
        await _try(
            visitor, stream, [({"session": one}, {"session": str(uuid.uuid4())}) for one in foreign], tried, findings
        )
        for operation in operations:
            if operation.path.startswith("/v1/exports/") and operation.path.endswith("/stream"):
                await _try(visitor, operation, _shelved(operation, shelf), tried, findings)


async def _owned(owner: Visitor, shelf: Shelf, operations: list[Operation], findings: Findings) -> None:
    """The same requests are right for their own documents and exports; what ends something comes last."""
    for operation in sorted(operations, key=lambda one: (one.method == "DELETE", one.path.endswith("/cancel"))):
        if values := shelf.values(operation):
            answer = await owner.call(operation, **values)
            findings.check(answer.accepted, f"the owner: {operation}: {answer.status} {answer.body[:200]!r}")
