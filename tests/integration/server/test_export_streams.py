"""Steps as a stream on the wire, and files whose bytes stop coming (E2, E8, E9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from livewell.exports.artifacts.folder import FolderStore
from livewell.exports.artifacts.store import ArtifactError
from livewell.settings import Settings
from tests.support.exports_made import Maker
from tests.support.http import Web, listening

PDF = b"%PDF-1.7 " + bytes(3_000_000)


@pytest.fixture
def server_settings(server_settings: Settings, tmp_path: Path) -> Settings:
    return server_settings.model_copy(update={"export_store": str(tmp_path / "files"), "push_beat_seconds": 0.5})


@pytest.fixture
def maker(wire: Web) -> Iterator[Maker]:
    with Maker(wire) as made:
        yield made


@pytest.fixture
def ann(wire: Web) -> httpx2.AsyncClient:
    return wire.as_key("export")


async def ask(client: httpx2.AsyncClient, n: int = 1) -> tuple[str, list[str]]:
    """Ask for a batch; its id and those of its exports."""
    document = {"document": {"basics": {"name": "Ann"}}}
    keys = [(await client.post("/v1/resumes", json=document)).json()["id"] for _ in range(n)]
    answer = await client.post("/v1/exports/batch", json={"documents": [{"document": one} for one in keys]})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"], [one["id"] for one in answer.json()["exports"]]


async def events(client: httpx2.AsyncClient, path: str, last: int | None = None) -> AsyncIterator[tuple[int, Any]]:
    """Number and data of each step, until bye."""
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    async with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        told: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                told[name] = value
                continue
            if told.get("event") == "bye":
                assert json.loads(told["data"])["reason"] == "ended"
                return
            if told.get("event") == "step":
                yield int(told["id"]), json.loads(told["data"])
            told = {}


async def test_each_step_is_one_event_with_its_number(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E2: 0 → 25 → 50 → 75 → 90 → 100, each once, then bye."""
    _, [export] = await ask(ann)
    stream = events(ann, f"/v1/exports/{export}/stream")
    first = await anext(stream)
    claim, _ = maker.begin()
    for progress in (25, 50, 75):
        maker.session.step(claim, export, progress)
    await maker.finish(claim, export, b"%PDF-1.7")

    seen = [first] + [one async for one in stream]
    assert [number for number, _ in seen] == list(range(1, len(seen) + 1))
    shown = [one["progress"] for _, one in seen]
    assert shown == sorted(shown)
    assert (shown[0], shown[-1], seen[-1][1]["state"]) == (0, 100, "finished")
    assert [one["seq"] for one in (await ann.get(f"/v1/exports/{export}")).json()["steps"]] == [n for n, _ in seen]


async def test_a_stream_goes_on_at_another_server_where_the_first_stopped(
    maker: Maker,
    ann: httpx2.AsyncClient,
    livewell_dsn: str,
    server_logins: dict[str, tuple[str, str]],
    server_settings: Settings,
) -> None:
    """E2: Last-Event-ID; nothing twice, nothing missed."""
    _, [export] = await ask(ann)
    path = f"/v1/exports/{export}/stream"
    stream = events(ann, path)
    number, _ = await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined] # it is a generator
    claim, _ = maker.begin()
    maker.session.step(claim, export, 50)
    await maker.finish(claim, export, b"%PDF-1.7")

    async with listening(livewell_dsn, server_logins, server_settings) as other:
        client = other.client_with(dict(ann.headers))
        rest = [n async for n, _ in events(client, path, last=number)]
        assert rest == list(range(number + 1, rest[-1] + 1))
        assert len(rest) >= 3
        assert [n async for n, _ in events(client, path, last=rest[-1])] == []


async def test_a_batch_streams_as_a_whole(maker: Maker, ann: httpx2.AsyncClient) -> None:
    """E3: its numbers grow, and at its end all have ended."""
    batch, exports = await ask(ann, 2)
    stream = events(ann, f"/v1/exports/batch/{batch}/stream")
    seen = [await anext(stream)]
    for _ in exports:
        await maker.make()
    seen += [one async for one in stream]
    numbers = [number for number, _ in seen]
    assert numbers == sorted(set(numbers))
    assert (seen[-1][1]["state"], seen[-1][1]["finished"], seen[-1][1]["progress"]) == ("ended", 2, 100)


async def test_a_store_that_fails_in_the_middle_breaks_the_connection(
    wire: Web, maker: Maker, ann: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E9: a file that is not whole never looks like one; what is asked for next comes as ever.

    Seen failing when the answer was ended instead: the client took the half for the whole.
    """
    batch, [export] = await ask(ann)
    await maker.make(PDF)
    url = (await ann.post(f"/v1/exports/{export}/link")).json()["url"]
    read = FolderStore.read

    async def failing(self: FolderStore, path: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        pieces = await read(self, path, start, end)

        async def some() -> AsyncIterator[bytes]:
            yield await anext(pieces)
            raise ArtifactError("unreachable", "connection")

        return some()

    monkeypatch.setattr(FolderStore, "read", failing)
    for address in (url, f"/v1/exports/batch/{batch}/zip"):
        with pytest.raises(httpx2.HTTPError):
            await ann.get(address)
    monkeypatch.undo()
    assert (await ann.get(url)).content == PDF


async def test_a_file_that_vanished_is_a_problem_before_the_first_byte(
    maker: Maker, ann: httpx2.AsyncClient, tmp_path: Path
) -> None:
    """E15: 410, and no path in it."""
    batch, [export] = await ask(ann)
    await maker.make(PDF)
    url = (await ann.post(f"/v1/exports/{export}/link")).json()["url"]
    for path in (tmp_path / "files").rglob("*.pdf"):
        path.unlink()
    for address in (url, f"/v1/exports/batch/{batch}/zip"):
        answer = await ann.get(address)
        assert (answer.status_code, answer.headers["content-type"]) == (410, "application/problem+json")
        assert "files" not in answer.text.replace("Its file", "").replace("The file", "")


async def test_downloads_have_a_bound_of_their_own(maker: Maker, ann: httpx2.AsyncClient, wire: Web) -> None:
    """Eight of one user at once; the ninth is told so, and others are served."""
    _, [export] = await ask(ann)
    await maker.make(PDF)
    url = (await ann.post(f"/v1/exports/{export}/link")).json()["url"]
    user = maker.session.value("SELECT user_id FROM livewell.export")
    holders = [wire.state.downloads.take(user) for _ in range(8)]
    for one in holders:
        one.__enter__()
    refused = await ann.get(url)
    for one in holders:
        one.__exit__(None, None, None)
    assert (refused.status_code, refused.json()["type"]) == (429, "/problems/share")
    assert (await ann.get(url)).status_code == 200
    await asyncio.sleep(0)
