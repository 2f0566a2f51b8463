"""Which store the settings mean."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from livewell.errors import ConfigurationError
from livewell.exports.artifacts.folder import FolderStore
from livewell.exports.artifacts.open import open_store, store_folder
from livewell.exports.artifacts.s3 import S3Store


def settings(**given: object) -> Any:
    usual = {"data_dir": None, "database_url": None, "export_store": None, "export_s3_endpoint": None}
    return SimpleNamespace(**{**usual, "export_file_bytes_max": 50_000_000, "export_link_keys": None, **given})


def test_a_folder_is_the_store_unless_a_bucket_is_named(tmp_path: Path) -> None:
    """Beside the embedded server's data, and never in a folder that such a server wants for itself."""
    assert store_folder(settings(data_dir=tmp_path)) == tmp_path / "exports"
    assert store_folder(settings(database_url=SecretStr("host=x"), data_dir=tmp_path)) == Path(".livewell-exports")
    assert store_folder(settings(export_store="/srv/exports")) == Path("/srv/exports")
    assert store_folder(settings(export_store="~/exports")) == Path.home() / "exports"
    assert store_folder(settings(export_store="s3://bucket/prefix")) is None


async def test_the_store_is_opened_without_touching_it(tmp_path: Path) -> None:
    """Nothing is made, nothing is connected."""
    folder = open_store(settings(export_store=str(tmp_path / "exports")))
    assert isinstance(folder, FolderStore)
    assert not (tmp_path / "exports").exists()
    await folder.close()
    bucket = open_store(settings(export_store="s3://bucket", export_s3_endpoint="http://127.0.0.1:1"), {})
    assert isinstance(bucket, S3Store)
    assert (
        bucket.presign(f"{'0' * 32}/{'0' * 8}-0000-0000-0000-{'0' * 12}/1.pdf", 60, file_name="", content_type="")
        is None
    )
    await bucket.close()


@pytest.mark.parametrize("store", ["", " ", "gs://bucket", "https://host/bucket", "a\0b", "~nobody-of-that-name/x"])
def test_what_is_no_store_is_refused(store: str) -> None:
    """By the name of the setting."""
    with pytest.raises(ConfigurationError, match="LIVEWELL_EXPORT_STORE"):
        open_store(settings(export_store=store), {})
