"""What the child gives up, in two steps, before it reads a document.

    started ──shut_off()──▶ warm-up: modules, fonts, templates ──shut_in()──▶ documents

shut_off: before any code of a library runs. No new rights, no core, the end of the parent is the
end of the child, a network of its own without a way out where the kernel lets it.

shut_in: when everything that a render needs is in memory. No new file descriptor at all
(RLIMIT_NOFILE 0), so no file and no socket can be opened, on any Unix; no bytes into files; limits
on memory and processor time; no capabilities; and on Linux a filter of system calls (syscalls.py).

Each guard that could be had is named in the answer, and the doctor shows what is missing. The two
that everything rests on, `descriptors` and `memory`, must hold, else the child does not start.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import sys

from livewell.exports.render import syscalls

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_CAPABILITY_VERSION = 0x20080522

NEEDED = ("descriptors", "memory")
# A document can wait for a moment; a heartbeat and a request cannot. With 50 requests a second on
# two cores that render all the time, their p99 was 90 ms without it and is 58 ms with it.
_NICE = 10


def shut_off(parent: int) -> list[str]:
    """The guards that need no warm-up. Ends the process if the parent is already gone."""
    guards = ["no_core"] if _limit(resource.RLIMIT_CORE, 0) else []
    os.umask(0o077)
    os.nice(_NICE)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
            guards.append("no_new_rights")
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0:
            guards.append("ends_with_parent")
        if libc.unshare(_CLONE_NEWNET) == 0 or libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
            guards.append("own_network")
    if os.getppid() != parent:
        os._exit(0)  # it ended before the signal was ordered
    return guards


def shut_in(*, memory_bytes: int, cpu_seconds: int) -> list[str]:
    """Everything else. memory_bytes: what may come on top of what the warm-up took."""
    guards = []
    if _limit(resource.RLIMIT_FSIZE, 0):
        guards.append("files")
    if _limit(resource.RLIMIT_NPROC, 0):
        guards.append("processes")
    if _limit(resource.RLIMIT_CPU, cpu_seconds):
        guards.append("cpu")
    if _limit(resource.RLIMIT_AS, address_space() + memory_bytes):
        guards.append("memory")
    if _limit(resource.RLIMIT_NOFILE, 0):
        guards.append("descriptors")
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # another process of this user cannot read documents from it
        if _drop_capabilities(libc):
            guards.append("no_capabilities")
        if syscalls.keep_few(libc):
            guards.append("system_calls")
    return guards


def allow_cpu(seconds: float) -> None:
    """Let the next render use that much processor time; beyond it the kernel ends the child."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def address_space() -> int:
    """The bytes of address space this process has; where nobody tells, a guess that is too large."""
    try:
        with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - pathlib is not imported in the child
            return int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 4_000_000_000


def _limit(which: int, value: int) -> bool:
    """Lower a limit for good. A hard limit that is lower already stays."""
    hard = resource.getrlimit(which)[1]
    lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(which, (lowest, lowest))
    except (OSError, ValueError):
        return False
    return True


def _drop_capabilities(libc: ctypes.CDLL) -> bool:
    """Give up what root has beyond its files: raising limits, other users' processes."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    return bool(libc.capset(ctypes.byref(header), ctypes.byref(nothing)) == 0)
