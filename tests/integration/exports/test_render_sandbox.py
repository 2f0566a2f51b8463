"""What a render function cannot do, however hostile: the children of the pool, for real (E4)."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from livewell.exports.render.child_process import ChildProcess, Setup
from livewell.exports.render.rendered import RenderKilled, RenderRefused
from livewell.exports.render.renderer import Renderer

FUNCTIONS = "tests.support.renders:"
ATTEMPT = FUNCTIONS + "attempt"
linux = pytest.mark.skipif(sys.platform != "linux", reason="the filter of system calls is Linux's")


@pytest_asyncio.fixture
async def renderer() -> AsyncIterator[Renderer]:
    async with a_renderer() as renderer:
        yield renderer


def a_renderer() -> Renderer:
    return Renderer(
        at_once=2,
        seconds=5,
        bytes_max=1_000_000,
        recycle_after=50,
        recycle_bytes=200_000_000,
        functions=(ATTEMPT,),
    )


async def attempted(renderer: Renderer, way: str, target: str = "") -> str:
    return (await renderer.render(ATTEMPT, way.encode(), target.encode())).data.decode()


@pytest.mark.parametrize("way", ["read", "read again", "list", "socket", "pipe", "duplicate"])
async def test_no_descriptor_of_any_kind_can_be_made(renderer: Renderer, way: str) -> None:
    assert (await attempted(renderer, way)).startswith("refused")


async def test_no_file_can_be_written_removed_or_renamed(renderer: Renderer, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")

    answers = [await attempted(renderer, way, str(kept)) for way in ("remove", "rename")]
    answers.append(await attempted(renderer, "write", str(tmp_path / "made")))

    assert all(answer.startswith("refused") for answer in answers)
    assert os.listdir(tmp_path) == ["kept"]  # noqa: PTH208


async def test_a_listening_neighbour_on_loopback_hears_nothing(renderer: Renderer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)

        answer = await attempted(renderer, "connect", str(server.getsockname()[1]))

        assert answer.startswith("refused")
        with pytest.raises(BlockingIOError):
            server.accept()


@linux
@pytest.mark.parametrize("way", ["fork", "spawn", "exec", "stat"])
async def test_no_process_can_be_started_and_no_file_be_looked_at(renderer: Renderer, way: str) -> None:
    assert (await attempted(renderer, way)).startswith("refused")


@linux
async def test_no_other_process_can_be_signalled(renderer: Renderer) -> None:
    with subprocess.Popen(["sleep", "60"]) as neighbour:  # noqa: ASYNC220
        try:
            assert (await attempted(renderer, "signal", str(neighbour.pid))).startswith("refused")
            assert neighbour.poll() is None
        finally:
            neighbour.kill()


async def test_its_limits_cannot_be_raised_again(renderer: Renderer) -> None:
    assert (await attempted(renderer, "limits")).startswith("refused")


async def test_a_library_may_still_use_threads(renderer: Renderer) -> None:
    assert await attempted(renderer, "thread") == "done ran"


async def test_nothing_of_our_environment_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """E15: neither the database's address nor a key is there to be found."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://somebody:secret@db/livewell")
    monkeypatch.setenv("LIVEWELL_SESSION_SECRET", "secret")
    async with a_renderer() as renderer:
        environment = await attempted(renderer, "environment")
        arguments = await attempted(renderer, "arguments")

    assert "secret" not in environment + arguments
    names = set(json.loads(environment.removeprefix("done ")))
    assert names <= {"LANG", "TZ", "RAYON_NUM_THREADS", "MALLOC_ARENA_MAX", "LD_LIBRARY_PATH"}


async def test_it_holds_only_its_two_pipes_and_what_measures_its_memory(renderer: Renderer) -> None:
    """An inherited descriptor would be a way out that no limit closes."""
    number, names = os.pipe()
    os.set_inheritable(names, True)
    try:
        told = await renderer.render(FUNCTIONS + "inherited", b"", b"")
    finally:
        os.close(number)
        os.close(names)

    # 0, 1, 2; the pipes; /proc/self/statm where there is one
    assert len(json.loads(told.data)) <= 6


