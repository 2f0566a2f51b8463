"""What an open page is told: its panels again, whenever one of them has changed.

    first tab opens ──▶ painting ──changed──▶ event panel {id, html} to each tab ──rest──▶ painting
                           │ ├──the same──▶ event seen {id, at}: it is still true
                           │ ├──other panels than before──▶ event order {ids}
                           │ ├──cannot be read──▶ event failed {reason}; can be again──▶ event mended
                           │ └──is not there, or elsewhere──▶ event gone {reason, to}
                           └──last tab closes──▶ ended

All tabs that show one address to people with the same rights share one painting, and what panels
say of the system's state comes from the sampler: ten tabs ask the database as often as one. A tab
names the hashes of the panels that it shows already, and these are not sent again.

A painting rests ten times as long as it took, and PAINT_SECONDS at least: a page that is dear to
read takes a tenth of one connection's time. A client has user_pages_max paintings at most. The
server paints few at a time, and one for each client (looks.py): it counts for the client among
those who show the page who asks for the fewest, so nobody who follows slow pages holds up others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson
import structlog

from livewell.errors import LivewellError
from livewell.server.answers.problems import Problem, not_found, too_many
from livewell.server.auth.caller import Caller
from livewell.server.auth.share_owner import client_of
from livewell.server.dashboard import rendering
from livewell.server.dashboard.frame import Frame, Shown, check_look
from livewell.server.dashboard.rendering import Painted
from livewell.server.dashboard.visit import Elsewhere, Rights, Visit
from livewell.server.dashboard.withheld import GONE
from livewell.server.process import ServerProcess
from livewell.server.streams.stream import event
from livewell.shares import Client
from livewell.telemetry.redact import redact

log = structlog.get_logger("livewell.dashboard")

PAINT_SECONDS = 2.0
PAINT_RESTS = 10  # times as long as the painting took
_FAULT = "it has a fault; the server's log says which."
_HIDDEN = "who may operate is told why."
Place = tuple[Rights, str]
Rest = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Failed:
    """The page cannot be read now; what its tabs show is as old as it says."""

    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no such page any more, or it is at another address."""

    reason: str
    to: str | None = None


Trouble = Failed | Gone


class Painting:
    """One address, painted again and again while at least one tab shows it."""

    def __init__(self, shown: Shown, visit: Visit, rest: Rest) -> None:
        self._shown = shown
        self._visit = visit
        self._rest = rest
        self.panels: dict[str, Painted] = {}
        self.trouble: Trouble | None = None
        self.tabs: set[Tab] = set()
        self._task = asyncio.create_task(self._paint(), name="dashboard painting")

    def stop(self) -> None:
        """Nobody looks any more."""
        self._task.cancel()

    async def _paint(self) -> None:
        places = self._visit.state.looks.paintings
        while self.tabs:  # also if stop() came just as a wait ended, which can lose it
            client = min({tab.client for tab in self.tabs}, key=places.asking)
            async with places.take(client):
                began = time.monotonic()
                self.trouble = await self._read()
                took = time.monotonic() - began
            for tab in self.tabs:
                tab.wake.set()
            await self._rest(rest_seconds(took))

    async def _read(self) -> Trouble | None:
        """Read and render each panel; why that is not possible, if it is not."""
        path = self._visit.path
        try:
            panels = await self._shown.panels(self._visit)
            if isinstance(panels, Elsewhere):
                return Gone("It is at another address now.", panels.to)
            # All at once: a tab that asks meanwhile would take panels not painted yet for gone.
            self.panels = {panel.id: await rendering.paint(panel, self._visit.rights) for panel in panels}
        except GONE as error:
            return Gone(redact(str(error)))
        except Problem as problem:
            told = problem.detail or "It cannot be read."
            return Gone(told) if problem.status == 404 else Failed(told)
        except LivewellError as error:
            log.warning("a page could not be read", page=path, error=str(error))
            # The text of an error of the database may hold the statement.
            return Failed(redact(str(error)) if self._visit.may_operate else _HIDDEN)
        except Exception:
            log.exception("a page has a fault", page=path)
            return Failed(_FAULT)
        return None


def rest_seconds(took_seconds: float) -> float:
    """How long a painting rests that took so long."""
    return max(PAINT_SECONDS, PAINT_RESTS * took_seconds)


