"""The frame: one route for each view and each act of every capability.

    GET  ──scope──▶ panels, each by itself ──▶ the page with its navigation
    POST ──scope──▶ the form's token ──▶ act ──▶ 303 to a page that says what was done

The gate has found out who calls. Looking and acting need the scope operate, as the routes below
/v1 do that show the same: payloads and errors of jobs may hold anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from livewell.capability import Act, Capability, View
from livewell.db.acts import act_as
from livewell.errors import (
    ActNotFound,
    AlertNotFound,
    InvalidOption,
    InvalidPayload,
    JobNotFound,
    LivewellError,
    UnknownLimiter,
    UnknownQueue,
    UnknownSchedule,
    UnknownType,
)
from livewell.server.answers.problems import Problem, busy, not_allowed
from livewell.server.auth.caller import Caller
from livewell.server.dashboard import form, rendering
from livewell.server.dashboard.visit import Done, Elsewhere, Panel, Visit
from livewell.server.pages import CLOSED
from livewell.telemetry.redact import redact

SCOPE = "operate"
ADDRESS_CHARS_MAX = 2000
_GONE = (ActNotFound, AlertNotFound, JobNotFound, UnknownLimiter, UnknownQueue, UnknownSchedule, UnknownType)
HEADERS = {**CLOSED, "Cache-Control": "no-store"}
Panels = Callable[[Visit], Awaitable[Sequence[Panel] | Elsewhere]]


@dataclass(frozen=True, slots=True)
class Shown:
    """A view at an address: whose it is, and the parts of the path."""

    capability: Capability
    view: View
    parts: dict[str, str]

    async def panels(self, visit: Visit) -> Sequence[Panel] | Elsewhere:
        """What the view answers."""
        panels: Panels = self.capability.load(f"view {self.view.path}", self.view.panels)
        await visit.state.looks.open()
        return await panels(visit)


class Frame:
    """The pages and acts of these capabilities."""

    def __init__(self, offered: Sequence[Capability]) -> None:
        views = [(one, view) for one in offered for view in one.views]
        acts = [(one, act) for one in offered for act in one.acts]
        self._views = [(Route(view.path, self._show, methods=["GET", "HEAD"]), one, view) for one, view in views]
        self._acts = [Route(act.path, self._acting(one, act), methods=["POST"]) for one, act in acts]
        self._nav = _navigation(offered)

    def routes(self) -> list[Route]:
        """Acts come first: a key may end in /refresh."""
        return [*self._acts, *(route for route, _, _ in self._views)]

    def has(self, path: str) -> bool:
        """True if the gate must find out who calls: the path is a view's or an act's."""
        return self.find(path) is not None or any(route.path_regex.fullmatch(path) for route in self._acts)

    def find(self, path: str) -> Shown | None:
        """The view that an address shows."""
        for route, one, view in self._views:
            found = route.path_regex.fullmatch(path)
            if found is not None:
                convert = route.param_convertors
                parts = {name: str(convert[name].convert(text)) for name, text in found.groupdict().items()}
                return Shown(one, view, parts)
        return None

    def failure(self, problem: Problem, path: str) -> Response:
        """A problem as a page. A caller who is unknown is led to the login."""
        if problem.status == 401:
            return RedirectResponse(f"/login?to={quote(path[:ADDRESS_CHARS_MAX], safe='')}", 303, HEADERS)
        if problem.status == busy().status:
            return self._failed(503, "The server cannot answer now.", problem.detail or "", problem.headers)
        if problem.word == "scope":
            words = f"{problem.detail} Log in with a link from: livewell keys login"
            return self._failed(problem.status, "This page is for operators.", words)
        return self._failed(problem.status, "This cannot be shown.", problem.detail or "", problem.headers)

    async def _show(self, request: Request) -> Response:
        caller = _allowed(request, SCOPE)
        shown = self.find(request.url.path)
        assert shown is not None  # noqa: S101 - its route matched
        visit = Visit(request.state.server, caller, request.url.path, shown.parts, dict(request.query_params))
        try:
            panels = await shown.panels(visit)
        except _GONE as error:
            return self._failed(404, "It is not there.", str(error))
        except LivewellError as error:
            return self._failed(503, "This page cannot be read now.", str(error))
        if isinstance(panels, Elsewhere):
            return RedirectResponse(panels.to, 303, HEADERS)
        painted = await asyncio.gather(*(rendering.paint(panel) for panel in panels))
        secret = form.cookie(request, form.TOKEN_COOKIE) or form.new_secret()
        token = form.token(secret)
        answer = self._page(shown.view.title, request, [one.complete(token) for one in painted], form.said(request))
        form.keep(answer, request, form.TOKEN_COOKIE, secret)
        answer.delete_cookie(form.SAID_COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    def _acting(self, one: Capability, act: Act) -> Callable[[Request], Awaitable[Response]]:
        async def do(request: Request) -> Response:
            caller = _allowed(request, act.scope)
            fields = await form.read(request)
            act_as(caller.user or caller.client)
            parts = {name: str(value) for name, value in request.path_params.items()}
            query = dict(request.query_params)
            doing: Callable[[Visit], Awaitable[Done]] = one.load(f"act {act.path}", act.act)
            try:
                done = await doing(Visit(request.state.server, caller, request.url.path, parts, query, fields))
            except _GONE as error:
                return self._failed(404, "It is gone: nothing was done.", str(error))
            except (InvalidOption, InvalidPayload) as error:
                return self._failed(400, "Nothing was done.", str(error))
            except LivewellError as error:
                unsure = f"{error}. The audit page says whether it was done."
                return self._failed(503, "Nothing is known of what was done.", unsure)
            if done.secret is not None:
                return self._page("Copy this now: it is shown once", request, [], done.said, done.secret)
            answer = RedirectResponse(done.to, 303, HEADERS)
            form.say(answer, request, done.said)
            return answer

        return do

    def _page(
        self, title: str, request: Request, panels: Sequence[str], said: str | None, secret: str | None = None
    ) -> Response:
        text = rendering.page(
            "frame.html",
            title=title,
            panels=panels,
            nav=self._nav,
            here=request.url.path,
            address=_address(request),
            said=said,
            secret=secret,
        )
        return HTMLResponse(text, headers=HEADERS)

    def _failed(self, status: int, title: str, words: str, headers: Mapping[str, str] | None = None) -> Response:
        text = rendering.page("failure.html", title=title, words=redact(words), nav=self._nav, here="")
        return HTMLResponse(text, status, {**HEADERS, **(headers or {})})


def _navigation(offered: Sequence[Capability]) -> list[tuple[str, str]]:
    """Path and word of each entry: the overview, the views of capabilities, then plain pages."""
    views = [(view.path, view.nav) for one in offered for view in one.views if view.nav]
    pages = [(page.path, page.nav) for one in offered for page in one.pages]
    return [*sorted(views, key=lambda entry: entry[0] != "/"), *pages]


def _allowed(request: Request, scope: str) -> Caller:
    caller: Caller = request.state.caller
    if not caller.may(scope):
        raise not_allowed(scope)
    return caller


def _address(request: Request) -> str:
    """As the browser asked for it, so that the page can follow itself (live.py)."""
    path = quote(request.url.path, safe="/")
    query = f"?{request.url.query}" if request.url.query else ""
    return (path + query)[:ADDRESS_CHARS_MAX]
