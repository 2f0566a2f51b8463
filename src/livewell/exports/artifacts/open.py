"""The store that the settings ask for.

    export_store not set, embedded Postgres    the folder `exports` beside its data
    export_store not set, another Postgres     .livewell-exports in the current folder
    a path                                     that folder
    s3://bucket/prefix                         that bucket

Several processes of one installation need one store: where they run on several machines, or in
several folders, it has to be set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from livewell.db import embedded
from livewell.errors import ConfigurationError
from livewell.exports.artifacts.folder import FolderStore
from livewell.exports.artifacts.s3_address import read_s3_address
from livewell.exports.artifacts.store import ArtifactStore

_OTHER_FOLDER = Path(".livewell-exports")  # not in .livewell, which an embedded server wants for itself alone


class StoreSettings(Protocol):
    """What is read of the settings."""

    @property
    def data_dir(self) -> Path | None: ...  # noqa: D102
    @property
    def database_url(self) -> SecretStr | None: ...  # noqa: D102
    @property
    def export_store(self) -> str | None: ...  # noqa: D102
    @property
    def export_s3_endpoint(self) -> str | None: ...  # noqa: D102
    @property
    def export_file_bytes_max(self) -> int: ...  # noqa: D102
    @property
    def export_link_keys(self) -> SecretStr | None: ...  # noqa: D102


def open_store(settings: StoreSettings, environment: Mapping[str, str] | None = None) -> ArtifactStore:
    """A client of the store; nothing is connected or made yet. Raises ConfigurationError."""
    folder = store_folder(settings)
    if folder is not None:
        return FolderStore(folder)
    from livewell.exports.artifacts.s3 import S3Store  # noqa: PLC0415 – a folder works without it

    found = os.environ if environment is None else environment
    address = read_s3_address(settings.export_store or "", settings.export_s3_endpoint, found)
    return S3Store(address, environment=found, file_bytes_max=settings.export_file_bytes_max)


def store_folder(settings: StoreSettings) -> Path | None:
    """The folder of the store; None if it is in a bucket."""
    store = settings.export_store
    if store is None:
        if settings.database_url is None:
            return (settings.data_dir or embedded.default_data_dir()) / "exports"
        return _OTHER_FOLDER
    if store.startswith("s3://"):
        return None
    if "://" in store or not store.strip() or "\0" in store:
        raise ConfigurationError("LIVEWELL_EXPORT_STORE: a folder, or s3://bucket/prefix, is wanted")
    try:
        return Path(store).expanduser()
    except RuntimeError:
        raise ConfigurationError("LIVEWELL_EXPORT_STORE: no such home folder") from None
