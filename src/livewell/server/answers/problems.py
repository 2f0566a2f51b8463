"""Errors as RFC 9457 problem documents.

Each has a type, title, status and detail, and where it fits the field and what is allowed.

A problem says what happened and what is allowed. It never holds SQL, a path of this machine, a
secret, or anything that the caller may not see.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from livewell.errors import (
    ActNotFound,
    AlertNotFound,
    ContactNotFound,
    DatabaseConflict,
    DatabaseError,
    DatabaseUnavailable,
    EventNotFound,
    ExportDailyLimit,
    ExportQuotaFull,
    InvalidOption,
    InvalidPayload,
    InvalidResume,
    JobNotFound,
    LivewellError,
    ResumeConflict,
    ResumeNotFound,
    ResumesFull,
    UnknownLimiter,
    UnknownQueue,
    UnknownSchedule,
    UnknownSingleton,
    UnknownSink,
    UnknownType,
)
from livewell.exports.artifacts.store import ArtifactError
from livewell.server.answers.invalid import allowed_of, detail_of, place_of
from livewell.server.answers.json_answer import encode

log = structlog.get_logger("livewell.server")

_TEXT_CHARS_MAX = 300
_SIGNED = "/v1/download/"


class ProblemDocument(BaseModel):
    """How a problem looks, for the OpenAPI document."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="about:blank, or /problems/ and a word")
    title: str
    status: int
    detail: str | None = None
    field: str | None = Field(default=None, description="What in the request is wrong.")
    allowed: str | None = Field(default=None, description="What would be right.")


class Problem(Exception):
    """An answer that is an error. Raise it anywhere below a route."""

    def __init__(
        self,
        status: int,
        detail: str | None = None,
        *,
        word: str | None = None,
        field: str | None = None,
        allowed: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail or HTTPStatus(status).phrase)
        self.status = status
        self.detail = detail
        self.word = word
        self.field = field
        self.allowed = allowed
        self.headers = dict(headers or {})
        self.more = dict(more or {})  # members of its kind: numbers that a program can use

    def response(self) -> Response:
        """As it is sent."""
        document: dict[str, Any] = {
            "type": f"/problems/{self.word}" if self.word else "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
        }
        for name in ("detail", "field", "allowed"):
            if getattr(self, name) is not None:
                document[name] = getattr(self, name)[:_TEXT_CHARS_MAX]
        document |= self.more
        return Response(encode(document), self.status, self.headers, "application/problem+json")


def not_found() -> Problem:
    """There is no such thing, or it is somebody else's: one and the same answer, byte for byte."""
    return Problem(404, "There is nothing here, or it is not yours to see.", word="not-found")


def not_allowed(scope: str) -> Problem:
    """The caller is known, and may not do this."""
    return Problem(403, f'This needs the scope "{scope}".', word="scope")


def unknown_caller(why: str = "Send an API key or a token: Authorization: Bearer …") -> Problem:
    """Nobody we know."""
    return Problem(401, why, word="unauthorized", headers={"WWW-Authenticate": 'Bearer realm="livewell"'})


def too_many(detail: str, *, seconds: float, word: str = "too-many-requests") -> Problem:
    """Come back later."""
    return Problem(429, detail, word=word, headers={"Retry-After": str(max(1, round(seconds + 0.5)))})


def busy(detail: str = "The server cannot answer now; try again shortly.") -> Problem:
    """Nothing is wrong with the request."""
    return Problem(503, detail, word="busy", headers={"Retry-After": "1"})


Handler = Callable[[Request, Exception], Awaitable[Response]]


def install(app: FastAPI, nothing_here: Callable[[Request], Response]) -> None:
    """Let every error of this application leave as a problem document.

    A person at a browser who finds nothing gets that page instead.
    """
    handlers: tuple[tuple[type[Exception], Handler], ...] = (
        (Problem, _problem),
        (RequestValidationError, _invalid),
        (HTTPException, _http),
        (LivewellError, _ours),
        (Exception, _unexpected),
    )
    for kind, handler in handlers:
        app.add_exception_handler(kind, _for_people(handler, nothing_here))


def _for_people(handler: Handler, nothing_here: Callable[[Request], Response]) -> Handler:
    async def answer(request: Request, error: Exception) -> Response:
        response = await handler(request, error)
        return nothing_here(request) if response.status_code == 404 and _is_person(request) else response

    return answer


def _is_person(request: Request) -> bool:
    """A browser that opens an address asks for HTML.

    A script in it, and every program, asks for anything or for JSON.
    """
    wanted = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    asks = request.method in ("GET", "HEAD") and "text/html" in wanted
    return asks and not any(kind.endswith("json") for kind in wanted)


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101 - starlette looks the handler up by class
    return error.response()


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - see above
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return Problem(400, "The body is not JSON.", word="invalid", field="body").response()
    return Problem(400, detail_of(first), word="invalid", field=place_of(first), allowed=allowed_of(first)).response()


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - see above
    if error.status_code == 404:
        return not_found().response()
    if error.status_code == 400:  # the only one of the framework's own: a body that cannot be read at all
        return Problem(400, "The body is not JSON.", word="invalid", field="body").response()
    if error.status_code == 405:
        return _wrong_method(request).response()
    detail = None if error.detail == HTTPStatus(error.status_code).phrase else error.detail
    return Problem(error.status_code, detail, word=_WORDS.get(error.status_code), headers=error.headers).response()


