"""What every request passes before any route sees it, in this order:

host ──▶ preflight of another origin ──▶ announced size ──▶ who (below /v1) ──▶ how often ──▶ the whole body ──▶ a place ──▶ the client's own line, or that of large bodies ──▶ route

connection/limits.py bounds what a connection may cost before this. The rate comes before a place: a
client that asks too often is told so and takes no place. The body is read before a place is taken:
a client that drips its body holds none. Health checks need no place. Every bound that clients share
has a share for each of them (bounds/request_slots.py).

The gate is written against ASGI itself: nothing here holds an answer back, so streams pass through.
Everything below /v1 needs a caller unless it is in OPEN; a route cannot forget to ask.
"""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import nullcontext
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from livewell.errors import LivewellError
from livewell.host import host_name
from livewell.server.answers.problems import Problem, busy, too_many
from livewell.server.auth.caller import Caller
from livewell.server.bounds.client_lines import ClientLines
from livewell.server.bounds.client_rates import Kind
from livewell.server.bounds.request_slots import RequestSlots
from livewell.server.connection.network import network
from livewell.server.connection.protocol import connection_of, know
from livewell.server.connection.refusals import Kind as Refusal
from livewell.server.dashboard.frame import Frame
from livewell.server.dashboard.live import Paintings
from livewell.server.process import ServerProcess
from livewell.telemetry.measures import REQUEST_SECONDS, REQUESTS

API = "/v1/"
HEALTH = frozenset({"/healthz", "/readyz", "/health/schedules"})
OPEN = frozenset({"/v1/openapi.json", "/v1/login"})  # below /v1, and without a caller
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")
_METHODS = "GET, POST, PUT, PATCH, DELETE"
_KNOWN = frozenset(
    {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}
)  # a method is the client's word: others are counted together
OPEN_BELOW = "/v1/download/"  # a signed link is its own proof
_STREAM = re.compile(r"/v1/((sessions|jobs|exports|exports/batch)/[^/]+|pages)/stream")
_LONG = re.compile(r"/v1/(download/[^/]+|exports/batch/[^/]+/zip)")  # as long as the client takes to read it
_BODIES_BYTES_MAX = 67_108_864  # of requests whose bodies are still coming
_PHOTO_BYTES = 65_536  # a document with a photo is large, and costs no more than a small one
_HEAVY_BYTES = 8192  # a body with some two hundred keys; a thousand take the database 120 to 160 ms
_STRANGERS_MAX = (
    2000  # callers looked up at once: after a restart all streams come back together, each with a key of its own
)
_REFUSALS: dict[int, Refusal] = {
    401: "unknown_caller",
    408: "slow_body",
    411: "chunked_body",
    413: "large_body",
    429: "too_often",
    503: "busy",
}


