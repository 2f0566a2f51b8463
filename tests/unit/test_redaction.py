"""No result leaves with a secret in its words (M3)."""

from __future__ import annotations

import typing

import pytest

from livewell.model import Blame
from livewell.refresh.reasons import Reason
from livewell.refresh.redaction import hide_secrets
from livewell.refresh.result import Failure, Forgotten, Missing, Result, Same, Singly, Unproven, Value
from livewell.telemetry.secret_forms import secrets_of

SECRET = "Canary/7f3A9c1dZq"  # noqa: S105 - of nobody
SAID = f"Invalid key {SECRET}"
RESULTS: list[Result] = [
    Value([{"price": "1"}], None, None, b"h", (), etag=f'"{SECRET}"', last_modified=SECRET),
    Same(b"h"),
    Missing(),
    Failure(Reason.AUTH, SAID, Blame.OUTAGE),
    Singly(SAID),
    Unproven(SAID),
    Forgotten(SAID),
]


def test_every_kind_of_result_is_looked_at_here() -> None:
    """A new one has to be added above."""
    assert {type(one) for one in RESULTS} == set(typing.get_args(Result))


@pytest.mark.parametrize("result", RESULTS, ids=lambda one: type(one).__name__)
def test_a_secret_is_in_no_result(result: Result) -> None:
    """Also not in half: it is hidden before the text is cut."""
    [hidden] = hide_secrets({"A": result}, secrets_of(SECRET)).values()

    assert type(hidden) is type(result)
    assert SECRET not in repr(hidden)


def test_a_secret_across_the_cut_is_not_shown_in_part() -> None:
    """300 characters are kept, and the secret begins before that."""
    said = Singly("x" * 295 + SECRET)
    hidden = hide_secrets({"A": said}, secrets_of(SECRET))["A"]

    assert isinstance(hidden, Singly)
    assert SECRET[:4] not in hidden.detail
    assert len(hidden.detail) <= 300


def test_what_holds_no_secret_is_kept() -> None:
    """An ETag is sent back as it came."""
    value = Value([{"price": "1"}], None, None, b"h", (), etag='W/"abc"', last_modified="Mon, 20 Jul 2026 10:00:00 GMT")

    assert hide_secrets({"A": value, "B": Missing()}, secrets_of(SECRET)) == {"A": value, "B": Missing()}
