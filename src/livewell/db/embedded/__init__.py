"""A Postgres server of our own, for when no DATABASE_URL is given.

    absent ──init──▶ stopped ──launch──▶ starting ──▶ ready ──stop──▶ stopped
                        ▲                              │ ▲
                        │                              │ └── attach: another process starts, and finds it
                        └── orphaned ◀──── kill -9 ────┘
                            (backends still live: wait, never delete postmaster.pid)

The server belongs to the data folder, not to the process that started it: it outlives that process,
and the next process that calls start() attaches to it. Every change of state happens under one file
lock in the data folder. Linux and macOS.

    folder.py      what lies where in the data folder, and the lock
    placement.py   where that folder may be, and who may enter it
    account.py     which account runs the server (root gives its rights up)
    binaries.py    where the programs come from, and the copy for an account that cannot read them
    cluster.py     initdb, all or nothing
    parameters.py  the settings, and which of them are remembered
    postmaster.py  is it alive? read from postmaster.pid, the process table and the shared memory
    launch.py      one attempt to start it
    handle.py      what a caller holds, and the login that proves it
    server.py      start, stop, status
    keeper.py      revive it when it was killed under a long-running command
    logins.py      logins for the roles of the HTTP server
    public_rights.py  what every login may do: less than by default
"""

from livewell.db.embedded.handle import EmbeddedServer
from livewell.db.embedded.keeper import Tell, keep, kept_alive, started
from livewell.db.embedded.logins import logins
from livewell.db.embedded.placement import default_data_dir
from livewell.db.embedded.server import start, status, stop

__all__ = [
    "EmbeddedServer",
    "Tell",
    "default_data_dir",
    "keep",
    "kept_alive",
    "logins",
    "start",
    "started",
    "status",
    "stop",
]
