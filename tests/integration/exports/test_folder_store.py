"""What only a folder can do wrong (E7, E11, E15)."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from livewell.exports.artifacts.folder import FolderStore
from livewell.exports.artifacts.paths import artifact_path
from livewell.exports.artifacts.store import ArtifactError
from livewell.testing.artifacts.errors import failure, is_silent_about
from livewell.testing.artifacts.parts import PDF, read_all, some_path, stream
from livewell.testing.processes import ChildProcess
from tests.integration.exports.labs.folder import FolderLab


def modes(root: Path) -> set[tuple[bool, int]]:
    return {(path.is_dir(), path.stat().st_mode & 0o777) for path in (root, *root.rglob("*"))}


async def test_only_the_owner_can_read_anything(folder_lab: FolderLab) -> None:
    """Files 0600, folders 0700, whatever the umask is."""
    before = os.umask(0)
    try:
        await folder_lab.store().put(some_path(), b"x", content_type=PDF)
    finally:
        os.umask(before)
    assert modes(folder_lab.root) == {(True, 0o700), (False, 0o600)}


async def test_folders_leave_with_their_last_file(folder_lab: FolderLab) -> None:
    """And not before."""
    store, export = folder_lab.store(), uuid.uuid4()
    paths = [artifact_path("u1", export, fence, "pdf") for fence in (1, 2)]
    for path in paths:
        await store.put(path, b"x", content_type=PDF)
    await store.delete(paths[0])
    assert (folder_lab.root / paths[1]).exists()
    await store.delete(paths[1])
    assert [path for path in folder_lab.root.iterdir() if path.name != ".drafts"] == []


@pytest.mark.parametrize("level", ["user", "export", "file"])
async def test_a_link_that_somebody_put_there_is_not_followed(
    level: str, folder_lab: FolderLab, tmp_path: Path
) -> None:
    """Neither for reading nor for writing, on any level."""
    path, store = some_path(), folder_lab.store()
    user, export, name = path.split("/")
    secret = tmp_path / "secret"
    (secret / export).mkdir(parents=True)
    (secret / name).write_bytes(b"secret")
    (secret / export / name).write_bytes(b"secret")
    place = {"user": Path(user), "export": Path(user, export), "file": Path(path)}[level]
    target = {"user": secret, "export": secret, "file": secret / name}[level]
    (folder_lab.root / place).parent.mkdir(parents=True)
    (folder_lab.root / place).symlink_to(target)
    for call in (store.read(path), store.size(path), store.put(path, b"x", content_type=PDF)):
        await failure(call, "a link")
    assert {one.read_bytes() for one in secret.rglob("*.pdf")} == {b"secret"}


@pytest.mark.parametrize("named", ["fifo", "folder"])
async def test_what_is_no_file_is_not_read(named: str, folder_lab: FolderLab) -> None:
    """A pipe would hold the reader for ever."""
    path = some_path()
    (folder_lab.root / path).parent.mkdir(parents=True)
    if named == "fifo":
        os.mkfifo(folder_lab.root / path)
    else:
        (folder_lab.root / path).mkdir()
    error = await failure(folder_lab.store().read(path), "no file")
    assert error.reason == "broken"


FAILURES = {
    errno.ENOSPC: ("full", "disk"),
    errno.EDQUOT: ("full", "disk"),
    errno.EACCES: ("refused", "permission"),
    errno.EROFS: ("refused", "permission"),
    errno.EMFILE: ("unreachable", "busy"),
    errno.ESTALE: ("unreachable", "connection"),
    errno.ETIMEDOUT: ("unreachable", "timeout"),
    errno.EIO: ("broken", ""),
    errno.ELOOP: ("broken", ""),
}


@pytest.mark.parametrize("number", FAILURES, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["write", "fsync", "link"])
async def test_a_disk_that_fails_is_told_by_our_own_words(
    call: str, number: int, folder_lab: FolderLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any step; nothing is left, and no path is in the error (E15)."""
    path, real = some_path(), getattr(os, call)

    def fail(*arguments: Any, **options: Any) -> Any:
        if threading.current_thread().name.startswith("livewell-artifacts"):
            raise OSError(number, os.strerror(number), str(folder_lab.root / path))
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, fail)
    for data in (b"x", stream(b"x" * 10)):
        error = await failure(folder_lab.store().put(path, data, content_type=PDF), call)
        assert (error.reason, error.detail) == FAILURES[number]
        is_silent_about(error, [*folder_lab.secrets, path])
    monkeypatch.undo()
    assert await folder_lab.there() == []


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 256 KB; skipped where nothing may be mounted."""
    place = tmp_path / "canary-small-disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk needs mount(), which is not allowed here; the errno cases above remain")
    yield place
    subprocess.run(["umount", str(place)], check=True)


async def test_a_full_disk_leaves_nothing_and_works_again_when_there_is_room(full_disk: Path) -> None:
    """ENOSPC from the kernel, in the middle of a file."""
    store = FolderStore(full_disk)
    small, large = some_path(), some_path()
    await store.put(small, b"s" * 100_000, content_type=PDF)
    for data in (b"x" * 400_000, stream(b"x" * 400_000, 50_000)):
        error = await failure(store.put(large, data, content_type=PDF), "a full disk")
        assert (error.reason, error.detail) == ("full", "disk")
        is_silent_about(error, ["canary", large])
    assert [path async for path in store.list()] == [small]
    await store.put(large, b"x" * 50_000, content_type=PDF)
    assert await read_all(store, large) == b"x" * 50_000
    await store.close()


async def test_a_disk_that_hangs_is_given_up_in_time(folder_lab: FolderLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told; when the disk comes back, what was abandoned vanishes by itself."""
    hung, real = threading.Event(), os.fsync

    def hang(descriptor: int) -> None:
        hung.wait(30)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", hang)
    monkeypatch.setattr("livewell.exports.artifacts.folder._UNDO_SECONDS_MAX", 0.05)
    store = FolderStore(folder_lab.root, seconds=0.1)
    error = await failure(store.put(some_path(), b"x", content_type=PDF), "a disk that hangs")
    assert (error.reason, error.detail) == ("unreachable", "timeout")
    hung.set()
    await asyncio.to_thread(store._threads._pool.shutdown)
    assert await folder_lab.there() == []


