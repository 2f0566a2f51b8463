"""What a capability offers, and which capabilities there are.

    BUILT_IN ───────────────────────────────────┐
                                                ├──▶ capabilities() ──▶ app, worker, server,
    entry points of other packages ──checked────┘                       operations, CLI, migrations
         └──broken, or in another's place──▶ ConfigurationError: nothing starts

A capability is one value, `CAPABILITY` in its package's module `capability`. This module is the
only list of capabilities: code that needs a part asks here. A part is mostly a reference,
"package.module:name": it is imported when the part is asked for, so `livewell jobs list` does not
import the web framework because some capability has routes.

Two parts need no field. A SQL function livewell.state_<name>() is a part of the system state, and
livewell.rules_<name>() lists alert rules: both are found in the database.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from livewell.errors import ConfigurationError, LivewellError
from livewell.settings import Settings

__all__ = ["Act", "Capability", "Chore", "CommandEntry", "Page", "View", "built_in", "capabilities", "offered"]

GROUP = "livewell.capabilities"  # of entry points

# Every capability of this package. The order is that of migrations: each may use the tables and
# functions of those before it. Entry points of other packages follow, by name.
BUILT_IN = (
    "livewell.db.capability:CAPABILITY",
    "livewell.limits.capability:CAPABILITY",
    "livewell.queue.capability:CAPABILITY",
    "livewell.schedule.capability:CAPABILITY",
    "livewell.refresh.capability:CAPABILITY",
    "livewell.alerts.capability:CAPABILITY",
    "livewell.outbox.capability:CAPABILITY",
    "livewell.exports.capability:CAPABILITY",
    "livewell.operations.capability:CAPABILITY",
    "livewell.apps.contacts.capability:CAPABILITY",
    "livewell.apps.resumes.capability:CAPABILITY",
    "livewell.apps.capability:CAPABILITY",
    "livewell.server.capability:CAPABILITY",
    "livewell.cli.capability:CAPABILITY",
)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_PATH = re.compile(r"(/[a-z0-9_-]+)+")
_VIEW_PATH = re.compile(r"(/([a-z0-9_-]+|\{[a-z]+(:path)?\}))+")

Reference = str


@dataclass(frozen=True, slots=True)
class Chore:
    """A statement that the hourly housekeeping repeats until it answers 0, false or NULL.

    `arguments` makes its parameters from the settings. `if_locked`: the warning that is counted
    when another transaction holds the lock that the statement needs. Without `if_locked` that is an
    error.
    """

    query: str
    arguments: Callable[[Settings], tuple[object, ...]]
    if_locked: str | None = None


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command of `livewell`. `place` orders the commands below one heading of the help."""

    name: str
    command: Reference
    heading: str = "More"
    place: int = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the server: the question it answers, its word in the navigation, its HTML file."""

    path: str
    title: str
    nav: str
    file: Path


@dataclass(frozen=True, slots=True)
class View:
    """A page of the dashboard, which the server renders.

    path    parts in braces: /types/{name}; a last part {key:path} may hold slashes
    title   the question that the page answers
    panels  async (Visit) → panels, see server/dashboard/visit.py
    nav     its word in the navigation; empty if the page is reached from another one
    scope   observe: for everybody who may look at the dashboard; operate: for operators alone
    live    False if an open page stays as it is: a question whose words must not change while it
            is answered, or a page that is too dear to be read again and again
    """

    path: str
    title: str
    panels: Reference
    nav: str = ""
    scope: str = "observe"
    live: bool = True


@dataclass(frozen=True, slots=True)
class Act:
    """What a form of the dashboard does: a POST to this path.

    act: async (Visit) → Done, see server/dashboard/visit.py. The frame checks the scope and the
    token of the form first. An empty scope: whoever is known may do it. page: where its form is,
    with the same parts in braces; empty if that is the nearest view above its path.
    """

    path: str
    act: Reference
    scope: str = "operate"
    page: str = ""


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability. Every part but the name may be left out.

    migrations    the folder of its SQL files: tables, functions, grants.sql
    declare       (app) → None: declares its tasks, queues and schedules, before an app opens
    declares      attribute of the app → (app) → object, made with the app and used before it
                  opens; an object with an async write(database) is written when the app opens
    api           attribute of the app → (app) → object, made when it is first used; an object
                  with an async close() is closed with the app
    queues        what a worker works that was not told its queues
    work          (WorkerContext) → Work: what it does in a worker, see schedule/work.py
    housekeeping  what is deleted, or made in advance, once an hour
    singletons    singletons that a worker holds for as long as it lives
    gauges        a sequence of telemetry.gauge.Gauge
    checks        a sequence of the doctor's checks, see finding.py
    stuck         (state document) → lines: what of it stands still, for `livewell state`
    routes        one APIRouter each, below /v1
    commands      of `livewell`
    pages         of the server: HTML files, for anybody who may load them
    views         pages of the dashboard
    overview      async (Visit) → panels that it adds to the first page
    acts          what forms of these pages do
    templates     the folder of the Jinja templates of its views, named <capability>/<file>
    docs          the folder of its documentation, for `livewell docs`: a page
                  operations/alerts/<rule>.md for each alert rule
    """

    name: str
    migrations: Path | None = None
    declare: Reference | None = None
    declares: Mapping[str, Reference] = field(default_factory=lambda: MappingProxyType({}))
    api: Mapping[str, Reference] = field(default_factory=lambda: MappingProxyType({}))
    queues: tuple[str, ...] = ()
    work: Reference | None = None
    housekeeping: tuple[Chore, ...] = ()
    singletons: tuple[str, ...] = ()
    gauges: Reference | None = None
    checks: Reference | None = None
    stuck: Reference | None = None
    routes: tuple[Reference, ...] = ()
    commands: tuple[CommandEntry, ...] = ()
    pages: tuple[Page, ...] = ()
    views: tuple[View, ...] = ()
    overview: Reference | None = None
    acts: tuple[Act, ...] = ()
    templates: Path | None = None
    docs: Path | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"capability {self.name!r}: a name has 1 to 31 of a-z 0-9 _, beginning with a letter"
            )
        for part, reference in self.references():
            if not _REFERENCE.fullmatch(reference):
                raise ConfigurationError(f"capability {self.name}: {part} is {reference!r}; write package.module:name")
        for page in self.pages:
            if not _PATH.fullmatch(page.path):
                raise ConfigurationError(
                    f"capability {self.name}: page {page.path!r}: write a path like /{self.name}, "
                    "of a-z 0-9 _ - between slashes"
                )
        for path in (*(one.path for one in self.views), *(one.path for one in self.acts)):
            if path != "/" and not _VIEW_PATH.fullmatch(path):
                raise ConfigurationError(
                    f"capability {self.name}: view {path!r}: write a path like /{self.name}/{{name}}, "
                    "of a-z 0-9 _ - between slashes, with parts in braces"
                )

    def references(self) -> Iterator[tuple[str, Reference]]:
        """Every reference with the name of its part."""
        for part in ("declare", "work", "gauges", "checks", "stuck", "overview"):
            reference = getattr(self, part)
            if reference is not None:
                yield part, reference
        yield from ((f"declares {name}", reference) for name, reference in self.declares.items())
        yield from ((f"api {name}", reference) for name, reference in self.api.items())
        yield from (("routes", reference) for reference in self.routes)
        yield from ((f"view {view.path}", view.panels) for view in self.views)
        yield from ((f"act {act.path}", act.act) for act in self.acts)
        yield from ((f"command {entry.name}", entry.command) for entry in self.commands)

    def load(self, part: str, reference: Reference) -> Any:
        """Import what a reference names."""
        try:
            return _import(reference)
        except LivewellError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"capability {self.name}: {part} is {reference}, which cannot be imported: "
                f"{type(error).__name__}: {error}. {_mend(self)}"
            ) from error


