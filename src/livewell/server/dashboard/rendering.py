"""Templates, and how they write numbers and times.

A capability's templates are <its name>/<file>; those of the frame are in web/dashboard. Everything
that a template prints is escaped, and a name that is not there is an error.

Four things in a panel are not the panel's own: the token of its forms and the sign at the reader's
own login, which belong to a browser, the instant of its data, which moves when nothing else does,
and the hash of the rest. They are marks in what is rendered, so one rendering serves all tabs and
two renderings can be compared. A tab that comes back says which hashes it shows, and is sent the
other panels.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import structlog
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape

from livewell import words
from livewell.capability import capabilities
from livewell.errors import LivewellError
from livewell.server.answers.problems import Problem
from livewell.server.dashboard.visit import Loaded, Panel, Rights
from livewell.server.dashboard.withheld import NOTHING_NEWER, reason_of, withhold
from livewell.server.pages import shelf
from livewell.telemetry.control_characters import escaped, printable
from livewell.telemetry.redact import redact
from livewell.version import VERSION
from livewell.web import DASHBOARD, UI

log = structlog.get_logger("livewell.dashboard")

LINE_WIDTH, LINE_HEIGHT = 240, 40
HASH_CHARS = 16
_TEXT_CHARS_MAX = 20_000
_PARSED_CHARS_MAX = 524_288
_MARK = "\ufdd0"  # stands for nothing in any text
_WRITTEN_INSTANT = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) UTC\b", re.ASCII)
_MARKED = re.compile(f'"{_MARK}([^"{_MARK}]*){_MARK}"')
_YOURS = '<span class="tag" data-tone="warn">this browser</span>'
_TOKEN = secrets.token_hex(16)  # no text of a page can be these marks
_AS_OF = secrets.token_hex(16)
_HASH = secrets.token_hex(16)
_MARKS = re.compile("|".join((_TOKEN, _AS_OF, _HASH)))
_OWN = secrets.token_hex(16)
_OWN_LOGIN = re.compile(f"{_OWN}([A-Za-z0-9]{{1,32}}){_OWN}")


@dataclass(frozen=True, slots=True)
class Painted:
    """A panel as HTML. Two are equal if a reader would see the same but for the instant."""

    id: str
    html: str
    as_of: datetime

    def complete(self, token: str, login: str | None = None) -> str:
        """For one browser, with this login."""
        given = {_TOKEN: token, _AS_OF: instant(self.as_of), _HASH: self.hash(token, login)}
        return _MARKS.sub(lambda mark: given[mark[0]], _signed(self.html, login))

    def hash(self, token: str, login: str | None = None) -> str:
        """Of what a reader in one browser sees, but for the instant. It is the same in every process."""
        own = _MARKS.sub(lambda mark: token if mark[0] == _TOKEN else "", _signed(self.html, login))
        return hashlib.sha256(own.encode()).hexdigest()[:HASH_CHARS]


def _signed(html: str, login: str | None) -> str:
    """The sign at the reader's own login, and none at the others."""
    return _OWN_LOGIN.sub(lambda found: _YOURS if found[1] == login else "", html)


def environment(rights: Rights) -> Environment:
    """The templates of the frame and of every capability, for people with these rights."""
    return _environment(tuple((one.name, one.templates) for one in capabilities() if one.templates is not None), rights)


