"""What the doctor asks of a store: write a file, read it, refuse to overwrite it, delete it.

Only all four together say that exports can be kept. A store that overwrites in spite of being asked
not to (some S3-compatible ones do not know If-None-Match) is found here, and not when a file is
lost. A probe that died in between leaves a file under no user's prefix; the sweep removes it.
"""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from livewell.exports.artifacts.store import ArtifactError, ArtifactStore

PROBE_USER = "0" * 32
_CONTENT = b"livewell probe"


async def probe(store: ArtifactStore) -> None:
    """Raises ArtifactError if any of the four does not work."""
    try:
        await _probe(store)
    except ArtifactError as error:
        if error.reason != "not_there":
            raise
        await _probe(store)  # whoever removes files without a row may have removed the probe


async def _probe(store: ArtifactStore) -> None:
    path = f"{PROBE_USER}/{uuid4()}/0.probe"
    try:
        await store.put(path, _CONTENT, content_type="application/octet-stream")
        if b"".join([piece async for piece in await store.read(path)]) != _CONTENT:
            raise ArtifactError("broken")
        if not await _refuses(store, path):
            raise ArtifactError("refused", "overwrites")
    except ArtifactError:
        with suppress(ArtifactError):  # the first failure says more
            await store.delete(path)
        raise
    if not await store.delete(path):
        raise ArtifactError("not_there")


async def _refuses(store: ArtifactStore, path: str) -> bool:
    try:
        await store.put(path, _CONTENT, content_type="application/octet-stream")
    except ArtifactError as error:
        if error.reason != "already_there":
            raise
        return True
    return False
