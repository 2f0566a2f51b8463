"""A server of its own for the tests of the migrator.

They make and drop roles, which belong to the whole server.
"""

from collections.abc import Iterator

import pytest

from tests.support.servers import cluster, new_database


@pytest.fixture(scope="session")
def admin_dsn() -> Iterator[str]:
    """The superuser's address of the session's server."""
    with cluster() as dsn:
        yield dsn


@pytest.fixture
def fresh_dsn(admin_dsn: str) -> Iterator[str]:
    """A new empty database for one test."""
    with new_database(admin_dsn) as dsn:
        yield dsn
