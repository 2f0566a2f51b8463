"""The system calls that a rendering child keeps: memory, clocks, threads, the open pipes.

A seccomp filter with a list of what is allowed; everything else fails with EPERM, whatever it is
called: opening a file, a socket, another program, a signal to another process. The list is short
because fonts, templates and modules are in memory before the filter is set.

The filter looks at three calls more closely: clone may start a thread but no process, tgkill may
reach the own process only (Rust aborts by it), prlimit64 may change the own limits only. clone3
answers ENOSYS, so that the C library falls back to clone.

Numbers: Linux, x86_64 and aarch64. On any other machine there is no filter, and RLIMIT_NOFILE alone
keeps files and sockets away.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL = 0x80000000

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_BITS = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_NUMBER, _ARCHITECTURE, _ARGUMENT_0 = 0, 4, 16  # offsets in struct seccomp_data
_CLONE_THREAD = 0x00010000

_X86_64 = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9, "mprotect": 10,
    "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "readv": 19, "writev": 20, "sched_yield": 24, "mremap": 25, "madvise": 28,
    "nanosleep": 35, "getpid": 39, "exit": 60, "gettimeofday": 96, "getrusage": 98, "times": 100,
    "getuid": 102, "geteuid": 107, "getppid": 110, "sigaltstack": 131, "gettid": 186, "futex": 202,
    "sched_getaffinity": 204, "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229,
    "clock_nanosleep": 230, "exit_group": 231, "set_robust_list": 273, "getrandom": 318, "rseq": 334,
    "clone": 56, "clone3": 435, "tgkill": 234, "prlimit64": 302,
}  # fmt: skip
_AARCH64 = {
    "read": 63, "write": 64, "close": 57, "fstat": 80, "lseek": 62, "mmap": 222, "mprotect": 226,
    "munmap": 215, "brk": 214, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139,
    "pread64": 67, "readv": 65, "writev": 66, "sched_yield": 124, "mremap": 216, "madvise": 233,
    "nanosleep": 101, "getpid": 172, "exit": 93, "gettimeofday": 169, "getrusage": 165, "times": 153,
    "getuid": 174, "geteuid": 175, "getppid": 173, "sigaltstack": 132, "gettid": 178, "futex": 98,
    "sched_getaffinity": 123, "restart_syscall": 128, "clock_gettime": 113, "clock_getres": 114,
    "clock_nanosleep": 115, "exit_group": 94, "set_robust_list": 99, "getrandom": 278, "rseq": 293,
    "clone": 220, "clone3": 435, "tgkill": 131, "prlimit64": 261,
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}
_LOOKED_AT = ("clone", "clone3", "tgkill", "prlimit64")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def keep_few(libc: ctypes.CDLL) -> bool:
    """Set the filter for this process and all its threads. False: this machine has none.

    PR_SET_NO_NEW_PRIVS must be set. Threads that exist already are not reached, so the caller's
    libraries must have started theirs in a process that opened nothing for others.
    """
    machine = platform.machine() if sys.platform == "linux" else ""
    if machine not in _MACHINES:
        return False
    code = _code(*_MACHINES[machine], pid=os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    return _install(libc, program, machine)


def _install(libc: ctypes.CDLL, program: _Program, machine: str) -> bool:
    """By seccomp() with TSYNC, which reaches every thread there is; by prctl where it is missing."""
    number = {"x86_64": 317, "aarch64": 277}[machine]
    for_every_thread = 1
    if libc.syscall(number, 1, for_every_thread, ctypes.byref(program)) == 0:
        return True
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _code(architecture: int, numbers: dict[str, int], *, pid: int) -> bytes:
    """The filter as BPF: eight bytes an instruction."""
    refused = _ERRNO | errno.EPERM
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_EQUAL, architecture, yes=1),
        _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER),
    ]
    for name, number in numbers.items():
        if name not in _LOOKED_AT:
            lines += [_line(_EQUAL, number, no=1), _line(_RETURN, _ALLOW)]
    lines += [_line(_EQUAL, numbers["clone3"], no=1), _line(_RETURN, _ERRNO | errno.ENOSYS)]
    for name, test in (("clone", (_BITS, _CLONE_THREAD)), ("tgkill", (_EQUAL, pid)), ("prlimit64", (_EQUAL, 0))):
        lines += [
            _line(_EQUAL, numbers[name], no=4),
            _line(_LOAD, _ARGUMENT_0),
            _line(*test, no=1),
            _line(_RETURN, _ALLOW),
            _line(_RETURN, refused),
        ]
    lines.append(_line(_RETURN, refused))
    return b"".join(lines)


def _line(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
