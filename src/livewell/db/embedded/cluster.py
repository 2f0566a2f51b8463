"""Make the cluster, all or nothing.

    init-xxxx/  initdb ──▶ database ──▶ on disk ──renamed──▶ pgdata/
        └──killed anywhere before the rename──▶ thrown away by the next start

Passwords for everyone (scram-sha-256), on the socket as well; superuser and database are both
`livewell`.
"""

import os
import secrets
import shutil
import tempfile
from pathlib import Path

from livewell.db.embedded import parameters
from livewell.db.embedded.account import Account
from livewell.db.embedded.binaries import BIN_VARIABLE, Binaries, find_major
from livewell.db.embedded.folder import Folder
from livewell.errors import EmbeddedPostgresError

NAME = "livewell"
_UNFINISHED = "init-"
_HAS_ITERATIONS = 16  # the first major version in which the cost of a password can be set
# Many rounds make a password that a person chose dear to guess. Ours has 256 random bits and needs
# none: to connect takes 2.4 instead of 5.1 ms, half of it the client's processor.
_OUR_ITERATIONS = ("--set", "scram_iterations=1")
_THEIR_ITERATIONS = "scram_iterations = 4096\n"  # for passwords that are set later


def ensure_cluster(folder: Folder, binaries: Binaries, account: Account, *, durable: bool) -> None:
    """Make the cluster when there is none; refuse one of another major version."""
    for leftover in folder.root.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)  # an orphaned initdb may still write: the next start tries again
    if folder.cluster.exists():
        _check_version(folder.cluster, binaries)
        return
    folder.write("password", secrets.token_urlsafe(32), account)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder.root))
    folder.own_subfolder(unfinished, account)
    try:
        _init(folder, unfinished, binaries, account)
        if durable:
            # 0.2 s. Without it a power cut soon after could lose rows that were committed since.
            _run(account, [binaries.program("initdb"), "--sync-only", "-D", str(unfinished)])
        unfinished.rename(folder.cluster)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _flush(folder.root)


def _init(folder: Folder, unfinished: Path, binaries: Binaries, account: Account) -> None:
    has_iterations = binaries.major >= _HAS_ITERATIONS
    initdb = [binaries.program("initdb"), "-D", str(unfinished), "--username", NAME, "--pwfile", str(folder.password)]
    initdb += _OUR_ITERATIONS if has_iterations else ()
    _run(account, [*initdb, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"])
    single = [binaries.program("postgres"), "--single", "-D", str(unfinished), "-c", "fsync=off", "postgres"]
    _run(account, single, statement=f"CREATE DATABASE {NAME};\n")
    with os.fdopen(os.open(unfinished / "postgresql.conf", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW), "w") as file:
        file.write("\n" + (_THEIR_ITERATIONS if has_iterations else "") + parameters.INCLUDE)


def _run(account: Account, argv: list[str], *, statement: str | None = None) -> None:
    done = account.run(argv, input_text=statement)
    # --single reports a failed statement in its output only, and ends with 0.
    if done.returncode != 0 or "ERROR:" in done.stdout:
        raise EmbeddedPostgresError(
            f"embedded Postgres: {argv[0]} ended with {done.returncode}: {done.stdout.strip()[-2000:]}\n"
            "Nothing was kept. Check space and mounts with: df -h"
        )


def _check_version(cluster: Path, binaries: Binaries) -> None:
    made_by = int((cluster / "PG_VERSION").read_text())
    if made_by == binaries.major:
        return
    at_hand = find_major(made_by) or f"/path/to/postgresql/{made_by}/bin"
    raise EmbeddedPostgresError(
        f"embedded Postgres: {cluster} was made by Postgres {made_by}, the programs in {binaries.bin_dir} are "
        f"{binaries.version}. The data is untouched. Go on with the old programs: {BIN_VARIABLE}={at_hand}, or move "
        f"the data: dump it with those (pg_dump), start with a new LIVEWELL_DATA_DIR, and restore it there (psql)."
    )


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
