"""Sinks without a network: a file, jobs, and the one that only counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from livewell.errors import ConfigurationError, DatabaseUnavailable, InvalidOption, UnknownQueue
from livewell.outbox.sink import Verdict
from livewell.outbox.sinks.null import NullSink
from livewell.queue.enqueue import Request
from livewell.testing.sinks import Check, checks
from livewell.testing.sinks.small_relay import made, send
from tests.integration.outbox.labs.local import FileLab, TaskLab
from tests.integration.outbox.labs.parts import make


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
async def test_file_conforms(check: Check, tmp_path: Path) -> None:
    """Every check of the suite that needs no network."""
    await check(FileLab(tmp_path))


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
async def test_tasks_conform(check: Check) -> None:
    """The same; a repeat is the same job while the job lives."""
    await check(TaskLab())


async def test_a_line_that_was_cut_in_half_is_ended(tmp_path: Path) -> None:
    """What follows a crash is a line of its own."""
    lab = FileLab(tmp_path)
    lab.path.write_text('{"id":"half')
    sink = lab.sink()
    await send(sink, made(1))
    await sink.close()
    assert lab.path.read_text().splitlines()[0] == '{"id":"half'
    assert len(lab.path.read_text().splitlines()) == 2


async def test_a_file_that_cannot_be_opened_is_away(tmp_path: Path) -> None:
    """No event is blamed."""
    told = await send(make("file", None, {"path": str(tmp_path / "no" / "folder")}), made(2))
    assert told.away is not None
    assert told.outcomes == {}


async def test_a_batch_is_on_the_disk_before_it_is_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If fsync fails nobody knows; seen failing with the fsync left out."""

    def broken(_: int) -> None:
        raise OSError(28, "No space left on device")

    sink = FileLab(tmp_path).sink()
    monkeypatch.setattr(os, "fsync", broken)
    told = await send(sink, made(3))
    await sink.close()
    assert len(told.ids(Verdict.UNKNOWN)) == 3
    assert told.away is not None


async def test_an_event_is_a_job_with_its_id_as_the_unique_key() -> None:
    """Twice sent, one job; the argument is a CloudEvents document."""
    lab = TaskLab()
    sink, [event] = lab.sink(group_by_key=True), made(1)
    await send(sink, [event])
    await send(sink, [event])
    [job] = lab.jobs.values()
    assert (job.kind, job.queue, job.unique_key, job.group_key) == ("orders.take", "orders", event.id, event.key)
    assert job.payload.startswith('{"event":{"specversion":"1.0","id":"')


async def test_an_event_that_no_job_can_carry_is_refused_alone() -> None:
    """A call is all or none, so it falls back to one by one."""
    lab = TaskLab()
    take = lab.submit

    async def picky(requests: list[Request]) -> None:
        if any('"n": 3,' in request.payload for request in requests):
            raise InvalidOption("group 'x': it must be text")
        await take(requests)

    lab.submit = picky  # type: ignore[method-assign,assignment]  # of this test
    told = await send(lab.sink(), events := made(10))
    assert told.ids(Verdict.REFUSED) == [events[3].id]
    assert len(told.ids(Verdict.DELIVERED)) == 8  # the one behind it in its lane was not begun


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (DatabaseUnavailable("no connection", was_sent=False), 0),
        (DatabaseUnavailable("no answer"), 4),
        (UnknownQueue("orders"), 0),
    ],
)
async def test_a_database_that_does_not_answer_is_away(error: Exception, unknown: int) -> None:
    """What was sent and not answered is unknown, what was not sent is nothing."""
    lab = TaskLab()
    lab.error = error
    told = await send(lab.sink(), made(4))
    assert told.away is not None
    assert len(told.ids(Verdict.UNKNOWN)) == len(told.outcomes) == unknown


def test_without_a_way_to_enqueue_there_is_no_sink() -> None:
    """Said when it is made, not with the first event."""
    with pytest.raises(ConfigurationError, match="gave no way to do so"):
        make("tasks", None, {"task": "a", "queue": "b"})


async def test_null_counts() -> None:
    """Events and batches."""
    sink = make("null", None)
    assert isinstance(sink, NullSink)
    await send(sink, made(10))
    await send(sink, made(5))
    assert (sink.delivered, sink.batches) == (15, 2)
