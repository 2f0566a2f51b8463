"""Places for artifacts: folders of this machine, and a bucket of a server of our own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from livewell.testing.proxy import TcpProxy
from tests.integration.exports.labs.folder import FolderLab
from tests.integration.exports.labs.s3 import S3Lab, s3_server


@pytest.fixture(params=["unnamed drafts", "named drafts"])
async def folder_lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FolderLab]:
    """A folder whose name is a canary."""
    lab = FolderLab(tmp_path / "canary-folder" / "exports", unnamed=request.param == "unnamed drafts")
    yield lab
    await lab.close()


@pytest.fixture(scope="session")
def s3_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """moto's server, in a process of its own."""
    with s3_server(tmp_path_factory.mktemp("s3")) as port:
        yield port


@pytest.fixture
async def s3_lab(s3_port: int) -> AsyncIterator[S3Lab]:
    """A bucket of this test's own."""
    async with TcpProxy("127.0.0.1", s3_port) as proxy:
        lab = S3Lab(proxy, s3_port)
        await lab.make_bucket()
        yield lab
        await lab.close()
