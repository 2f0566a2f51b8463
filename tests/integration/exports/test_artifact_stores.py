"""Every store of artifacts passes one suite (E7, E8, E15)."""

from __future__ import annotations

import pytest

from livewell.testing.artifacts import Check, checks
from tests.integration.exports.labs.folder import FolderLab
from tests.integration.exports.labs.s3 import S3Lab


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
async def test_the_folder_conforms(check: Check, folder_lab: FolderLab) -> None:
    """Every check of the suite (E7), with drafts that have names and with drafts that have none."""
    await check(folder_lab)


@pytest.mark.parametrize("check", checks("content_type", "network"), ids=lambda check: check.__name__)
async def test_s3_conforms(check: Check, s3_lab: S3Lab) -> None:
    """Every check of the suite (E7, E8), on moto's server behind a proxy that breaks connections."""
    await check(s3_lab)
