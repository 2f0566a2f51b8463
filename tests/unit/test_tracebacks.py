"""A traceback that may be stored.

Bounded, whole where it matters, and without secrets (R23, F-F5).
"""

from __future__ import annotations

import json

import pytest

from livewell.telemetry.repeats import Repeats
from livewell.telemetry.tracebacks import TRACEBACK_BYTES_MAX, traceback_of


def _raised(make: object) -> BaseException:
    try:
        make()  # type: ignore[operator]  # each case is a function without arguments
    except BaseException as error:  # noqa: BLE001 - the test looks at it
        return error
    raise AssertionError("it did not raise")


def _recurse(n: int) -> None:
    if n == 0:
        json.loads("{")
    _recurse(n - 1)


def _causes(n: int) -> None:
    try:
        if n:
            _causes(n - 1)
        raise KeyError(f"first é {'x' * 5000}")
    except KeyError as error:
        raise ValueError(f"level {n} " + "ü" * 3000) from error


def _group() -> None:
    nested = ExceptionGroup("inner", [TypeError(f"t{n}") for n in range(50)])
    raise ExceptionGroup("outer", [nested, *(ValueError(f"v{n} {'y' * 2000}") for n in range(200))])


def _circle() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    raise first


@pytest.mark.parametrize("make", [lambda: _recurse(500), lambda: _causes(40), _group, _circle])
def test_it_is_bounded_and_ends_with_what_was_raised(make: object) -> None:
    """Deep recursion, a long chain, a large group and a circle of causes."""
    error = _raised(make)

    text = traceback_of(error)

    assert len(text.encode()) <= TRACEBACK_BYTES_MAX
    assert type(error).__name__ in text
    assert text.count("direct cause") <= 6
    text.encode()


def test_the_users_frames_stay_and_what_is_left_out_is_said() -> None:
    """A library's frames at the end do not push out the code that called it."""
    text = traceback_of(_raised(lambda: _recurse(100)))

    assert "test_tracebacks.py" in text
    assert "json/decoder.py" in text
    assert "frames left out)" in text
    assert "JSONDecodeError" in text.splitlines()[-1]


def test_an_error_that_hides_its_context_hides_it_here_too() -> None:
    """raise … from None is a decision of the user's."""

    def quiet() -> None:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer") from None

    assert "inner" not in traceback_of(_raised(quiet)).replace('raise KeyError("inner")', "")


def test_no_path_of_this_machine_and_no_value_of_a_variable() -> None:
    """Files are named from the project on."""
    secret = "v4riable-value-is-not-shown"  # noqa: S105 - what is looked for

    def fail() -> None:
        raise ValueError(f"{len(secret)} characters")

    text = traceback_of(_raised(fail))
    assert 'File "tests/unit/test_tracebacks.py"' in text
    assert text.count(secret) == 0


def test_a_secret_is_hidden_before_the_text_is_cut() -> None:
    """Half an address has lost the @ by which its password is known."""

    def fail() -> None:
        raise ValueError("x" * 980 + " postgresql://ada:s3cret-passw0rd@db/x")

    assert "s3cr" not in traceback_of(_raised(fail)).replace("s3cret-passw0rd@db/x", "", 1)[-1200:]


def test_repeats_pass_a_few_and_count_the_rest() -> None:
    """After a minute the count is told once, and the next ones pass again."""
    now = [0.0]
    repeats = Repeats(clock=lambda: now[0])
    assert [repeats.passes("a") for _ in range(8)] == [True] * 5 + [False] * 3
    assert repeats.passes("b")
    assert list(repeats.overdue()) == []
    now[0] = 60.0
    assert list(repeats.overdue()) == [("a", 3)]
    assert list(repeats.overdue(everything=True)) == []
    assert repeats.passes("a")


def test_causes_without_end_are_counted_together() -> None:
    """Somebody who puts a number into every cause fills neither the memory nor the log."""
    repeats = Repeats(clock=lambda: 0.0)
    passed = sum(repeats.passes(f"cause {n}") for n in range(10_000))
    assert passed == 505
    assert list(repeats.overdue(everything=True)) == [("other causes", 9_495)]
