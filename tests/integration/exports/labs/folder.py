"""A folder, and a look into it past the store."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from livewell.exports.artifacts.folder import FolderStore


class FolderLab:
    """Stores of one folder, as if each were of another process."""

    is_remote = False

    def __init__(self, root: Path, *, unnamed: bool) -> None:
        self.root = root
        self.secrets: Sequence[str] = ("canary-folder", str(root))
        self._unnamed = unnamed
        self._stores: list[FolderStore] = []

    def store(self, *, hasty: bool = False) -> FolderStore:
        """On the one folder."""
        store = FolderStore(self.root, seconds=1.0 if hasty else 30.0, unnamed=self._unnamed)
        self._stores.append(store)
        return store

    async def there(self) -> list[str]:
        """Every file and every empty folder, but for the folder of drafts itself."""
        found = [path for path in sorted(self.root.rglob("*")) if path.is_file() or not any(path.iterdir())]
        return [path.relative_to(self.root).as_posix() for path in found if path.name != ".drafts"]

    async def fill(self, paths: Sequence[str]) -> None:
        """Past the store, which syncs each file."""
        for path in paths:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(b"x")

    async def empty(self) -> None:
        """The whole folder."""
        shutil.rmtree(self.root)

    async def close(self) -> None:
        """Every store."""
        for store in self._stores:
            await store.close()
