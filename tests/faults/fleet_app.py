"""The app of the worker processes that fault scenarios kill, freeze and starve.

Run by `livewell worker tests.faults.fleet_app:app`.

Every run appends lines `event key pid monotonic-seconds` to the file LIVEWELL_TEST_LOG: the oracle
outside the database. Linux gives all processes the same monotonic clock, so instants of different
processes can be compared. Events:

    start      a handler began              attempt   it is about to write its effect
    done       it ended well                fenced    its effect was refused: somebody else owns the job
    stopped    it was cancelled             failed    it raised
    ignored    it was cancelled and went on starved   there is no memory left
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from livewell import Backoff, Job, Livewell
from livewell.cli import cli
from livewell.errors import OwnershipLost
from livewell.testing.history import AppendLog

LOG = "LIVEWELL_TEST_LOG"
MEMORY = "LIVEWELL_TEST_MEMORY_BYTES"  # how much address space the worker may take beyond what its imports took
FOR_EVER = 86_400.0

app = Livewell()
app.queue("work", attempts=100, backoff=Backoff(0.05, 0.2))
app.queue("bad", attempts=1, backoff=Backoff(0.05, 0.2))


def note(event: str, key: int, at: float | None = None) -> None:
    """Write down that this happened, now or at this monotonic instant, in this process."""
    instant = time.monotonic() if at is None else at
    AppendLog(Path(os.environ[LOG])).append(f"{event} {key} {os.getpid()} {instant:.6f}")


@contextmanager
def noted(key: int) -> Iterator[None]:
    """One run of one handler: its start, and how it ended unless the process died over it."""
    note("start", key)
    try:
        yield
    except OwnershipLost:
        note("fenced", key)
        raise
    except asyncio.CancelledError:
        note("stopped", key)
        raise
    except BaseException:
        note("failed", key)
        raise
    note("done", key)


def _patience(key: int, seconds: float) -> float:
    """How long to work: a second and more only in the first run, so that what was taken over is soon done."""
    if seconds < 1:
        return seconds
    lines = AppendLog(Path(os.environ[LOG])).read()
    return 0.01 if any(line.startswith(f"start {key} ") for line in lines) else seconds


async def _store(job: Job, key: int) -> None:
    note("attempt", key)
    async with job.transaction() as tx:
        await tx.execute(
            "INSERT INTO public.effect (key, fence, pid) VALUES (%s, %s, %s)", (key, job.claimed.fence, os.getpid())
        )


@app.task(queue="work", timeout=120)
async def effect(job: Job, key: int, seconds: float = 0.0) -> None:
    """Work for some seconds, then write the effect and finish, in one transaction."""
    with noted(key):
        if seconds:
            await asyncio.sleep(seconds)
        await _store(job, key)


def _gate_is_open() -> bool:
    return Path(os.environ[LOG] + ".gate").exists()


@app.task(queue="work", timeout=600)
async def gated(job: Job, key: int, tidy_seconds: float = 0.0) -> None:
    """The same, but work until the scenario opens the gate (Fleet.open_gate).

    When cancelled, take some seconds to tidy up.
    """
    with noted(key):
        try:
            while not _gate_is_open():  # noqa: ASYNC110 - another process opens it
                await asyncio.sleep(0.03)
        except asyncio.CancelledError:
            await asyncio.sleep(tidy_seconds)
            raise
        await _store(job, key)


@app.task(queue="work", timeout=120)
async def stubborn(job: Job, key: int, seconds: float = 0.0) -> None:
    """The same, but nothing stops it on the way.

    No cancellation, and not the news that it was buried. Run again, it is quick.
    """
    seconds = _patience(key, seconds)

    async def act() -> None:
        with noted(key):
            await asyncio.sleep(seconds)
            await _store(job, key)

    acting = asyncio.create_task(act())
    while not acting.done():
        try:
            await asyncio.shield(acting)
        except asyncio.CancelledError:
            note("ignored", key)
    acting.result()


@app.task(queue="work", timeout=120)
async def plain(key: int, seconds: float = 0.0) -> None:
    """Work for some seconds; the worker finishes the job afterwards, many at a time.

    Run again, it is quick.
    """
    seconds = _patience(key, seconds)
    with noted(key):
        if seconds:
            await asyncio.sleep(seconds)


@app.task(queue="work", timeout=120)
def blocking(key: int, seconds: float = 0.0) -> None:
    """A sync handler, in a thread. Run again, it is quick."""
    seconds = _patience(key, seconds)
    with noted(key):
        time.sleep(seconds)


@app.task(queue="bad", timeout=120)
def hog(key: int, megabytes: int) -> None:
    """Take memory, in a thread, at once; hold it for a moment if there was enough."""
    with noted(key):
        taken = bytearray(megabytes * 2**20)
        time.sleep(0.1)
        del taken


@app.task(queue="bad", timeout=120)
def glutton(key: int, seconds: float) -> None:
    """Take all the memory there is, in ever smaller pieces, and sit on it for some seconds before giving up."""
    with noted(key):
        pieces: list[bytearray] = []
        size, end = 2**24, time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                pieces.append(bytearray(size))
            except MemoryError:
                if size == 2**6:
                    note("starved", key)
                    time.sleep(0.01)
                size = max(2**6, size // 4)
        raise MemoryError(f"{len(pieces)} pieces were all there was")


@app.task(queue="work", timeout=120)
async def killer(key: int) -> None:
    """The poison job: its worker dies of it, at once and every time."""
    note("start", key)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(queue="bad", timeout=1)
async def hang_async(key: int) -> None:
    """Wait for ever; its timeout cancels it."""
    with noted(key):
        await asyncio.sleep(FOR_EVER)


@app.task(queue="bad", timeout=1)
def hang_thread(key: int, seconds: float) -> None:
    """Block a thread, deaf to cancel_requested, for longer than anybody waits."""
    with noted(key):
        time.sleep(seconds)


@app.task(queue="work", timeout=1)
async def hang_loop(key: int, seconds: float) -> None:
    """Block the event loop itself: no timeout can end it, only the lease can."""
    with noted(key):
        time.sleep(seconds)  # noqa: ASYNC251 - the fault


class Unspeakable(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        """Raise, as some errors do that were pickled or half-built."""
        raise RuntimeError("there are no words")


@app.task(queue="bad", timeout=30)
async def unspeakable(key: int) -> None:
    """Fail in a way that cannot be described."""
    with noted(key):
        raise Unspeakable


@app.task(queue="bad", timeout=30)
async def cancel_itself(key: int) -> None:
    """Await something that was cancelled.

    The handler's own affair, but it looks as if the worker had stopped it.
    """
    with noted(key):
        raise asyncio.CancelledError


def work_within_memory() -> None:
    """Be `livewell worker` in a bounded address space.

    What the imports took, plus what the environment allows.
    """
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    bound = pages * os.sysconf("SC_PAGE_SIZE") + int(os.environ[MEMORY])
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    cli.main(["worker", "tests.faults.fleet_app:app"], prog_name="livewell")
