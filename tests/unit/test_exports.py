"""What `from livewell import …` gives: exactly this, sorted, each of it there."""

from __future__ import annotations

import inspect

import livewell

EXPORTS = """
    Answer Backoff Batch Blame Breaker Cancel Cancelled Enqueued Job JobState Lane Limiter Livewell LivewellError
    NewEvent Policy Reading Release Retry Settings Task
"""


def test_the_export_list_is_what_is_promised() -> None:
    """A name that is added or goes is a decision, and a line in the CHANGELOG."""
    assert livewell.__all__ == EXPORTS.split()
    assert sorted(livewell.__all__) == livewell.__all__


def test_every_export_is_there_and_documented() -> None:
    """Each has a docstring of its own."""
    for name in livewell.__all__:
        assert inspect.getdoc(getattr(livewell, name)), name


def test_nothing_else_is_public_by_accident() -> None:
    """What else is in the namespace are its own modules."""
    found = {name for name in vars(livewell) if not name.startswith("_")} - set(livewell.__all__)
    assert all(inspect.ismodule(getattr(livewell, name)) for name in found), found
