"""The program of a rendering child: started as a file, with two pipes, by child_process.py.

    started ──SETUP──▶ guards, functions, warm-up ──▶ sandboxed ──READY──▶ waiting
    waiting ──REQUEST──▶ rendering ──DONE, REFUSED, FAILED──▶ waiting
    rendering ──no memory, a panic of a library──▶ ends itself
    waiting ──the pipe is closed──▶ ends itself

It must start in tens of milliseconds and stay small, so `import livewell` does not run the
package's own __init__ here (it would load the database client, pydantic and the web framework:
measured 0.6 s and 80 MB instead of 0.04 s and 37 MB). A render function that takes a public name
from `livewell` still gets it: the first such name runs the real __init__.

A module with a render function may have `warm_up(fonts: tuple[str, ...])`. It runs once, before the
sandbox: the last chance to open a file. Whatever the function needs later must be in memory then,
modules that are imported late included.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from livewell.exports.render.rendered import Rendered

_STOPPED: Final = 70  # exit code after a panic


def main() -> None:
    """Serve one parent until the pipe is closed."""
    incoming, outgoing = _take_pipes()
    _LightPackage.install()
    from livewell.exports.render import frames, sandbox  # noqa: PLC0415 - the package's __init__ must not run

    guards = sandbox.shut_off(parent=int(sys.argv[1]))
    pipe = _Pipe(incoming, outgoing, frames)
    setup = json.loads(pipe.read(frames.Kind.SETUP, frames.TALK_BYTES_MAX) or b"null")
    if setup is None:
        return
    memory = _Memory()
    try:
        functions = _load(setup)
    except ImportError as missing:
        name = (missing.name or "a module").split(".")[0]
        pipe.write(frames.Kind.REFUSED, json.dumps({"reason": "library_missing", "detail": name}).encode())
        return
    except Exception as error:  # noqa: BLE001 - its text may hold anything: only the type is told
        pipe.write(frames.Kind.FAILED, type(error).__name__.encode())
        return
    guards += sandbox.shut_in(memory_bytes=setup["memory_bytes"], cpu_seconds=setup["cpu_seconds"])
    if not set(sandbox.NEEDED) <= set(guards):
        pipe.write(frames.Kind.FAILED, b"SandboxMissing")
        return
    gc.collect()
    gc.freeze()
    pipe.write(frames.Kind.READY, json.dumps({"guards": guards, "bytes": memory.read()}).encode())
    while _serve(pipe, functions, memory, setup["bytes_max"]):
        pass


def _serve(
    pipe: _Pipe,
    functions: dict[str, Callable[[bytes, bytes], Rendered]],
    memory: _Memory,
    bytes_max: int,
) -> bool:
    """One render. False: the parent has closed the pipe."""
    from livewell.exports.render import frames, sandbox  # noqa: PLC0415 - loaded by main()
    from livewell.exports.render.rendered import RenderRefused  # noqa: PLC0415

    request = pipe.read(frames.Kind.REQUEST, frames.TALK_BYTES_MAX)
    if request is None:
        return False
    document = pipe.read(frames.Kind.DOCUMENT, frames.LENGTH_MAX)
    options = pipe.read(frames.Kind.OPTIONS, frames.TALK_BYTES_MAX)
    if document is None or options is None:
        return False
    asked = json.loads(request)
    sandbox.allow_cpu(asked["seconds"])
    try:
        rendered = functions[asked["function"]](document, options)
        if len(rendered.data) > bytes_max:
            raise RenderRefused("too_large", f"the file has {len(rendered.data)} bytes; at most {bytes_max} are kept")
    except RenderRefused as refused:
        answer = {"reason": refused.reason, "detail": refused.detail}
        pipe.write(frames.Kind.REFUSED, json.dumps(answer).encode())
    except MemoryError:
        pipe.write(frames.Kind.NO_MEMORY, b"")
        return False
    except Exception as error:  # noqa: BLE001 - its text may hold the document: only the type is told
        pipe.write(frames.Kind.FAILED, type(error).__name__.encode()[:100])
    except BaseException:  # noqa: BLE001 - a panic of a library: its state is not to be trusted
        os._exit(_STOPPED)
    else:
        pages = -1 if rendered.pages is None else rendered.pages
        pipe.write(frames.Kind.DONE, frames.DONE.pack(pages, memory.read()), rendered.data)
    return True


def _take_pipes() -> tuple[int, int]:
    """The two pipes under numbers of their own: what a library prints must not end up in a frame."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return incoming, outgoing


def _load(setup: dict[str, Any]) -> dict[str, Callable[[bytes, bytes], Rendered]]:
    """The render functions, warm."""
    sys.path[:] = setup["paths"]
    functions = {}
    modules: dict[str, ModuleType] = {}
    for place in setup["functions"]:
        name, _, attribute = place.partition(":")
        modules[name] = importlib.import_module(name)
        functions[place] = getattr(modules[name], attribute)
    for module in modules.values():
        if hasattr(module, "warm_up"):
            module.warm_up(tuple(setup["fonts"]))
    return functions


class _LightPackage(ModuleType):
    """`livewell` without its __init__, until a public name is asked for."""

    @classmethod
    def install(cls) -> None:
        """Stand in for the package that this file belongs to."""
        folder = os.path.abspath(__file__).rsplit(os.sep, 3)[0]  # noqa: PTH100 - pathlib costs 8 ms here
        package = cls("livewell")
        package.__path__ = [folder]
        package.__file__ = os.path.join(folder, "__init__.py")  # noqa: PTH118
        sys.modules["livewell"] = package

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or "_ran" in self.__dict__:
            raise AttributeError(name)
        self.__dict__["_ran"] = True
        with open(str(self.__file__), "rb") as source:  # noqa: PTH123
            exec(compile(source.read(), str(self.__file__), "exec"), self.__dict__)  # noqa: S102 - our own file
        return getattr(self, name)


class _Memory:
    """The bytes of memory this process has, read from a file that was opened before the sandbox."""

    def __init__(self) -> None:
        try:
            self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        except OSError:
            self._statm = -1
        self._page = os.sysconf("SC_PAGE_SIZE")

    def read(self) -> int:
        if self._statm < 0:
            import resource  # noqa: PLC0415 - loaded by the sandbox

            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return int(os.pread(self._statm, 200, 0).split()[1]) * self._page


class _Pipe:
    """Frames in, frames out, without buffers in between."""

    def __init__(self, incoming: int, outgoing: int, frames: ModuleType) -> None:
        self._incoming, self._outgoing, self._frames = incoming, outgoing, frames

    def read(self, kind: int, length_max: int) -> bytes | None:
        """The payload of the next frame, which must be of this kind. None: the pipe is closed."""
        head = self._exactly(self._frames.HEAD.size)
        if head is None:
            return None
        got, length = self._frames.HEAD.unpack(head)
        if got != kind or length > length_max:
            os._exit(_STOPPED)
        return self._exactly(length)

    def _exactly(self, length: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < length:
            part = os.read(self._incoming, min(length - len(parts), 1_000_000))
            if not part:
                return None
            parts += part
        return bytes(parts)

    def write(self, kind: int, *payload: bytes) -> None:
        """One frame."""
        self._all(self._frames.head(kind, sum(map(len, payload))))
        for part in payload:
            self._all(part)

    def _all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._outgoing, view) :]


if __name__ == "__main__":
    main()
