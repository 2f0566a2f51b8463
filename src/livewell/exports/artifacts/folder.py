"""A store in a folder of this machine: the default, and without any library.

    <root>/<user>/<export>/<fence>.<suffix>     0600, in folders of 0700

Every call of the disk runs in a thread, under a deadline. Several processes may use one folder at
once. A folder on a network file system works where link() and fsync() do.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from livewell.exports.artifacts.draft import Draft, names_in, open_folder, remove
from livewell.exports.artifacts.paths import EXPORT_FOLDER, FILE_NAME, USER_PREFIX, check_prefix, split_path
from livewell.exports.artifacts.probe import probe
from livewell.exports.artifacts.store import ArtifactError, Detail, Reason
from livewell.exports.artifacts.threads import Threads

_THREADS_MAX = 8
_LIST_PAGE = 1_000
# Every thread keeps what it once allocated: pieces of 1 MiB added 17 MB to a server that sent a
# large ZIP, these add 3 MB.
_READ_BYTES = 262_144
_UNDO_SECONDS_MAX = 5.0  # an aborted write waits so long for the disk to forget it

_REASONS: Mapping[int, tuple[Reason, Detail]] = {
    errno.ENOENT: ("not_there", ""),
    errno.EEXIST: ("already_there", ""),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), ("full", "disk")),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), ("refused", "permission")),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.ENOMEM), ("unreachable", "busy")),
    **dict.fromkeys((errno.ESTALE, errno.EHOSTDOWN), ("unreachable", "connection")),
}


class FolderStore:
    """Files in a folder, which is made when the first one is written.

    seconds   how long one call of the disk may take
    unnamed   false: drafts have names, as on systems that know no files without one
    """

    def __init__(self, root: Path, *, seconds: float = 30.0, unnamed: bool = True) -> None:
        self._root = root.absolute()  # whatever becomes of the current folder
        self._unnamed = unnamed
        self._threads = Threads(_THREADS_MAX, seconds=seconds, read_failure=_read_failure)

    async def put(self, path: str, data: bytes | AsyncIterable[bytes], *, content_type: str) -> None:
        """See ArtifactStore. The content type is not kept: whoever serves the file knows it."""
        del content_type
        draft = Draft(self._root, split_path(path), unnamed=self._unnamed)
        try:
            if isinstance(data, bytes):
                await self._threads.run(partial(draft.write_and_name, data))
                return
            async for piece in data:
                await self._threads.run(partial(draft.write, piece))
            await self._threads.run(draft.name)
        except BaseException:
            await self._threads.run_to_the_end(draft.abandon, seconds=_UNDO_SECONDS_MAX)
            raise

    async def read(self, path: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """See ArtifactStore. The file is opened for each piece: no descriptor waits for a client."""
        size = await self.size(path)
        return self._pieces(path, start, size if end is None else min(end, size))

    async def _pieces(self, path: str, start: int, end: int) -> AsyncIterator[bytes]:
        names = split_path(path)
        while start < end:
            length = min(end - start, _READ_BYTES)
            piece = await self._threads.run(partial(_read, self._root, names, start, length))
            start += len(piece)
            yield piece

    async def size(self, path: str) -> int:
        """See ArtifactStore."""
        return await self._threads.run(partial(_size, self._root, split_path(path)))

    async def delete(self, path: str) -> bool:
        """See ArtifactStore. Folders that are empty now go with it."""
        return await self._threads.run(partial(remove, self._root, split_path(path)))

    async def list(self, prefix: str = "", after: str = "") -> AsyncIterator[str]:
        """See ArtifactStore. Drafts, keys and whatever else lies there are no artifacts."""
        paths = _walk(self._root, check_prefix(prefix), after)
        while page := await self._threads.run(lambda: list(itertools.islice(paths, _LIST_PAGE))):
            for path in page:
                yield path

    async def check(self) -> None:
        """See ArtifactStore."""
        await probe(self)

    def presign(self, path: str, seconds: int, *, file_name: str, content_type: str) -> str | None:
        """None: the server hands the file out, by links of our own."""

    async def close(self) -> None:
        """Let go of the threads."""
        self._threads.close()


def _read_failure(error: Exception) -> ArtifactError | None:
    if isinstance(error, OSError):
        return ArtifactError(*_REASONS.get(error.errno or 0, ("broken", "")))
    return None


def _read(root: Path, names: tuple[str, str, str], start: int, length: int) -> bytes:
    *folders, last = names
    with open_folder(root, tuple(folders)) as folder:
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            _check_file(os.fstat(descriptor))
            piece = os.pread(descriptor, length, start)
        finally:
            os.close(descriptor)
    if not piece:
        raise OSError(errno.EIO, "shorter than it was")
    return piece


def _size(root: Path, names: tuple[str, str, str]) -> int:
    *folders, last = names
    with open_folder(root, tuple(folders)) as folder:
        found = os.stat(last, dir_fd=folder, follow_symlinks=False)
        _check_file(found)
        return found.st_size


def _check_file(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EIO, "not a file")


def _walk(root: Path, prefix: str, after: str) -> Iterator[str]:
    """Every artifact behind `after`, in the order of their whole paths.

    Names of one level are all equally long, but for the last one: sorting each level sorts all.
    """
    for user in [prefix] if prefix else _names(root, (), USER_PREFIX.fullmatch):
        if f"{user}/~" <= after:  # every path of this user is before it
            continue
        for export in _names(root, (user,), EXPORT_FOLDER.fullmatch):
            for name in _names(root, (user, export), FILE_NAME.fullmatch):
                path = f"{user}/{export}/{name}"
                if path > after:
                    yield path


def _names(root: Path, folders: tuple[str, ...], wanted: Callable[[str], object]) -> list[str]:
    try:
        with open_folder(root, folders) as folder:
            return sorted(name for name in names_in(folder) if wanted(name))
    except (FileNotFoundError, NotADirectoryError):
        return []  # it left while we walked, or is no folder of ours
