"""A lab: one kind of store, the place behind it, and what can go wrong between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from livewell.exports.artifacts.store import ArtifactStore


class ArtifactLab(Protocol):
    """What checks ask of a lab.

    secrets     texts that no error may contain: folder, bucket, prefix, host, keys
    is_remote   what was sent before a call was cancelled is undone a little later
    """

    secrets: Sequence[str]
    is_remote: bool

    def store(self, *, hasty: bool = False) -> ArtifactStore:
        """A new client of the one place; hasty: it gives up within about a second. The lab closes it."""

    async def there(self) -> list[str]:
        """Everything in the place, of whatever name, also what is not complete; past the store."""

    async def fill(self, paths: Sequence[str]) -> None:
        """Put a small file under each path, quickly."""

    async def empty(self) -> None:
        """Take everything out of the place, quickly."""

    async def content_type(self, path: str) -> str | None:
        """What the place says that it is. Asked only of labs that offer "content_type"."""

    def stop(self) -> None:
        """The place is down: connections break, new ones are refused. Offered as "network"."""

    def freeze(self) -> None:
        """Nothing passes any more, and nobody is told."""

    def cut_after(self, answer_bytes: int) -> None:
        """Break each connection once, when so many more bytes of answers have come."""

    def heal(self) -> None:
        """All is well again."""

    def struck(self) -> int:
        """How many faults have struck so far."""
