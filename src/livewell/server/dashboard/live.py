"""The stream of an open page: its panels again, whenever one of them has changed.

    first tab opens ──▶ painting every PAINT_SECONDS ──changed──▶ event panel {id, html} to each tab
                           │      └──the same──▶ event seen {id, at}: it is still true
                           └──last tab closes──▶ ended

All tabs that show one address to people with the same rights share one painting, and what panels
say of the system's state comes from the sampler: ten tabs ask the database as often as one.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote

import orjson
import structlog
from fastapi import APIRouter, Query, Request

from livewell.errors import LivewellError
from livewell.server.answers.problems import Problem, not_found
from livewell.server.auth.caller import Caller
from livewell.server.dashboard import form, rendering
from livewell.server.dashboard.frame import ADDRESS_CHARS_MAX, Frame, Shown, check_look
from livewell.server.dashboard.rendering import Painted
from livewell.server.dashboard.visit import Elsewhere, Rights, Visit
from livewell.server.depends import Observer, TheState
from livewell.server.process import ServerProcess
from livewell.server.streams.stream import Stream, event

log = structlog.get_logger("livewell.dashboard")
router = APIRouter(prefix="/v1", tags=["operations"])

PAINT_SECONDS = 2.0
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events: panel (id, html), seen (id, at), beat, bye.", "content": {"text/event-stream": {}}}
}
Address = Annotated[
    str,
    Query(
        alias="page",
        max_length=ADDRESS_CHARS_MAX,
        pattern=r"^/[^\x00]*$",
        description="The address that is open.",
    ),
]
Place = tuple[Rights, str]


class Painting:
    """One address, painted again and again while at least one tab shows it."""

    def __init__(self, shown: Shown, visit: Visit) -> None:
        self._shown = shown
        self._visit = visit
        self.panels: dict[str, Painted] = {}
        self.tabs: set[Tab] = set()
        self._task = asyncio.create_task(self._paint(), name="dashboard painting")

    def stop(self) -> None:
        """Nobody looks any more."""
        self._task.cancel()

    async def _paint(self) -> None:
        while True:
            try:
                panels = await self._shown.panels(self._visit)
            except (LivewellError, Problem) as error:
                log.warning("a page could not be read", page=self._visit.path, error=str(error))
            else:
                for panel in () if isinstance(panels, Elsewhere) else panels:
                    self.panels[panel.id] = await rendering.paint(panel, self._visit.rights)
                for tab in self.tabs:
                    tab.wake.set()
            await asyncio.sleep(PAINT_SECONDS)


class Paintings:
    """The paintings of one server, by the rights of who looks and by address."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._open: dict[Place, Painting] = {}

    def follow(self, address: str, state: ServerProcess, caller: Caller, token: str) -> Tab:
        """A tab that shows this address."""
        quoted, _, query = address.partition("?")
        path = unquote(quoted)
        shown = self._frame.find(path)
        if shown is None:
            raise not_found()
        check_look(caller, shown.view)
        place = Rights.of(caller), address
        painting = self._open.get(place)
        if painting is None:
            visit = Visit(state, caller, path, shown.parts, dict(parse_qsl(query)))
            painting = self._open[place] = Painting(shown, visit)
        tab = Tab(self, place, painting, token, caller.key_id if caller.kind == "login" else None)
        painting.tabs.add(tab)
        return tab

    def leave(self, place: Place, tab: Tab) -> None:
        """The tab is closed; the last one ends the painting."""
        painting = self._open.get(place)
        if painting is None:
            return
        painting.tabs.discard(tab)
        if not painting.tabs:
            painting.stop()
            del self._open[place]


class Tab:
    """The source of one stream."""

    def __init__(self, paintings: Paintings, place: Place, painting: Painting, token: str, login: str | None) -> None:
        self._paintings = paintings
        self._place = place
        self._painting = painting
        self._token = token
        self._login = login
        self._sent: dict[str, Painted] = {}
        self.wake = asyncio.Event()
        self.much = False
        self.name = f"page:{secrets.token_hex(8)}"

    def next(self) -> bytes | None:
        """Every panel that changed since it was sent, and the instants of the others."""
        events = []
        for name, painted in self._painting.panels.items():
            sent = self._sent.get(name)
            if sent is painted:
                continue
            self._sent[name] = painted
            events.append(self._event(painted, is_new=sent is None or sent.html != painted.html))
        return b"".join(events) or None

    def _event(self, painted: Painted, *, is_new: bool) -> bytes:
        if not is_new:
            return event("seen", orjson.dumps({"id": painted.id, "at": painted.as_of.isoformat()}))
        document: Mapping[str, str] = {"id": painted.id, "html": painted.complete(self._token, self._login)}
        return event("panel", orjson.dumps(document))

    def over(self) -> str | None:
        """Never by itself."""
        return None

    def allow(self, caller: Caller) -> None:
        """All of a page or nothing: the stream ends when a scope is gone, and begins again with fewer."""

    def close(self) -> None:
        """The browser has gone."""
        self._paintings.leave(self._place, self)


@router.get("/pages/stream", status_code=200, response_class=Stream, responses=_STREAM)
async def stream_page(request: Request, state: TheState, caller: Observer, address: Address = "/") -> Stream:
    """Follow what a page of the dashboard shows."""
    state.streams.admit(caller)
    token = form.token(form.cookie(request, form.TOKEN_COOKIE) or "")
    paintings: Paintings = request.state.paintings
    return state.streams.start(caller, paintings.follow(address, state, caller, token), Rights.of(caller).scopes)
