"""One attempt to start the server.

    spawned ──status line "ready"──▶ Ready
       ├──process gone──▶ Failed(what the log says since we began)
       └──deadline──▶ TooSlow: it goes on starting, and a later start() attaches to it

The server must not be our child: a child that dies stays a zombie until we look, and Ctrl-C in our
terminal would reach it. So a shell in a new session puts it in the background, prints its process
id and ends; init adopts the server.
"""

import socket
import time
from contextlib import closing
from dataclasses import dataclass

from livewell.db.embedded.account import Account
from livewell.db.embedded.binaries import Binaries
from livewell.db.embedded.folder import Folder, bound_log
from livewell.db.embedded.postmaster import is_running, read_postmaster

_SPAWN = 'exec "$@" 1>&2 & echo $!'
_POLL_SECONDS = 0.02
_LOG_SHOWN_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Ready:
    """It accepts connections."""

    pid: int


@dataclass(frozen=True, slots=True)
class Failed:
    """It ended; `log` is what it said."""

    log: str

    @property
    def port_taken(self) -> bool:
        """Someone bound the port after we had found it free."""
        return "could not bind" in self.log or "could not create any TCP/IP sockets" in self.log

    @property
    def memory_in_use(self) -> bool:
        """Backends of the server before are still alive."""
        return "pre-existing shared memory block" in self.log


@dataclass(frozen=True, slots=True)
class TooSlow:
    """It is still starting, typically replaying its log after a crash."""

    pid: int


def launch(
    folder: Folder, binaries: Binaries, account: Account, *, port: int, deadline: float
) -> Ready | Failed | TooSlow:
    """Start the server and wait until it is ready, has failed, or the deadline has passed."""
    log_start = bound_log(folder.log, account)
    pid = _spawn(folder, binaries, account, port)
    while True:
        running = is_running(pid)
        postmaster = read_postmaster(folder.cluster)
        if running and postmaster is not None and postmaster.pid == pid and postmaster.ready:
            return Ready(pid)
        if not running:
            return Failed(_said_since(folder, log_start))
        if time.monotonic() > deadline:
            return TooSlow(pid)
        time.sleep(_POLL_SECONDS)


def free_port(preferred: int | None) -> int:
    """The preferred port when nobody has it, so that addresses given out before a restart stay good; else any."""
    for port in (preferred, 0) if preferred else (0,):
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    return 0


def _spawn(folder: Folder, binaries: Binaries, account: Account, port: int) -> int:
    settings = {
        "port": str(port),
        "listen_addresses": "127.0.0.1",
        # Quoted: the setting is a list, and a comma in the path would split it.
        "unix_socket_directories": '"' + str(folder.run).replace('"', '""') + '"' if folder.has_socket() else "",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = [binaries.program("postgres"), "-D", str(folder.cluster), *options]
    with folder.log.open("ab") as log:
        spawned = account.run(["/bin/sh", "-c", _SPAWN, "sh", *server], stderr=log, new_session=True)
    return int(spawned.stdout)


def _said_since(folder: Folder, log_start: int) -> str:
    with folder.log.open("rb") as log:
        log.seek(log_start)
        return log.read()[-_LOG_SHOWN_BYTES:].decode(errors="replace").strip()
