"""Real processes for fault tests: start one, wait for what it says, kill it, freeze it.

And be sure that it dies.

    started ──freeze──▶ stopped ──thaw──▶ started
       │                   └──kill──┐
       ├──kill, terminate, interrupt, or of itself──▶ ended ──close──▶ reaped, with what is left of its process group

An ended child stays a zombie until close(): so long the kernel cannot give its number to anyone
else, and no signal of ours can hit a stranger. The block is not trusted alone: a shell waits at the
other end of a pipe that only we hold, and kills the child (and its group) when we vanish without
leaving the block. Needs os.waitid (Linux; macOS from Python 3.13).
"""

import asyncio
import inspect
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self, TypeVar, overload

from livewell.errors import LivewellError

__all__ = ["ChildFailed", "ChildProcess", "OutputLine", "eventually", "eventually_async", "free_port"]

T = TypeVar("T")
Stream = Literal["stdout", "stderr"]

LINE_BYTES_MAX = 65_536
TAIL_LINES = 30
# Reads until our end of the pipe closes, then kills: POSIX sh, 1 ms to start, and no file
# descriptor of the child's.
WATCHDOG = ["/bin/sh", "-c", 'read -r _; kill -s KILL -- "$1"', "livewell-watchdog"]
_PORTS_BEGIN, _PORTS_BLOCKS, _PORTS_PER_PROCESS = 20_000, 100, 100
_ports = itertools.count()
DRAIN_SECONDS_MAX = 2.0  # a grandchild may hold the pipes open for ever; we do not wait for it


