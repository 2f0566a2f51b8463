"""F-F7: session ids that are not the caller's, on every session operation and on streams.

The ids are forged, swept, closed, used again after their end, or somebody else's. The operations
are those of the OpenAPI document.

A session id is what a ticket would be elsewhere. A caller who has an id and is not its user gets
the same answer as for an id that does not exist, byte for byte. That the requests are right
otherwise is shown with the id of a session that is the caller's own.

A session of a public key belongs to that key, not to a person. Another public key that knows its id
is not its user either (L12; until 0.6 it could use it).

Can it fail? Yes: without the comparison of users in refresh/push/streamed_sessions.py 36 streams of
others were accepted.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

from tests.faults.http_support import Operation, Said, Site, Visitor, open_site
from tests.faults.scenario import Findings, Scale

CODE = "F-F7"
TITLE = "session ids that are not the caller's"

SWEEP = (
    "UPDATE livewell.viewer_session SET seen_at = livewell.now() - interval '10 minutes' WHERE id = "
    "livewell.session_hash(%s)"
)
_LAST = ("DELETE", "/v1/sessions/{session}")  # ends the session: after the others


async def run(scale: Scale) -> Findings:
    """Everybody with every wrong id; then the right one."""
    findings = Findings()
    accepted = routes = 0
    async with open_site(scale) as site:
        operations = [one for one in await site.operations() if "session" in one.parameters]
        operations.sort(key=lambda one: (one.method, one.path) == _LAST)
        routes = len(operations)
        people = _people(site)
        for _ in range(scale.pick(1, 3)):
            for visitor in people:
                nothing = {str(one): await visitor.call(one, session=uuid.uuid4()) for one in operations}
                async for what, session in _wrong(scale, site, people, visitor):
                    for operation in operations:
                        answer = await visitor.call(operation, session=session)
                        findings.fired += 1
                        accepted += answer.accepted
                        findings.check(
                            _alike(answer, nothing[str(operation)]),
                            f"{visitor.name}: {what}: {operation}: {answer.status} {answer.body[:80]!r}",
                        )
                await _control(visitor, operations, findings)
        await _told(people[0], findings)
    findings.figures = {
        "accepted": accepted,
        "calls": findings.fired,
        "routes": routes,
    }
    return findings


def _people(site: Site) -> list[Visitor]:
    return [
        site.visitor("key", site.key().text),
        site.visitor("other key", site.key().text),
        site.visitor("token", site.token("ann")),
        site.visitor("other token", site.token("ben")),
        site.visitor("operator", site.key("view", "subscribe", "operate", "admin").text),
        site.visitor("public", site.key(public=True).text),
        site.visitor("other public", site.key(public=True).text),
    ]


def _alike(answer: Said, nothing: Said) -> bool:
    return answer.status == 404 and answer.seen == nothing.seen


async def _wrong(scale: Scale, site: Site, people: list[Visitor], visitor: Visitor) -> AsyncIterator[tuple[str, str]]:
    """Ids, each with what is wrong with it; made right before it is used."""
    own, chance = await visitor.session(), scale.random()
    for forged in (
        str(uuid.UUID(int=0)),
        str(uuid.UUID(int=2**128 - 1)),
        "x" * 36,
        own[:-1],
        own + "0",
        f"{{{own[1:-1]}}}",
    ):
        yield "forged", forged
    for hostile in (
        f"{own[:35]}%",
        f"{own[:30]}' OR 1",
        "../sessions",
        f"{own}\0",
        f"urn:uuid:{own}",
        "é" * 36,
        "0" * 4000,
    ):
        yield "malformed", hostile
    for bit in chance.sample(range(128), scale.pick(6, 128)):
        yield "one bit changed", str(uuid.UUID(int=uuid.UUID(own).int ^ (1 << bit)))
    for other in people:
        if other is not visitor:
            yield f"of {other.name}", await other.session()
    swept = await visitor.session()
    site.fleet.rows(SWEEP, (swept,))
    site.fleet.rows("SELECT livewell.sweep_sessions(1000)")
    yield "swept", swept
    closed = await visitor.session()
    assert (await visitor.ask("DELETE", f"/v1/sessions/{closed}")).status == 204
    yield "closed", closed
    yield "closed, once more", closed
    taken = await visitor.session()
    assert (await visitor.ask("DELETE", f"/v1/sessions/{taken}")).status == 204
    heir = next(one for one in people if one is not visitor)
    assert (await heir.ask("POST", "/v1/sessions", json={"session": taken})).status == 201
    yield "closed, and opened by somebody else", taken


async def _control(visitor: Visitor, operations: list[Operation], findings: Findings) -> None:
    """The same requests are right for a session of one's own."""
    session = await visitor.session()
    for operation in operations:
        answer = await visitor.call(operation, session=session)
        findings.check(answer.accepted, f"{visitor.name}: their own session: {operation}: {answer.status}")


async def _told(visitor: Visitor, findings: Findings) -> None:
    """A stream that is open when its session is closed says so and ends; the id opens no other."""
    session = await visitor.session()
    stream = await visitor.stream(session)
    await visitor.ask("DELETE", f"/v1/sessions/{session}")
    name, data = await stream.next("bye")
    findings.check((name, data) == ("bye", {"reason": "session"}), f"the stream of a closed session said {name} {data}")
    again = await visitor.ask("GET", f"/v1/sessions/{session}/stream")
    findings.check(again.status == 404, f"a closed session was streamed again: {again.status}")
