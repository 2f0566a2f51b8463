"""R25: the command that the doctor tells is run as it is told, and the finding is gone.

In 0.5.0 the step for 429s left the silence as it was, and nothing closed a breaker or took a
singleton; each case here failed for want of the command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from livewell import Settings
from livewell.operations.doctor import Finding
from tests.integration.operations.conftest import Examine
from tests.integration.operations.test_doctor import LIVING, calls, limited, watched, working
from tests.integration.operations.told import check_told, told
from tests.integration.refresh.test_cli_reads import livewell
from tests.support.refresh_sql import RefreshSession

Act = Callable[[RefreshSession], None]


@dataclass(frozen=True, slots=True)
class Case:
    """How a finding comes about, and what happens after the command was run."""

    word: str
    cause: Act
    after: Act = lambda _: None
    which: int = -1  # of the commands that it tells


def paused_queue(sick: RefreshSession) -> None:
    sick.enqueue(3)
    working(sick)
    sick.pause()
    sick.advance(90)


def do_the_work(sick: RefreshSession) -> None:
    sick.finish(*sick.claim(working(sick), 10))


def open_breaker(sick: RefreshSession) -> None:
    worker = limited(sick, breaker_failures=5, breaker_in_row=3, open_seconds=600)
    calls(sick, worker, 3, "retry", ended="upstream", delay_seconds=0)


def upstream_is_back(sick: RefreshSession) -> None:
    calls(sick, working(sick, "calls"), 1)


def silent(sick: RefreshSession) -> None:
    limited(sick, rate_calls=10, rate_seconds=60)
    sick.rows("SELECT livewell.observe_limiter('tight', '', NULL, NULL, NULL, 86400)")


def held_by_the_dead(sick: RefreshSession) -> None:
    sick.hold("schedule.report", lease=LIVING)
    sick.advance(700)


def paused_type(sick: RefreshSession) -> None:
    served(sick)
    sick.rows("SELECT livewell.pause_type('quote', true)")


def parked_type(sick: RefreshSession) -> None:
    served(sick)
    sick.rows("UPDATE livewell.data_type SET parked_reason = 'entitlement_type: not in your plan'")


def paused_upstream(sick: RefreshSession) -> None:
    served(sick)
    sick.rows("SELECT livewell.pause_upstream('api', true)")


def served(sick: RefreshSession) -> None:
    watched(sick)
    working(sick, "refresh.api", kinds="{livewell.refresh}")
    sick.hold(lease=LIVING)


def refreshed(sick: RefreshSession) -> None:
    """The due check makes a job, if it may; a worker stores what it brings."""
    assert sick.dispatch()["answer"] == "dispatched"
    assert sick.value("SELECT count(*) FROM livewell.job") == 1
    sick.rows(
        "UPDATE livewell.ledger SET fetched_at = livewell.now(), checked_at = livewell.now(), source_at = "
        "livewell.now()"
    )
    sick.rows("DELETE FROM livewell.job")
    sick.rows("DELETE FROM livewell.state_sample")


def dead(sick: RefreshSession) -> None:
    sick.enqueue(1)
    [claim] = sick.claim(working(sick))
    sick.settle(claim, "refused", reason="refused", error="no such customer")


def lost_rights(sick: RefreshSession) -> None:
    sick.rows("REVOKE USAGE ON SCHEMA livewell FROM livewell_hub")


CASES = [
    Case("queue_paused", paused_queue, do_the_work),
    Case("breaker_open", open_breaker, upstream_is_back),
    Case("upstream_silent", silent),
    Case("singleton_held", held_by_the_dead),
    Case("type_never_refreshes", paused_type, refreshed),
    Case("type_never_refreshes", parked_type, refreshed),
    Case("type_never_refreshes", paused_upstream, refreshed),
    Case("dead_letters", dead, do_the_work),
    Case("role_missing", lost_rights),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.word}-{case.cause.__name__}")
async def test_the_told_command_mends(
    sick: RefreshSession, doctor: Examine, livewell_settings: Settings, case: Case
) -> None:
    """Run in a process of its own, with the words of the finding."""
    case.cause(sick)
    finding = (await doctor())[case.word]
    code, out, err = await livewell(livewell_settings, *told(finding)[case.which])
    assert code == 0, out + err
    case.after(sick)
    assert case.word not in await doctor()


@pytest.mark.parametrize(
    "command",
    ["livewell queues revive x", "livewell queues resume x --now", "livewell queues resume", "livewell nothing"],
)
def test_a_command_that_is_not_there_is_noticed(command: str) -> None:
    """The check itself can fail."""
    with pytest.raises(AssertionError):
        check_told(Finding("word", "subject", "seen", "means", command))


async def test_what_state_counts_the_doctor_finds(sick: RefreshSession, doctor: Examine) -> None:
    """B6: state said "3 keys fail" and "alert fired", and the doctor was silent.

    One failing key among many that are well is named by its reason.
    """
    session = sick.open("ann")
    sick.subscribe(session, *(f"K{n}" for n in range(50)), user="ann")
    sick.rows(
        "UPDATE livewell.ledger SET fetched_at = livewell.now(), checked_at = livewell.now(), source_at = "
        "livewell.now()"
    )
    sick.rows(
        "UPDATE livewell.ledger SET checked_at = livewell.now() - interval '1 day', failing_since = "
        "livewell.now(), failures = 1, reason = 'html', error = 'a page, not data' WHERE key = 'K7'"
    )
    sick.rows(
        "SELECT * FROM livewell.observe_alerts('breaker_open', 'P1', '10 minutes', '{api}', '{api: its calls fail}')"
    )
    found = await doctor()

    assert found["keys_failing"].subject == "quote"
    assert "1 watched keys fail (1 × html)" in found["keys_failing"].seen
    assert "K7: a page, not data" in found["keys_failing"].seen
    assert found["keys_failing"].command == "livewell why quote K7"
    assert "api: its calls fail" in found["alert_fired"].seen


async def test_dead_refreshes_are_not_called_lost(sick: RefreshSession, doctor: Examine) -> None:
    """B7: "They will not be tried again by themselves" was said of keys that are."""
    sick.declare("refresh.api", attempts=1)
    sick.enqueue(1, queue="refresh.api", kind="livewell.refresh", unique_key="quote:AAPL")
    [claim] = sick.claim(working(sick, "refresh.api", kinds="{livewell.refresh}"), queues=["refresh.api"])
    sick.settle(claim, "refused", reason="refused", error="html: a page", queue="refresh.api", kind="livewell.refresh")
    found = (await doctor())["dead_letters"]

    assert "refreshed again by themselves" in found.means
    assert "not be tried" not in found.means
