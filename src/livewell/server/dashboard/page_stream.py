"""One stream for all tabs of a browser: the events of each of their pages, with the page's number.

    pages ──each──▶ followed ──▶ its events, {"page": 0, …}
              └──▶ not followed ──▶ event refused {page, status, detail, seconds}, once

A browser opens six connections to a server at most, so tabs share one stream (web/dashboard/
share.js). Which pages it has is in its address: a tab that is opened or hidden makes another one.
One page that cannot be followed is no reason to let go of the others.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import StringConstraints

from livewell.server.answers.problems import Problem
from livewell.server.auth.caller import Caller
from livewell.server.dashboard import form
from livewell.server.dashboard.frame import ADDRESS_CHARS_MAX
from livewell.server.dashboard.live import Paintings, Tab
from livewell.server.dashboard.rendering import HASH_CHARS
from livewell.server.dashboard.visit import Rights
from livewell.server.depends import Observer, TheState
from livewell.server.streams.stream import Stream, event

router = APIRouter(prefix="/v1", tags=["operations"])

PAGES_MAX = 16  # of one stream; share.js asks for no more
PANELS_MAX = 64  # of one page, whose hashes a tab may name
_EVENTS = (
    "Events, with the number of their page: order (ids), panel (id, html), seen (id, at), failed (reason), mended, "
    "gone (reason, to), refused (status, detail, seconds); without: away, back, beat, bye."
)
_STREAM: dict[int | str, dict[str, Any]] = {200: {"description": _EVENTS, "content": {"text/event-stream": {}}}}
_HASH = f"[0-9a-f]{{{HASH_CHARS}}}"
Addresses = Annotated[
    list[Annotated[str, StringConstraints(max_length=ADDRESS_CHARS_MAX, pattern=r"^/[^\x00]*$")]],
    Query(
        default_factory=lambda: ["/"],
        alias="page",
        max_length=PAGES_MAX,
        description="The addresses that are open; their number begins with 0.",
    ),
]
Has = Annotated[
    list[
        Annotated[
            str,
            StringConstraints(max_length=PANELS_MAX * (HASH_CHARS + 1), pattern=f"^({_HASH}(,{_HASH})*)?$"),
        ]
    ],
    Query(
        default_factory=list,
        alias="has",
        max_length=PAGES_MAX,
        description="For each page the data-hash of every panel that is shown already, with commas between them.",
    ),
]


@dataclass(slots=True)
class Refused:
    """A page that is not followed, and why."""

    number: int
    problem: Problem
    is_told: bool = False

    def next(self) -> bytes | None:
        """Said once."""
        if self.is_told:
            return None
        self.is_told = True
        seconds = float(self.problem.headers.get("Retry-After", 0))
        told = {"page": self.number, "status": self.problem.status, "detail": self.problem.detail, "seconds": seconds}
        return event("refused", orjson.dumps(told))

    def close(self) -> None:
        """Nothing is held."""


class SharedStream:
    """The source of one stream."""

    def __init__(self, pages: Sequence[Tab | Refused], wake: asyncio.Event) -> None:
        self._pages = pages
        self.wake = wake
        self.much = False
        self.name = f"pages:{secrets.token_hex(8)}"

    @classmethod
    def of(cls, addresses: Sequence[str], follow: Callable[[int, str], Tab]) -> SharedStream:
        """Follow these; a single page that cannot be followed is refused as a whole."""
        wake = asyncio.Event()
        pages: list[Tab | Refused] = []
        for number, address in enumerate(addresses):
            try:
                tab = follow(number, address)
            except Problem as problem:
                if len(addresses) == 1:
                    raise
                pages.append(Refused(number, problem))
            else:
                tab.number, tab.wake = number, wake
                pages.append(tab)
        wake.set()
        return cls(pages, wake)

    def next(self) -> bytes | None:
        """What is new on any of the pages."""
        return b"".join(chunk for page in self._pages if (chunk := page.next()) is not None) or None

    def over(self) -> str | None:
        """Never by itself."""
        return None

    def allow(self, caller: Caller) -> None:
        """All of a page or nothing: the stream ends when a scope is gone, and begins again with fewer."""

    def close(self) -> None:
        """The browser has gone."""
        for page in self._pages:
            page.close()


@router.get("/pages/stream", status_code=200, response_class=Stream, responses=_STREAM)
async def stream_pages(
    request: Request,
    state: TheState,
    caller: Observer,
    addresses: Addresses,
    has: Has,
) -> Stream:
    """Follow what pages of the dashboard show."""
    state.streams.admit(caller)
    token = form.token(form.cookie(request, form.TOKEN_COOKIE) or "")
    paintings: Paintings = request.state.paintings

    def follow(number: int, address: str) -> Tab:
        shown = has[number].split(",") if number < len(has) else ()
        return paintings.follow(address, state, caller, token, frozenset(shown))

    return state.streams.start(caller, SharedStream.of(addresses, follow), Rights.of(caller).scopes)
