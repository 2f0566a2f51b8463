"""What every request passes before any route sees it, in this order:

host ──▶ preflight of another origin ──▶ size ──▶ who (below /v1) ──▶ how often ──▶ room ──▶ the client's own line ──▶ route

How often comes before room: whoever asks too often is told so and takes nobody's place. To find out who a stranger is costs a query, so there is a room for that too. Written against ASGI itself: nothing here holds an answer back, so streams pass through. Everything below /v1 needs a caller unless it is in OPEN; a route cannot forget to ask.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from contextlib import nullcontext

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from livewell.errors import LivewellError
from livewell.host import host_name
from livewell.measures import REQUEST_SECONDS, REQUESTS
from livewell.server.buckets import Kind
from livewell.server.lines import Lines
from livewell.server.problems import Problem, busy, too_many
from livewell.server.state import State

API = "/v1/"
HEALTH = frozenset({"/healthz", "/readyz", "/health/schedules"})
OPEN = frozenset({"/v1/openapi.json", "/v1/login"})  # below /v1, and without a caller
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")
_METHODS = "GET, POST, PUT, PATCH, DELETE"
_KNOWN = frozenset(
    {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}
)  # a method is the client's word: others are counted together
_BODY_SECONDS = 30.0
_STRANGERS_MAX = (
    2000  # callers looked up at once: after a restart all streams come back together, each with a key of its own
)


class Guard:
    """The gate of one server."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state
        self._settings = state.settings
        self._hosts = frozenset({*_LOCAL, *state.settings.hosts})
        self._origins = frozenset(state.settings.origins)
        self._strangers = _Room(_STRANGERS_MAX)
        self._requests = _Room(state.settings.requests_max)
        self._lines = Lines(max(1, state.settings.pool_size_max // 3))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return  # no websockets here, and what has to start has started before
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        allowed = origin if origin is not None and origin.lower() in self._origins else None
        send = _counted(_dressed(send, scope["path"], allowed), scope)
        try:
            if scope["path"] not in HEALTH:
                self._check_host(headers)
            if _is_preflight(scope, headers):
                await _preflight(allowed)(scope, receive, send)
                return
            receive = _bounded(receive, headers, self._settings.body_bytes_max)
            await self._admit(scope, headers, receive, send)
        except Problem as problem:
            await problem.response()(scope, receive, send)
        except LivewellError:
            await busy().response()(scope, receive, send)

    async def _admit(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """A stream takes no place here: it has bounds of its own. Nor does a read that waits stand in line: it holds no connection meanwhile, and has bounds too."""
        client = await self._identify(scope, headers)
        if scope["path"].endswith("/stream"):
            await self._app(scope, receive, send)
            return
        waits = scope["path"].startswith(f"{API}data/") and b"wait=" in scope.get("query_string", b"")
        with self._requests:
            async with nullcontext() if client is None or waits else self._lines.stand(client):
                await self._app(scope, receive, send)

    async def _identify(self, scope: Scope, headers: Headers) -> str | None:
        """The client, if it has to be known."""
        path: str = scope["path"]
        address = scope["client"][0] if scope.get("client") else "unknown"
        if not path.startswith(API):
            return None  # health, pages and what they are made of: nothing that costs the database anything
        if path in OPEN:
            self._state.count(f"address:{address}", "other", _cost(headers))
            return None
        known = self._state.auth.remembers(headers)
        strange = f"strange:{address}"
        if not known and self._state.buckets.empty(strange, "other"):
            raise too_many("Too many failed logins from this address.", seconds=1.0)
        with nullcontext() if known else self._strangers:
            try:
                caller = await self._state.auth.caller(headers, scope["method"], address)
            except Problem:
                self._state.buckets.take(strange, "other")
                raise
        self._state.count(caller.client, _kind(path), _cost(headers))
        scope.setdefault("state", {})["caller"] = caller
        return caller.client

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


class _Room:
    """For so many at once; who finds it full is sent away."""

    def __init__(self, places: int) -> None:
        self._free = places

    def __enter__(self) -> None:
        if self._free <= 0:
            raise busy("The server has as many requests as it may have at once.")
        self._free -= 1

    def __exit__(self, *_: object) -> None:
        self._free += 1


def _kind(path: str) -> Kind:
    part = path[len(API) :].partition("/")[0]
    return "session" if part == "sessions" else "read" if part == "data" else "other"


def _cost(headers: Headers) -> float:
    """In tokens: one, and one for every kilobyte that is to come; a body of unknown length costs whatever there is."""
    if "transfer-encoding" in headers:
        return math.inf
    return 1 + int(headers.get("content-length", "0")) // 1024


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
    """Every answer is counted when it begins; how long that took is measured, but of streams, which begin at once and last."""
    began, method = time.monotonic(), scope["method"] if scope["method"] in _KNOWN else "other"

    async def counted(message: Message) -> None:
        if message["type"] == "http.response.start":
            REQUESTS.add(method, str(message["status"]))
            if not scope["path"].endswith("/stream"):
                REQUEST_SECONDS.observe(time.monotonic() - began, method)
        await send(message)

    return counted


def _dressed(send: Send, path: str, origin: str | None) -> Send:
    """Headers that every answer has; never Access-Control-Allow-Credentials: another origin comes with a key of its own, or not at all."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "no-referrer"
            if path.startswith(API):
                headers.setdefault("Cache-Control", "no-store")
            headers.add_vary_header("Origin")
            if origin is not None:
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = "Retry-After, Location"
        await send(message)

    return dressed


def _bounded(receive: Receive, headers: Headers, bytes_max: int) -> Receive:
    """A body of at most so many bytes, and within a time: who drips it byte by byte must not hold a place for ever."""
    too_large = f"The body is larger than {bytes_max} bytes (LIVEWELL_BODY_BYTES_MAX)."
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or int(length) > bytes_max:
        raise Problem(413, too_large, word="too-large")
    seen, more = 0, True

    async def bounded() -> Message:
        nonlocal seen, more
        if not more:
            return await receive()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"The body took longer than {_BODY_SECONDS:g} seconds.") from None
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            more = bool(message.get("more_body", False))
            if seen > bytes_max:
                raise HTTPException(413, too_large)
        return message

    return bounded
