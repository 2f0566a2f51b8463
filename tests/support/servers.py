"""Servers without any of our roles, and empty databases on them.

For tests that make and drop roles.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from livewell.db import embedded
from livewell.db.embedded.binaries import find_binaries


def pg_bin() -> Path:
    """The folder with psql."""
    return find_binaries().bin_dir


@contextmanager
def cluster() -> Iterator[str]:
    """A new server; gives the superuser's address."""
    folder = Path(tempfile.mkdtemp(prefix="livewell-cluster-"))
    folder.chmod(0o755)
    try:
        yield embedded.start(
            folder / "server", parameters={"fsync": "off", "max_connections": "200"}, wait_seconds=300
        ).dsn
    finally:
        embedded.stop(folder / "server", mode="immediate")
        shutil.rmtree(folder)


@contextmanager
def new_database(admin_dsn: str) -> Iterator[str]:
    """A new empty database, dropped afterwards."""
    name = f"lw_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield make_conninfo(admin_dsn, dbname=name)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
