"""Pictures of page one while somebody edits, rendered by the same kind of child as exports.

    asked ──share free──▶ checked ──▶ rendered in a child ──▶ PNG
      ├──the user has two under way──▶ 429      ├──cannot be rendered──▶ 400 with the reason
      └──the server has enough───────▶ 503      └──no fault of the document──▶ 503

A picture is for a person who waits, so it gets less time than an export. Nothing is kept of it.
Children start with the first picture and go with the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from livewell.apps.resumes.content import read_content
from livewell.exports.model import DOCUMENT_REASONS, TWICE_REASONS
from livewell.exports.options import read_options
from livewell.exports.render.rendered import RenderBusy, Rendered, RenderKilled, RenderRefused
from livewell.exports.render.renderer import Renderer
from livewell.server.answers.problems import Problem, busy
from livewell.server.bounds.request_slots import RequestSlots
from livewell.settings import Settings

log = structlog.get_logger("livewell.previews")

FUNCTION = "livewell.apps.resumes.render:preview"
_SECONDS = 3.0  # a page takes some 10 ms
_AT_ONCE = 3  # one more than a user may have under way: whoever renders slowly leaves one to others
_USER_MAX = 2  # one is rendered, the next is asked for
_WAITING_MAX = 40


class Previews:
    """The pictures of one server."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._renderer: Renderer | None = None
        self._slots = RequestSlots("previews", _WAITING_MAX, _USER_MAX)

    async def picture(self, document: Mapping[str, Any], options: Mapping[str, Any], *, user: str) -> Rendered:
        """Page one of a document as a PNG, or the problem that says why there is none."""
        with self._slots.take(user):
            content = read_content(document, bytes_max=self._settings.resume_bytes_max).text.encode()
            wanted = read_options(options).canonical()
            try:
                return await self._children().render(FUNCTION, content, wanted, seconds=_SECONDS)
            except RenderBusy:
                raise busy() from None
            except RenderRefused as refused:
                raise _problem(refused.reason, refused.detail) from None
            except RenderKilled as killed:
                raise _problem(killed.reason) from None

    def _children(self) -> Renderer:
        if self._renderer is None:
            settings = self._settings
            self._renderer = Renderer(
                at_once=_AT_ONCE,
                seconds=_SECONDS,
                bytes_max=settings.export_file_bytes_max,
                recycle_after=settings.export_child_renders_max,
                recycle_bytes=settings.export_child_bytes_max,
                functions=(FUNCTION,),
                fonts=[str(folder) for folder in settings.export_fonts],
            )
        return self._renderer

    async def close(self) -> None:
        """End the children."""
        if self._renderer is not None:
            await self._renderer.close()


def _problem(reason: str, detail: str = "") -> Problem:
    """Of the document, or of this server: that is no business of whoever writes."""
    if reason in DOCUMENT_REASONS | TWICE_REASONS:
        return not_rendered(reason, detail)
    log.warning("a picture of page one could not be made", reason=reason, detail=detail)
    return busy()


def not_rendered(reason: str, detail: str = "") -> Problem:
    """The document is well formed, and cannot be set like this. The reason is from a closed list."""
    place = detail.partition(":")[0] if detail[:1].islower() and ":" in detail else ""
    return Problem(
        400,
        detail or f"It cannot be rendered: {reason.replace('_', ' ')}.",
        word="not-rendered",
        field=f"body.document.{place}" if place else "body.document",
        more={"reason": reason},
    )
