"""The checks. Each takes a lab and leaves its place empty; its name says what a store must do.

what a lab offers   which checks run
(always)            bytes, ranges, no overwriting, deletes, aborts, lists, paths, errors, closing
"content_type"      what the store keeps of a file besides its bytes
"network"           down, silent, cut, a lost answer
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from livewell.exports.artifacts.paths import artifact_path, user_prefix
from livewell.exports.artifacts.store import PIECE_BYTES_MAX, ArtifactError
from livewell.testing.artifacts.errors import Broken, demand, failure, is_silent_about
from livewell.testing.artifacts.lab import ArtifactLab
from livewell.testing.artifacts.network import (
    is_the_writer_although_its_answer_was_lost,
    is_unreachable_while_it_is_down,
    reads_on_or_breaks_off_when_it_is_cut,
)
from livewell.testing.artifacts.parts import (
    CALL_SECONDS_MAX,
    PDF,
    is_empty,
    listed,
    read_all,
    some_bytes,
    some_path,
    stream,
)
from livewell.testing.processes import eventually_async

Check = Callable[[Any], Awaitable[None]]

_WRITERS = 8
_CANCEL_TURNS = 25
_LISTED = 1_050  # more than one page of any store
_NO_PATHS = (
    "",
    "a",
    "../../etc/passwd",
    "/etc/passwd",
    f"{'0' * 32}/../{'0' * 32}/1.pdf",
    f"{'0' * 32}/{uuid.UUID(int=1)}/1.pdf\n",
    f"{'0' * 32}/{uuid.UUID(int=1)}/../1.pdf",
    f"{'0' * 32}/{uuid.UUID(int=1)}/.1.pdf",
    f"{'0' * 32}/{uuid.UUID(int=1)}/01.pdf",
    f"{'0' * 32}/{uuid.UUID(int=1)}/1.pdf/",
    f"{'0' * 32}/{uuid.UUID(int=1)}/1.pdf\0",
    f"{'A' * 32}/{uuid.UUID(int=1)}/1.pdf",
    f"{'0' * 32}/{uuid.UUID(int=1)}/1.p%2fdf",
    f"{'٠' * 32}/{uuid.UUID(int=1)}/1.pdf",
)


async def keeps_what_was_written(lab: ArtifactLab) -> None:
    """Whole, of every size: none, one, and more than one piece."""
    store = lab.store()
    for size in (0, 1, PIECE_BYTES_MAX - 1, PIECE_BYTES_MAX, 2 * PIECE_BYTES_MAX + 17):
        for data in (some_bytes(size), stream(some_bytes(size))):
            path = some_path()
            await store.put(path, data, content_type=PDF)
            demand(await store.size(path) == size, f"a file of {size} bytes has another size")
            demand(await read_all(store, path) == some_bytes(size), f"a file of {size} bytes has other bytes")
            await store.delete(path)
    await is_empty(lab)


async def gives_ranges(lab: ArtifactLab) -> None:
    """Exactly the bytes from start up to end; what lies behind the end of the file is left out."""
    store, path, data = lab.store(), some_path(), some_bytes(PIECE_BYTES_MAX + 1_000)
    await store.put(path, data, content_type=PDF)
    size = len(data)
    for start, end in (
        (0, None),
        (0, 0),
        (0, 1),
        (1, 2),
        (size - 1, None),
        (size - 1, size),
        (size, None),
        (size + 5, None),
        (5, 5),
        (9, 5),
        (0, size + 100),
        (PIECE_BYTES_MAX - 1, PIECE_BYTES_MAX + 1),
        (PIECE_BYTES_MAX, None),
    ):
        demand(await read_all(store, path, start, end) == data[start:end], f"wrong bytes for {start} to {end}")
    await store.delete(path)


async def never_overwrites(lab: ArtifactLab) -> None:
    """The second file of a path is refused, and the first is as it was."""
    store, path = lab.store(), some_path()
    await store.put(path, b"first", content_type=PDF)
    for data in (b"second", b"first", stream(b"third")):
        error = await failure(store.put(path, data, content_type=PDF), "a second put of a path")
        demand(error.reason == "already_there", f"a second put of a path is {error.reason}")
    demand(await read_all(lab.store(), path) == b"first", "the first file was overwritten")
    await store.delete(path)
    await is_empty(lab)


async def lets_one_of_many_writers_win(lab: ArtifactLab) -> None:
    """Of several at once, each a client of its own, one writes; the others are told."""
    for _ in range(5):
        path = some_path()
        contents = [some_bytes(50_000 + number) for number in range(_WRITERS)]
        stores = [lab.store() for _ in contents]
        ends = await asyncio.gather(
            *(store.put(path, data, content_type=PDF) for store, data in zip(stores, contents, strict=True)),
            return_exceptions=True,
        )
        won = [number for number, end in enumerate(ends) if end is None]
        lost = [end.reason if isinstance(end, ArtifactError) else repr(end) for end in ends if end is not None]
        demand(len(won) == 1, f"{len(won)} of {_WRITERS} writers won")
        demand(set(lost) == {"already_there"}, f"those that lost were told {sorted(set(lost))}")
        demand(await read_all(stores[0], path) == contents[won[0]], "the file is not the winner's")
        await stores[0].delete(path)
    await is_empty(lab)


async def deletes_twice(lab: ArtifactLab) -> None:
    """The second time it says that nothing was there; a path that never was is the same."""
    store, path = lab.store(), some_path()
    await store.put(path, b"x", content_type=PDF)
    demand(await store.delete(path) is True, "delete() of a file did not say that it was there")
    demand(await store.delete(path) is False, "a second delete() said that the file was there")
    demand(await store.delete(some_path("nobody")) is False, "delete() of what never was said that it was there")
    await is_empty(lab)


async def deletes_from_many_places_at_once(lab: ArtifactLab) -> None:
    """Cleanup and a user press at the same time: nobody fails, and it is gone."""
    paths = [some_path(fence=number) for number in range(4)]
    stores = [lab.store() for _ in range(4)]
    for path in paths:
        await stores[0].put(path, b"x", content_type=PDF)
    await asyncio.gather(*(store.delete(path) for path in paths for store in stores))
    await is_empty(lab)


async def writes_while_the_folder_is_cleaned(lab: ArtifactLab) -> None:
    """A user's last file goes while another of the same user comes: none of both is disturbed."""
    store, other = lab.store(), lab.store()
    for _ in range(30):
        export = uuid.uuid4()
        old, new = artifact_path("u1", export, 1, "pdf"), artifact_path("u1", export, 2, "pdf")
        await store.put(old, b"old", content_type=PDF)
        await asyncio.gather(store.delete(old), other.put(new, b"new", content_type=PDF))
        demand(await read_all(store, new) == b"new", "a file that was written beside a delete is not there")
        await store.delete(new)
    await is_empty(lab)


