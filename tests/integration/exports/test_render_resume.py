"""A résumé through the sandboxed child: what is drawn there is what is drawn here, and no more (E4)."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from livewell.apps.resumes import render as here
from livewell.apps.resumes.sample import DOCUMENT
from livewell.exports.render.rendered import RenderKilled, RenderRefused
from livewell.exports.render.renderer import Renderer
from tests.support.resume_pdf import text_of

RENDER = "livewell.apps.resumes.render:render"
PREVIEW = "livewell.apps.resumes.render:preview"


@pytest_asyncio.fixture
async def renderer() -> AsyncIterator[Renderer]:
    async with Renderer(
        at_once=2,
        seconds=30,
        bytes_max=50_000_000,
        recycle_after=50,
        recycle_bytes=300_000_000,
        functions=(RENDER, PREVIEW),
    ) as renderer:
        yield renderer


def as_bytes(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


@pytest.mark.parametrize("template", here.TEMPLATES)
async def test_the_child_gives_the_same_bytes_as_a_render_here(renderer: Renderer, template: str) -> None:
    """After the sandbox is shut neither a font nor a template is read: both are in memory."""
    options = as_bytes({"template": template, "quality": "high"})

    assert await renderer.render(RENDER, as_bytes(DOCUMENT), options) == here.render(as_bytes(DOCUMENT), options)


async def test_every_guard_holds_while_typst_draws(renderer: Renderer) -> None:
    await renderer.render(RENDER, as_bytes(DOCUMENT), b"{}")

    assert {"descriptors", "memory", "cpu", "files"} <= set(renderer.stats().guards)


async def test_a_preview_comes_from_the_same_children(renderer: Renderer) -> None:
    drawn = await renderer.render(PREVIEW, as_bytes(DOCUMENT), b"{}")
    await renderer.render(RENDER, as_bytes(DOCUMENT), b"{}")

    assert drawn.data.startswith(b"\x89PNG")
    assert renderer.stats().children <= 2


async def test_a_refusal_reaches_us_with_its_reason_and_its_field(renderer: Renderer) -> None:
    resume = {"basics": {"name": "Ada", "summary": "😀"}}

    with pytest.raises(RenderRefused) as refused:
        await renderer.render(RENDER, as_bytes(resume), b"{}")

    assert refused.value.reason == "unsupported_character"
    assert refused.value.detail == "basics.summary: no font has U+1F600 GRINNING FACE"


@pytest.mark.parametrize(
    "source", [b"#while true {}", b"#let f(n) = f(n) + f(n)\n#f(1)", b"#for i in range(100000000) { [x] }"]
)
async def test_a_template_that_never_ends_is_killed_and_two_neighbours_finish(
    source: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bomb fails its own render, in its limit and a second; the neighbours are drawn meanwhile."""
    bomb = "tests.support.resume_bomb:render"
    async with Renderer(
        at_once=3,
        seconds=30,
        bytes_max=50_000_000,
        recycle_after=50,
        recycle_bytes=300_000_000,
        functions=(RENDER, bomb),
    ) as renderer:
        await asyncio.gather(*(renderer.render(RENDER, as_bytes(DOCUMENT), b"{}") for _ in range(3)))
        loop = asyncio.ensure_future(renderer.render(bomb, source, b"{}", seconds=2))
        neighbours = [await renderer.render(RENDER, as_bytes(DOCUMENT), b"{}") for _ in range(2)]

        assert all("Ada Lovelace" in text_of(drawn.data) for drawn in neighbours)
        with pytest.raises((RenderKilled, RenderRefused)) as raised:
            await loop
        ended = raised.value
        assert isinstance(ended, RenderKilled | RenderRefused)
        assert ended.reason in {"deadline", "memory", "template"}
        assert "Ada" in text_of((await renderer.render(RENDER, as_bytes(DOCUMENT), b"{}")).data)


@pytest.mark.parametrize(
    "source",
    [b'#import "@preview/cetz:0.3.0"', b'#read("/etc/passwd")', b'#read("../fonts.py")', b'#image("/etc/hostname")'],
)
async def test_even_a_template_that_is_not_ours_reads_no_file_and_no_package(source: bytes) -> None:
    """What injection could win at most: nothing."""
    bomb = "tests.support.resume_bomb:render"
    async with Renderer(
        at_once=1, seconds=30, bytes_max=50_000_000, recycle_after=50, recycle_bytes=300_000_000, functions=(bomb,)
    ) as renderer:
        with pytest.raises(RenderRefused) as refused:
            await renderer.render(bomb, source, b"{}")

    assert refused.value.reason == "template"
