"""The pool of rendering children: deadlines, neighbours, the line, the spare, what is replaced (E3, E4)."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from livewell.exports.render import renderer as pool
from livewell.exports.render.rendered import RenderBusy, Rendered, RenderKilled, RenderRefused
from livewell.exports.render.renderer import Renderer

FUNCTIONS = "tests.support.renders:"
ECHO = FUNCTIONS + "echo"
PID = FUNCTIONS + "pid"


def a_renderer(
    *,
    at_once: int = 2,
    seconds: float = 20,
    recycle_after: int = 50,
    recycle_bytes: int = 200_000_000,
    waiting_max: int = 100,
) -> Renderer:
    return Renderer(
        at_once=at_once,
        seconds=seconds,
        bytes_max=10_000_000,
        recycle_after=recycle_after,
        recycle_bytes=recycle_bytes,
        waiting_max=waiting_max,
        functions=tuple(FUNCTIONS + name for name in ("echo", "pid", "sleep", "spin", "grow")),
    )


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - of other processes no event tells
            await asyncio.sleep(0.01)


async def pid_of(renderer: Renderer) -> int:
    return int((await renderer.render(PID, b"", b"")).data)


def is_gone(pid: int) -> bool:
    """Reaped: a zombie would still answer."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_document_and_options_arrive_and_the_file_comes_back() -> None:
    async with a_renderer() as renderer:
        assert await renderer.render(ECHO, b"document " * 100_000, b"options") == Rendered(
            b"document " * 100_000 + b"options", 1
        )


async def test_a_render_over_its_limit_ends_alone_and_its_neighbours_finish() -> None:
    """E4: the two that share the pool with an endless loop give what they would have given."""
    async with a_renderer(at_once=3) as renderer:
        await asyncio.gather(*(renderer.render(ECHO, b"", b"") for _ in range(3)))
        began = time.monotonic()
        loop = asyncio.ensure_future(renderer.render(FUNCTIONS + "spin", b"", b"", seconds=1.5))
        neighbours = [asyncio.ensure_future(renderer.render(FUNCTIONS + "sleep", b"0.5", b"")) for _ in range(2)]

        assert [rendered.data for rendered in await asyncio.gather(*neighbours)] == [b"slept", b"slept"]
        with pytest.raises(RenderKilled) as killed:
            await loop

        assert killed.value.reason == "deadline"
        assert time.monotonic() - began < 1.5 + 8  # starts of three children are in it
        assert renderer.stats().killed_by_reason == {"deadline": 1}
        assert (await renderer.render(ECHO, b"after", b"")).data == b"after"


async def test_a_killed_child_is_reaped_and_leaves_no_zombie() -> None:
    async with a_renderer(at_once=1) as renderer:
        pid = await pid_of(renderer)

        with pytest.raises(RenderKilled):
            await renderer.render(FUNCTIONS + "spin", b"", b"", seconds=0.3)
        other = await pid_of(renderer)

        assert other != pid
    await until(lambda: is_gone(pid) and is_gone(other))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
async def test_a_child_that_is_killed_in_mid_render_is_replaced(number: signal.Signals) -> None:
    async with a_renderer(at_once=1) as renderer:
        pid = await pid_of(renderer)
        render = asyncio.ensure_future(renderer.render(FUNCTIONS + "sleep", b"30", b""))
        await until(lambda: renderer.stats().busy == 1)
        busy = next(iter(renderer._busy)).process.pid
        os.kill(busy, number)

        with pytest.raises(RenderKilled) as killed:
            await render

        assert killed.value.reason == "died"
        assert await pid_of(renderer) not in {pid, busy}


async def test_a_child_that_ends_itself_in_mid_render_died() -> None:
    async with a_renderer() as renderer:
        with pytest.raises(RenderKilled) as killed:
            await renderer.render(FUNCTIONS + "die", b"", b"")

        assert killed.value.reason == "died"


async def test_a_render_that_is_cancelled_ends_its_child_at_once() -> None:
    """E5: a cancelled export does not go on using a place."""
    async with a_renderer(at_once=1) as renderer:
        render = asyncio.ensure_future(renderer.render(FUNCTIONS + "sleep", b"60", b""))
        await until(lambda: renderer.stats().busy == 1)
        pid = next(iter(renderer._busy)).process.pid

        render.cancel()
        with pytest.raises(asyncio.CancelledError):
            await render

        await until(lambda: is_gone(pid))
        assert (await renderer.render(ECHO, b"next", b"")).data == b"next"


async def test_at_most_at_once_render_and_the_others_wait_their_turn() -> None:
    """E3."""
    async with a_renderer(at_once=2) as renderer:
        renders = [asyncio.ensure_future(renderer.render(FUNCTIONS + "sleep", b"0.1", b"")) for _ in range(6)]
        most = 0
        while not all(render.done() for render in renders):
            most = max(most, renderer.stats().busy)
            await asyncio.sleep(0.005)

        assert most == 2
        assert [render.result().data for render in renders] == [b"slept"] * 6


