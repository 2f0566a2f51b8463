"""The data folder: what lies where, and the lock.

free ──flock──▶ held by one starter or stopper ──done, or dead──▶ free

lock             taken while the server is started or stopped; its presence marks the folder as ours
pgdata/          the cluster, 0700
init-*/          a cluster being made; after a kill it is thrown away
run/             the unix socket, 0700
password         0600
parameters.json  what callers asked for     livewell.conf  the settings made of it, at every start
port, version    of the last start
server.log       bounded, see LOG_BYTES_MAX
binaries/        a copy of the programs, only where the account cannot read the package
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from livewell.db.embedded.account import Account
from livewell.errors import EmbeddedPostgresError

LOG_BYTES_MAX = 50 * 1024 * 1024
LOG_BYTES_KEPT = 1024 * 1024
_POLL_SECONDS = 0.02
_SOCKET_PATH_BYTES_MAX = 103  # sun_path of macOS; Linux has 107
_SOCKET_NAME_BYTES = len("/.s.PGSQL.65535")


@dataclass(frozen=True, slots=True)
class Folder:
    """The paths in one data folder."""

    root: Path

    @property
    def lock(self) -> Path:  # noqa: D102
        return self.root / "lock"

    @property
    def cluster(self) -> Path:  # noqa: D102
        return self.root / "pgdata"

    @property
    def run(self) -> Path:  # noqa: D102
        return self.root / "run"

    @property
    def log(self) -> Path:  # noqa: D102
        return self.root / "server.log"

    @property
    def password(self) -> Path:  # noqa: D102
        return self.root / "password"

    @property
    def copies(self) -> Path:  # noqa: D102
        return self.root / "binaries"

    def has_socket(self) -> bool:
        """False where the path is too long for a unix socket, or has a comma, at which libpq splits; TCP remains."""
        return "," not in str(self.run) and len(os.fsencode(self.run)) + _SOCKET_NAME_BYTES <= _SOCKET_PATH_BYTES_MAX

    def read(self, name: str) -> str | None:
        """The text of a small file, None when there is none."""
        try:
            return (self.root / name).read_text().strip()
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str, account: Account) -> None:
        """Replace a small file in one step: 0600, owned by the account."""
        descriptor, unfinished = tempfile.mkstemp(prefix=f"{name}.", dir=self.root)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            account.own(descriptor)
        Path(unfinished).replace(self.root / name)

    def own_subfolder(self, path: Path, account: Account) -> None:
        """Make a folder that only the account may enter."""
        path.mkdir(mode=0o700, exist_ok=True)
        if account.dropped:
            os.chown(path, account.uid, account.gid)

    @contextmanager
    def locked(self, deadline: float) -> Iterator[None]:
        """Hold the lock; it is released by the kernel when we die."""
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise EmbeddedPostgresError(
                        f"embedded Postgres: another process has held {self.lock} for too long. "
                        f"See which one with: fuser -v {self.lock}"
                    )
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(descriptor)


def bound_log(log: Path, account: Account) -> int:
    """Make sure the log exists and is small enough; answers its size.

    The server appends, so cutting it is safe.
    """
    descriptor = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        account.own(descriptor)
        size = os.fstat(descriptor).st_size
        if size <= LOG_BYTES_MAX:
            return size
        tail = os.pread(descriptor, LOG_BYTES_KEPT, size - LOG_BYTES_KEPT)
        file.truncate(0)
        file.write(tail)
        return len(tail)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
