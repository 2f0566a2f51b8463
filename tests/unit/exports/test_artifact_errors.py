"""What an error of a store may say (E15), and what a path may be (E7)."""

from __future__ import annotations

import re
import sys
from typing import get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.errors import ConfigurationError
from livewell.exports.artifacts.paths import artifact_path, is_path, user_prefix
from livewell.exports.artifacts.s3 import S3Store
from livewell.exports.artifacts.s3_address import read_s3_address
from livewell.exports.artifacts.s3_failures import read_failure
from livewell.exports.artifacts.store import ArtifactError, Detail, Reason

CANARY = "CANARY-bucket/CANARY-path/7.pdf"
kinds = st.sampled_from(
    ["GenericError", "PermissionDeniedError", "AlreadyExistsError", "NotFoundError", "PreconditionError", "Odd"]
)
texts = st.lists(
    st.sampled_from(
        [
            CANARY,
            f"http://127.0.0.1:9000/{CANARY}",
            "Server returned non-2xx status code: 503 ",
            "Server returned non-2xx status code: 999 ",
            f"<Code>{CANARY}</Code>",
            "<Code>SlowDown</Code>",
            "<Code>NoSuchKey</Code>",
            "kind: Timeout",
            "kind: Connect",
            "Debug source:",
            "\n",
        ]
    )
    | st.text(max_size=30),
    max_size=8,
).map("".join)


@given(kinds, texts)
def test_no_text_of_the_client_is_in_an_error_of_ours(kind: str, text: str) -> None:
    """Whatever it says: reason and detail are from the closed lists, and their words are ours (E15)."""
    error = read_failure(type(kind, (Exception,), {})(text))
    assert error.reason in get_args(Reason)
    assert error.detail in get_args(Detail)
    assert str(error) == str(ArtifactError(error.reason, error.detail))
    assert "CANARY" not in f"{error!r}{vars(error)}"


@pytest.mark.parametrize("reason", get_args(Reason))
@pytest.mark.parametrize("detail", get_args(Detail))
def test_every_reason_and_detail_has_words(reason: Reason, detail: Detail) -> None:
    """None is shown as a bare word of a list."""
    text = str(ArtifactError(reason, detail))
    assert text.startswith("the artifact store ")
    assert (": " in text) is (detail != "")


@given(st.text(max_size=60), st.uuids(), st.integers(0, 2**62), st.sampled_from(["pdf", "json", "tar"]))
def test_every_path_that_is_made_is_one(user: str, export: UUID, fence: int, suffix: str) -> None:
    """And says nothing of the user (E7)."""
    path = artifact_path(user, export, fence, suffix)
    assert is_path(path)
    assert path.startswith(f"{user_prefix(user)}/{export}/{fence}.")
    assert re.fullmatch(r"[0-9a-f]{32}", user_prefix(user))


@given(st.text(max_size=90) | st.from_regex(r"[0-9a-f./~%\\-]{60,90}"))
def test_nothing_else_is_a_path(text: str) -> None:
    """No dots, no empty words, no other alphabets."""
    assert is_path(text) is bool(
        re.fullmatch(
            r"[0-9a-f]{32}/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/(0|[1-9][0-9]{0,18})\.[a-z0-9]{1,16}", text
        )
    )


@pytest.mark.parametrize("suffix", ["", "../x", "PDF", "p.df", "x" * 17])
def test_a_suffix_cannot_change_the_shape(suffix: str) -> None:
    """It comes from whoever declares a kind of export."""
    with pytest.raises(ArtifactError):
        artifact_path("u1", UUID(int=1), 1, suffix)


def test_a_bucket_without_its_client_is_refused_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder works without."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'livewell\[exports\]'"):
        S3Store(read_s3_address("s3://bucket", None, {}), environment={})