def offered(part: str) -> list[tuple[Capability, Any]]:
    """One part of every capability that has it, imported: "work", "gauges", "checks" …"""
    return [(one, one.load(part, reference)) for one in capabilities() if (reference := getattr(one, part)) is not None]


@cache
def built_in() -> tuple[Capability, ...]:
    """The capabilities of this package, in order."""
    return tuple(_import(reference) for reference in BUILT_IN)


@cache
def capabilities() -> tuple[Capability, ...]:
    """All capabilities: the built-in ones, then those of other packages.

    Raises ConfigurationError if one of them is broken. Nothing is left out silently: half a
    capability would enqueue jobs that nobody runs, or write rows that nobody prunes.
    """
    found: dict[str, tuple[Capability, str]] = {one.name: (one, "livewell itself") for one in built_in()}
    for one, package in _of_other_packages():
        _refuse_twins([other for other, _ in found.values()], one, package)
        found[one.name] = (one, package)
    return tuple(one for one, _ in found.values())


def _of_other_packages() -> Iterator[tuple[Capability, str]]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - reads a file of every package

    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        package = entry.dist.name if entry.dist is not None else "an unknown package"
        what = f"capability {entry.name} (entry point {entry.value} of package {package})"
        mend = f"Repair or update the package, or remove it with: pip uninstall {package}"
        try:
            found = entry.load()
        except Exception as error:
            raise ConfigurationError(f"{what} cannot be loaded: {type(error).__name__}: {error}. {mend}") from error
        if not isinstance(found, Capability):
            raise ConfigurationError(
                f"{what} is of type {type(found).__name__}, not a livewell.capability.Capability. {mend}"
            )
        for complaint in _complaints(found):
            raise ConfigurationError(f"{what}: {complaint}. {mend}")
        yield found, package


