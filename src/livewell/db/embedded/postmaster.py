"""Is the server of this cluster alive?

    no postmaster.pid ─────────────────────────────────────────────────▶ ABSENT
    its process runs postgres, and its shared memory is in use ────────▶ ALIVE
    its process is gone, a zombie or a stranger; shared memory in use ─▶ ORPHANED   (old backends: wait for them)
    the same, shared memory not in use ────────────────────────────────▶ DEAD       (safe to start again)

A process id alone proves nothing. After kill -9 it may be a zombie for as long as its parent does
not look: kill(pid, 0) still succeeds, and Postgres itself then refuses to start. After a reboot it
may be anybody's. Postgres itself goes by the number of processes attached to the System V segment
named in postmaster.pid; Linux shows it in /proc/sysvipc/shm to everyone. Elsewhere it is unknown,
and postmaster.pid is left to Postgres and to a person.
"""

import os
import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from livewell.errors import EmbeddedPostgresError

_PROC = Path("/proc")
_SELF = _PROC / "self"
_SEGMENTS = _PROC / "sysvipc" / "shm"


class Life(Enum):
    """The four answers."""

    ABSENT = "absent"
    ALIVE = "alive"
    ORPHANED = "orphaned"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What postmaster.pid says; the later lines appear while the server starts."""

    pid: int
    port: int | None
    segment: tuple[int, int] | None  # key and id of the shared memory
    ready: bool


def read_postmaster(cluster: Path) -> Postmaster | None:
    """The content of postmaster.pid, None when there is none or it is still empty."""
    try:
        lines = (cluster / "postmaster.pid").read_text().split("\n")
    except FileNotFoundError:
        return None
    if not lines[0].strip().lstrip("-").isdigit():
        return None
    lines += [""] * 8
    numbers = lines[6].split()
    return Postmaster(
        pid=abs(int(lines[0])),
        port=int(lines[3]) if lines[3].strip().isdigit() else None,
        segment=(int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else None,
        ready=lines[7].strip() == "ready",
    )


def life_of(postmaster: Postmaster | None) -> Life:
    """The state of the server that wrote the file."""
    if postmaster is None:
        return Life.ABSENT
    attached = _attached(postmaster)
    if runs_postgres(postmaster.pid) and attached != 0:
        return Life.ALIVE
    return Life.ORPHANED if attached else Life.DEAD


def remove_stale_file(cluster: Path, dead: Postmaster) -> None:
    """Remove postmaster.pid where Postgres would not, because the process id in it still exists.

    Only for a DEAD one, under the lock, and only when we know that no process is attached to its
    memory.
    """
    if not _exists(dead.pid) or read_postmaster(cluster) != dead:
        return
    if dead.segment is not None and not _SEGMENTS.exists():
        raise EmbeddedPostgresError(
            f"embedded Postgres: {cluster}/postmaster.pid names process {dead.pid}, which exists but is not the "
            "server. Check that no postgres process of this folder is left with: ps ax | grep postgres, then "
            "remove the file."
        )
    (cluster / "postmaster.pid").unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    """True for a process that exists and is not a zombie."""
    return _state_and_program(pid)[0] not in ("", "Z", "X")


def runs_postgres(pid: int) -> bool:
    """True for a running process whose program is postgres."""
    return is_running(pid) and _state_and_program(pid)[1] == "postgres"


def _state_and_program(pid: int) -> tuple[str, str]:
    """The state letter and the program's name; both empty when there is no such process."""
    if not _SELF.exists():
        return _as_ps_says(pid)
    try:
        before, _, after = (_PROC / str(pid) / "stat").read_text().rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return "", ""
    return after.split()[0], before.partition("(")[2]


def _as_ps_says(pid: int) -> tuple[str, str]:
    shown = subprocess.run(["ps", "-o", "stat=,comm=", "-p", str(pid)], check=False, capture_output=True, text=True)
    state, _, program = shown.stdout.strip().partition(" ")
    return state[:1], Path(program.strip()).name


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # another user's; Postgres knows by itself that this is not the server
    return True


def _attached(postmaster: Postmaster) -> int | None:
    """How many processes use the shared memory: None when that is unknown, or not made yet."""
    if postmaster.segment is None or not _SEGMENTS.exists():
        return None
    for line in _SEGMENTS.read_text().splitlines()[1:]:
        columns = line.split()
        if (int(columns[0]), int(columns[1])) == postmaster.segment:
            return int(columns[6])
    return 0