class ChildFailed(LivewellError):
    """The child ended, or did not say or do in time what was waited for.

    The message carries its last lines.
    """


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line the child wrote, without its line end."""

    stream: Stream
    text: str


class ChildProcess:
    """A child of ours, from start to certain death.

    `with ChildProcess(["-m", "livewell", "work"]) as child:`.

    arguments follow the program, which is this Python unless said otherwise. env is added to our
    own environment. With new_session (the default) the child leads a process group of its own, and
    close() kills the whole group. user runs it as another account (root only). Of its output the
    last lines_max lines are kept.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        program: str | Path = sys.executable,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        new_session: bool = True,
        user: str | None = None,
        lines_max: int = 10_000,
    ) -> None:
        self.command = [str(program), *map(str, arguments)]
        self._env = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
        self._cwd = cwd
        self._new_session = new_session
        self._user = user
        self._news = threading.Condition()
        self._lines: deque[OutputLine] = deque(maxlen=lines_max)
        self._lines_seen = 0
        self._returncode: int | None = None
        self._reaped = False
        self._popen: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None and not isinstance(error, ChildFailed):
            error.add_note(self.describe())
        self.close()

    def start(self) -> Self:
        """Start the child; whoever does so without `with` must close() it."""
        if self._popen is not None:
            msg = f"{self._name()} was started before; make a new ChildProcess"
            raise ChildFailed(msg)
        popen = subprocess.Popen(
            self.command,
            env=self._env,
            cwd=self._cwd,
            start_new_session=self._new_session,
            user=self._user,
            group=_primary_group(self._user),
            extra_groups=None if self._user is None else [],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._popen = popen
        self._watchdog = subprocess.Popen(
            [*WATCHDOG, f"-{popen.pid}" if self._new_session else str(popen.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us, not for it
        )
        if popen.stdout is None or popen.stderr is None:
            raise AssertionError
        self._readers = [
            self._thread(self._read, "stdout", popen.stdout),
            self._thread(self._read, "stderr", popen.stderr),
        ]
        self._thread(self._watch, popen.pid)
        return self

    def close(self) -> None:
        """Kill what still lives of the child and its process group, and reap it. Safe to call
        twice.
        """
        popen = self._popen
        if popen is None or self._reaped:
            return
        if self._new_session:
            os.killpg(popen.pid, signal.SIGKILL)
        else:
            os.kill(popen.pid, signal.SIGKILL)
        self._dismiss_watchdog()  # before the reaping: after it, the number may be a stranger's
        with self._news:
            self._news.wait_for(lambda: self._returncode is not None)
            popen.wait()
            self._reaped = True
        self._drain()
        for reader, pipe in zip(self._readers, (popen.stdout, popen.stderr), strict=True):
            if pipe is not None and not reader.is_alive():
                pipe.close()

    # ── what it did ──

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._running().pid

    @property
    def returncode(self) -> int | None:
        """None while it lives; minus the signal's number when a signal ended it."""
        with self._news:
            return self._returncode

    def lines(self, stream: Stream | None = None) -> list[str]:
        """What is kept of its output, oldest first."""
        with self._news:
            return [line.text for line in self._lines if stream in (None, line.stream)]

    def mark(self) -> int:
        """Name this moment in the output, for wait_for(…, since=mark)."""
        with self._news:
            return self._lines_seen

    def describe(self, lines: int = TAIL_LINES) -> str:
        """Its command, its state and its last lines."""
        with self._news:
            state = "runs" if self._returncode is None else f"ended with {self._returncode}"
            tail = list(self._lines)[-lines:]
        shown = [f"  {line.stream}: {line.text}" for line in tail] or ["  (no output)"]
        return "\n".join([f"{self._name()} {state}; its last lines:", *shown])

    def rss_bytes(self) -> int:
        """Its resident memory now (Linux: /proc)."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    # ── waiting ──

    def wait_for(self, wanted: str | Callable[[str], bool], timeout: float = 10.0, *, since: int = 0) -> str:
        """Block until a line contains the text (or satisfies the predicate), and return it."""
        found: list[str] = []
        seen = since

        def news() -> bool:
            nonlocal seen
            oldest = self._lines_seen - len(self._lines)
            for line in list(self._lines)[max(0, seen - oldest) :]:
                if (wanted in line.text) if isinstance(wanted, str) else wanted(line.text):
                    found.append(line.text)
                    return True
            seen = self._lines_seen
            return self._returncode is not None

        self._running()
        deadline = time.monotonic() + timeout
        with self._news:
            self._news.wait_for(news, timeout)
        if not found and self.returncode is not None:
            self._drain(max(0.0, deadline - time.monotonic()))  # its last words may still be in the pipe
            with self._news:
                news()
        if found:
            return found[0]
        shown = repr(wanted) if isinstance(wanted, str) else f"a line for {_name_of(wanted)}"
        msg = f"waited {timeout} s for {shown}: {self.describe()}"
        raise ChildFailed(msg)

    def wait(self, timeout: float = 10.0) -> int:
        """Block until the child has ended and its output is read; answer its return code."""
        self._running()
        with self._news:
            ended = self._news.wait_for(lambda: self._returncode is not None, timeout)
            returncode = self._returncode
        if not ended or returncode is None:
            msg = f"waited {timeout} s for its end: {self.describe()}"
            raise ChildFailed(msg)
        self._drain()
        return returncode

    # ── signals ──

    def kill(self) -> None:
        """SIGKILL: the crash. Its own children live on until close()."""
        self.send_signal(signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP: the zombie worker, the long pause. Returns when the kernel has stopped it."""
        self.send_signal(signal.SIGSTOP)
        if not self._reaped:
            # WNOWAIT: the notice is only looked at, the child's end is still the watcher's to see.
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """SIGCONT: it goes on as if nothing had happened."""
        self.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM: the polite stop."""
        self.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """SIGINT: Ctrl-C."""
        self.send_signal(signal.SIGINT)

    def send_signal(self, number: signal.Signals) -> None:
        """Send any signal to the child alone; a child that has ended does not mind."""
        popen = self._running()
        with self._news:
            if not self._reaped:
                os.kill(popen.pid, number)

    # ── inside ──

    def _running(self) -> subprocess.Popen[bytes]:
        if self._popen is None:
            msg = f"{self._name()} was not started: use `with ChildProcess(…) as child:`"
            raise ChildFailed(msg)
        return self._popen

    def _name(self) -> str:
        return f"child {self._popen.pid if self._popen else '(none)'} ({' '.join(self.command)[:200]})"

    def _thread(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, name=f"child-{self.pid}", daemon=True)
        thread.start()
        return thread

    def _read(self, stream: Stream, pipe: IO[bytes]) -> None:
        """Keep reading whatever happens: a full pipe would stop the child."""
        while data := pipe.readline(LINE_BYTES_MAX):
            line = OutputLine(stream, data.decode(errors="replace").rstrip("\r\n"))
            with self._news:
                self._lines.append(line)
                self._lines_seen += 1
                self._news.notify_all()

    def _watch(self, pid: int) -> None:
        """See the end without reaping it."""
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        if end is None:
            raise AssertionError
        with self._news:
            self._returncode = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
            self._news.notify_all()

    def _dismiss_watchdog(self) -> None:
        watchdog = self._watchdog
        if watchdog is not None and watchdog.stdin is not None:
            watchdog.kill()
            watchdog.wait()
            watchdog.stdin.close()

    def _drain(self, timeout: float = DRAIN_SECONDS_MAX) -> None:
        deadline = time.monotonic() + min(timeout, DRAIN_SECONDS_MAX)
        for reader in self._readers:
            reader.join(max(0.0, deadline - time.monotonic()))


def free_port(host: str = "127.0.0.1", *, in_row: int = 1) -> int:
    """Give a port that is free, the first of so many in a row.

    It lies below those that the system hands out to sockets that ask for any, and no other call
    gives it soon: each process goes round a hundred of its own. So it stays free until it is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(_PORTS_PER_PROCESS):
        first = _PORTS_BEGIN + os.getpid() % _PORTS_BLOCKS * _PORTS_PER_PROCESS + next(_ports) % _PORTS_PER_PROCESS
        with ExitStack() as taken, suppress(OSError):
            for port in range(first, first + in_row):
                taken.enter_context(socket.socket(family, socket.SOCK_STREAM)).bind((host, port))
            for _ in range(in_row - 1):
                next(_ports)
            return first
    raise OSError(f"no free port at {host} from {_PORTS_BEGIN} on")


def eventually(
    predicate: Callable[[], T], timeout: float = 10.0, interval: float = 0.02, *, what: str | None = None
) -> T:
    """Ask again and again until the answer is truthy, and return it; only for what no event
    announces.
    """
    deadline = time.monotonic() + timeout
    while True:
        answer = predicate()
        if answer:
            return answer
        left = deadline - time.monotonic()
        if left <= 0:
            raise AssertionError(_never(what or _name_of(predicate), timeout, answer))
        time.sleep(min(interval, left))


@overload
async def eventually_async(
    predicate: Callable[[], Awaitable[T]], timeout: float = 10.0, interval: float = 0.02, *, what: str | None = None
) -> T: ...
@overload
async def eventually_async(
    predicate: Callable[[], T], timeout: float = 10.0, interval: float = 0.02, *, what: str | None = None
) -> T: ...
async def eventually_async(
    predicate: Callable[[], Any], timeout: float = 10.0, interval: float = 0.02, *, what: str | None = None
) -> Any:
    """Ask like eventually, without holding up the loop; the predicate may be a coroutine function,
    and may hang.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    answer: object = "no answer yet"
    try:
        async with asyncio.timeout_at(deadline):
            while True:
                asked = predicate()
                given = await asked if inspect.isawaitable(asked) else asked
                if given:
                    return given
                answer = given
                await asyncio.sleep(interval)
    except TimeoutError:
        if loop.time() < deadline:
            raise  # the predicate's own
        raise AssertionError(_never(what or _name_of(predicate), timeout, answer)) from None


def _never(what: str, timeout: float, answer: object) -> str:
    return f"waited {timeout} s for {what}; the last answer was {answer!r}"


def _name_of(predicate: Callable[..., object]) -> str:
    """Say where a predicate is written, since most are lambdas."""
    code = getattr(predicate, "__code__", None)
    name = getattr(predicate, "__qualname__", repr(predicate))
    return name if code is None else f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"


def _primary_group(user: str | None) -> int | None:
    if user is None:
        return None
    import pwd  # noqa: PLC0415 – absent on Windows, where nothing else here needs it

    return pwd.getpwnam(user).pw_gid
