"""What every store of artifacts is, and how it fails.

An error of a store has a reason from a closed list and a detail from another. Both are words of
ours: no path, bucket, key, address or text of a library is ever in it (E15), so it may be logged
and shown. The library's error is not chained either.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Literal, Protocol

from livewell.errors import LivewellError

Reason = Literal["unreachable", "refused", "full", "not_there", "already_there", "broken"]
Detail = Literal[
    "",
    "bucket",
    "busy",
    "clock",
    "closed",
    "connection",
    "credentials",
    "disk",
    "expired_credentials",
    "overwrites",
    "path",
    "permission",
    "quota",
    "region",
    "size",
    "timeout",
]

PIECE_BYTES_MAX = 1_048_576  # what read() holds of a file at once

_REASONS: Mapping[Reason, str] = {
    "unreachable": "the artifact store does not answer",
    "refused": "the artifact store refused us",
    "full": "the artifact store is full",
    "not_there": "the artifact store has no such file",
    "already_there": "the artifact store has this file already, and files are never overwritten",
    "broken": "the artifact store gave something else than what was written",
}
_DETAILS: Mapping[Detail, str] = {
    "bucket": "it has no such bucket; look at LIVEWELL_EXPORT_STORE",
    "busy": "it is overloaded or failing; it is asked again later",
    "clock": "its clock and ours differ too much; set the clock of this machine",
    "closed": "it was closed in this process",
    "connection": "no connection, or the connection broke; look at LIVEWELL_EXPORT_S3_ENDPOINT",
    "credentials": "it does not know our key, or our signature is wrong; look at AWS_ACCESS_KEY_ID and its secret",
    "disk": "no space, or no quota, is left on the disk of the folder",
    "expired_credentials": "our credentials have expired; renew them",
    "overwrites": "it overwrites files although it was asked not to; use a store that knows If-None-Match",
    "path": "what was asked for is no path of an artifact",
    "permission": "we may not do this here; look at the rights of the folder or of the key",
    "quota": "its quota or its disk is used up",
    "region": "it is in another region; look at AWS_REGION",
    "size": "the file is larger than what this store takes in one piece",
    "timeout": "it did not answer in time",
}


class ArtifactError(LivewellError):
    """A store could not do what was asked; `reason` and `detail` are from closed lists."""

    def __init__(self, reason: Reason, detail: Detail = "") -> None:
        words = _DETAILS.get(detail)
        super().__init__(_REASONS[reason] + (f": {words}" if words else ""))
        self.reason = reason
        self.detail = detail


class ArtifactStore(Protocol):
    """A place for files. Paths are those of paths.py; any other is refused."""

    async def put(self, path: str, data: bytes | AsyncIterable[bytes], *, content_type: str) -> None:
        """Keep a file under a path that is free. Raises ArtifactError already_there if it is not.

        When this returns, the file is complete and survives a crash. When it raises, or is
        cancelled, nothing is there; the one exception is a network that broke after the store had
        it all, which no writer can tell. What `data` raises is raised as it is.
        """

    async def read(self, path: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Open the bytes from start up to end, without it: `async for piece in await read(path)`.

        not_there is raised before the first piece. A piece has at most PIECE_BYTES_MAX bytes. What
        lies behind the end of the file is left out. A file that is deleted while it is read breaks
        off with an error, and never ends early without one.
        """

    async def size(self, path: str) -> int:
        """Its bytes. Raises ArtifactError not_there."""

    async def delete(self, path: str) -> bool:
        """Remove it, durably; false if it was not there."""

    def list(self, prefix: str = "", after: str = "") -> AsyncIterator[str]:
        """Every path under a user's prefix, or of all users, in order, from behind `after` on.

        It is read in pages, so its memory does not grow with the number of files.
        """

    async def check(self) -> None:
        """Write, read and delete a file; raises ArtifactError as any of these would."""

    def presign(self, path: str, seconds: int, *, file_name: str, content_type: str) -> str | None:
        """An address from which anybody can load the file for so long, at most an hour.

        None: this store has no such addresses, and our own links are used (links.py).
        """

    async def close(self) -> None:
        """Let go of threads and connections. A closed store refuses everything."""
