"""The checks of a network that breaks, for labs that offer "network"."""

from __future__ import annotations

import asyncio
import hashlib

from livewell.exports.artifacts.store import PIECE_BYTES_MAX, ArtifactError
from livewell.testing.artifacts.errors import demand, failure, is_silent_about
from livewell.testing.artifacts.lab import ArtifactLab
from livewell.testing.artifacts.parts import CALL_SECONDS_MAX, PDF, is_empty, listed, read_all, some_bytes, some_path

_LATE_SECONDS = 0.3


async def is_unreachable_while_it_is_down(lab: ArtifactLab) -> None:
    """Every call says so, soon, and the next call after it is back works."""
    store, path = lab.store(hasty=True), some_path()
    await lab.store().put(path, b"x", content_type=PDF)
    for trouble in (lab.stop, lab.freeze):
        before = lab.struck()
        trouble()
        try:
            for call in (
                store.put(some_path(), b"y", content_type=PDF),
                store.read(path),
                store.size(path),
                store.delete(path),
                listed(store, ""),
                store.check(),
            ):
                async with asyncio.timeout(CALL_SECONDS_MAX):
                    error = await failure(call, "a store that is down")
                demand(error.reason == "unreachable", f"a store that is down is {error.reason}")
                is_silent_about(error, [*lab.secrets, path])
        finally:
            lab.heal()
        demand(lab.struck() > before, "the fault never struck")
        demand(await read_all(lab.store(), path) == b"x", "the file is not there when the store is back")
    await asyncio.sleep(_LATE_SECONDS)  # what the network held back comes now; nothing announces it
    await lab.empty()


async def reads_on_or_breaks_off_when_it_is_cut(lab: ArtifactLab) -> None:
    """Cut anywhere in an answer: all bytes, or an error; never a shorter file."""
    store, path, data = lab.store(), some_path(), some_bytes(2 * PIECE_BYTES_MAX)
    await store.put(path, data, content_type=PDF)
    before = lab.struck()
    for answer_bytes in (0, 100, 1_000, PIECE_BYTES_MAX // 2, PIECE_BYTES_MAX + 5_000):
        lab.cut_after(answer_bytes)
        try:
            got = await read_all(store, path)
        except ArtifactError as error:
            demand(error.reason == "unreachable", f"a cut connection is {error.reason}")
            is_silent_about(error, [*lab.secrets, path])
        else:
            demand(hashlib.sha256(got).digest() == hashlib.sha256(data).digest(), "other bytes after a cut")
        finally:
            lab.heal()
    demand(lab.struck() > before, "the fault never struck: no connection was cut")
    await store.delete(path)
    await is_empty(lab)


async def is_the_writer_although_its_answer_was_lost(lab: ArtifactLab) -> None:
    """It was stored, and the answer never came: the store finds out, or says that it is unreachable.

    It may not say already_there: nobody else has written.
    """
    before, won = lab.struck(), 0
    for _ in range(3):
        store, path = lab.store(), some_path()
        lab.cut_after(0)
        try:
            await store.put(path, b"mine", content_type=PDF)
        except ArtifactError as error:
            demand(error.reason == "unreachable", f"a lost answer is {error.reason}")
        else:
            won += 1
            demand(await read_all(store, path) == b"mine", "a put() that ended well is not there")
        finally:
            lab.heal()
        await store.delete(path)
    demand(lab.struck() > before, "the fault never struck: no answer was lost")
    demand(won, "no put() found out that its file is there")
    await is_empty(lab)
