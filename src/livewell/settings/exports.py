"""The settings of exports. In a class of their own, which `Settings` has as its base."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, SecretStr
from pydantic_settings import BaseSettings

from livewell.settings.values import Folder, Number, Whole, bounded, free

_FOLDERS_MAX = 20


def _folders(value: object) -> object:
    """Texts with commas between, or a list of them."""
    found = [one.strip() for one in value.split(",")] if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or len(found) > _FOLDERS_MAX:
        raise ValueError("not a list of folders")
    return tuple(found)


class ExportSettings(BaseSettings):
    """Where files of exports are, how long, how many, and what rendering one may use."""

    export_store: str | None = free(
        "a path, or s3://bucket or s3://bucket/prefix",
        "Where the files are. Not set: a folder beside the embedded server, or `.livewell-exports` in the current "
        "folder. Every worker and every server has to reach the same one.",
        min_length=1,
        max_length=1000,
    )
    export_s3_endpoint: str | None = free(
        "https://host or http://host:port",
        "The address of the bucket's server, where it is not Amazon's.",
        pattern=r"^https?://[A-Za-z0-9.\-\[\]:]+/?$",
        max_length=300,
    )
    export_link_keys: SecretStr | None = free(
        "id:secret,id:secret; an id of 1 to 16 of A-Z a-z 0-9 _ -, a secret of at least 32 characters",
        "What signs the links to files: the first one signs, all of them are believed. Every server needs the "
        "same ones. Not set, and a folder as the store: made once, and kept in that folder.",
    )
    export_link_seconds: Whole = bounded(3600, 10, 3600, "How long a link to a file lasts; never more than an hour.")
    export_days: Number = bounded(7, 0.001, 365, "How long a file is kept, from the end of its export.")
    export_tombstone_days: Number = bounded(
        30, 1, 3650, "How long it is known afterwards what was exported, without the file."
    )
    export_user_bytes_max: Whole = bounded(
        100_000_000, 1_000_000, 9_000_000_000, "Bytes of files that one user may have stored at a time."
    )
    export_daily_max: Whole = bounded(100, 1, 1_000_000, "Exports that one user may ask for in a day (UTC).")
    export_user_running_max: Whole = bounded(3, 1, 100, "Exports of one user that run at once; the next ones wait.")
    export_renders_max: Whole = bounded(3, 1, 64, "Documents that one worker renders at once.")
    export_render_seconds: Number = bounded(
        30, 0.2, 600, "A render that takes longer is ended, and nothing else with it."
    )
    export_file_bytes_max: Whole = bounded(50_000_000, 100_000, 1_000_000_000, "The file of one export at most.")
    export_child_bytes_max: Whole = bounded(
        300_000_000, 100_000_000, 8_000_000_000, "A rendering process that uses more is replaced after its document."
    )
    export_child_renders_max: Whole = bounded(
        50, 1, 100_000, "A rendering process is replaced after so many documents."
    )
    export_worker_bytes_max: Whole = bounded(
        1_000_000_000,
        100_000_000,
        9_000_000_000,
        "What a worker that renders and its rendering processes may use together; at 80 % there is an alert.",
    )
    export_fonts: Annotated[tuple[Folder, ...], BeforeValidator(_folders)] = free(
        f"paths with commas between, at most {_FOLDERS_MAX}",
        "Folders with more fonts, for characters that the shipped ones lack.",
        default=(),
    )
