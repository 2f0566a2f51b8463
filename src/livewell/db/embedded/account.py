"""Which account runs the server, and running programs as that account.

    ordinary user ──▶ itself
    root ──▶ the owner of an existing cluster ──none yet──▶ `postgres` ──missing──▶ `nobody` ──missing──▶ error

Postgres refuses to run as root. No account is created. Rights are given up in the child between
fork and exec (setgroups, setgid, setuid by subprocess), so this process keeps its own, and its
threads do no harm.
"""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from livewell.errors import EmbeddedPostgresError

_PREFERRED = ("postgres", "nobody")
_PROGRAM_SECONDS_MAX = 120.0  # initdb on a slow disk; everything else takes milliseconds


@dataclass(frozen=True, slots=True)
class Account:
    """The account that owns the cluster; `dropped` when it is not the one we run as."""

    uid: int
    gid: int
    name: str
    dropped: bool

    def run(
        self,
        argv: Sequence[str],
        *,
        input_text: str | None = None,
        stderr: IO[bytes] | int = subprocess.STDOUT,
        new_session: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this account, to its end; the output is text.

        The folder is /, because ours may be one this account cannot enter.
        """
        try:
            return subprocess.run(
                argv,
                check=False,
                text=True,
                input=input_text,
                stdin=subprocess.DEVNULL if input_text is None else None,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd="/",
                env=_environment(),
                timeout=_PROGRAM_SECONDS_MAX,
                start_new_session=new_session,
                umask=0o077,
                user=self.uid if self.dropped else None,
                group=self.gid if self.dropped else None,
                extra_groups=[] if self.dropped else None,
            )
        except OSError as error:
            raise EmbeddedPostgresError(
                f"embedded Postgres: the account {self.name} cannot run {argv[0]}: {error.strerror}. "
                "Start livewell as an ordinary user, or set DATABASE_URL to a server that is already there."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise EmbeddedPostgresError(
                f"embedded Postgres: {argv[0]} did not end within {_PROGRAM_SECONDS_MAX:.0f} s and was killed. "
                "Is the disk full or very slow? Check with: df -h"
            ) from error

    def can_run(self, program: Path) -> bool:
        """True when this account may execute the program and load what it is linked with."""
        try:
            return self.run([str(program), "--version"]).returncode == 0
        except EmbeddedPostgresError:
            return False

    def can_read(self, path: Path) -> bool:
        """True when this account may reach and read the file."""
        return self._test("-r", path)

    def can_enter(self, folder: Path) -> bool:
        """True when this account may go through the folder and every one above it."""
        return self._test("-x", folder)

    def own(self, descriptor: int) -> None:
        """Give an open file to this account."""
        if self.dropped:
            os.fchown(descriptor, self.uid, self.gid)

    def _test(self, flag: str, path: Path) -> bool:
        # Asked as the account itself: mode bits alone would miss ACLs, read-only mounts and
        # capabilities.
        return self.run(["/bin/sh", "-c", 'test "$1" "$2"', "sh", flag, str(path)]).returncode == 0


def server_account(cluster: Path) -> Account:
    """The account that runs the server whose cluster is, or will be, in that folder."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), _name_of(os.geteuid()), dropped=False)
    return _owner_of(cluster) or _first_existing()


def _owner_of(cluster: Path) -> Account | None:
    try:
        found = cluster.stat()
    except FileNotFoundError:
        return None
    if found.st_uid == 0:
        raise EmbeddedPostgresError(
            f"embedded Postgres: {cluster} belongs to root, and Postgres does not run as root. "
            f"Give it to the account that should run it: chown -R postgres {cluster}"
        )
    return Account(found.st_uid, found.st_gid, _name_of(found.st_uid), dropped=True)


def _first_existing() -> Account:
    for name in _PREFERRED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, name, dropped=True)
    raise EmbeddedPostgresError(
        "embedded Postgres: we run as root, Postgres does not, and this machine has neither an account `postgres` nor "
        "`nobody`. Start livewell as an ordinary user, or set DATABASE_URL to a server that is already there."
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _environment() -> dict[str, str]:
    """Ours without PG*, which would redirect the programs; C, because we read their messages.

    UTC, to skip a search.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}
