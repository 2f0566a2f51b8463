# ruff: noqa: PTH104, PTH108, PTH116, PTH123, PTH208, S606, SIM115
"""Render functions for tests of the pool: kind ones, and those that try to get out of the child."""

import encodings.idna  # noqa: F401 - of an address: loaded before the sandbox
import errno
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from livewell.exports.render.rendered import Rendered, RenderRefused

_LOOPBACK = "127.0.0.1"


def echo(document: bytes, options: bytes) -> Rendered:
    return Rendered(document + options, 1)


def sleep(document: bytes, options: bytes) -> Rendered:
    time.sleep(float(document))
    return Rendered(b"slept")


def spin(document: bytes, options: bytes) -> Rendered:
    while True:
        pass


def pid(document: bytes, options: bytes) -> Rendered:
    return Rendered(str(os.getpid()).encode())


def refuse(document: bytes, options: bytes) -> Rendered:
    raise RenderRefused("template", "no such template")


def fail(document: bytes, options: bytes) -> Rendered:
    raise ValueError(f"the text of the document: {document!r}")


def allocate(document: bytes, options: bytes) -> Rendered:
    block = bytearray(int(document))
    return Rendered(str(len(block)).encode())


def grow(document: bytes, options: bytes) -> Rendered:
    """Keep some memory for ever, as a library that memoises."""
    _KEPT.append(os.urandom(int(document)))
    return Rendered(b"grown")


_KEPT: list[bytes] = []


def large(document: bytes, options: bytes) -> Rendered:
    return Rendered(bytes(int(document)))


def die(document: bytes, options: bytes) -> Rendered:
    os._exit(3)


def attempt(document: bytes, options: bytes) -> Rendered:
    """Try each way out that is named; answer what became of it."""
    target = options.decode()
    ways: dict[str, Callable[[], object]] = {
        "read": lambda: open("/etc/passwd", "rb").read(),
        "read again": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "write": lambda: open(target, "wb").write(b"x"),
        "connect": lambda: socket.create_connection((_LOOPBACK, int(target)), timeout=2),
        "socket": lambda: socket.socket(socket.AF_UNIX),
        "fork": os.fork,
        "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
        "exec": lambda: os.execv("/bin/true", ["true"]),
        "signal": lambda: os.kill(int(target), signal.SIGKILL),
        "list": lambda: os.listdir("/"),
        "stat": lambda: os.stat("/etc/passwd"),
        "remove": lambda: os.unlink(target),
        "rename": lambda: os.rename(target, target + "x"),
        "limits": _raise_limits,
        "pipe": os.pipe,
        "duplicate": lambda: os.dup(0),
        "thread": _run_a_thread,
        "environment": lambda: json.dumps(dict(os.environ)),
        "arguments": lambda: json.dumps(sys.argv),
        "modules": lambda: json.dumps(sorted(sys.modules)),
    }
    try:
        answer = ways[document.decode()]()
    except (OSError, ValueError) as error:
        return Rendered(f"refused {getattr(error, 'errno', '')}".encode())
    return Rendered(f"done {answer}".encode())


def _raise_limits() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_000, 1_000))


def _run_a_thread() -> str:
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append("ran"))
    thread.start()
    thread.join()
    return seen[0]


def inherited(document: bytes, options: bytes) -> Rendered:
    """Which descriptors are open: a closed one answers EBADF."""
    found = []
    for number in range(256):
        try:
            os.lseek(number, 0, os.SEEK_CUR)
        except OSError as error:
            if error.errno == errno.EBADF:
                continue
        found.append(number)
    return Rendered(json.dumps(found).encode())