async def says_what_is_not_there(lab: ArtifactLab) -> None:
    """Before the first byte, so that a server can still answer 404 or 410."""
    store = lab.store()
    for call in (store.read(some_path()), store.size(some_path())):
        error = await failure(call, "a file that is not there")
        demand(error.reason == "not_there", f"a file that is not there is {error.reason}")
        is_silent_about(error, lab.secrets)


async def leaves_nothing_of_an_aborted_write(lab: ArtifactLab) -> None:
    """Its source fails at any piece: the source's own error comes out, and the place is empty."""
    store = lab.store()
    for pieces in range(4):
        with_error = _failing(pieces)
        try:
            await store.put(some_path(), with_error, content_type=PDF)
        except _SourceFailed:
            pass
        else:
            raise Broken("put() hid the error of its source")
        await is_empty(lab)


async def leaves_nothing_of_a_cancelled_write(lab: ArtifactLab) -> None:
    """Cancelled while its source is waited for, and at many turns of the loop."""
    store = lab.store()
    writing = asyncio.create_task(store.put(some_path(), _endless(waits := asyncio.Event()), content_type=PDF))
    await waits.wait()
    writing.cancel()
    await asyncio.wait([writing])
    demand(writing.cancelled(), "a cancelled put() did not end as cancelled")
    await is_empty(lab)
    for turns in range(_CANCEL_TURNS):
        path = some_path()
        writing = asyncio.create_task(store.put(path, stream(some_bytes(5_000), 1_000), content_type=PDF))
        for _ in range(turns):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
        if not writing.cancelled():
            demand(await read_all(store, path) == some_bytes(5_000), "a put() that ended well is not complete")
            await store.delete(path)
    if lab.is_remote:
        await eventually_async(lambda: _nothing_is_left(lab), timeout=CALL_SECONDS_MAX)
    await is_empty(lab)