WRITER = """
import asyncio, sys
from pathlib import Path
from livewell.exports.artifacts.folder import FolderStore

async def pieces():
    yield b"x" * 100_000
    print("written", flush=True)
    await asyncio.Event().wait()

store = FolderStore(Path(sys.argv[1]), unnamed=sys.argv[3] == "unnamed")
asyncio.run(store.put(sys.argv[2], pieces(), content_type="application/pdf"))
"""


@pytest.mark.parametrize("drafts", ["unnamed", "named"])
async def test_a_writer_that_was_killed_leaves_nothing_behind_a_delete(drafts: str, tmp_path: Path) -> None:
    """E11: the row of the file says that it may exist; deleting its path removes whatever does."""
    lab = FolderLab(tmp_path / "exports", unnamed=drafts == "unnamed")
    path = some_path()
    with ChildProcess(["-c", WRITER, lab.root, path, drafts], program=sys.executable) as child:
        await asyncio.to_thread(child.wait_for, "written", 60)
        child.kill()
        await asyncio.to_thread(child.wait)
    assert len(await lab.there()) == (0 if drafts == "unnamed" else 1)
    assert [found async for found in lab.store().list()] == []
    assert await lab.store().delete(path) is False
    assert await lab.there() == []
    await lab.close()


async def test_other_things_in_the_folder_are_no_artifacts(folder_lab: FolderLab) -> None:
    """A key, a note of somebody, a half of a path."""
    path = some_path()
    await folder_lab.store().put(path, b"x", content_type=PDF)
    user, export, _ = path.split("/")
    for name in ("link.keys", f"{user}/note", f"{user}/{export}/.7.pdf.swp", "z" * 32 + "x"):
        (folder_lab.root / name).write_text("x")
    assert [found async for found in folder_lab.store().list()] == [path]


async def test_eight_readers_of_a_slow_disk_do_not_hold_up_the_loop(folder_lab: FolderLab) -> None:
    """Every call of the disk is in a thread of the store."""
    store, path = folder_lab.store(), some_path()
    await store.put(path, b"x" * 3_000_000, content_type=PDF)
    names = {thread.name.partition("_")[0] for thread in threading.enumerate()}
    assert "livewell-artifacts" in names
    assert all(await asyncio.gather(*(read_all(store, path) for _ in range(8))))
    with pytest.raises(ArtifactError):
        await store.size(some_path())