async def test_the_line_has_an_end() -> None:
    async with a_renderer(at_once=1, waiting_max=1) as renderer:
        first = asyncio.ensure_future(renderer.render(FUNCTIONS + "sleep", b"0.5", b""))
        await until(lambda: renderer.stats().busy == 1)
        second = asyncio.ensure_future(renderer.render(ECHO, b"", b""))
        await until(lambda: renderer.stats().waiting == 1)

        with pytest.raises(RenderBusy):
            await renderer.render(ECHO, b"", b"")

        await asyncio.gather(first, second)


async def test_a_child_is_replaced_after_so_many_renders() -> None:
    async with a_renderer(at_once=1, recycle_after=3) as renderer:
        seen = [await pid_of(renderer) for _ in range(7)]

        assert [len(set(seen[at : at + 3])) for at in (0, 3)] == [1, 1]
        assert len(set(seen)) == 3


async def test_a_child_that_has_grown_is_replaced() -> None:
    async with a_renderer(at_once=1, recycle_bytes=60_000_000) as renderer:
        pid = await pid_of(renderer)
        await renderer.render(FUNCTIONS + "grow", b"30000000", b"")
        grown = await pid_of(renderer)
        await renderer.render(FUNCTIONS + "grow", b"25000000", b"")
        replaced = await pid_of(renderer)

        assert pid == grown != replaced


async def test_a_spare_is_warm_while_another_child_renders() -> None:
    async with a_renderer(at_once=2) as renderer:
        render = asyncio.ensure_future(renderer.render(FUNCTIONS + "sleep", b"30", b""))
        await until(lambda: renderer.stats().busy == 1 and renderer.stats().spare == 1)
        spare = renderer._idle[0].process.pid

        assert await pid_of(renderer) == spare
        render.cancel()


async def test_after_a_quiet_time_one_warm_child_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.2)
    async with a_renderer(at_once=3) as renderer:
        await asyncio.gather(*(renderer.render(FUNCTIONS + "sleep", b"0.3", b"") for _ in range(3)))

        await until(lambda: renderer.stats().children == 1)
        assert renderer.stats().spare == 1


async def test_spares_that_die_at_their_start_are_counted_and_not_started_in_a_loop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "child.py"
    broken.write_text("raise SystemExit(1)")
    monkeypatch.setattr("livewell.exports.render.child_process._PROGRAM", broken)
    async with a_renderer() as renderer:
        for _ in range(5):
            with pytest.raises(RenderKilled) as killed:
                await renderer.render(ECHO, b"", b"", seconds=0.5)
            assert killed.value.reason == "died"
        began = time.monotonic()
        with pytest.raises(RenderKilled):
            await renderer.render(ECHO, b"", b"", seconds=0.01)

        stats = renderer.stats()
        assert 3 <= stats.failed_starts == stats.starts <= 7
        assert time.monotonic() - began < 0.5  # a pause that is longer than the limit is not waited for


async def test_a_pool_whose_children_start_again_goes_on_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "child.py"
    broken.write_text("raise SystemExit(1)")
    with monkeypatch.context() as patch:
        patch.setattr("livewell.exports.render.child_process._PROGRAM", broken)
        renderer = a_renderer()
        await renderer.__aenter__()
        with pytest.raises(RenderKilled):
            await renderer.render(ECHO, b"", b"")

    assert (await renderer.render(ECHO, b"again", b"")).data == b"again"
    await renderer.close()


async def test_a_function_that_cannot_be_loaded_fails_alone_and_names_what_is_missing() -> None:
    async with a_renderer() as renderer:
        with pytest.raises(RenderRefused) as refused:
            await renderer.render("no_such_library.render:render", b"", b"")

        assert (refused.value.reason, refused.value.detail) == ("library_missing", "no_such_library")
        assert (await renderer.render(ECHO, b"still", b"")).data == b"still"


async def test_a_refusal_keeps_the_child_warm() -> None:
    async with a_renderer(at_once=1) as renderer:
        for name, reason in (("refuse", "template"), ("fail", "internal")):
            with pytest.raises(RenderRefused) as refused:
                await renderer.render(FUNCTIONS + name, b"", b"")
            assert refused.value.reason == reason
            kept = renderer.stats().spare

            assert kept == 1
            assert renderer.stats().killed_by_reason == {}


async def test_closing_ends_every_child_and_what_is_under_way() -> None:
    renderer = a_renderer(at_once=2)
    await renderer.__aenter__()
    renders = [asyncio.ensure_future(renderer.render(FUNCTIONS + "sleep", b"60", b"")) for _ in range(3)]
    await until(lambda: renderer.stats().busy == 2)
    pids = [child.process.pid for child in renderer._busy]

    await renderer.close()
    ends = await asyncio.gather(*renders, return_exceptions=True)

    assert all(is_gone(pid) for pid in pids)
    assert sorted(type(end).__name__ for end in ends) == ["RenderBusy", "RenderKilled", "RenderKilled"]
    with pytest.raises(RenderBusy):
        await renderer.render(ECHO, b"", b"")
    await renderer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_parent_keeps_nothing_of_what_it_rendered() -> None:
    async with a_renderer(at_once=1, recycle_after=1_000) as renderer:
        for _ in range(20):
            await renderer.render(FUNCTIONS + "large", b"5000000", b"")
        before = _memory()
        for _ in range(60):
            await renderer.render(FUNCTIONS + "large", b"5000000", b"")

        assert _memory() - before < 15_000_000  # of 300 MB that passed


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