async def lists_in_order_and_in_pages(lab: ArtifactLab) -> None:
    """All, of one user, and from behind any path on; more than one page of it."""
    users = ["u1", "u2", "u3"]
    exports = [uuid.uuid4() for _ in range(_LISTED // 10)]
    paths = sorted(artifact_path(users[number % 3], exports[number // 10], number, "pdf") for number in range(_LISTED))
    await lab.fill(paths)
    store = lab.store()
    demand([path async for path in store.list()] == paths, "not every path was listed, or not in order")
    for user in users:
        prefix = user_prefix(user)
        own = [path for path in paths if path.startswith(prefix)]
        demand([path async for path in store.list(prefix)] == own, "a user's paths were not listed")
        demand([path async for path in store.list(prefix, own[3])] == own[4:], "wrong after a path of the user")
    for place in (0, 1, len(paths) // 2, len(paths) - 2, len(paths) - 1):
        found = [path async for path in store.list("", paths[place])]
        demand(found == paths[place + 1 :], f"wrong paths behind number {place}")
    demand([path async for path in store.list(user_prefix("nobody"))] == [], "a user without files has some")
    await lab.empty()


async def refuses_what_is_no_path(lab: ArtifactLab) -> None:
    """Whatever it looks like, before it reaches the place."""
    store = lab.store()
    for path in _NO_PATHS:
        for call in (
            store.put(path, b"x", content_type=PDF),
            store.read(path),
            store.size(path),
            store.delete(path),
        ):
            error = await failure(call, "something that is no path")
            demand((error.reason, error.detail) == ("refused", "path"), f"something that is no path is {error.reason}")
            is_silent_about(error, [*lab.secrets, *([path] if len(path) > 1 else [])])
    for prefix in ("..", "/", "a", f"{'0' * 32}/.."):
        error = await failure(listed(store, prefix), "something that is no prefix")
        demand(error.reason == "refused", f"something that is no prefix is {error.reason}")
    await is_empty(lab)


async def breaks_off_when_the_file_goes(lab: ArtifactLab) -> None:
    """Deleted while it is read: an error, and never an end that looks like the end of the file."""
    store, path, data = lab.store(), some_path(), some_bytes(3 * PIECE_BYTES_MAX)
    await store.put(path, data, content_type=PDF)
    pieces = await store.read(path)
    got = await anext(pieces)
    await lab.store().delete(path)
    try:
        async for piece in pieces:
            got += piece
    except ArtifactError as error:
        is_silent_about(error, [*lab.secrets, path])
    else:
        demand(got == data, "the file was deleted while it was read, and its reader saw a shorter one")


async def says_nothing_of_the_place_in_errors(lab: ArtifactLab) -> None:
    """Neither where it is nor which file was asked for, in any error of the chain (E15)."""
    store, path = lab.store(), some_path()
    await store.put(path, b"x", content_type=PDF)
    errors = [
        await failure(store.put(path, b"y", content_type=PDF), "a second put"),
        await failure(store.read(other := some_path()), "reading what is not there"),
        await failure(store.size(other), "the size of what is not there"),
    ]
    await store.delete(path)
    for error in errors:
        is_silent_about(error, [*lab.secrets, path, other, path.split("/")[1], other.split("/")[1]])
    for secret in lab.secrets:
        demand(secret not in repr(store), "a secret of the place is in the repr of the store")


async def checks_itself_and_leaves_nothing(lab: ArtifactLab) -> None:
    """What the doctor asks of it."""
    store = lab.store()
    await store.check()
    await store.check()
    await is_empty(lab)


async def refuses_everything_once_closed(lab: ArtifactLab) -> None:
    """Closed twice is closed once."""
    store = lab.store()
    await store.close()
    await store.close()
    for call in (store.put(some_path(), b"x", content_type=PDF), store.size(some_path()), store.check()):
        error = await failure(call, "a closed store")
        demand((error.reason, error.detail) == ("refused", "closed"), f"a closed store is {error.reason}")
    await is_empty(lab)


async def keeps_the_content_type(lab: ArtifactLab) -> None:
    """Of bytes and of a stream."""
    store = lab.store()
    for data in (b"x", stream(b"x")):
        path = some_path()
        await store.put(path, data, content_type="application/pdf")
        demand(await lab.content_type(path) == "application/pdf", "the content type was not kept")
        await store.delete(path)


_ALWAYS: tuple[Check, ...] = (
    keeps_what_was_written,
    gives_ranges,
    never_overwrites,
    lets_one_of_many_writers_win,
    deletes_twice,
    deletes_from_many_places_at_once,
    writes_while_the_folder_is_cleaned,
    says_what_is_not_there,
    leaves_nothing_of_an_aborted_write,
    leaves_nothing_of_a_cancelled_write,
    lists_in_order_and_in_pages,
    refuses_what_is_no_path,
    breaks_off_when_the_file_goes,
    says_nothing_of_the_place_in_errors,
    checks_itself_and_leaves_nothing,
    refuses_everything_once_closed,
)
_CONTENT_TYPE: tuple[Check, ...] = (keeps_the_content_type,)
_NETWORK: tuple[Check, ...] = (
    is_unreachable_while_it_is_down,
    reads_on_or_breaks_off_when_it_is_cut,
    is_the_writer_although_its_answer_was_lost,
)


def checks(*offers: str) -> tuple[Check, ...]:
    """The checks for a lab that offers this: "content_type", "network"."""
    parts = {"content_type": _CONTENT_TYPE, "network": _NETWORK}
    return (*_ALWAYS, *(check for offer in offers for check in parts[offer]))


class _SourceFailed(Exception):
    """Of the source of a put()."""


async def _failing(pieces: int) -> AsyncIterator[bytes]:
    for _ in range(pieces):
        yield some_bytes(60_000)
    raise _SourceFailed


async def _endless(waits: asyncio.Event) -> AsyncIterator[bytes]:
    yield some_bytes(60_000)
    waits.set()
    await asyncio.Event().wait()


async def _nothing_is_left(lab: ArtifactLab) -> bool:
    return not await lab.there()
