"""F-F5 for HTTP: secrets go through every operation of the OpenAPI document.

The secrets exist nowhere else. They are sent right, slightly wrong, in the wrong place, and while
the database cannot be reached.

An API key, a login link and the cookie it gives, a token and the secret it is signed with, the
passwords of the server's three logins, the upstream's credential. Afterwards each is looked for, as
it is and encoded, in all that the server wrote, in every column of every table, in the statements
that the database shows, in its command line, in every answer (status, headers, body) and in every
frame of the streams. The one answer that may hold one is the Set-Cookie of the login, and it is
known by heart.

What callers put where values belong (a type, a key, a time to live that is refused) is their own
and comes back to them; everything else must not.

Can it fail? Yes: a key sent as a time to live came back in the problem document and was found; and
each run plants the key in a table and must find it there.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from livewell.testing.sse_client import EventStream
from tests.faults.http_support import BODIES, NOWHERE, Operation, Shelf, Site, Visitor, open_site
from tests.faults.scenario import Findings, Scale
from tests.faults.scenarios.f_f5_secret import TABLES

CODE = "F-F5-http"
TITLE = "secrets of the server are nowhere but in their header"

# Where people put a secret by mistake. Fields are those whose values are never given back.
QUERY = ("api_key", "after", "limit", "max_age", "wait", "state")
HEADERS = ("Host", "Origin", "Last-Event-ID", "Content-Type", "X-Api-Key", "Referer", "If-None-Match", "Cookie")
FIELDS = (
    "token",
    "session",
    "subscriptions",
    "strategy",
    "cron",
    "zone",
    "ids",
    "queue",
    "kind",
    "document",
    "options",
)
NOBODYS = {"session": "none", "id": 1, "job_id": 1, "type": "quote", "name": "quote", "key": "AAPL", "signed": "none"}
PLANTED = "CREATE TABLE public.planted AS SELECT %s::text AS note"
NO_LOGIN, LOGIN = "ALTER ROLE {} NOLOGIN", "ALTER ROLE {} LOGIN"
CUT_OFF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY (%s)"


@dataclass(slots=True)
class Ears:
    """Everything that was answered."""

    answers: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    async def ask(self, visitor: Visitor, method: str, path: str, **options: Any) -> int:
        answer = await visitor.ask(method, path, **options)
        self.answers.append(f"{answer.status} {dict(answer.headers)} {answer.body.decode(errors='replace')}")
        self.statuses.add(answer.status)
        return answer.status


async def run(scale: Scale) -> Findings:
    """Through every route; then look everywhere."""
    findings, ears = Findings(), Ears()
    canaries = {
        "jwt secret": f"canary-{secrets.token_urlsafe(40)}",
        "credential": f"canary-{secrets.token_urlsafe(24)}",
        "link key": f"canary-{secrets.token_urlsafe(40)}",
    }
    async with open_site(
        scale,
        jwt_secret=canaries["jwt secret"],
        credential=canaries["credential"],
        export_link_keys=f"k1:{canaries['link key']}",
        log_level="debug",
        call_timeout_seconds=5,
    ) as site:
        operations = await site.operations()
        operations.sort(key=lambda one: one.method == "DELETE")  # what is there is used first
        operator = ("view", "subscribe", "operate", "admin", "export")
        canaries["key"] = site.key(*operator).text
        canaries["token"] = site.token("ann", scope=" ".join(operator))
        canaries["link"] = site.key(*operator, kind="link").text
        canaries |= {role: password for role, (_, password) in site.logins.items()}
        stranger = site.visitor("stranger", None)
        canaries["cookie"] = await _log_in(stranger, canaries["link"], findings)
        shelf = await site.shelf(site.visitor("key", canaries["key"]))
        for visitor in _visitors(site, canaries):
            await _everywhere(site, visitor, operations, shelf, ears)
        for name in ("key", "token", "link", "cookie")[: scale.pick(1, 4)]:
            await _misplace(site, operations, canaries[name], ears)
        await _listen(site, canaries, ears)
        await _without_database(site, canaries, operations, ears, findings)
        await _search(site, canaries, shelf, ears, findings)
    return findings


async def _log_in(stranger: Visitor, link: str, findings: Findings) -> str:
    answer = await stranger.client.post("/v1/login", json={"token": link})
    cookie = answer.cookies.get("livewell") or ""
    findings.check(
        answer.status_code == 204 and cookie.startswith("lw_"), f"the login was answered {answer.status_code}"
    )
    others = {name: value for name, value in answer.headers.items() if name != "set-cookie"}
    findings.check(cookie not in f"{others}{answer.text}", "the login is told besides its cookie")
    stranger.client.cookies.clear()
    return cookie


def _visitors(site: Site, canaries: dict[str, str]) -> list[Visitor]:
    """Everybody who is let in, and those who are almost."""
    browser = site.visitor("cookie", None)
    browser.client.headers.update({"Cookie": f"livewell={canaries['cookie']}", "Origin": site.base})
    elsewhere = site.visitor("cookie from elsewhere", None)
    elsewhere.client.headers.update({"Cookie": f"livewell={canaries['cookie']}", "Origin": "https://evil.example"})
    odd = [f"Basic {canaries['key']}", f"Bearer  {canaries['key']}", f"Bearer {canaries['key']},{canaries['token']}"]
    others = []
    for number, text in enumerate(odd):
        others.append(site.visitor(f"odd {number}", None))
        others[-1].client.headers["Authorization"] = text
    return [
        site.visitor("key", canaries["key"]),
        site.visitor("token", canaries["token"]),
        browser,
        elsewhere,
        site.visitor("almost the key", f"{canaries['key']}x"),
        site.visitor("almost the token", f"{canaries['token']}x"),
        site.visitor("an old token", site.token("ann", exp=int(time.time()) - 3600)),
        site.visitor("the cookie as a key", canaries["cookie"]),
        site.visitor("the link as a key", canaries["link"]),
        *others,
    ]


async def _everywhere(site: Site, visitor: Visitor, operations: list[Operation], shelf: Shelf, ears: Ears) -> None:
    """Every operation, as it should be and with a body that is wrong.

    Documents and exports are those of the first visitor.
    """
    opened = await visitor.ask("POST", "/v1/sessions")
    session = json.loads(opened.body).get("session", "none")
    job = next(iter(site.fleet.jobs.values()))
    for operation in operations:
        if operation.path == "/v1/logout" or (operation.method == "DELETE" and operation.path.endswith("{session}")):
            continue  # the login and the session are still needed
        values = {"session": session, "id": job, "job_id": job, "type": "quote", "name": "quote", "key": "AAPL"}
        path = operation.address(**{**values, **shelf.values(operation)})
        await ears.ask(visitor, operation.method, path, json=BODIES[operation.body] if operation.body else None)
        if operation.body:
            await ears.ask(visitor, operation.method, path, json={"nothing": [1]})
            await ears.ask(visitor, operation.method, path, content=b"{not json")


def _nowhere(operation: Operation) -> dict[str, object]:
    """Documents and exports have ids of another kind."""
    return {"id": NOWHERE} if operation.path.startswith(("/v1/exports/", "/v1/resumes/")) else {}


async def _misplace(site: Site, operations: list[Operation], secret: str, ears: Ears) -> None:
    """The secret where it does not belong.

    Query, session, number, cursor, headers, values of bodies.
    """
    visitor = site.visitor("clumsy", site.key("view", "subscribe", "operate", "export").text)
    for operation in operations:
        values = dict.fromkeys(("session", "id", "job_id", "type", "name", "signed"), secret) | {"key": "AAPL"}
        body = BODIES[operation.body] if operation.body else None
        await ears.ask(visitor, operation.method, operation.address(**values), json=body)
        plain = operation.address(**NOBODYS | _nowhere(operation))
        for name in QUERY:
            await ears.ask(visitor, operation.method, plain, params={name: secret}, json=body)
        for name in HEADERS:
            await ears.ask(visitor, operation.method, plain, headers={name: secret}, json=body)
        for name in FIELDS if operation.body else ():
            await ears.ask(visitor, operation.method, plain, json={name: secret})
            await ears.ask(visitor, operation.method, plain, json={name: [secret]})
    for sent in ({"token": f"{secret}x"}, {"token": secret * 10}, {"token": [secret]}, {"session": secret}):
        await ears.ask(visitor, "POST", "/v1/login", json=sent)
        await ears.ask(visitor, "POST", "/v1/sessions", json=sent)
    for path in (
        f"/v1/{secret}",
        f"/{secret}",
        f"/static/{secret}/x.js",
        f"/login?token={secret}",
        f"/v1/jobs/{secret}/why",
    ):
        await ears.ask(visitor, "GET", path)


async def _listen(site: Site, canaries: dict[str, str], ears: Ears) -> None:
    """Streams of a session and of a job, by key and by token, from the first frame to the goodbye."""
    job = list(site.fleet.jobs.values())[-1]  # the first was cancelled by those who may
    for name in ("key", "token"):
        visitor = site.visitor(name, canaries[name])
        session = await visitor.session()
        for path in (f"/v1/sessions/{session}/stream", f"/v1/jobs/{job}/stream"):
            stream = await EventStream.open(
                site.base, path, key=canaries[name], on_event=lambda kind, data: ears.frames.append(f"{kind} {data!r}")
            )
            visitor.streams.append(stream)
            ears.answers.append(f"{stream.status} {stream.headers} {stream.body!r}")
        await asyncio.sleep(0.5)
        await visitor.ask("DELETE", f"/v1/sessions/{session}")
    await asyncio.sleep(0.5)


async def _without_database(
    site: Site, canaries: dict[str, str], operations: list[Operation], ears: Ears, findings: Findings
) -> None:
    """The server's logins are refused for a while: what it says of that holds no password."""
    names = [name for name, _ in site.logins.values()]
    for name in names:
        site.fleet.rows(NO_LOGIN.format(name))
    site.fleet.rows(CUT_OFF, (names,))
    heard = Ears()
    try:
        visitor = site.visitor("key", canaries["key"])
        await asyncio.gather(
            *(
                heard.ask(
                    visitor,
                    one.method,
                    one.address(**NOBODYS | _nowhere(one)),
                )
                for one in operations
                if not one.path.endswith("/stream")
            )
        )
        await heard.ask(visitor, "GET", "/readyz")
    finally:
        for name in names:
            site.fleet.rows(LOGIN.format(name))
    ears.answers += heard.answers
    ears.statuses |= heard.statuses
    findings.check(503 in heard.statuses, f"the database was away, and the answers were {heard.statuses}")


