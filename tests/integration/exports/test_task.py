"""From request to file, with a real worker, real children and a real folder (E2, E4, E5, E8, E10, E11, E15)."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from livewell.exports.artifacts.folder import FolderStore
from livewell.exports.artifacts.probe import PROBE_USER
from livewell.exports.artifacts.store import ArtifactError
from livewell.exports.duties import sweep
from livewell.settings import Settings
from livewell.testing.processes import eventually_async
from tests.integration.exports.desk import Desk, written
from tests.support import canary

KINDS = ("echo", "refuse", "fail", "sleep", "spin", "allocate")


@pytest.fixture
async def desk(livewell_settings: Settings, tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(livewell_settings.model_copy(update={"export_render_seconds": 1.0}), tmp_path / "files", *KINDS)
    async with made.app:
        yield made


async def test_a_document_becomes_a_file_that_its_user_can_fetch(desk: Desk) -> None:
    """E2, E8, E10, E14: steps in order, sums of what was stored, quota settled."""
    async with desk.working():
        export = await desk.ask("echo", "cv", b"the document")
        seen = await desk.until(export, "finished")

    expected = written(b"the document", seen["options"])
    assert [one["progress"] for one in seen["steps"]] == [0, 0, 25, 50, 75, 90, 100]
    assert (seen["bytes"], seen["pages"]) == (len(expected), 1)
    assert (seen["sha256"], seen["crc32"]) == (hashlib.sha256(expected).hexdigest(), zlib.crc32(expected))
    assert [path.read_bytes() for path in desk.files()] == [expected]
    assert await desk.app.exports.usage(user="ann") == {"stored": len(expected), "reserved": 0, "today": 1}
    link = await desk.app.exports.link(export, user="ann")
    assert link is not None
    found = await desk.app.exports.open_download(link["url"].rpartition("/")[2])
    assert found is not None
    assert b"".join([piece async for piece in await desk.app.exports.store.read(found["path"])]) == expected
    await desk.app.exports.count_downloads([export], user="ann")
    assert (await desk.show(export))["downloads"] == 1


async def test_the_file_of_a_deleted_export_is_gone_with_the_request(desk: Desk) -> None:
    """E5, E8: file, quota and link, within one call."""
    async with desk.working():
        export = await desk.ask("echo", "cv", b"x")
        await desk.until(export, "finished")
    link = await desk.app.exports.link(export, user="ann") or {}

    assert await desk.app.exports.delete(export, user="ann") == "deleted"

    assert desk.files() == []
    assert (await desk.app.exports.open_download(link["url"].rpartition("/")[2]) or {})["answer"] == "gone"
    assert (await desk.app.exports.usage(user="ann"))["stored"] == 0
    assert await desk.scalar("SELECT count(*) FROM livewell.export_file") == 0


async def test_a_document_that_cannot_be_rendered_fails_at_once_and_says_why(desk: Desk) -> None:
    """E4: repeating it would give the same answer, so nobody is kept waiting."""
    async with desk.working():
        seen = await desk.until(await desk.ask("refuse", "cv", b"x"), "failed")
        gone = await desk.until(await desk.ask("echo", "no such document"), "failed")

    assert (seen["reason"], seen["detail"], seen["attempt"]) == ("template", "no such template", 1)
    assert gone["reason"] == "document_gone"
    assert await desk.scalar("SELECT count(*) FROM livewell.dead_job") == 0
    assert (await desk.app.exports.usage(user="ann"))["reserved"] == 0


async def test_a_render_over_its_time_fails_that_export_only_and_for_good_the_second_time(desk: Desk) -> None:
    """E4: its neighbours end in their usual time."""
    async with desk.working():
        endless = await desk.ask("spin", "bomb", b"")
        others = [await desk.ask("echo", f"d{n}", b"x", user=f"u{n}") for n in range(3)]
        for n, other in enumerate(others):
            await desk.until(other, "finished", user=f"u{n}")
        first = await desk.until(endless, "waiting", reason="deadline")
        await desk.hasten(endless)
        second = await desk.until(endless, "failed")

    assert (first["attempt"], second["attempt"], second["reason"]) == (1, 2, "deadline")


class Broken(FolderStore):
    """A store that does not answer until it is mended."""

    broken = True

    async def put(self, path: str, data: object, *, content_type: str) -> None:
        if self.broken:
            raise ArtifactError("unreachable", "timeout")
        await super().put(path, data, content_type=content_type)  # type: ignore[arg-type]


async def test_an_export_whose_store_is_away_is_tried_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q6: nothing is lost, the reservation stays, and the reason says what is wrong."""
    store = Broken(desk.folder)
    monkeypatch.setattr("livewell.exports.worker_part.open_store", lambda _: store)
    async with desk.working():
        export = await desk.ask("echo", "cv", b"x")
        seen = await desk.until(export, "waiting", reason="store_unreachable")
        assert seen["detail"] == "timeout"
        assert (await desk.app.exports.usage(user="ann"))["reserved"] > 0
        store.broken = False
        await desk.hasten(export)
        await desk.until(export, "finished")
    assert await desk.clean() == 1  # the row of the first attempt, whose file never was
    assert len(desk.files()) == 1


