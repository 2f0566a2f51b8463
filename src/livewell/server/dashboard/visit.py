"""What a page is given, and what it answers.

    async def panels(visit: Visit) -> list[Panel]: …          a view
    async def act(visit: Visit) -> Done | Answer: …           what a form does

Each panel is loaded by itself. A panel that fails says so in its place; the others are shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from livewell.db import Database
from livewell.server.answers.json_answer import number_after, place
from livewell.server.answers.problems import Problem, not_found
from livewell.server.auth.caller import Caller
from livewell.server.process import ServerProcess

PAGE_ROWS = 50
_FILTER_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Rights:
    """What a person may do on the dashboard beside looking. Whoever may not operate sees no payload."""

    operate: bool = False
    admin: bool = False

    @classmethod
    def of(cls, caller: Caller) -> Rights:
        """Of a caller who may look."""
        return cls(operate=caller.may("operate"), admin=caller.may("admin"))

    @property
    def scopes(self) -> frozenset[str]:
        """Which scopes give them, and the look."""
        given = {"operate": self.operate, "admin": self.admin, "observe": not self.operate}
        return frozenset(scope for scope, has in given.items() if has)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The data of a panel.

    data      the names that its template uses
    as_of     when the data was true; None: when it was loaded
    stale     why nothing newer could be read; None if this is the newest
    is_empty  true if there is nothing to show; the panel then says its words for that
    is_open   true if `stale` is in words of ours; else it may quote an error, which only who may
              operate is shown
    """

    data: Mapping[str, Any]
    as_of: datetime | None = None
    stale: str | None = None
    is_empty: bool = False
    is_open: bool = False


def loaded(*, is_empty: object = False, **data: Any) -> Loaded:
    """The data of a panel that was read just now."""
    return Loaded(data, is_empty=bool(is_empty))


@dataclass(frozen=True, slots=True)
class Panel:
    """One part of a page.

    id        of its element; unique in the page
    template  <capability>/<file>, or the name of a file in web/dashboard
    load      reads its data
    empty     what is said when there is nothing: why that is fine, or what to do
    wide      true if it takes the whole width of the page
    """

    id: str
    title: str
    template: str
    load: Callable[[], Awaitable[Loaded]]
    empty: str = "There is nothing here."
    wide: bool = True


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What was asked for is at another address."""

    to: str


@dataclass(frozen=True, slots=True)
class Done:
    """An act has ended: what to say, and which page to show.

    secret      shown once, beside what is said; it is in no cookie, no log and no address
    logged_out  the browser's own login has ended
    """

    said: str
    to: str
    secret: str | None = None
    logged_out: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """An act answers with panels instead of leading on: what it revealed, or a form that it refused.

    Nothing of it is followed live, and nothing of it is in an address.
    """

    title: str
    panels: Sequence[Panel]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Visit:
    """One look at a page, or one act, by a caller who may."""

    state: ServerProcess
    caller: Caller
    path: str
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)  # fields that may be there several times

    @property
    def database(self) -> Database:
        """For looking: few connections, and a second for each statement."""
        return self.state.looks.database

    @property
    def rights(self) -> Rights:
        """What the caller may do beside looking."""
        return Rights.of(self.caller)

    @property
    def may_operate(self) -> bool:
        """True if the caller may act, and see payloads and errors."""
        return self.rights.operate

    @property
    def after(self) -> int:
        """Where a list by id goes on."""
        return self.number_asked("after")

    @property
    def text_after(self) -> str:
        """Where a list by a text goes on."""
        try:
            return place(self.query.get("after"))
        except ValueError:
            raise _not_ours("after") from None

    def number_asked(self, name: str) -> int:
        """The same for a list whose cursor has a name of its own: a page may have two."""
        try:
            return number_after(self.query.get(name))
        except ValueError:
            raise _not_ours(name) from None

    def asked(self, name: str, *, among: Sequence[str] = ()) -> str | None:
        """A filter of the address; None if it is not set, or not among the words that are allowed."""
        text = self.query.get(name, "").strip()
        return None if not text or "\x00" in text or (among and text not in among) else text[:_FILTER_CHARS_MAX]

    def number(self, part: str) -> int:
        """A part of the path that is an id."""
        text = self.parts[part]
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**63):
            raise not_found()
        return int(text)


def _not_ours(name: str) -> Problem:
    return Problem(400, "This is not a cursor of ours.", word="invalid", field=f"query.{name}")
