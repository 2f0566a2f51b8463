"""The frame: one route for each view and each act of every capability.

    GET  ──scope──▶ panels, each by itself ──▶ the page with its navigation
    POST ──scope──▶ the form's token ──▶ act ──▶ 303 to a page that says what was done
                                          └──failed──▶ why, and the way back to the page of the form

The gate has found out who calls. Looking needs the scope observe or operate; payloads and errors of
jobs may hold anything, so only who may operate sees them (withheld.py). An act names its scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from livewell.capability import Act, Capability, View
from livewell.db.acts import act_as, has_sent
from livewell.errors import DatabaseUnavailable, InvalidOption, InvalidPayload, LivewellError
from livewell.server.answers.problems import Problem, busy, not_allowed
from livewell.server.auth.caller import COOKIE, Caller
from livewell.server.auth.share_owner import client_of
from livewell.server.dashboard import form, rendering
from livewell.server.dashboard.visit import Answer, Done, Elsewhere, Panel, Rights, Visit
from livewell.server.dashboard.withheld import GONE, reason_of
from livewell.server.depends import from_where
from livewell.server.pages import CLOSED
from livewell.server.process import ServerProcess
from livewell.telemetry.redact import redact

ADDRESS_CHARS_MAX = 2000
_SILENCE_SECONDS_MIN = 10.0
_CHART = 'class="chart"'  # a page without one is spared half of the scripts: 51 of 97 kB
# A form says which of our own pages it was on, so that a failure can lead back there.
HEADERS = {**CLOSED, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
Endpoint = Callable[[Request], Awaitable[Response]]
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
        show = self._told(self._show)
        self._views = [(Route(view.path, show, methods=["GET", "HEAD"]), one, view) for one, view in views]
        self._acts = [Route(act.path, self._told(self._acting(one, act)), methods=["POST"]) for one, act in acts]
        seen = {view.path for _, view in views}
        self._forms = {act.path: act.page or _above(act.path, seen) for _, act in acts}
        lead = self._told(self._lead)
        self._leads = [Route(act.path, lead, methods=["GET", "HEAD"]) for _, act in acts if act.path not in seen]
        self._offered = offered

    def routes(self) -> list[Route]:
        """Acts come first: a key may end in /refresh. Whoever opens the address of an act is led to its page."""
        return [*self._acts, *(route for route, _, _ in self._views), *self._leads]

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

    def failure(self, problem: Problem, scope: Scope) -> Response:
        """A problem as a page. A caller who is unknown is led to the login, and from there back."""
        words = problem.detail or ""
        if problem.status == 401:
            return RedirectResponse(f"/login?to={quote(self.back(scope), safe='')}", 303, HEADERS)
        if problem.status == busy().status:
            return self._failed(scope, 503, "The server cannot answer now.", words, problem.headers)
        if problem.word == "scope":
            words = f"{problem.detail} Log in with a link from: livewell keys login"
            return self._failed(scope, problem.status, "You may not do this.", words)
        if problem.status == 404:
            return self._failed(scope, 404, "It is not there.", words)
        return self._failed(scope, problem.status, "This cannot be done.", words, problem.headers)

    def back(self, scope: Scope) -> str:
        """Where to go on after a failure: the same address, or the page that the form was on."""
        if scope["method"] in ("GET", "HEAD"):
            return self._page_of_form(_raw_path(scope), scope["path"]) or _asked_address(scope)
        return self._came_from(scope) or self._form_page(scope["path"]) or "/"

    def _came_from(self, scope: Scope) -> str | None:
        """The page of ours that the browser says the form was on."""
        headers = Headers(scope=scope)
        try:
            given = urlsplit(headers.get("referer", ""))
        except ValueError:
            return None
        if not given.netloc or given.netloc.lower() != headers.get("host", "").lower():
            return None
        address = given.path + (f"?{given.query}" if given.query else "")
        return address if len(address) <= ADDRESS_CHARS_MAX and self.find(unquote(given.path)) is not None else None

    def _form_page(self, path: str) -> str | None:
        """The page with the form of the act at this path."""
        for route in self._acts:
            found = route.path_regex.fullmatch(path)
            if found is not None:
                parts = {name: quote(text, safe="") for name, text in found.groupdict().items()}
                return self._forms[route.path].replace(":path}", "}").format(**parts)
        return None

    def _page_of_form(self, raw: str, path: str) -> str | None:
        """If somebody opened the address of an act on a key, /types/quote/AAPL/ttl: the page of that key.

        A key may hold a slash, but a link escapes it: only what was sent tells the two apart.
        """
        shown = self.find(path)
        for route in self._acts:
            is_ours = shown is None or self._forms[route.path] == shown.view.path != route.path
            if is_ours and route.path_regex.fullmatch(raw):
                return self._form_page(unquote(raw))
        return None

    async def _lead(self, request: Request) -> Response:
        """Somebody opened the address of an act: lead to the page with its form."""
        return RedirectResponse(self._form_page(request.scope["path"]) or "/", 303, HEADERS)

    def _told(self, answer: Endpoint) -> Endpoint:
        """A person is told of a problem by a page."""

        async def told(request: Request) -> Response:
            try:
                return await answer(request)
            except Problem as problem:
                return self.failure(problem, request.scope)

        return told

    async def _show(self, request: Request) -> Response:
        shown = self.find(_path(request))
        assert shown is not None  # noqa: S101 - its route matched
        caller: Caller = request.state.caller
        check_look(caller, shown.view)
        page = self._page_of_form(_raw_path(request.scope), request.scope["path"])
        if page is not None:
            return RedirectResponse(page, 303, HEADERS)
        state: ServerProcess = request.state.server
        client = client_of(caller)
        visit = Visit(state, caller, _path(request), shown.parts, dict(request.query_params))

        async def paint(panel: Panel) -> rendering.Painted:
            async with state.looks.shares.take(client):
                return await rendering.paint(panel, visit.rights)

        try:
            async with state.looks.shares.take(client):
                panels = await shown.panels(visit)
        except GONE as error:
            return self._failed(request.scope, 404, "It is not there.", str(error))
        except LivewellError as error:
            words = reason_of(error, may_operate=visit.may_operate)
            return self._failed(request.scope, 503, "This page cannot be read now.", words)
        if isinstance(panels, Elsewhere):
            return RedirectResponse(panels.to, 303, HEADERS)
        painted = await asyncio.gather(*(paint(panel) for panel in panels))
        secret = form.cookie(request, form.TOKEN_COOKIE) or form.new_secret()
        token = form.token(secret)
        html = [one.complete(token, _login(request)) for one in painted]
        address = _address(request) if shown.view.live else ""
        answer = self._page(shown.view.title, request, html, form.said(request), token=token, address=address)
        form.keep(answer, request, form.TOKEN_COOKIE, secret)
        answer.delete_cookie(form.SAID_COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    def _acting(self, one: Capability, act: Act) -> Endpoint:
        async def do(request: Request) -> Response:
            caller = _allowed(request, act.scope)
            fields, chosen = await form.read(request)
            act_as(caller.user or caller.client, from_where("page", request))
            parts = {name: str(value) for name, value in request.path_params.items()}
            query = dict(request.query_params)
            doing: Callable[[Visit], Awaitable[Done | Answer]] = one.load(f"act {act.path}", act.act)
            try:
                visit = Visit(request.state.server, caller, _path(request), parts, query, fields, chosen)
                done = await doing(visit)
            except LivewellError as error:
                return self._not_done(request.scope, caller, error)
            if isinstance(done, Answer):
                return await self._answered(request, visit, done)
            if done.secret is not None:
                token = form.token(form.cookie(request, form.TOKEN_COOKIE) or "")
                title = "Copy this now: it is shown once"
                return self._page(title, request, [], done.said, token=token, secret=done.secret, to=done.to)
            answer = RedirectResponse(done.to, 303, HEADERS)
            if done.logged_out:
                answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
            else:
                form.say(answer, request, done.said)
            return answer

        return do

    def _not_done(self, scope: Scope, caller: Caller, error: LivewellError) -> Response:
        """What is known of an act that failed: that it did nothing, or not even that."""
        if isinstance(error, GONE):
            return self._failed(scope, 404, "It is gone: nothing was done.", str(error))
        if isinstance(error, InvalidOption | InvalidPayload):
            return self._failed(scope, 400, "Nothing was done.", str(error))
        why = reason_of(error, may_operate=caller.may("operate"))
        if isinstance(error, DatabaseUnavailable) and not error.was_sent and not has_sent():
            return self._failed(scope, 503, "Nothing was done.", why)
        unsure = f"{why}. The audit page says whether it was done."
        return self._failed(scope, 503, "Nothing is known of what was done.", unsure)

    async def _answered(self, request: Request, visit: Visit, answer: Answer) -> Response:
        """The panels of an act, on a page that does not follow itself."""
        painted = await asyncio.gather(*(rendering.paint(panel, visit.rights) for panel in answer.panels))
        token = form.token(form.cookie(request, form.TOKEN_COOKIE) or "")
        html = [one.complete(token, _login(request)) for one in painted]
        page = self._page(answer.title, request, html, None, token=token)
        page.status_code = answer.status
        return page

    def _page(
        self,
        title: str,
        request: Request,
        panels: Sequence[str],
        said: str | None,
        *,
        token: str,
        address: str = "",
        secret: str | None = None,
        to: str = "",
    ) -> Response:
        """address: where the page follows itself; empty for a page that stays as it is."""
        caller: Caller = request.state.caller
        rights = Rights.of(caller)
        text = rendering.page(
            "frame.html",
            rights,
            title=title,
            panels=panels,
            has_charts=any(_CHART in panel for panel in panels),
            nav=_navigation(self._offered, rights),
            here=_path(request),
            address=address,
            silence_seconds=silence_seconds(request.state.server.settings.push_beat_seconds),
            said=said,
            secret=secret,
            to=to,
            login=_login(request),
            token=token,
        )
        return HTMLResponse(text, headers=HEADERS)

    def _failed(
        self, scope: Scope, status: int, title: str, words: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        nav, is_look = _navigation(self._offered, Rights()), scope["method"] in ("GET", "HEAD")
        said = {"title": title, "words": redact(words), "back": self.back(scope), "is_look": is_look}
        text = rendering.page("failure.html", Rights(), nav=nav, here="", login=None, **said)
        return HTMLResponse(text, status, {**HEADERS, **(headers or {})})


def _above(path: str, views: Collection[str]) -> str:
    """The nearest view above a path."""
    while path and path not in views:
        path = path.rpartition("/")[0]
    return path or "/"


def _raw_path(scope: Scope) -> str:
    """The path as it was sent, with its escapes."""
    sent: bytes = scope.get("raw_path") or quote(scope["path"], safe="/").encode()
    return sent.decode("latin-1")


def _asked_address(scope: Scope) -> str:
    """Path and query as they were sent; without the query if both are too long, and / if the path is."""
    path, query = _raw_path(scope), scope.get("query_string", b"").decode("latin-1")
    for address in (f"{path}?{query}" if query else path, path):
        if len(address) <= ADDRESS_CHARS_MAX:
            return address
    return "/"


def _login(request: Request) -> str | None:
    """The login of this browser; None for a key or a token."""
    caller: Caller = request.state.caller
    return caller.key_id if caller.kind == "login" else None


def check_look(caller: Caller, view: View) -> None:
    """Raise if the caller may not see this view. Whoever may operate may look."""
    if not (caller.may("operate") or caller.may(view.scope)):
        raise not_allowed(view.scope)


def _navigation(offered: Sequence[Capability], rights: Rights) -> list[tuple[str, str]]:
    """Path and word of each entry: the overview, the views of capabilities, then plain pages."""
    seen = [view for one in offered for view in one.views if view.nav and (rights.operate or view.scope == "observe")]
    views = [(view.path, view.nav) for view in seen]
    pages = [(page.path, page.nav) for one in offered for page in one.pages]
    return [*sorted(views, key=lambda entry: entry[0] != "/"), *pages]


def _allowed(request: Request, scope: str) -> Caller:
    caller: Caller = request.state.caller
    if scope and not caller.may(scope):
        raise not_allowed(scope)
    return caller


def silence_seconds(beat_seconds: float) -> float:
    """After how long without a byte a tab takes its stream for lost. The server sends a beat before."""
    return max(_SILENCE_SECONDS_MIN, 3 * beat_seconds)


def _path(request: Request) -> str:
    """As the routes see it. In request.url a question mark of the path is %3F, which is another key."""
    path: str = request.scope["path"]
    return path


def _address(request: Request) -> str:
    """As the browser asked for it, so that the page can follow itself (live.py).

    Empty if it is too long: a part of it would be the address of another page.
    """
    query = request.scope["query_string"].decode("latin-1")
    found = quote(_path(request)) + (f"?{query}" if query else "")
    return found if len(found) <= ADDRESS_CHARS_MAX else ""