class Gate:
    """The gate of one server."""

    def __init__(self, app: ASGIApp, state: ServerProcess, frame: Frame) -> None:
        self._app = app
        self._state = state
        self._frame = frame
        self._paintings = Paintings(frame)
        self._settings = state.settings
        self._hosts = frozenset({*_LOCAL, *state.settings.hosts})
        self._origins = frozenset(state.settings.origins)
        self._strangers = RequestSlots("logins under way", _STRANGERS_MAX, _STRANGERS_MAX // 20)
        self._suspects = ClientLines(1)  # addresses whose logins fail too often: one look-up at a time for each
        self._bodies = RequestSlots("bytes of bodies", _BODIES_BYTES_MAX, _BODIES_BYTES_MAX // 8)
        self._requests = RequestSlots("requests", state.settings.requests_max, max(4, state.settings.requests_max // 4))
        self._lines = ClientLines(max(1, state.settings.pool_size_max // 3))
        self._own_heavy = ClientLines(1)
        self._heavy = ClientLines(max(1, state.settings.pool_size_max // 10))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return  # no websockets here, and what has to start has started before
        scope.setdefault("state", {}).update(server=self._state, paintings=self._paintings)
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        allowed = origin if origin is not None and origin.lower() in self._origins else None
        send = _counted(_dressed(send, scope, allowed), scope)
        try:
            if scope["path"] in HEALTH:
                await self._app(scope, receive, send)
                return
            self._check_host(headers)
            if _is_preflight(scope, headers):
                await _preflight(allowed)(scope, receive, send)
                return
            await self._admit(scope, headers, receive, send)
        except Problem as problem:
            self._count(problem, scope)
            await self._answer(problem, scope)(scope, receive, send)
        except LivewellError:
            await self._answer(busy(), scope)(scope, receive, send)

    async def _admit(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """A stream or a download takes no place here: each has bounds of its own.

        Nor does a read that waits stand in line: it holds no connection meanwhile, and has bounds
        too.
        """
        length = _length(headers, self._settings.body_bytes_max)
        client, is_caller = await self._identify(scope, headers, length)
        if length:
            body = await self._body(receive, client, length)
            if body is None:
                return  # the client has gone
            receive = _replayed(body, receive)
        if _lasts(scope):
            await self._app(scope, receive, send)
            return
        with self._requests.take(client):
            if length >= _HEAVY_BYTES and not _is_document(scope["path"]):
                # One of each client at once, and a few of all strangers: those of many addresses
                # would else have every connection to the database for as long as a thousand keys
                # take.
                async with self._own_heavy.stand(client), self._heavy.stand(_company(scope)):
                    await self._app(scope, receive, send)
                return
            async with self._lines.stand(client) if is_caller and not _waits(scope) else nullcontext():
                await self._app(scope, receive, send)

    async def _identify(self, scope: Scope, headers: Headers, length: int) -> tuple[str, bool]:
        """The client, and whether it is a caller with a key or token.

        Whoever has to be none is known by the address.
        """
        path: str = scope["path"]
        address = scope["client"][0] if scope.get("client") else "unknown"
        where = network(address)
        cost = 1 + length // (
            _PHOTO_BYTES if _is_document(path) else 1024
        )  # a thousand keys cost forty times as much as one
        if not path.startswith(API):
            self._state.count(f"address:{where}", "page", cost)
            if not self._frame.has(path):
                return f"address:{where}", False
        if path in OPEN or path.startswith(OPEN_BELOW):
            self._state.count(f"address:{where}", "other", cost)
            return f"address:{where}", False
        caller = await self._caller(scope, headers, address)
        know(scope, user=caller.user is not None)
        self._state.count(caller.client, _kind(path), cost)
        scope["state"]["caller"] = caller
        return caller.client, True

    async def _caller(self, scope: Scope, headers: Headers, address: str) -> Caller:
        """Whoever comes with a good key or token is let in, whatever others at the same address do.

        Who fails too often is told so instead of why.
        """
        auth, where = self._state.auth, network(address)
        failures = f"strange:{where}"
        try:
            if not auth.asks_database(headers):
                return await auth.caller(headers, scope["method"], address)
            with self._strangers.take(where):
                suspect = self._state.buckets.empty(failures, "other")
                async with self._suspects.stand(where) if suspect else nullcontext():
                    return await auth.caller(headers, scope["method"], address)
        except Problem as problem:
            if problem.status == 401 and self._state.buckets.take(failures, "other") > 0:
                raise too_many("Too many failed logins from this address.", seconds=1.0) from None
            raise

    async def _body(self, receive: Receive, client: str, length: int) -> bytes | None:
        """All of it, within one deadline; None if the client went away."""
        seconds = self._settings.body_seconds
        body = bytearray()
        with self._bodies.take(client, length):
            try:
                async with asyncio.timeout(seconds):
                    more = True
                    while more:
                        message = await receive()
                        if message["type"] != "http.request":
                            return None
                        body += message.get("body", b"")
                        more = bool(message.get("more_body", False))
                        if len(body) > length:
                            raise Problem(400, "The body is longer than its Content-Length.", word="invalid")
            except TimeoutError:
                raise Problem(408, f"The body took longer than {seconds:g} seconds.", word="too-slow") from None
        return bytes(body)

    def _count(self, problem: Problem, scope: Scope) -> None:
        kind = _REFUSALS.get(problem.status)
        if kind is not None:
            self._state.refusals.count(kind, network(scope["client"][0] if scope.get("client") else ""))

    def _answer(self, problem: Problem, scope: Scope) -> Response:
        """A person who opens a page is answered by a page."""
        path: str = scope["path"]
        return self._frame.failure(problem, scope) if self._frame.has(path) else problem.response()

    def _check_host(self, headers: Headers) -> None:
        """A page of another name that points to this address (DNS rebinding) must not reach us."""
        given = headers.getlist("host")
        match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
        try:
            known = match is not None and host_name(match[1]) in self._hosts
        except ValueError:
            known = False
        if not known:
            raise Problem(
                400,
                "This server is not called by that name.",
                word="host",
                field="host",
                allowed="127.0.0.1, localhost, [::1], and what LIVEWELL_HOSTS names",
            )


def _company(scope: Scope) -> str:
    """Strangers wait for strangers, users for users."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    return "strangers" if caller is None or caller.user is None else "users"


def _kind(path: str) -> Kind:
    part = path[len(API) :].partition("/")[0]
    return "session" if part == "sessions" else "read" if part == "data" else "other"


def _length(headers: Headers, bytes_max: int) -> int:
    """Of the body, as it is announced.

    A length that is not stated is refused: nobody could say what the request costs.
    """
    if "transfer-encoding" in headers:
        raise Problem(411, "State the length of the body: Content-Length.", word="length-required")
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or int(length) > bytes_max:
        too_large = f"The body is larger than {bytes_max} bytes (LIVEWELL_BODY_BYTES_MAX)."
        raise Problem(413, too_large, word="too-large")
    return int(length)


def _waits(scope: Scope) -> bool:
    """A read that may wait; wait=0 does not."""
    if not scope["path"].startswith(f"{API}data/"):
        return False
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("wait", ())
    return any(digit in text for text in asked for digit in "123456789")


def _is_document(path: str) -> bool:
    """A body that is one document, not many keys. A picture of it takes seconds of nobody's connection."""
    return path.startswith(f"{API}resumes")


def _lasts(scope: Scope) -> bool:
    """A stream, or a download: the client says how long it takes."""
    path: str = scope["path"]
    if scope["method"] not in ("GET", "HEAD"):
        return False
    return (scope["method"] == "GET" and _STREAM.fullmatch(path) is not None) or _LONG.fullmatch(path) is not None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body at once, then whatever else comes."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    return scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def _preflight(allowed: str | None) -> Response:
    if allowed is None:
        return Problem(
            403, "Pages of this origin may not use this server.", word="origin", allowed="what LIVEWELL_ORIGINS names"
        ).response()
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": "authorization, content-type",
            "Access-Control-Max-Age": "600",
        },
    )


def _counted(send: Send, scope: Scope) -> Send:
    """Every answer is counted when it begins.

    How long that took is measured, but of streams and downloads, which begin at once and last.
    """
    began, method = time.monotonic(), scope["method"] if scope["method"] in _KNOWN else "other"

    async def counted(message: Message) -> None:
        if message["type"] == "http.response.start":
            REQUESTS.add(method, str(message["status"]))
            if not _lasts(scope):
                REQUEST_SECONDS.observe(time.monotonic() - began, method)
        await send(message)

    return counted


def _dressed(send: Send, scope: Scope, origin: str | None) -> Send:
    """Headers that every answer has.

    Never Access-Control-Allow-Credentials: another origin comes with a key of its own, or not at
    all. An answer that does not wait for the body is the last one of its connection.
    """
    path, connection = scope["path"], connection_of(scope)

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Referrer-Policy", "no-referrer")
            if path.startswith(API):
                headers.setdefault("Cache-Control", "no-store")
            headers.add_vary_header("Origin")
            if connection is not None:
                connection.resting = message["status"] in (401, 429)
                if connection.unfinished:
                    headers["Connection"] = "close"
            if origin is not None:
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = "Retry-After, Location"
        await send(message)

    return dressed
