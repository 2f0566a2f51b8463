"""Start, attach to, stop and look at the embedded server.

    start:  ALIVE ────▶ wait until ready, log in ──▶ attached
            ORPHANED ─▶ wait until the old backends have ended ─┐
            DEAD ─────▶ clear a postmaster.pid of a zombie ─────┼─▶ launch ──▶ log in ──▶ started
            ABSENT ───▶ make the cluster if there is none ──────┘
    stop:   ALIVE ──SIGINT (fast) or SIGQUIT (immediate)──▶ wait until process and memory are gone

Both hold the folder's lock throughout, so of many callers one starts the server and the others
attach.
"""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from livewell.db.embedded import parameters as settings
from livewell.db.embedded.account import Account
from livewell.db.embedded.binaries import Binaries, find_binaries, readable_by
from livewell.db.embedded.cluster import ensure_cluster
from livewell.db.embedded.folder import Folder, bound_log
from livewell.db.embedded.handle import EmbeddedServer, describe, refusal
from livewell.db.embedded.launch import Failed, Ready, free_port, launch
from livewell.db.embedded.placement import make_folder, open_folder
from livewell.db.embedded.postmaster import Life, Postmaster, life_of, read_postmaster, remove_stale_file, runs_postgres
from livewell.errors import EmbeddedPostgresError

STOP_SECONDS_MAX = 60.0
_LEAVING_SECONDS_MAX = 5.0
_PORTS_TRIED_MAX = 5
_POLL_SECONDS = 0.02


def start(
    data_dir: Path, *, parameters: Mapping[str, str] = {}, wait_seconds: float = 30, bin_dir: Path | None = None
) -> EmbeddedServer:
    """Start the server of this folder, or attach to it.

    The folder and the cluster are made when there are none.

    `parameters` are Postgres settings, remembered for later starts; a server that is already
    running gets them at its next start.
    """
    deadline = time.monotonic() + wait_seconds
    asked = settings.check(parameters)
    folder, account = make_folder(data_dir)
    with folder.locked(deadline):
        wanted = settings.merge(folder, asked)
        server = _attach(folder, deadline)
        if server is None:
            _clear_the_way(folder, deadline)
            binaries = readable_by(account, find_binaries(bin_dir), folder.copies)
            server = _start(folder, account, binaries, wanted, deadline)
        else:
            bound_log(folder.log, account)
        if asked:
            folder.write("parameters.json", settings.as_json(wanted), account)
        return server


def stop(data_dir: Path, *, mode: Literal["fast", "immediate"] = "fast") -> bool:
    """Stop the server of this folder: True when it was running, and is not any more.

    `fast` ends the sessions and writes a checkpoint; `immediate` is a crash on purpose, repaired at
    the next start.
    """
    folder = open_folder(data_dir)
    if folder is None:
        return False
    deadline = time.monotonic() + STOP_SECONDS_MAX
    with folder.locked(deadline):
        postmaster = _alive(folder)
        if postmaster is None:
            return False
        os.kill(postmaster.pid, signal.SIGINT if mode == "fast" else signal.SIGQUIT)
        while runs_postgres(postmaster.pid) or life_of(postmaster) is Life.ORPHANED:
            _wait_or_fail(
                deadline, f"process {postmaster.pid} did not stop. End it at once with: kill -QUIT {postmaster.pid}"
            )
        return True


def status(data_dir: Path) -> EmbeddedServer | None:
    """The server of this folder when its process is alive (it may still be starting), else None."""
    folder = open_folder(data_dir)
    postmaster = _alive(folder) if folder else None
    if folder is None or postmaster is None:
        return None
    return describe(folder, postmaster.pid, postmaster.port or 0, attached=True)


def was_killed(data_dir: Path) -> bool:
    """True where a server ended without taking its pid file along: nobody stopped it in order.

    A server that is being stopped looks killed for a moment: its memory is gone before its file is.
    Whoever stops it holds the lock until both are, so the second look is behind the lock.
    """
    folder = open_folder(data_dir)
    if folder is None or not _looks_killed(folder):
        return False
    with folder.locked(time.monotonic() + STOP_SECONDS_MAX):
        return _looks_killed(folder)


def _looks_killed(folder: Folder) -> bool:
    return life_of(read_postmaster(folder.cluster)) in (Life.DEAD, Life.ORPHANED)


