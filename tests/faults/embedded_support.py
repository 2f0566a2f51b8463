"""Real processes for the tests of the embedded server.

Apps that start it, as us or as another user, and die of signals.
"""

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

import livewell
from livewell.db.embedded import start, stop
from livewell.db.embedded.handle import EmbeddedServer

FAST = {"fsync": "off"}  # these tests kill processes, not machines
SOURCES = str(Path(livewell.__file__).parents[1])
DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")

APP = """
import sys
from pathlib import Path
from livewell.db.embedded import start
server = start(Path(sys.argv[1]), parameters={"fsync": "off"})
print(server.pid, server.attached, flush=True)
sys.stdin.read()
"""

# The same, but orphans are handed to it and not to init: like a container whose first process never
# reaps.
ADOPTING_APP = "import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n" + APP


def quick_place() -> str | None:
    """Memory where there is enough of it and programs may run there, else the usual temporary folder.

    A cluster is 46 MB in 1,000 files: on a busy disk making and removing forty of them took three
    minutes.
    """
    memory = Path("/dev/shm")  # noqa: S108
    if not os.access(memory, os.W_OK):
        return None
    found = os.statvfs(memory)
    roomy = found.f_bavail * found.f_frsize > 2**30
    return str(memory) if roomy and not found.f_flag & os.ST_NOEXEC else None


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 20) -> None:
    """Poll until the condition holds, or fail saying what did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def process_state(pid: int) -> str:
    """The letter /proc shows (R, S, T, Z …), empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_gone(pid: int) -> bool:
    """True when the process ended, reaped or not."""
    return process_state(pid) in ("", "Z")


def kill_server(server_pid: int) -> None:
    """kill -9 the postmaster and wait until it is dead; its backends may live on for a moment."""
    os.kill(server_pid, signal.SIGKILL)
    wait_until(lambda: is_gone(server_pid), "the killed server is dead")


@contextlib.contextmanager
def running_app(
    data_dir: Path, *, code: str = APP, uid: int | None = None, python: str = sys.executable, path: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """A process that starts the server and then waits; killed at the end if it still lives."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, (path, *python_path())))}
    app = subprocess.Popen(
        [python, "-c", code, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
        cwd="/",
        start_new_session=True,
        user=uid,
        group=pwd.getpwuid(uid).pw_gid if uid is not None else None,
        extra_groups=[] if uid is not None else None,
    )
    try:
        yield app
    finally:
        app.kill()
        app.communicate()


def said(app: subprocess.Popen[str]) -> tuple[int, bool]:
    """What the app printed once its server was up: the server's pid, and whether it attached."""
    assert app.stdout is not None
    pid, attached = app.stdout.readline().split()
    return int(pid), attached == "True"


def python_path() -> tuple[str, str]:
    """Where a bare interpreter finds us and our dependencies."""
    return SOURCES, str(Path(psycopg.__file__).parents[1])


def python_for(uid: int) -> str | None:
    """An interpreter that user can run, or None: ours may lie under /root."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        with contextlib.suppress(OSError):
            tried = subprocess.run(
                [python, "-c", "import livewell.db.embedded"],
                check=False,
                capture_output=True,
                cwd="/",
                env={"PYTHONPATH": os.pathsep.join(python_path())},
                user=uid,
                group=pwd.getpwuid(uid).pw_gid,
                extra_groups=[],
            )
            if tried.returncode == 0:
                return python
    return None


def start_with_row(data_dir: Path) -> EmbeddedServer:
    """A server with one committed row."""
    server = start(data_dir, parameters=FAST)
    add_row(server)
    return server


def add_row(server: EmbeddedServer) -> None:
    """Commit the row that must survive."""
    execute(server.dsn, "CREATE TABLE kept AS SELECT 42 AS answer")


def kept_row(server: EmbeddedServer) -> object:
    """The committed row, as the server gives it back."""
    return execute(server.dsn, "SELECT answer FROM kept")


def execute(dsn: str, statement: str) -> object:
    """Run one statement in a session of its own; the first column of the first row."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def stop_everything_below(base: Path) -> None:
    """Stop the servers of every data folder under this one."""
    for lock in base.glob("**/lock"):
        with contextlib.suppress(Exception):
            stop(lock.parent, mode="immediate")


def modes_above(path: Path) -> dict[Path, tuple[int, int, int]]:
    """Mode and owner of every folder above this one."""
    return {above: (above.stat().st_mode, above.stat().st_uid, above.stat().st_gid) for above in path.parents}