def _forms(secret: str) -> set[str]:
    """As it is, as an address has it, as Basic has it, and a good part of it.

    Of a token its signature, of a key its secret half.
    """
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    half = secret.rsplit(".", 1)[-1] if secret.startswith("eyJ") else secret
    if secret.startswith("lw_"):
        half = secret.split("_", 2)[-1]
    return {secret, quote(secret, safe=""), encoded, half, half[:20], secret.encode().hex()}


async def _search(site: Site, canaries: dict[str, str], shelf: Shelf, ears: Ears, findings: Findings) -> None:
    places = _places(site, ears)
    hits = {f"{name} in {place}": n for name, text in canaries.items() for place, n in _found(places, text)}
    findings.check(not hits, f"found: {hits}")
    # Whoever has a link may load the file: it is told to its owner, and stands nowhere else.
    links = [place for place, _ in _found(places, shelf.signed) if place != "answers"]
    findings.check(not links, f"a link to a file was found in {links}")
    # The search itself: what is planted is found, and only where it was planted.
    site.fleet.rows(PLANTED, (f"note: {canaries['key']}",))
    planted = [place for place, _ in _found(_places(site, ears), canaries["key"])]
    findings.check("public.planted" in planted, f"what was planted was found in {planted}")
    for status in (200, 201, 204, 400, 401, 403, 404, 503):
        findings.check(status in ears.statuses, f"nothing was answered {status}: not everything was tried")
    findings.check(bool(ears.frames), "no stream said anything")
    findings.check(bool(places["log"]), "the server wrote nothing: there was nothing to look at")
    findings.fired = len(ears.answers)
    findings.figures = {
        "occurrences": sum(hits.values()),
        "secrets": len(canaries),
        "answers": len(ears.answers),
        "places_searched": len(places),
        "bytes_searched": sum(map(len, places.values())),
    }


def _found(places: dict[str, str], secret: str) -> Iterable[tuple[str, int]]:
    forms = _forms(secret)
    return [(place, n) for place, text in places.items() if (n := sum(text.count(form) for form in forms))]


def _places(site: Site, ears: Ears) -> dict[str, str]:
    tables = {name: str(site.fleet.rows(f"SELECT t::text FROM {name} t")) for (name,) in site.fleet.rows(TABLES)}
    return {
        **tables,
        "statements": str(
            site.fleet.rows(
                "SELECT query, application_name FROM pg_stat_activity WHERE usename = ANY (%s)",
                ([name for name, _ in site.logins.values()],),
            )
        ),
        "log": "\n".join(site.server.lines()),
        "command": Path(f"/proc/{site.server.pid}/cmdline").read_text(encoding="utf-8"),
        "answers": "\n".join(ears.answers),
        "frames": "\n".join(ears.frames),
    }
