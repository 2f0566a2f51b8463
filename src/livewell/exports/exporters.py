"""`@app.exporter("resume", …)`: what can be exported, who reads the document, what renders it.

    @app.exporter("resume", render="shop.resumes:render", templates=("plain",))
    async def read(source: ExportSource) -> bytes:
        return (await source.database.call("SELECT …", (source.user, source.document)))[0][0]

The reader runs in the worker, with its database. `render` runs in a child process that can be
killed: it is given the bytes of the reader and the options, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel

from livewell.db import Database
from livewell.db.open_app import OpenApp
from livewell.errors import ConfigurationError, LivewellError
from livewell.exports.options import PdfOptions

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
_SUFFIX = re.compile(r"[a-z0-9]{1,16}")
_RENDER = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_DECLARE = "SELECT livewell.declare_export_kind(%s, %s, %s, %s, %s)"


class DocumentGone(LivewellError):
    """A reader raises it when the document, or this version of it, is not there any more."""


@dataclass(frozen=True, slots=True)
class ExportSource:
    """What a reader is asked for."""

    database: Database
    user: str
    document: str
    version: str


@dataclass(frozen=True, slots=True)
class Source:
    """What a reader may answer instead of bytes. as_of: how old the data in the document is."""

    data: bytes
    as_of: datetime | None = None


Reader = Callable[[ExportSource], Awaitable[bytes | Source]]


@dataclass(frozen=True, slots=True)
class Exporter:
    """One kind of export."""

    name: str
    read: Reader
    render: str
    templates: tuple[str, ...]
    content_type: str
    suffix: str
    bytes_estimate: int
    options: type[BaseModel]


class Exporters:
    """The kinds that an app declares."""

    def __init__(self, app: OpenApp) -> None:
        self._app = app
        self.kinds: dict[str, Exporter] = {}

    def __call__(
        self,
        name: str,
        *,
        render: str,
        templates: Sequence[str] = (),
        content_type: str = "application/pdf",
        suffix: str = "pdf",
        bytes_estimate: int = 200_000,
        options: type[BaseModel] = PdfOptions,
    ) -> Callable[[Reader], Reader]:
        """Declare a kind; the function below it reads the document.

        render: "package.module:name" of a function (document, options) → Rendered. bytes_estimate:
        what a request reserves of its user's room, until the size is known.
        """
        checks = {
            "name": (bool(_NAME.fullmatch(name)), "1 to 63 of a-z 0-9 _ . -, beginning with a letter"),
            "render": (bool(_RENDER.fullmatch(render)), "package.module:name"),
            "suffix": (bool(_SUFFIX.fullmatch(suffix)), "1 to 16 of a-z 0-9"),
            "bytes_estimate": (1 <= bytes_estimate <= 1_000_000_000, "1 to 1,000,000,000"),
            "templates": (len(templates) <= 100 and not isinstance(templates, str), "at most 100 names"),
        }
        for what, (is_good, allowed) in checks.items():
            if not is_good:
                raise ConfigurationError(f"exporter {name!r}: {what}: allowed is {allowed}")
        if name in self.kinds:
            raise ConfigurationError(f"exporter {name}: declared twice")

        def declare(read: Reader) -> Reader:
            self.kinds[name] = Exporter(
                name, read, render, tuple(templates), content_type, suffix, bytes_estimate, options
            )
            return read

        return declare

    def options_of(self, kind: str) -> type[BaseModel]:
        """Which options a kind has; those of a PDF where this process does not know the kind."""
        found = self.kinds.get(kind)
        return PdfOptions if found is None else found.options

    async def write(self, database: Database) -> None:
        """Tell the database what is declared; called when the app opens."""
        for one in self.kinds.values():
            await database.call(
                _DECLARE, (one.name, one.content_type, one.suffix, list(one.templates), one.bytes_estimate)
            )

    @property
    def renders(self) -> Mapping[str, str]:
        """What renders each kind."""
        return {name: one.render for name, one in self.kinds.items()}
