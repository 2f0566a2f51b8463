"""`app.exports` on a real database and a folder: ask, follow, fetch, cancel, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from livewell import Livewell
from livewell.errors import ConfigurationError, ExportDailyLimit, ExportQuotaFull, InvalidOption
from livewell.exports.exporters import ExportSource
from livewell.settings import Settings


async def read(source: ExportSource) -> bytes:
    """A document that is its own id."""
    return source.document.encode()


@pytest.fixture
async def app(livewell_settings: Settings, tmp_path: Path) -> AsyncIterator[Livewell]:
    settings = livewell_settings.model_copy(update={"export_store": str(tmp_path / "files"), "export_daily_max": 5})
    app = Livewell(settings)
    app.exporter("letter", render="shop.letters:render", templates=("minimal", "modern"), bytes_estimate=1000)(read)
    async with app:
        yield app


async def test_a_request_is_answered_with_an_id_and_the_same_one_again(app: Livewell) -> None:
    """E1: margins that are written in another way are the same options."""
    first = await app.exports.request("letter", "a", version="1", user="ann", options={"margin": 1})
    again = await app.exports.request(
        "letter", "a", version="1", user="ann", options={"margin_top": 1.0, "page": "Letter"}
    )

    assert (first.answer, first.state) == ("made", "waiting")
    assert (again.id, again.answer) == (first.id, "same")
    seen = await app.exports.show(first.id, user="ann")
    assert seen is not None
    assert (seen["file_name"], seen["options"]["margin_left"]) == ("a.pdf", "1")
    assert [one["seq"] for one in seen["steps"]] == [1]


async def test_a_request_in_a_transaction_exists_with_it(app: Livewell) -> None:
    """DESIGN 3.3."""
    with pytest.raises(RuntimeError):
        async with app.transaction() as tx:
            await app.exports.request("letter", "a", version="1", user="ann", tx=tx)
            raise RuntimeError
    assert await app.exports.list(user="ann") == []


async def test_what_cannot_be_is_refused_with_its_reason(app: Livewell) -> None:
    """E3, E6, E10: nothing was made."""
    ask = app.exports
    with pytest.raises(InvalidOption, match="margin: Input should be less than or equal to 2"):
        await ask.request("letter", "a", version="1", user="ann", options={"margin": 3})
    with pytest.raises(InvalidOption, match="template 'gold': there are minimal, modern"):
        await ask.request("letter", "a", version="1", user="ann", options={"template": "gold"})
    with pytest.raises(InvalidOption, match="kind 'poem': there are letter"):
        await ask.request("poem", "a", version="1", user="ann")
    with pytest.raises(InvalidOption, match="11 documents: 1 to 10"):
        await ask.request_batch("letter", [(str(n), "1", None) for n in range(11)], user="ann")
    with pytest.raises(ExportDailyLimit) as refused:
        await ask.request_batch("letter", [(str(n), "1", None) for n in range(6)], user="ann")
    assert (refused.value.used, refused.value.allowed) == (0, 5)
    assert await ask.list(user="ann") == []


async def test_a_full_quota_is_told_with_its_numbers(livewell_settings: Settings, tmp_path: Path) -> None:
    """E10."""
    changes = {"export_store": str(tmp_path), "export_user_bytes_max": 1_500_000}
    app = Livewell(livewell_settings.model_copy(update=changes))
    app.exporter("letter", render="shop.letters:render", bytes_estimate=1_000_000)(read)
    async with app:
        await app.exports.request("letter", "a", version="1", user="ann")
        with pytest.raises(ExportQuotaFull) as refused:
            await app.exports.request("letter", "b", version="1", user="ann")
    told = refused.value
    assert (told.used, told.reserved, told.allowed, told.needed) == (0, 1_000_000, 1_500_000, 1_000_000)


async def test_a_batch_that_is_asked_for_again_is_the_same_batch(app: Livewell) -> None:
    """An answer that was lost costs nothing."""
    batch, wanted = uuid4(), [("a", "1", "Résumé: Ann/Lee.pdf"), ("b", "1", None)]
    first = await app.exports.request_batch("letter", wanted, user="ann", id=batch)
    again = await app.exports.request_batch("letter", wanted, user="ann", id=batch)

    assert [one.id for one in again.exports] == [one.id for one in first.exports]
    assert {one.answer for one in again.exports} == {"known"}
    files = await app.exports.batch_files(batch, user="ann")
    assert files is not None
    assert (files.complete, dict(files.counts), files.exports) == (False, {"waiting": 2}, ())
    assert [one.path for one in files.members] == [None, None]
    assert "/" not in files.members[0].name


async def test_a_follower_is_told_of_each_step_and_of_the_end(app: Livewell) -> None:
    """E2: the frames of a stream, and their numbers."""
    made = await app.exports.request("letter", "a", version="1", user="ann")
    follower = await app.exports.follow(made.id, user="ann")
    assert follower is not None
    assert await app.exports.follow(made.id, user="bob") is None
    assert [one["seq"] for one in follower.pop()] == [1]
    follower.wake.clear()

    assert await app.exports.cancel(made.id, user="ann") == "cancelled"
    await follower.wake.wait()

    assert [(one["seq"], one["state"]) for one in follower.pop()] == [(2, "cancelled")]
    assert follower.ended
    late = await app.exports.follow(made.id, user="ann", after=2)
    assert late is not None
    assert (late.pop(), late.ended) == ([], True)


async def test_what_has_no_file_has_no_link(app: Livewell) -> None:
    """E8: and another user's export has none for anybody else (E12)."""
    made = await app.exports.request("letter", "a", version="1", user="ann")

    assert (await app.exports.link(made.id, user="ann") or {})["answer"] == "none"
    assert await app.exports.link(made.id, user="bob") is None
    assert await app.exports.open_download("forged") is None
    assert await app.exports.delete(made.id, user="ann") == "cancelled"
    assert await app.exports.delete(made.id, user="ann") == "ended"
    assert await app.exports.delete(made.id, user="bob") is None


async def test_usage_and_kinds_are_told(app: Livewell) -> None:
    """For the page of a user."""
    await app.exports.request("letter", "a", version="1", user="ann")

    assert await app.exports.usage(user="ann") == {"stored": 0, "reserved": 1000, "today": 1}
    assert "letter" in [one["name"] for one in await app.exports.kinds()]


@pytest.mark.parametrize(
    "wrong", [{"render": "no colon"}, {"suffix": "../x"}, {"bytes_estimate": 0}], ids=["render", "suffix", "estimate"]
)
def test_a_wrong_exporter_is_refused_where_it_is_declared(wrong: dict[str, object]) -> None:
    """Before anything runs."""
    with pytest.raises(ConfigurationError, match="exporter 'x'"):
        Livewell(Settings()).exporter("x", **{"render": "a:b", **wrong})  # type: ignore[arg-type]
