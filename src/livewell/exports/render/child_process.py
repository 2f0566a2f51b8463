"""One child, seen from the parent: started, asked, killed, reaped.

    starting ──READY──▶ idle ──ask──▶ busy ──answer──▶ idle
       └── refused, dead, late ──┴───── deadline, death ──┴──▶ killed and reaped

The child leads a process group of its own, and the group is killed: nothing that it might have
started stays. It is reaped by whoever ends it, also when the caller is cancelled. Of its error
output only one thing is used, whether the memory was gone; the text is thrown away, because it may
hold text of a document (E15).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from livewell.exports.render import frames
from livewell.exports.render.frames import Kind
from livewell.exports.render.rendered import Rendered, RenderKilled, RenderRefused

START_SECONDS = 20.0  # far more than a start takes (0.1 s), for a machine that is very busy
_PROGRAM = Path(__file__).with_name("child.py")
_READ_BYTES = 1_000_000
_ERRORS_BYTES = 4_000
_NO_MEMORY = b"memory allocation of"  # what Rust says before it aborts


@dataclass(frozen=True, slots=True)
class Setup:
    """What every child of a pool is told. memory_bytes: what a render may take beside the warm-up."""

    fonts: tuple[str, ...]
    bytes_max: int
    memory_bytes: int
    cpu_seconds: int


@dataclass(slots=True, eq=False)
class ChildProcess:
    """A child that has said READY."""

    process: asyncio.subprocess.Process
    functions: frozenset[str]
    guards: tuple[str, ...] = ()
    renders: int = 0
    memory_bytes: int = 0
    _errors: bytearray = field(default_factory=bytearray)
    _listener: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, functions: Sequence[str], setup: Setup) -> ChildProcess:
        """A warm child in its sandbox, or RenderRefused (a library is missing), or RenderKilled."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-X", "utf8", str(_PROGRAM), str(os.getpid()),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=_environment(), cwd="/", start_new_session=True, limit=_READ_BYTES,
        )  # fmt: skip
        child = cls(process, frozenset(functions))
        child._listener = asyncio.create_task(child._drop_errors())
        try:
            async with asyncio.timeout(START_SECONDS):
                await child._get_ready(functions, setup)
        except TimeoutError:
            await child.kill()
            raise RenderKilled("died") from None
        except BaseException:
            await child.kill()
            raise
        return child

    async def _get_ready(self, functions: Sequence[str], setup: Setup) -> None:
        told = {
            "paths": [path or str(Path.cwd()) for path in sys.path],
            "functions": list(functions),
            "fonts": list(setup.fonts),
            "bytes_max": setup.bytes_max,
            "memory_bytes": setup.memory_bytes,
            "cpu_seconds": setup.cpu_seconds,
        }
        kind, payload = await self._talk([(Kind.SETUP, json.dumps(told).encode())], frames.TALK_BYTES_MAX)
        if kind != Kind.READY:
            raise _refusal(kind, payload)
        ready = json.loads(payload)
        self.guards, self.memory_bytes = tuple(ready["guards"]), int(ready["bytes"])

    async def ask(self, function: str, document: bytes, options: bytes, *, seconds: float, bytes_max: int) -> Rendered:
        """One render. After RenderKilled, and after a cancellation, the child is gone."""
        request = json.dumps({"function": function, "seconds": seconds}).encode()
        self.renders += 1
        try:
            async with asyncio.timeout(seconds):
                kind, payload = await self._talk(
                    [(Kind.REQUEST, request), (Kind.DOCUMENT, document), (Kind.OPTIONS, options)],
                    bytes_max + frames.DONE.size + frames.TALK_BYTES_MAX,
                )
        except TimeoutError:
            await self.kill()
            raise RenderKilled("deadline") from None
        except BaseException:
            await self.kill()
            raise
        if kind == Kind.DONE:
            pages, self.memory_bytes = frames.DONE.unpack_from(payload)
            return Rendered(payload[frames.DONE.size :], None if pages < 0 else pages)
        if kind == Kind.NO_MEMORY:
            await self.kill()
            raise RenderKilled("memory")
        raise _refusal(kind, payload)

    async def _talk(self, out: list[tuple[Kind, bytes]], length_max: int) -> tuple[int, bytes]:
        """Say this, and get the next frame."""
        writer, reader = self.process.stdin, self.process.stdout
        if writer is None or reader is None:
            raise RenderKilled("died")
        try:
            for kind, payload in out:
                writer.write(frames.head(kind, len(payload)))
                writer.write(payload)
            await writer.drain()
            got, length = frames.HEAD.unpack(await reader.readexactly(frames.HEAD.size))
            if length > length_max:
                raise RenderRefused("too_large", f"the file has more than {length_max} bytes")
            return got, await reader.readexactly(length)
        except (ConnectionError, asyncio.IncompleteReadError):
            raise RenderKilled(await self._why_it_died()) from None

    async def _why_it_died(self) -> str:
        code = await self.kill()
        if code == -signal.SIGXCPU:
            return "deadline"
        return "memory" if _NO_MEMORY in self._errors else "died"

    async def kill(self) -> int:
        """End the group and reap the child, also when the caller is cancelled meanwhile. Repeatable."""
        return await asyncio.shield(asyncio.ensure_future(self._kill()))

    async def _kill(self) -> int:
        # After the child is reaped its number may belong to another process.
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        code = await self.process.wait()
        if self._listener is not None:
            await self._listener
        if self.process.stdin is not None:
            self.process.stdin.close()
        return code

    @property
    def is_alive(self) -> bool:
        """False as soon as the event loop has seen it end."""
        return self.process.returncode is None

    def read_memory(self) -> int:
        """The bytes of memory it has now; where the kernel does not tell, those of its last answer."""
        try:
            statm = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii")
        except OSError:
            return self.memory_bytes if self.is_alive else 0
        return int(statm.split()[1]) * resource.getpagesize()

    async def _drop_errors(self) -> None:
        """Keep the pipe empty: a child that blocks on its error output would look like a hang."""
        reader = self.process.stderr
        while reader is not None and (chunk := await reader.read(_ERRORS_BYTES)):
            self._errors += chunk
            del self._errors[:-_ERRORS_BYTES]


def _refusal(kind: int, payload: bytes) -> RenderRefused | RenderKilled:
    """What a frame that brings no file means."""
    if kind == Kind.REFUSED:
        told = json.loads(payload)
        return RenderRefused(told["reason"], told["detail"])
    if kind == Kind.FAILED:
        return RenderRefused("internal", f"the render raised {payload.decode('ascii', 'replace')}")
    return RenderKilled("died")


def _environment() -> dict[str, str]:
    """All that a child knows of our environment: nothing that could be a secret.

    One thread for a render: three renders share the cores with the rest of the worker, and threads
    of one more than double what it needs. One arena: each costs 64 MB of address space.
    """
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return kept | {"LANG": "C.UTF-8", "TZ": "UTC", "RAYON_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