class Paintings:
    """The paintings of one server, by the rights of who looks and by address."""

    def __init__(self, frame: Frame, rest: Rest = asyncio.sleep) -> None:
        self._frame = frame
        self._rest = rest
        self._open: dict[Place, Painting] = {}
        self._tabs: dict[Client, set[Tab]] = {}

    def follow(
        self, address: str, state: ServerProcess, caller: Caller, token: str, has: frozenset[str] = frozenset()
    ) -> Tab:
        """A tab that shows this address; has: the hashes of the panels that it shows already."""
        quoted, _, query = address.partition("?")
        path = unquote(quoted)
        shown = self._frame.find(path)
        if shown is None:
            raise not_found()
        check_look(caller, shown.view)
        if not shown.view.live:
            raise Problem(400, "This page does not change by itself.", word="not-live", field="query.page")
        client, place = client_of(caller), (Rights.of(caller), address)
        self._admit(client, place, state)
        painting = self._open.get(place)
        if painting is None:
            visit = Visit(state, caller, path, shown.parts, dict(parse_qsl(query, keep_blank_values=True)))
            painting = self._open[place] = Painting(shown, visit, self._rest)
        login = caller.key_id if caller.kind == "login" else None
        tab = Tab(self, client, place, painting, token=token, login=login, has=has)
        painting.tabs.add(tab)
        self._tabs.setdefault(client, set()).add(tab)
        return tab

    def _admit(self, client: Client, place: Place, state: ServerProcess) -> None:
        """Raise if this is one page too many. A second tab of the same page costs nothing."""
        followed = {tab.place for tab in self._tabs.get(client, ())}
        most = state.settings.user_pages_max
        if place not in followed and len(followed) >= most:
            raise too_many(
                f"You follow {most} different pages; close or pause one of them.",
                seconds=state.settings.push_beat_seconds,
                word="pages",
            )

    def leave(self, tab: Tab) -> None:
        """The tab is closed; the last one ends the painting."""
        mine = self._tabs.get(tab.client, set())
        mine.discard(tab)
        if not mine:
            self._tabs.pop(tab.client, None)
        tab.painting.tabs.discard(tab)
        if not tab.painting.tabs and self._open.get(tab.place) is tab.painting:
            tab.painting.stop()
            del self._open[tab.place]


class Tab:
    """One page of a stream (shared_stream.py), as far as it has been sent."""

    def __init__(
        self,
        paintings: Paintings,
        client: Client,
        place: Place,
        painting: Painting,
        *,
        token: str,
        login: str | None,
        has: frozenset[str],
    ) -> None:
        self.client = client
        self.place = place
        self.painting = painting
        self._paintings = paintings
        self._token = token
        self._login = login
        self._has = has
        self._order: list[str] = []
        self._sent: dict[str, Painted] = {}
        self._told: Trouble | None = None
        self.number = 0  # of the page in its stream
        self.wake = asyncio.Event()

    def next(self) -> bytes | None:
        """Every panel that changed since it was sent, the instants of the others, and what is wrong."""
        events = []
        if self._order != (order := list(self.painting.panels)):
            self._order = order
            events.append(self._said("order", ids=order))
        for name, painted in self.painting.panels.items():
            sent = self._sent.get(name)
            if sent is painted:
                continue
            self._sent[name] = painted
            is_shown = (
                painted.hash(self._token, self._login) in self._has if sent is None else sent.html == painted.html
            )
            events.append(self._event(painted, is_new=not is_shown))
        if self.painting.trouble != self._told:
            self._told = self.painting.trouble
            events.append(self._trouble())
        return b"".join(events) or None

    def _event(self, painted: Painted, *, is_new: bool) -> bytes:
        if not is_new:
            return self._said("seen", id=painted.id, at=painted.as_of.isoformat())
        return self._said("panel", id=painted.id, html=painted.complete(self._token, self._login))

    def _trouble(self) -> bytes:
        if self._told is None:
            return self._said("mended")
        return self._said("gone" if isinstance(self._told, Gone) else "failed", **asdict(self._told))

    def _said(self, name: str, **document: Any) -> bytes:
        return event(name, orjson.dumps({"page": self.number, **document}))

    def close(self) -> None:
        """The browser has gone."""
        self._paintings.leave(self)
