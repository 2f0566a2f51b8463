"""A file of the folder before it has its name.

    open ──write──▶ open ──name──▶ named
      └──────────────┴──abandon──▶ gone

Where the system can (Linux, most file systems) the draft has no name at all: when the process dies,
the kernel frees it. Elsewhere it lies in `.drafts` under a name that begins with that of its
artifact, and whoever deletes the artifact finds it there.

A draft gets its name by link(), which fails if the name is taken: two writers of one name cannot
both win, and nothing is overwritten. Its methods run in threads, one at a time, and may be called
after the task that wanted them was cancelled: abandon() then undoes what was done.
"""

from __future__ import annotations

import errno
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DRAFTS = ".drafts"
_NO_UNNAMED = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS})
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER_ATTEMPTS_MAX = 20


class Draft:
    """One file that is being written. Make it in the thread that writes the first byte."""

    def __init__(self, root: Path, names: tuple[str, ...], *, unnamed: bool = True) -> None:
        self._root = root
        self._names = names
        self._lock = threading.Lock()
        self._abandoned = False
        self._made_folders = False
        self._named = False
        self._descriptor = -1
        self._name: str | None = None
        self._unnamed = unnamed

    def write(self, data: bytes) -> None:
        """Append; the first call opens the file."""
        with self._lock:
            self._write(data)

    def name(self) -> None:
        """Bring every byte to the disk, then give it its name. Raises FileExistsError if taken."""
        with self._lock:
            self._write(b"")
            os.fsync(self._descriptor)
            self._link()
            self._close()

    def write_and_name(self, data: bytes) -> None:
        """All of a small file, in one visit to a thread."""
        self.write(data)
        self.name()

    def abandon(self) -> None:
        """Leave nothing behind, whatever was reached."""
        with self._lock:
            self._abandoned = True
            self._close()
            if self._named:
                self._named = False
                remove(self._root, self._names)
            elif self._made_folders:
                remove_empty_folders(self._root, self._names)

    def _write(self, data: bytes) -> None:
        if self._abandoned:
            raise OSError(errno.ECANCELED, "abandoned")
        if self._descriptor < 0:
            self._open()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _open(self) -> None:
        with open_folder(self._root, (), make=True) as root:
            if self._unnamed and hasattr(os, "O_TMPFILE"):
                try:
                    self._descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=root)
                except OSError as error:
                    if error.errno not in _NO_UNNAMED:
                        raise
                else:
                    if Path(self._source()).exists():
                        return
                    self._close()  # no /proc: it could never get a name
        with open_folder(self._root, (DRAFTS,), make=True) as drafts:
            self._name = f"{'.'.join(self._names)}.{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._name, flags, 0o600, dir_fd=drafts)

    def _source(self) -> str:
        return f"/proc/self/fd/{self._descriptor}"

    def _link(self) -> None:
        """Make the folders and link, again if a delete took an empty folder away in between."""
        *folders, last = self._names
        for attempt in range(_FOLDER_ATTEMPTS_MAX):
            try:
                self._made_folders = True
                with open_folder(self._root, tuple(folders), make=True) as folder:
                    self._link_in(folder, last)
            except FileNotFoundError:
                if attempt + 1 == _FOLDER_ATTEMPTS_MAX:
                    raise
            else:
                return

    def _link_in(self, folder: int, last: str) -> None:
        if self._name is None:
            os.link(self._source(), last, dst_dir_fd=folder, follow_symlinks=True)
        else:
            with open_folder(self._root, (DRAFTS,)) as drafts:
                os.link(self._name, last, src_dir_fd=drafts, dst_dir_fd=folder, follow_symlinks=False)
        self._named = True  # from here on it is ours to remove, also if the disk fails now
        os.fsync(folder)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        name, self._name = self._name, None
        if name is not None:
            with suppress(FileNotFoundError), open_folder(self._root, (DRAFTS,)) as drafts:
                os.unlink(name, dir_fd=drafts)


@contextmanager
def open_folder(root: Path, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """A descriptor of a folder below the root; no link on the way is followed.

    make: what is missing is made, for this account only, and synced, so that the way to a file that
    survived a crash has survived it, too. The root may itself be a link: it is the operator's.
    """
    descriptor = _open_root(root, make=make)
    try:
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=descriptor)
                os.fsync(descriptor)  # also of one that another writer has just made
            inner = os.open(name, _OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _open_root(root: Path, *, make: bool) -> int:
    try:
        return os.open(root, _OPEN_FOLDER)
    except FileNotFoundError:
        if not make:
            raise
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    parent = os.open(root.parent, _OPEN_FOLDER)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
    return os.open(root, _OPEN_FOLDER)


def remove(root: Path, names: tuple[str, ...]) -> bool:
    """Remove a file, its drafts and the folders that it leaves empty; false if it was not there.

    What was removed stays removed after a crash: the folder is synced also when the file was gone
    before, because the process that removed it may have died before it synced.
    """
    _remove_drafts(root, names)
    was_there = _remove_file(root, names)
    remove_empty_folders(root, names)
    return was_there


def remove_empty_folders(root: Path, names: tuple[str, ...]) -> None:
    """From the folder of the file upwards, as far as they are empty."""
    *folders, _ = names
    for depth in range(len(folders), 0, -1):
        try:
            with open_folder(root, tuple(folders[: depth - 1])) as outer:
                with suppress(FileNotFoundError):
                    os.rmdir(folders[depth - 1], dir_fd=outer)
                os.fsync(outer)
        except FileNotFoundError:
            continue  # the outer folder is gone as well
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            break


def _remove_file(root: Path, names: tuple[str, ...]) -> bool:
    *folders, last = names
    try:
        with open_folder(root, tuple(folders)) as folder:
            try:
                os.unlink(last, dir_fd=folder)
            except FileNotFoundError:
                return False
            finally:
                os.fsync(folder)
    except FileNotFoundError:
        return False
    return True


def _remove_drafts(root: Path, names: tuple[str, ...]) -> None:
    beginning = ".".join(names) + "."
    with suppress(FileNotFoundError), open_folder(root, (DRAFTS,)) as drafts:
        for name in names_in(drafts):
            if name.startswith(beginning):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=drafts)


def names_in(folder: int) -> list[str]:
    """What lies in an open folder."""
    with os.scandir(folder) as found:
        return [one.name for one in found]
