"""The judge of the siege can fail.

Each thing that must not happen to honest people is a violation.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.scenario import Findings
from tests.faults.siege.attackers import Gang
from tests.faults.siege.record import Record, late_within


def violations(record: Record, *, quick: bool = False) -> list[str]:
    findings = Findings()
    record.judge(findings, quick=quick)
    return findings.violations


def served() -> Record:
    record = Record()
    record.answered("read", 200, 0.3)
    record.answered("healthz", 200, 0.01)
    return record


def test_people_who_were_served_are_no_violation() -> None:
    """However slow the machine was."""
    assert violations(served()) == []


@pytest.mark.parametrize(
    "harm",
    [
        lambda record: record.answered("read", 503, 0.01),
        lambda record: record.unanswered.update(["healthz"]),
        lambda record: record.dropped.append("viewer 1"),
        lambda record: record.late.append("viewer 1"),
    ],
    ids=["refused", "unanswered", "dropped", "late"],
)
def test_each_harm_is_a_violation(harm: Callable[[Record], None]) -> None:
    """One is enough."""
    record = served()
    harm(record)

    assert len(violations(record)) == 1


def test_a_slow_answer_is_a_violation_in_the_full_form_only() -> None:
    """300 ms for a read, where 250 are allowed."""
    assert violations(served()) == []
    assert violations(served(), quick=True) == ["reads took 300 ms (p99), 250 are allowed"]


def test_a_health_check_is_excused_by_the_machine_alone() -> None:
    """What a process with nothing to do was late by, in the same moment, and not more."""
    record = served()
    record.health = [(10.0, 180.0)]
    assert late_within(10.0, 180.0, [(9.99, 120.0), (5.0, 900.0)]) == pytest.approx(120)
    slow, excused = Findings(), Findings()
    record.judge(slow, [(5.0, 900.0)], quick=True)
    record.judge(excused, [(9.99, 120.0)], quick=True)
    assert [text for text in slow.violations if "healthz" in text] == ["/healthz took 180 ms, 100 are allowed"]
    assert [text for text in excused.violations if "healthz" in text] == []


def test_nobody_asked_is_a_violation() -> None:
    """A siege without honest people proves nothing."""
    assert violations(Record()) == ["nobody honest asked anything"]


def test_counts_of_crews_add_up_and_maxima_do_not() -> None:
    """Two processes of attackers are one gang."""
    crews = [
        {"kind": "chunks", "seen": {"cut": 1, "bytes_max": 5}, "held_seconds_max": 1.0, "broken": []},
        {"kind": "chunks", "seen": {"cut": 2, "bytes_max": 3}, "held_seconds_max": 4.0, "broken": []},
        {"kind": "drips", "seen": {"cut": 9}, "held_seconds_max": 9.0, "broken": ["ValueError()"]},
    ]
    gang = Gang(crews)

    assert gang.seen("chunks") == {"cut": 3, "bytes_max": 5}
    assert gang.held_seconds_max("chunks") == 4.0
    assert gang.broken() == ["ValueError()"]