@cache
def _environment(folders: tuple[tuple[str, Path], ...], rights: Rights) -> Environment:
    made = Environment(
        loader=ChoiceLoader(
            [
                FileSystemLoader([DASHBOARD, UI]),
                PrefixLoader({name: FileSystemLoader(folder) for name, folder in folders}),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"sort_keys": False}  # lines of a chart stay in their order
    made.filters |= {
        "number": words.number,
        "span": words.span,
        "size": words.size,
        "share": words.share,
        "instant": instant,
        "timed": timed,
        "pretty": pretty,
        "editable": editable,
        "shown": shown,
        "sparkline": sparkline,
        "path": path_part,
    }
    made.globals |= {"sign_of_own": sign_of_own}
    made.globals |= {"static": f"/static/{shelf().fingerprint}", "version": VERSION, "token": _TOKEN}
    made.globals |= {"may_operate": rights.operate, "may_admin": rights.admin}
    return made


def page(template: str, rights: Rights, /, **context: Any) -> str:
    """One template."""
    return environment(rights).get_template(template).render(**context)


async def paint(panel: Panel, rights: Rights) -> Painted:
    """Load a panel and render it in the state that it is in: data, empty, stale or failed."""
    try:
        found = await panel.load()
        state = "stale" if found.stale else "empty" if found.is_empty else "data"
        reason = NOTHING_NEWER if found.stale and not (rights.operate or found.is_open) else found.stale or ""
        return _painted(panel, rights, state, found, reason=reason)
    except (LivewellError, Problem) as error:
        return _painted(panel, rights, "failed", reason=reason_of(error, may_operate=rights.operate))
    except Exception:
        log.exception("a panel has a fault", panel=panel.id, template=panel.template)
        return _painted(panel, rights, "failed", reason="this panel has a fault; the server's log says which.")


def _painted(panel: Panel, rights: Rights, state: str, found: Loaded | None = None, *, reason: str) -> Painted:
    data = {} if found is None else found.data if rights.operate else withhold(found.data)
    body = "" if found is None or found.is_empty else page(panel.template, rights, **data)
    html = page(
        "panel.html",
        rights,
        panel=panel,
        state=state,
        is_dated=found is not None and found.as_of is not None,
        reason=redact(reason),
        as_of=Markup(_AS_OF),  # noqa: S704 - our own mark
        hash=_HASH,
        body=Markup(body),  # noqa: S704 - rendered by a template, which escapes
    )
    as_of = found.as_of if found is not None else None
    return Painted(panel.id, html, as_of or datetime.now(UTC))


def instant(at: datetime | str | None) -> Markup:
    """An instant as an element: UTC without JavaScript, the viewer's zone with it (dashboard.js)."""
    if at is None:
        return Markup("")
    moment = (datetime.fromisoformat(at) if isinstance(at, str) else at).astimezone(UTC)
    text = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment.isoformat(), text, text)


def sign_of_own(login: str) -> Markup:
    """A mark at a login: the browser that has this login sees that it is its own."""
    return Markup(f"{_OWN}{login}{_OWN}") if login.isalnum() else Markup("")  # noqa: S704 - letters and digits


def timed(text: str) -> Markup:
    """A sentence; each instant in it, as our words write them, is an element like those of tables."""
    made, end = Markup(), 0
    for found in _WRITTEN_INSTANT.finditer(text):
        try:
            at = instant(f"{found[1]}+00:00")
        except ValueError:
            continue  # digits that look like one
        made += escape(text[end : found.start()]) + at
        end = found.end()
    return made + escape(text[end:])


def path_part(text: object) -> str:
    """One part of a path: a slash in it is escaped too."""
    return quote(str(text), safe="")


def pretty(text: str | None) -> str:
    """JSON, indented; every digit of its numbers as it was written. Other text as it is."""
    if text is None:
        return ""
    if len(text) > _PARSED_CHARS_MAX:
        return shown(text)  # it is cut all the same, and to parse it would hold up everybody else
    try:
        return shown(write_exact(read_exact(text), indent=2))
    except (ValueError, RecursionError):
        return shown(text)


def read_exact(text: str) -> Any:
    """JSON whose numbers are kept as they were written; only for write_exact()."""
    return json.loads(text, parse_float=_marked, parse_int=_marked)


def write_exact(value: Any, *, indent: int | None = None) -> str:
    """JSON of a value, or of a part of one, that read_exact() has read."""
    return _MARKED.sub(r"\1", json.dumps(value, indent=indent, ensure_ascii=False))


def editable(text: str) -> str:
    """The same as pretty() for a form: all of it, and an escape for each character that cannot be seen."""
    return escaped(write_exact(read_exact(text), indent=2))


def _marked(digits: str) -> str:
    """A number as a text that no other text looks like: Python and JavaScript would round it."""
    return f"{_MARK}{digits}{_MARK}"


def shown(text: object) -> str:
    """Text for people: control characters are visible, and it is cut when it is too long."""
    whole = printable(str(text))
    return whole if len(whole) <= _TEXT_CHARS_MAX else f"{whole[:_TEXT_CHARS_MAX]}… ({len(whole):,} characters)"


def sparkline(values: Iterable[float | None], top: float | None = None) -> Markup:
    """A small line as SVG. A gap stays a gap."""
    points: Sequence[float | None] = list(values)
    known = [value for value in points if value is not None]
    if len(known) < 2:
        return Markup("")
    most = top if top is not None else max(known) or 1.0
    step = LINE_WIDTH / (len(points) - 1)
    pieces, pen = [], "M"
    for place, value in enumerate(points):
        if value is None:
            pen = "M"
            continue
        pieces.append(f"{pen}{place * step:.1f} {LINE_HEIGHT - 2 - value / most * (LINE_HEIGHT - 4):.1f}")
        pen = "L"
    return Markup(
        '<svg class="sparkline" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true"><path d="{}"/></svg>'
    ).format(LINE_WIDTH, LINE_HEIGHT, " ".join(pieces))
