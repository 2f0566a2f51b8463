"""A render whose child died is rendered once more at once; what the document does is not repeated (E4)."""

from __future__ import annotations

from typing import Any

import pytest

from livewell.exports.render.rendered import Rendered, RenderKilled
from livewell.exports.rendering import Rendering


class Dying:
    """A renderer that fails so often with this reason."""

    def __init__(self, reason: str, times: int) -> None:
        self.reason = reason
        self.left = times
        self.calls = 0

    async def render(self, function: str, document: bytes, options: bytes) -> Rendered:
        """Fail, or give the document back."""
        del function, options
        self.calls += 1
        if self.left:
            self.left -= 1
            raise RenderKilled(self.reason)
        return Rendered(document)


def rendering(renderer: Dying) -> Rendering:
    """One that is ready."""
    nothing: Any = None
    made = Rendering(nothing, exporters=nothing, store=nothing, holder="here")
    made._renderer = renderer  # type: ignore[assignment]
    made._ready.set()
    return made


async def test_a_child_that_was_killed_costs_no_attempt() -> None:
    """Proven: without the second render it raises."""
    renderer = Dying("died", 1)

    assert await rendering(renderer).render("a:b", b"document", b"{}") == Rendered(b"document")
    assert renderer.calls == 2


@pytest.mark.parametrize(("reason", "times", "calls"), [("died", 2, 2), ("deadline", 1, 1), ("memory", 1, 1)])
async def test_nothing_is_rendered_a_third_time(reason: str, times: int, calls: int) -> None:
    """And what took too long or too much is the document's doing."""
    renderer = Dying(reason, times)

    with pytest.raises(RenderKilled, match=reason):
        await rendering(renderer).render("a:b", b"document", b"{}")
    assert renderer.calls == calls