def _complaints(capability: Capability) -> Iterator[str]:
    """What can be seen to be wrong without importing any part."""
    folders = (
        ("migrations", capability.migrations),
        ("docs", capability.docs),
        ("templates", capability.templates),
    )
    for what, folder in folders:
        if folder is not None and not folder.is_dir():
            yield f"its {what} should be in {folder}, which is no folder"
    for page in capability.pages:
        if not page.file.is_file():
            yield f"page {page.path} should be in {page.file}, which is no file"
    for part, reference in capability.references():
        if not _is_there(reference.partition(":")[0]):
            yield f"{part} is {reference}, and there is no such module"


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _refuse_twins(others: list[Capability], one: Capability, package: str) -> None:
    """Two capabilities must not have the same name, command, page, view, act or attribute of the app."""
    for other in others:
        shared = [
            ("name", {one.name}, {other.name}),
            ("command", {entry.name for entry in one.commands}, {entry.name for entry in other.commands}),
            ("page", {page.path for page in one.pages}, {page.path for page in other.pages}),
            ("view", {view.path for view in one.views}, {view.path for view in other.views}),
            ("act", {act.path for act in one.acts}, {act.path for act in other.acts}),
            ("api", {*one.api, *one.declares}, {*other.api, *other.declares}),
        ]
        for what, ours, theirs in shared:
            for twice in sorted(ours & theirs):
                raise ConfigurationError(
                    f"capability {one.name} of package {package}: its {what} {twice} is taken by "
                    f"capability {other.name}. Rename it, or remove one of them: pip uninstall {package}"
                )


def _mend(capability: Capability) -> str:
    if capability in built_in():
        return "Is the installation whole? Install livewell again"
    return "Repair or update the package that offers it, or uninstall it"


def _import(reference: Reference) -> Any:
    module, _, attribute = reference.partition(":")
    found: Any = importlib.import_module(module)
    for name in attribute.split("."):
        found = getattr(found, name)
    return found