async def test_a_cancelled_render_ends_promptly_and_leaves_nothing(desk: Desk) -> None:
    """E5: the export at once, its job within a heartbeat, its child and file with it."""
    async with desk.working():
        export = await desk.ask("sleep", "long", b"30")
        await desk.until(export, "running")
        assert await desk.app.exports.cancel(export, user="ann") == "cancelled"
        job = await desk.scalar("SELECT job_id FROM livewell.export WHERE id = %s", export)

        async def over() -> bool:
            return str((await desk.app.admin.job(job))["state"]) == "cancelled"

        await eventually_async(over, timeout=20, what="the job is cancelled")
    await desk.clean()
    assert (await desk.show(export))["state"] == "cancelled"
    assert desk.files() == []
    assert await desk.scalar("SELECT count(*) FROM livewell.export_file") == 0


async def test_nothing_of_a_document_is_anywhere_but_in_its_file(desk: Desk) -> None:
    """E15: not where it fails, either. The canary looks at logs and rows after the test."""
    text = canary.watch("the-secret-of-the-document-9174")
    async with desk.working():
        for kind in ("echo", "refuse", "allocate"):
            await desk.until(await desk.ask(kind, kind, text.encode()), "finished", "failed", "waiting")
        failed = await desk.ask("fail", "fail", text.encode())
        await desk.until(failed, "waiting", "failed", reason="internal")
    assert text.encode() in desk.files()[0].read_bytes()


async def test_a_worker_tells_what_rendering_uses(desk: Desk) -> None:
    """E13: for the alert on memory, and the doctor."""
    async with desk.working():
        await desk.until(await desk.ask("echo", "cv", b"x"), "finished")

        async def told() -> bool:
            return bool(await desk.scalar("SELECT count(*) FROM livewell.export_renderer WHERE rss_bytes > 10000000"))

        await eventually_async(told, timeout=20, what="the worker has reported")
    assert await desk.scalar("SELECT count(*) FROM livewell.export_renderer") == 0


async def test_exports_that_expired_are_removed_by_the_cleaner(desk: Desk) -> None:
    """E7, E11."""
    async with desk.working():
        export = await desk.ask("echo", "cv", b"x")
        await desk.until(export, "finished")
    await desk.scalar(
        "UPDATE livewell.export SET expires_at = livewell.now(), over_at = livewell.now() WHERE id = %s RETURNING 1",
        export,
    )

    assert await desk.clean() == 1
    assert desk.files() == []
    seen = await desk.show(export)
    assert (seen["state"], seen["removed_at"] is not None) == ("expired", True)


async def test_two_cleaners_at_once_remove_each_file_once(desk: Desk) -> None:
    """E11: and nothing that is stored."""
    async with desk.working():
        ids = [await desk.ask("echo", f"d{n}", b"x", user=f"u{n}") for n in range(6)]
        for n, one in enumerate(ids):
            await desk.until(one, "finished", user=f"u{n}")
    await desk.scalar(
        "WITH old AS (UPDATE livewell.export SET expires_at = livewell.now() WHERE user_id <> 'u5' RETURNING 1) "
        "SELECT count(*) FROM old"
    )

    assert sum(await asyncio.gather(desk.clean(), desk.clean())) == 5
    assert len(desk.files()) == 1


async def test_a_worker_of_those_who_export_nothing_starts_and_writes_nothing(desk: Desk) -> None:
    """No child that waits, no folder that nobody asked for."""
    async with desk.working():

        async def told() -> bool:
            return bool(await desk.scalar("SELECT count(*) FROM livewell.export_renderer"))

        await eventually_async(told, timeout=20, what="the worker has reported")
        assert await desk.scalar("SELECT sum(children) FROM livewell.export_renderer") == 0
    assert not desk.folder.exists()


async def test_files_without_a_row_are_swept_and_others_are_not(desk: Desk) -> None:
    """E11: of a process that slept through its lease, and wrote on when its row was gone."""
    async with desk.working():
        await desk.until(await desk.ask("echo", "cv", b"x"), "finished")
    [known] = desk.files()
    late = known.with_name("77.txt")
    late.write_bytes(b"late")
    probe = known.parents[2] / PROBE_USER / "c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd12" / "0.probe"
    probe.parent.mkdir(parents=True)
    probe.write_bytes(b"of a doctor that was killed")
    foreign = known.parents[1] / "c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11" / "1.txt"
    foreign.parent.mkdir()
    foreign.write_bytes(b"of another installation")

    assert (await sweep(desk.app.database, desk.app.exports.store)).removed == 2
    assert sorted(desk.files()) == sorted([known, foreign])


async def test_a_job_that_dies_ends_its_export_and_a_redrive_makes_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q7: the dead letter says one word of ours; the operator mends the store and redrives."""
    store = Broken(desk.folder)
    monkeypatch.setattr("livewell.exports.worker_part.open_store", lambda _: store)
    async with desk.working():
        export = await desk.ask("echo", "cv", b"x")
        await desk.until(export, "waiting", reason="store_unreachable")
        await desk.scalar(
            "UPDATE livewell.job SET max_attempts = attempt + 1 WHERE id = "
            "(SELECT job_id FROM livewell.export WHERE id = %s) RETURNING 1",
            export,
        )
        await desk.hasten(export)
        seen = await desk.until(export, "failed")
        assert seen["reason"] == "store_unreachable"
        assert await desk.scalar("SELECT error FROM livewell.dead_job") == "export: store_unreachable (timeout)"
        store.broken = False
        await desk.app.admin.redrive(queue="exports")
        await desk.until(export, "finished")
    assert (await desk.app.exports.usage(user="ann"))["reserved"] == 0
