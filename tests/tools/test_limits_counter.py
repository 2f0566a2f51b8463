"""The outside counter and the history checker, against definitions so slow that they are surely right."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.testing import Call, HistoryChecker
from livewell.testing.call_windows import Overlaps, Window, busiest_window, calls_between, overlaps, use
from livewell.testing.upstream import call_id

SECOND = 1_000_000_000


def made(
    at_ns: int, ended_ns: int | None = None, *, number: int = 1, keys: tuple[str, ...] = (), jobs: str = ""
) -> Call:
    ending = None if ended_ns is None else "answered"
    return Call(number, at_ns, "GET", "/quote", keys, "fake-a", jobs, ended_ns=ended_ns, ending=ending)  # type: ignore[arg-type]


@st.composite
def histories(draw: st.DrawFn) -> list[Call]:
    """Up to a dozen calls within twenty nanoseconds, so that instants coincide and windows just touch."""
    spans = st.tuples(st.integers(0, 20), st.none() | st.integers(0, 10), st.lists(st.sampled_from("ABC"), max_size=4))
    return [
        made(at, None if lasts is None else at + lasts, keys=tuple(keys))
        for at, lasts, keys in draw(st.lists(spans, max_size=12))
    ]


def in_flight(calls: list[Call], at_ns: int) -> int:
    return sum(
        call.at_ns <= at_ns and (call.ended_ns is None or at_ns < max(call.ended_ns, call.at_ns + 1)) for call in calls
    )


@given(histories(), st.integers(1, 15))
def test_no_window_holds_more_than_the_busiest(calls: list[Call], length_ns: int) -> None:
    """Every window that starts at any nanosecond is tried, not only those that start at a call.

    Seen to fail with `<=` in the sweep (closed windows), and with fixed instead of sliding windows.
    """
    every = {start: len(calls_between(calls, start, start + length_ns)) for start in range(-16, 32)}
    window = busiest_window(calls, length_ns / SECOND)
    assert window.calls == max(every.values())
    assert window.calls == len(calls_between(calls, window.start_ns, window.start_ns + length_ns))


def test_two_calls_one_window_apart_do_not_share_it() -> None:
    """The windows are half-open.

    A limit of one per second allows a call every second, and not a nanosecond sooner.
    """
    assert busiest_window([made(0), made(SECOND)], 1) == Window(1, 0)
    assert busiest_window([made(7), made(SECOND + 6)], 1) == Window(2, 7)


def test_the_order_of_the_log_does_not_matter() -> None:
    """A log that was written by several tasks may be a little out of order."""
    assert busiest_window([made(5), made(1), made(3)], 3e-9) == Window(2, 1)


def test_nothing_is_counted_in_an_empty_log() -> None:
    """No call is a count of nought, not an error: the test that demands calls says so itself."""
    assert busiest_window([], 60) == Window(0, 0)
    assert overlaps([]) == Overlaps(0, {})
    assert use([], 300, 60) == 0.0


def test_a_window_without_length_is_refused() -> None:
    """It would hold nothing, and every limit would seem kept."""
    with pytest.raises(ValueError, match="longer than 0"):
        busiest_window([made(0)], 0)


@given(histories())
def test_overlaps_are_those_of_the_worst_instant(calls: list[Call]) -> None:
    """Every nanosecond is looked at, in total and for each key.

    Seen to fail when beginnings were sorted before ends at the same instant, and when a key that
    was asked twice in one call counted twice.
    """
    instants = range(40)
    most = overlaps(calls)
    assert most.total == max(in_flight(calls, at) for at in instants)
    for key in "ABC":
        of_key = [call for call in calls if key in call.keys]
        assert most.per_key.get(key, 0) == max(in_flight(of_key, at) for at in instants)


def test_even_pacing_at_the_limit_uses_all_of_it() -> None:
    """300 a minute is a call every 200 ms; half as many use half."""
    assert use([made(n * SECOND // 5) for n in range(600)], 300, 60) == pytest.approx(1.0)
    assert use([made(n * 2 * SECOND // 5) for n in range(600)], 300, 60) == pytest.approx(0.5)


# ── the checker ──


def checker(*jobs: tuple[int, int]) -> HistoryChecker:
    return HistoryChecker([made(n, n + 1, number=n, jobs=call_id(claim)) for n, claim in enumerate(jobs, 1)])


def test_histories_that_agree_have_no_violations() -> None:
    """An earlier attempt of a known job is no stranger, and one call may serve several jobs."""
    history = checker((1, 10), (1, 12), (2, 11))
    batch = HistoryChecker([*history.calls, made(9, 10, number=9, jobs=call_id((3, 13), (4, 14)))])
    assert batch.check_calls([(1, 12), (3, 13), (4, 14)], dead=[(2, 11)]) == []


def test_a_success_without_a_call_is_found() -> None:
    """The database says that it was refreshed, and the upstream knows nothing of it.

    Seen to fail with the check off.
    """
    assert checker((1, 10)).check_calls([(1, 10), (2, 11)]) == [
        "job 2 (fence 11) succeeded, but the upstream never saw a call of it"
    ]


def test_a_success_on_a_broken_answer_is_found() -> None:
    """Half an answer is no answer; of one whose upstream was killed over it nobody knows.

    Seen to fail with the check off.
    """
    [call] = checker((1, 10)).calls
    for ending, found in (("cut", 1), ("client_left", 1), ("killed", 0), ("answered", 0)):
        broken = HistoryChecker([replace(call, ending=ending)])  # type: ignore[arg-type]
        assert len(broken.check_calls([(1, 10)])) == found


def test_a_call_of_no_job_is_found() -> None:
    """Unknown job, a fence that was never given, no header at all.

    Seen to fail with each of the three taken out.
    """
    history = HistoryChecker([*checker((1, 10), (7, 70), (1, 11)).calls, made(9, 10, number=9, jobs="what?")])
    assert history.check_calls([(1, 10)]) == [
        "call 9 (GET /quote, 200, answered) names no job: X-Livewell-Call is 'what?'",
        "call 3 (GET /quote, 200, answered) for job 1 (fence 11): the database's last fence of it is 10",
        "call 2 (GET /quote, 200, answered) for job 7 (fence 70): the database knows no such job",
    ]


def test_a_request_that_was_sent_twice_is_found() -> None:
    """A client that silently sends again on a dropped connection spends a permit it does not have."""
    history = checker((1, 10), (1, 10))
    assert len(history.check_calls([(1, 10)])) == 1
    assert history.check_calls([(1, 10)], calls_per_claim_max=2) == []


def test_usage_that_was_booked_wrong_is_found() -> None:
    """Too much, too little, or for another credential; the slack is for those who may not know.

    Seen to fail with abs() left out.
    """
    history = HistoryChecker([replace(made(n), wire_bytes=100, content_bytes=900) for n in range(3)])
    assert history.check_usage({"fake-a": 3}) == []
    assert history.check_usage({"fake-a": 300}, unit="wire_bytes") == []
    assert history.check_usage({"fake-a": 2690}, unit="content_bytes", slack_units=10) == []
    assert history.check_usage({"fake-a": 4, "fake-b": 1}) == [
        "credential 'fake-a': booked are 4 calls, the upstream counted 3",
        "credential 'fake-b': booked are 1 calls, the upstream counted 0",
    ]
    assert len(history.check_usage({"fake-a": 2})) == 1


def test_a_limit_that_was_broken_is_found_per_credential() -> None:
    """Two credentials have two limits. Seen to fail when all calls were counted together."""
    calls = [made(n) for n in range(3)]
    history = HistoryChecker([*calls, *(replace(call, credential="fake-b") for call in calls[:2])])
    assert history.check_limit(3, 1) == []
    assert history.check_limit(2, 1) == ["credential 'fake-a': 3 calls within 1 s from 0 ns, allowed are 2"]


def test_too_many_calls_in_flight_are_found() -> None:
    """In total, and for one key."""
    history = HistoryChecker([made(0, 10, keys=("A",)), made(5, 15, keys=("A",)), made(7, 15, keys=("B",))])
    assert history.check_concurrency(total=3, per_key=2) == []
    assert history.check_concurrency(total=2, per_key=1) == [
        "3 calls in flight at once, allowed are 2",
        "key 'A': 2 calls in flight at once, allowed are 1",
    ]


def test_a_stored_version_that_was_never_sent_is_found() -> None:
    """A value of another key, or of an answer that was cut.

    Seen to fail with endings left out of account.
    """
    whole = replace(made(0, 1), versions={"A": 1, "B": 5})
    cut = replace(made(2, 3), versions={"A": 2}, ending="cut")
    history = HistoryChecker([whole, cut])
    assert history.check_versions({"A": 1, "B": 5}) == []
    assert history.check_versions({"A": 2}) == [
        "key 'A': version 2 is stored, but was never sent in full; the newest sent is 1"
    ]