def _alive(folder: Folder) -> Postmaster | None:
    postmaster = read_postmaster(folder.cluster)
    return postmaster if life_of(postmaster) is Life.ALIVE else None


def _attach(folder: Folder, deadline: float) -> EmbeddedServer | None:
    """The running server once it lets us in; None when there is none, or it ends while we wait."""
    while (postmaster := _alive(folder)) is not None:
        reason: str | None = "it is starting or stopping"
        if postmaster.ready and postmaster.port:
            server = describe(folder, postmaster.pid, postmaster.port, attached=True)
            reason = refusal(server, deadline)
            if reason is None:
                return server
        _wait_or_fail(deadline, _not_accepting(folder, postmaster.pid, reason))
    return None


def _clear_the_way(folder: Folder, deadline: float) -> None:
    """Wait until nothing of an earlier server lives, then remove those of its files that Postgres would not."""
    while life_of(postmaster := read_postmaster(folder.cluster)) is Life.ORPHANED:
        _wait_or_fail(deadline, _orphaned(folder))
    if postmaster is not None:
        _let_it_leave(postmaster.pid, deadline)
        remove_stale_file(folder.cluster, postmaster)
    for leftover in folder.run.glob(".s.PGSQL.*"):
        leftover.unlink()  # the socket's own lock file names the same process, and would stop the start as well


def _let_it_leave(pid: int, deadline: float) -> None:
    """Wait for a server in its last moment.

    It gives its memory back first and removes its files, by name, after that.

    Were the next one started in between, its files would be removed. A postgres that stays is a
    stranger.
    """
    patience = min(deadline, time.monotonic() + _LEAVING_SECONDS_MAX)
    while runs_postgres(pid) and time.monotonic() < patience:
        time.sleep(_POLL_SECONDS)


def _start(
    folder: Folder, account: Account, binaries: Binaries, wanted: dict[str, str], deadline: float
) -> EmbeddedServer:
    ensure_cluster(folder, binaries, account, durable=wanted.get("fsync") != "off")
    folder.own_subfolder(folder.run, account)
    folder.write("livewell.conf", settings.as_conf(wanted), account)
    folder.write("version", binaries.version, account)
    server = _launch(folder, binaries, account, deadline)
    folder.write("port", str(server.port), account)
    while (reason := refusal(server, deadline)) is not None:
        _wait_or_fail(deadline, _not_accepting(folder, server.pid, reason))
    return server


def _launch(folder: Folder, binaries: Binaries, account: Account, deadline: float) -> EmbeddedServer:
    """Launch until it is ready, again after what passes by itself.

    A port just taken, old backends just ending.
    """
    port, refused = free_port(int(folder.read("port") or 0)), 0
    while True:
        outcome = launch(folder, binaries, account, port=port, deadline=deadline)
        match outcome:
            case Ready(pid):
                return describe(folder, pid, port, attached=False)
            case Failed(memory_in_use=True):
                _wait_or_fail(deadline, _orphaned(folder))
            case Failed(port_taken=True) if refused < _PORTS_TRIED_MAX:
                port, refused = free_port(None), refused + 1
            case Failed(log):
                raise EmbeddedPostgresError(
                    f"embedded Postgres: the server did not start: {log or 'it said nothing'}\n"
                    f"See the whole log with: tail {folder.log}"
                )
            case _:
                raise EmbeddedPostgresError(
                    f"embedded Postgres: {_not_accepting(folder, outcome.pid, 'it is starting')}"
                )


def _wait_or_fail(deadline: float, complaint: str) -> None:
    if time.monotonic() > deadline:
        raise EmbeddedPostgresError(f"embedded Postgres: {complaint}")
    time.sleep(_POLL_SECONDS)


def _not_accepting(folder: Folder, pid: int, reason: str | None) -> str:
    return (
        f"process {pid} of {folder.cluster} runs but lets nobody in: {reason}. After a crash it first replays its log, "
        f"which may take longer than we waited: watch it with: tail -f {folder.log}, then start again."
    )


def _orphaned(folder: Folder) -> str:
    return (
        f"the server of {folder.cluster} was killed, but sessions of it still run, and a second server beside them "
        "would destroy the data. They end with their current statement; see them with: ps ax | grep 'postgres: "
        "livewell'"
    )
