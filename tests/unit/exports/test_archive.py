"""A batch as one ZIP (E9)."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livewell.exports.artifacts.store import ArtifactError
from livewell.exports.zip import layout
from livewell.exports.zip.archive import Archive
from tests.unit.exports.zip_parts import MOMENT, bytes_of, failed, member, stored

CONTENTS = [b"first" * 100, b"", b"third" * 33]


def three() -> tuple[Archive, Any]:
    members = [member(number, data) for number, data in enumerate(CONTENTS)]
    return Archive(members, {"batch": "b1"}), stored(members, CONTENTS)


async def test_its_length_is_known_before_its_first_byte() -> None:
    """Content-Length is exact (E9)."""
    archive, store = three()
    assert archive.length == len(await bytes_of(archive, store))


async def test_python_reads_it_back() -> None:
    """Names, bytes, CRC, time and mode of every member."""
    archive, store = three()
    with zipfile.ZipFile(io.BytesIO(await bytes_of(archive, store))) as opened:
        assert opened.testzip() is None
        assert opened.namelist() == ["manifest.json", "cv 0.pdf", "cv 1.pdf", "cv 2.pdf"]
        assert [opened.read(name) for name in opened.namelist()[1:]] == CONTENTS
        found = opened.getinfo("cv 0.pdf")
        assert found.date_time == (2026, 11, 19, 21, 45, 30)
        assert found.external_attr >> 16 == 0o100600
        assert found.compress_type == zipfile.ZIP_STORED


async def test_the_manifest_is_first_and_tells_of_every_export() -> None:
    """Name, size, SHA-256 and status, also of one that failed; and whether the batch is complete (E9)."""
    members = [member(0, CONTENTS[0], "cv.pdf"), failed("letter.pdf"), member(2, CONTENTS[2], "CV.pdf")]
    archive, store = Archive(members, {"batch": "b1"}), stored(members, CONTENTS)
    with zipfile.ZipFile(io.BytesIO(await bytes_of(archive, store))) as opened:
        assert opened.namelist() == ["manifest.json", "cv.pdf", "CV (2).pdf"]
        manifest = json.loads(opened.read("manifest.json"))
    assert not archive.is_complete
    assert manifest == {
        "batch": "b1",
        "complete": False,
        "files": [
            {"name": "cv.pdf", "status": "finished", "bytes": 500, "sha256": hashlib.sha256(CONTENTS[0]).hexdigest()},
            {"name": "letter.pdf", "status": "failed"},
            {
                "name": "CV (2).pdf",
                "status": "finished",
                "bytes": 165,
                "sha256": hashlib.sha256(CONTENTS[2]).hexdigest(),
            },
        ],
    }


async def test_a_member_called_manifest_takes_another_name() -> None:
    """The manifest is ours, in any case of its letters."""
    members = [member(0, b"x", "Manifest.JSON")]
    with zipfile.ZipFile(io.BytesIO(await bytes_of(Archive(members), stored(members, [b"x"])))) as opened:
        assert opened.namelist() == ["manifest.json", "Manifest (2).JSON"]


async def test_the_same_members_give_the_same_bytes_and_tag() -> None:
    """On any server, at any time; other bytes have another tag."""
    one, other = three(), three()
    assert await bytes_of(*one) == await bytes_of(*other)
    assert one[0].etag == other[0].etag
    changed = [replace(member(0, CONTENTS[0]), sha256=hashlib.sha256(b"other").digest())]
    assert Archive(changed).etag != Archive([member(0, CONTENTS[0])]).etag
    assert Archive([member(0, CONTENTS[0])], {"batch": "b2"}).etag != Archive([member(0, CONTENTS[0])]).etag


@settings(max_examples=200, deadline=None)
@given(
    contents=st.lists(st.binary(max_size=60), max_size=5),
    cuts=st.tuples(st.integers(0, 2_000), st.integers(0, 2_000)),
    piece_bytes=st.integers(1, 40),
)
async def test_any_range_is_that_part_of_the_whole(
    contents: list[bytes], cuts: tuple[int, int], piece_bytes: int
) -> None:
    """Whatever the members are and wherever the range begins and ends; it reads no more than it gives (E9)."""
    members = [member(number, data) for number, data in enumerate(contents)]
    archive, store = Archive(members), stored(members, contents, piece_bytes=piece_bytes)
    whole = await bytes_of(archive, store)
    assert len(whole) == archive.length
    store.read_bytes = 0
    start, end = min(cuts), max(cuts)
    assert await bytes_of(archive, store, start, end) == whole[start:end]
    assert store.read_bytes <= len(whole[start:end])


async def test_members_before_a_range_are_not_read() -> None:
    """A download that was cut goes on where it was."""
    archive, store = three()
    whole = await bytes_of(archive, store)
    store.read_paths.clear()
    begins = whole.index(CONTENTS[2])
    assert await bytes_of(archive, store, begins - 1) == whole[begins - 1 :]
    assert len(store.read_paths) == 1


@pytest.mark.parametrize("damage", ["one bit", "shorter", "longer", "gone", "gone while it is read"])
async def test_a_member_that_is_not_what_was_written_breaks_the_stream(damage: str) -> None:
    """Before its last piece: no client holds a whole ZIP with wrong bytes in it (E9)."""
    archive, store = three()
    [first, *_] = store.files
    data = store.files[first]
    if damage == "one bit":
        store.files[first] = bytes([data[0] ^ 1]) + data[1:]
    elif damage == "shorter":
        store.files[first] = data[:-1]
    elif damage == "longer":
        store.files[first] = data + b"x"
    elif damage == "gone":
        del store.files[first]
    got = b""
    with pytest.raises(ArtifactError):
        async for piece in archive.stream(store):
            got += piece
            if damage == "gone while it is read" and len(got) > 700:
                store.files.pop(first, None)
    assert len(got) < archive.length
    assert not got.endswith(data)


async def test_a_missing_member_is_found_before_the_first_byte() -> None:
    """check() asks for every size."""
    archive, store = three()
    await archive.check(store)
    store.files.popitem()
    with pytest.raises(ArtifactError):
        await archive.check(store)


@pytest.mark.parametrize("from_64", [layout.FROM_64, 1, 200])
@pytest.mark.parametrize(
    "program",
    [["unzip", "-tqq"], ["7z", "t", "-bd"], ["bsdtar", "-tf"], ["python3", "-m", "zipfile", "-t"]],
    ids=lambda p: p[0],
)
async def test_every_unpacker_takes_it(
    program: list[str], from_64: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with the records of ZIP64, which are needed from 4 GB on: here the bound is set low."""
    if shutil.which(program[0]) is None:
        pytest.skip(f"{program[0]} is not installed")
    monkeypatch.setattr(layout, "FROM_64", from_64)
    contents = [*CONTENTS, b"x" * 1_000]
    names = ["Lebenslauf Müller.pdf", "履歴書.pdf", "Резюме.pdf", "cv.pdf"]
    members = [member(number, data, names[number]) for number, data in enumerate(contents)]
    whole = await bytes_of(Archive(members), stored(members, contents))
    (tmp_path / "batch.zip").write_bytes(whole)
    with zipfile.ZipFile(tmp_path / "batch.zip") as opened:
        assert opened.namelist() == ["manifest.json", *names]
        assert [opened.read(name) for name in names] == contents
    run = subprocess.run([*program, "batch.zip"], cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: ASYNC221
    assert run.returncode == 0, run.stdout + run.stderr


async def test_a_reader_of_a_pipe_can_unpack_it(tmp_path: Path) -> None:
    """Sizes stand in front of the data, so nobody has to see the end first."""
    if shutil.which("bsdtar") is None:
        pytest.skip("bsdtar is not installed")
    archive, store = three()
    whole = await bytes_of(archive, store)
    run = subprocess.run(["bsdtar", "-xf", "-"], input=whole, cwd=tmp_path, capture_output=True, check=False)  # noqa: ASYNC221
    assert run.returncode == 0, run.stderr
    assert [(tmp_path / f"cv {number}.pdf").read_bytes() for number in range(3)] == CONTENTS


def test_times_that_a_zip_cannot_hold_are_moved_into_its_years() -> None:
    """1980 to 2107."""
    early, late = (replace(member(0, b"x"), written_at=MOMENT.replace(year=year)) for year in (1969, 2200))
    for one, year in ((early, 1980), (late, 2107)):
        assert layout.local_header("x", 1, 1, one.written_at or MOMENT)[12:14] == (
            (year - 1980) << 9 | (1 << 5 | 1 if year == 1980 else 12 << 5 | 31)
        ).to_bytes(2, "little")