async def test_it_does_not_load_the_database_client_nor_pydantic(renderer: Renderer) -> None:
    """The start stays short, and no pool or setting is in its memory."""
    loaded = json.loads((await attempted(renderer, "modules")).removeprefix("done "))

    assert not {"psycopg", "pydantic", "aiohttp", "livewell.app", "livewell.settings"} & set(loaded)


async def test_four_gigabytes_end_the_render_that_wants_them(renderer: Renderer) -> None:
    with pytest.raises(RenderKilled) as killed:
        await renderer.render(FUNCTIONS + "allocate", b"4000000000", b"")

    assert killed.value.reason == "memory"
    assert (await renderer.render(FUNCTIONS + "allocate", b"1000000", b"")).data == b"1000000"


async def test_a_file_beyond_its_bound_is_refused(renderer: Renderer) -> None:
    with pytest.raises(RenderRefused) as refused:
        await renderer.render(FUNCTIONS + "large", b"1000001", b"")

    assert refused.value.reason == "too_large"


async def test_an_error_tells_its_type_and_nothing_of_the_document(renderer: Renderer) -> None:
    """E15."""
    with pytest.raises(RenderRefused) as refused:
        await renderer.render(FUNCTIONS + "fail", b"canary-7d1f", b"")

    assert (refused.value.reason, refused.value.detail) == ("internal", "the render raised ValueError")
    assert refused.value.__cause__ is None
    assert "canary" not in str(refused.value)


@linux
async def test_every_guard_holds_on_this_machine(renderer: Renderer) -> None:
    await attempted(renderer, "thread")

    guards = set(renderer.stats().guards)

    assert {"descriptors", "memory", "cpu", "files", "processes", "no_core"} <= guards
    assert {"no_new_rights", "ends_with_parent", "no_capabilities", "system_calls"} <= guards


def test_descriptors_alone_keep_files_and_sockets_away() -> None:
    """The part that holds on any Unix, where the kernel filters no system calls."""
    program = """
import socket, sys
from livewell.exports.render import sandbox, syscalls
syscalls.keep_few = lambda libc: False
guards = sandbox.shut_in(memory_bytes=100_000_000, cpu_seconds=10)
refused = 0
for way in (lambda: open("/etc/passwd"), socket.socket, lambda: socket.create_connection(("127.0.0.1", 9))):
    try:
        way()
    except OSError:
        refused += 1
print("system_calls" in guards, refused)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert ran.stdout.split() == ["False", "3"]


@linux
def test_the_end_of_the_parent_is_the_end_of_a_child_that_loops() -> None:
    """kill -9 of a worker leaves no render behind."""
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path.cwd())!r})
from livewell.exports.render.child_process import ChildProcess, Setup
async def main():
    child = await ChildProcess.start(("{FUNCTIONS}spin",), Setup((), 1000, 100_000_000, 100))
    asyncio.ensure_future(child.ask("{FUNCTIONS}spin", b"", b"", seconds=60, bytes_max=1000))
    await asyncio.sleep(0.1)
    print(child.process.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        child = int(worker.stdout.readline())
        worker.kill()

    deadline = time.monotonic() + 10
    while _is_running(child):
        assert time.monotonic() < deadline, "the child outlived its parent"
        time.sleep(0.02)


def _is_running(pid: int) -> bool:
    """Whoever adopts an orphan may take a while to reap it: a zombie does not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
    except OSError:
        return False
    return not state.startswith(("Z", "X"))


async def test_processor_time_has_a_bound_of_its_own() -> None:
    """A parent that is too busy to see the deadline is not needed for it."""
    function = FUNCTIONS + "spin"
    child = await ChildProcess.start((function,), Setup((), 1_000, 100_000_000, cpu_seconds=1))
    try:
        async with asyncio.timeout(30):
            with pytest.raises(RenderKilled):
                await child.ask(function, b"", b"", seconds=60, bytes_max=1_000)
    finally:
        await child.kill()
