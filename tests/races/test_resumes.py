"""Documents under races: one of two editors wins, and bounds hold however many come at once (E16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from tests.support.resumes_sql import DOCUMENTS_MAX, ResumeSession, text
from tests.support.variants import Change, variant

CONNECTIONS = 8
ROUNDS = 15
NO_LOCK: Change = ("u.user_id = p_user FOR UPDATE;", "u.user_id = p_user;")


@pytest.fixture
def resumes(livewell_dsn: str) -> Iterator[ResumeSession]:
    """A database of this test's own: a broken function must not be met by others."""
    with ResumeSession(livewell_dsn) as opened:
        yield opened


def at_once(dsn: str, act: Callable[[ResumeSession, int], Any]) -> list[Any]:
    """What each of eight connections was answered that began together."""
    together = Barrier(CONNECTIONS)

    def one(n: int) -> Any:
        with ResumeSession(dsn) as session:
            session.rows("SELECT 1")
            together.wait()
            return act(session, n)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(one, range(CONNECTIONS)))


def edit(document: str, expected: int) -> Callable[[ResumeSession, int], Any]:
    """Each writes something else."""
    return lambda session, n: session.change(document, text(f"{expected} {n}"), expected=expected)


def make(request: str) -> Callable[[ResumeSession, int], Any]:
    """All send the same."""
    return lambda session, _: session.create(request=request)


def test_of_many_editors_one_writes_the_next_version(resumes: ResumeSession, livewell_dsn: str) -> None:
    """E16: the others are told, and no version is written twice or skipped."""
    made = resumes.create()
    for n in range(1, ROUNDS):
        answers = at_once(livewell_dsn, edit(made["id"], n))
        assert Counter(one["answer"] for one in answers) == {"changed": 1, "conflict": CONNECTIONS - 1}
        assert {one["version"] for one in answers} == {n + 1}
    assert resumes.counted() == resumes.true_counts()


def test_one_request_that_comes_many_times_at_once_makes_one_document(
    resumes: ResumeSession, livewell_dsn: str
) -> None:
    """A client that repeats itself while its first call is under way."""
    for n in range(ROUNDS):
        resumes.reset()
        answers = at_once(livewell_dsn, make(f"r{n}"))
        assert Counter(one["answer"] for one in answers) == {"made": 1, "same": CONNECTIONS - 1}
        assert len({one["id"] for one in answers}) == 1


def overshoots(resumes: ResumeSession, dsn: str) -> int:
    """How often more documents than allowed were made."""
    over = 0
    for _ in range(ROUNDS):
        resumes.reset()
        resumes.create()
        at_once(dsn, lambda session, _: session.create())
        over += resumes.true_counts()[0] > DOCUMENTS_MAX
    return over


def test_the_bound_of_documents_holds_however_many_come_at_once(resumes: ResumeSession, livewell_dsn: str) -> None:
    """The user's row is locked before it is counted; without the lock it is not, so the test can fail."""
    assert overshoots(resumes, livewell_dsn) == 0
    assert resumes.counted() == resumes.true_counts()

    with variant(livewell_dsn, "create_resume", NO_LOCK):
        assert overshoots(resumes, livewell_dsn) > 0
