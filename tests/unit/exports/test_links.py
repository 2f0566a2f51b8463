"""Links of our own (E8, E12): forged, cut, ended, of another user or key are all the same nothing."""

from __future__ import annotations

import base64
import multiprocessing
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from livewell.errors import ConfigurationError
from livewell.exports.artifacts.link_keys import LinkKey, keep_link_key, parse_link_keys
from livewell.exports.artifacts.links import LINK_SECONDS_MAX, Link, LinkKeys

A, B, C = (LinkKey(name, SecretStr(name * 32)) for name in "abc")
NOW = 1_795_124_700
ROUNDS = 20
EXPORT = UUID(int=7)

users = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100)
ends = st.integers(NOW + 1, NOW + LINK_SECONDS_MAX)


@given(st.uuids(), users, ends)
def test_a_link_gives_what_was_signed(export: UUID, user: str, until: int) -> None:
    """In text that needs no escaping anywhere in an address."""
    text = LinkKeys((A,)).sign(export, user, until)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert LinkKeys((A,)).check(text, NOW) == Link(export, user, until)


@given(st.uuids(), users, ends, st.data())
def test_a_link_with_any_sign_changed_is_nothing(export: UUID, user: str, until: int, data: st.DataObject) -> None:
    """Another sign anywhere: the same link has one spelling only."""
    text = LinkKeys((A,)).sign(export, user, until)
    place = data.draw(st.integers(0, len(text) - 1))
    sign = data.draw(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. %é\n"))
    changed = text[:place] + sign + text[place + 1 :]
    if changed != text:
        assert LinkKeys((A,)).check(changed, NOW) is None


@given(users, ends, st.integers(0, 400), st.text(max_size=3))
def test_a_link_that_was_cut_or_lengthened_is_nothing(user: str, until: int, left: int, more: str) -> None:
    """Anywhere."""
    text = LinkKeys((A,)).sign(EXPORT, user, until)
    if left < len(text):
        assert LinkKeys((A,)).check(text[:left], NOW) is None
    if more:
        assert LinkKeys((A,)).check(text + more, NOW) is None


@given(
    st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("="))
)
def test_any_other_text_is_nothing(text: str) -> None:
    """And never an error."""
    assert LinkKeys((A, B)).check(text, NOW) is None


def test_a_link_of_one_user_cannot_be_made_another_users() -> None:
    """The user is signed (E12)."""
    text = LinkKeys((A,)).sign(EXPORT, "anna", NOW + 60)
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    for other in (b"otto", b"anna2", b"ann"):
        forged = base64.urlsafe_b64encode(raw.replace(b"anna", other)).decode().rstrip("=")
        assert LinkKeys((A,)).check(forged, NOW) is None


@pytest.mark.parametrize(("now", "good"), [(NOW - 61, False), (NOW, True), (NOW + 3_599, True), (NOW + 3_600, False)])
def test_a_link_is_good_until_its_end_and_for_an_hour_at_most(now: int, good: bool) -> None:
    """By the database's clock; one that is good for longer than any that we make is refused."""
    text = LinkKeys((A,)).sign(EXPORT, "anna", NOW + LINK_SECONDS_MAX)
    assert (LinkKeys((A,)).check(text, now) is not None) is good


def test_two_keys_live_while_one_takes_over_from_the_other() -> None:
    """The first signs, both are good; a key that was taken away is none any more."""
    old = LinkKeys((A,)).sign(EXPORT, "anna", NOW + 60)
    changing = LinkKeys((B, A))
    new = changing.sign(EXPORT, "anna", NOW + 60)
    assert changing.check(old, NOW) == changing.check(new, NOW) == Link(EXPORT, "anna", NOW + 60)
    assert LinkKeys((B,)).check(old, NOW) is None
    assert LinkKeys((C, B)).check(new, NOW) is not None
    assert LinkKeys((LinkKey("a", B.secret),)).check(old, NOW) is None


def test_without_a_key_nothing_is_signed_and_nothing_is_good() -> None:
    """A bucket without keys for links: the error names the setting."""
    keys = LinkKeys.of(settings("s3://bucket/prefix"))
    with pytest.raises(ConfigurationError, match="LIVEWELL_EXPORT_LINK_KEYS"):
        keys.sign(EXPORT, "anna", NOW + 60)
    assert keys.check(LinkKeys((A,)).sign(EXPORT, "anna", NOW + 60), NOW) is None


def test_a_user_that_does_not_fit_is_an_error_of_ours() -> None:
    """And not a link that nobody can use."""
    with pytest.raises(ValueError, match="at most 512"):
        LinkKeys((A,)).sign(EXPORT, "ü" * 300, NOW + 60)
    longest = LinkKeys((A,)).sign(EXPORT, "u" * 512, NOW + 60)
    assert LinkKeys((A,)).check(longest, NOW) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "canary",
        "a:canary",
        ":" + "c" * 32,
        "a b:" + "c" * 32,
        "a:" + "c" * 31,
        "a:" + "c" * 32 + ",",
        "a:" + "c" * 31 + "\n,",
        ",".join(f"{name}:{'c' * 32}" for name in "abc"),
        f"a:{'c' * 32},a:{'d' * 32}",
    ],
)
def test_a_wrong_setting_is_refused_by_name_and_not_shown(text: str) -> None:
    """Too short, without an id, too many, the same id twice."""
    with pytest.raises(ConfigurationError) as caught:
        parse_link_keys(text)
    assert "LIVEWELL_EXPORT_LINK_KEYS" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert "ccc" not in str(caught.value)


def settings(store: str, keys: str | None = None) -> Any:
    return SimpleNamespace(
        data_dir=None,
        database_url=None,
        export_store=store,
        export_s3_endpoint=None,
        export_file_bytes_max=50_000_000,
        export_link_keys=None if keys is None else SecretStr(keys),
    )


def test_a_folder_keeps_a_key_that_others_cannot_read(tmp_path: Path) -> None:
    """0600, made once, and the same for everybody."""
    folder = tmp_path / "exports"
    first = keep_link_key(folder)
    assert keep_link_key(folder) == first
    assert (folder / "link.keys").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir()] == ["link.keys"]
    text = LinkKeys.of(settings(str(folder))).sign(EXPORT, "anna", NOW + 60)
    assert LinkKeys.of(settings(str(folder))).check(text, NOW) is not None
    assert LinkKeys.of(settings(str(folder), f"a:{'a' * 32}")).check(text, NOW) is None


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """As ssh does; so is a link in its place."""
    keep_link_key(tmp_path)
    (tmp_path / "link.keys").chmod(0o644)
    with pytest.raises(ConfigurationError, match="may be read by others"):
        keep_link_key(tmp_path)
    (tmp_path / "link.keys").rename(tmp_path / "elsewhere")
    (tmp_path / "link.keys").symlink_to("elsewhere")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        keep_link_key(tmp_path)


def _keep(folder: Path, start: Any, said: Any) -> None:
    found = []
    for number in range(ROUNDS):
        start.wait(60)
        found.append([(key.id, key.secret.get_secret_value()) for key in keep_link_key(folder / str(number))])
    said.put(found)


def test_processes_that_come_together_keep_one_key(tmp_path: Path) -> None:
    """Each reads the same key, whoever wrote it."""
    context = multiprocessing.get_context("spawn")
    start, said = context.Barrier(2), context.Queue()
    processes = [context.Process(target=_keep, args=(tmp_path, start, said)) for _ in range(2)]
    for process in processes:
        process.start()
    first, second = [said.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(timeout=60)
    assert first == second
    assert len({keys[0] for keys in map(tuple, first)}) == ROUNDS
