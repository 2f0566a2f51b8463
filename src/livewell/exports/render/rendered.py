"""What a render gives: the file, or a typed reason why there is none.

The child imports this module: it stays free of libraries. No text of a document is ever in a
reason or a detail (E15). A detail may name a field (`work[2].summary`) and a character by its
Unicode name.
"""

from __future__ import annotations

from dataclasses import dataclass

from livewell.errors import LivewellError

DETAIL_MAX = 300  # characters


@dataclass(frozen=True, slots=True)
class Rendered:
    """The finished file. pages: counted from the file; None where the format has no pages."""

    data: bytes
    pages: int | None = None


class RenderRefused(LivewellError):
    """The document cannot be rendered as it is: repeating the render gives the same answer.

    reason: one word, such as unsupported_character, bad_image, missing_alt_text or template.
    detail: words of ours, without text of the document.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail[:DETAIL_MAX]


class RenderKilled(LivewellError):
    """The child ended without an answer: deadline, memory or died."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the render was ended: {reason}")
        self.reason = reason


class RenderBusy(LivewellError):
    """So many renders wait already that this one was not accepted: try again later."""