def _wrong_method(request: Request) -> Problem:
    """With the methods that are documented for this address, or those of all routes at it.

    The framework names those of the first.

    Of several documented addresses that fit, the longest is meant: a key may hold anything, so
    "AAPL/refresh" fits where a key is read, but that is not what the address is for.
    """
    paths: dict[str, dict[str, Any]] = request.app.openapi().get("paths", {})
    fitting = [path for path in paths if _form(path).fullmatch(request.url.path)]
    documented = paths[max(fitting, key=len)] if fitting else {}
    found = [method for method in _METHODS if method.lower() in documented] or [
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]
    allowed = ", ".join(found)
    detail = f"{request.method[:20]} is not a method of this address."
    return Problem(405, detail, word="method", allowed=allowed, headers={"Allow": allowed})


@lru_cache(maxsize=256)
def _form(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", path)
    return re.compile(
        "".join((".+" if part == "key" else "[^/]+") if n % 2 else re.escape(part) for n, part in enumerate(parts))
    )


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_WORDS: Mapping[int, str] = {408: "too-slow", 413: "too-large"}
_CALLERS: Sequence[type[LivewellError]] = (InvalidOption, InvalidPayload)
_ABSENT: Sequence[type[LivewellError]] = (
    UnknownType,
    UnknownQueue,
    UnknownSchedule,
    UnknownLimiter,
    UnknownSingleton,
    JobNotFound,
    ActNotFound,
    AlertNotFound,
    EventNotFound,
    UnknownSink,
    ContactNotFound,
    ResumeNotFound,
)


async def _ours(request: Request, error: Exception) -> Response:
    """What the capabilities raise.

    The texts of InvalidOption are written for callers; those of the database are not.
    """
    told = _told(error)
    if told is not None:
        return told.response()
    if isinstance(error, DatabaseUnavailable | DatabaseConflict):
        log.warning("the database did not answer", path=_logged_path(request), error=str(error))
        return busy().response()
    if isinstance(error, DatabaseError) and "NUL" in str(error):
        return Problem(400, "Texts with NUL in them are not taken.", word="invalid").response()
    log.error("a request failed", path=_logged_path(request), error=f"{type(error).__name__}: {error}")
    if isinstance(error, DatabaseError) and error.sqlstate[:2] in ("53", "55", "57"):
        return busy().response()  # full, locked or shutting down: it passes
    return _mistake().response()


def _told(error: Exception) -> Problem | None:
    """Expected answers that are errors, with what a program needs to go on."""
    for kind, make in _EXPECTED.items():
        if isinstance(error, kind):
            return make(error)
    return None


def _wrong_call(error: LivewellError) -> Problem:
    return Problem(400, str(error).removeprefix("call: "), word="invalid")


def _wrong_resume(error: InvalidResume) -> Problem:
    allowed = "a résumé of JSON Resume: livewell docs howto/resumes"
    return Problem(400, f"{error.why}.", word="invalid", field=f"body.{error.place}", allowed=allowed)


def _changed_meanwhile(error: ResumeConflict) -> Problem:
    return Problem(409, str(error), word="conflict", field="body.version", more={"version": error.version})


def _no_documents_more(error: ResumesFull) -> Problem:
    numbers = {"used": error.used, "limit": error.allowed, "unit": error.unit}
    return Problem(507, str(error), word="full", more=numbers)


def _no_exports_more(error: ExportQuotaFull) -> Problem:
    numbers = {"used": error.used, "reserved": error.reserved, "needed": error.needed}
    return Problem(507, str(error), word="full", more={**numbers, "limit": error.allowed, "unit": "bytes"})


def _tomorrow(error: ExportDailyLimit) -> Problem:
    seconds = (error.resets_at - datetime.now(UTC)).total_seconds()  # a hint; the database decides
    problem = too_many(str(error), seconds=seconds, word="daily-limit")
    problem.more = {"used": error.used, "limit": error.allowed, "resets_at": error.resets_at}
    return problem


def _no_store(error: ArtifactError) -> Problem:
    if error.reason == "not_there":
        return Problem(410, "The file is not there any more.", word="gone")
    log.warning("the store of the files failed", reason=error.reason, detail=error.detail)
    return busy("The store of the files does not answer now; try again shortly.")


_EXPECTED: Mapping[type[LivewellError], Callable[[Any], Problem]] = {
    **dict.fromkeys(_ABSENT, lambda _: not_found()),
    **dict.fromkeys(_CALLERS, _wrong_call),
    InvalidResume: _wrong_resume,
    ResumeConflict: _changed_meanwhile,
    ResumesFull: _no_documents_more,
    ExportQuotaFull: _no_exports_more,
    ExportDailyLimit: _tomorrow,
    ArtifactError: _no_store,
}


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("a request failed unexpectedly", path=_logged_path(request), exc_info=error)
    return _mistake().response()


def _logged_path(request: Request) -> str:
    """The path for a log; a signed link in it opens a file, so it stays out."""
    path = request.url.path
    return f"{_SIGNED}…" if path.startswith(_SIGNED) else path


def _mistake() -> Problem:
    return Problem(500, "This is a mistake of the server; its log says more.")
