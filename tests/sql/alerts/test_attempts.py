"""The attempt ledger: recorded before it is sent, sent once, and an outcome that nobody knows is not guessed."""

from __future__ import annotations

import pytest

from tests.support.alerts_sql import AlertSession


@pytest.fixture
def fired(alerts: AlertSession) -> AlertSession:
    """One firing and one channel that must not be told twice."""
    alerts.observe("roof")
    assert alerts.channel() == 1
    return alerts


def test_an_attempt_is_recorded_and_a_success_is_the_end(fired: AlertSession) -> None:
    """There is nothing more to begin."""
    attempt = fired.begin()
    assert fired.told() == ["pending"]
    assert fired.begin() is None
    assert fired.settle_attempt(attempt, "sent", status=204) == "sent"
    fired.advance(86400 * 2)
    assert fired.begin() is None
    assert fired.channel() == 0


def test_a_sender_that_vanished_leaves_an_unknown_outcome(fired: AlertSession) -> None:
    """It may have arrived: not sent again, and counted."""
    fired.begin()
    fired.advance(31)
    assert fired.expire_attempts() == 1
    assert fired.told() == ["unknown"]
    fired.advance(3600)
    assert fired.begin() is None
    assert fired.warnings() == ["it is not known whether a notification arrived"]


def test_a_receiver_that_drops_repetitions_is_told_again(alerts: AlertSession) -> None:
    """With the same message id."""
    alerts.observe("roof")
    alerts.channel(kind="webhook", repeats=True)
    first = alerts.rows("SELECT message_id FROM livewell.begin_attempt('ops', 30)")
    alerts.advance(31)
    alerts.expire_attempts()
    alerts.advance(60)
    assert alerts.rows("SELECT message_id FROM livewell.begin_attempt('ops', 30)") == first


def test_a_late_yes_is_believed_and_stays(fired: AlertSession) -> None:
    """The sender was frozen, given up, and knows better."""
    attempt = fired.begin()
    fired.advance(31)
    fired.expire_attempts()
    assert fired.settle_attempt(attempt, "sent") == "sent"
    assert fired.settle_attempt(attempt, "refused") == "sent"
    assert fired.told() == ["sent"]


def test_a_late_no_changes_nothing(fired: AlertSession) -> None:
    """Nobody knows what was believed meanwhile."""
    attempt = fired.begin()
    fired.advance(31)
    fired.expire_attempts()
    assert fired.settle_attempt(attempt, "refused", again=True) == "unknown"


def test_a_refusal_that_may_pass_is_tried_eight_times(fired: AlertSession) -> None:
    """Then it is a refusal for good, and counted. The pauses double up to ten minutes."""
    pauses = []
    for _ in range(8):
        attempt = fired.begin()
        state = fired.settle_attempt(attempt, "refused", status=500, again=True)
        pauses.append(
            fired.value("SELECT extract(epoch FROM next_at - livewell.now())::integer FROM livewell.notification")
        )
        fired.advance(600)
    assert state == "refused"
    assert pauses[:7] == [10, 20, 40, 80, 160, 320, 600]
    assert fired.begin() is None
    assert fired.warnings() == ["a notification was refused"]


def test_silence_that_was_asked_for_is_kept_and_costs_no_attempt(fired: AlertSession) -> None:
    """On the whole channel, and in the database: another process keeps it too."""
    for _ in range(20):
        assert fired.settle_attempt(fired.begin(), "refused", status=429, again=True, quiet=90) == "waiting"
        fired.observe("roof", str(fired.now()))
        fired.channel()
        fired.advance(89)
        assert fired.begin() is None
        fired.advance(1)
    assert fired.settle_attempt(fired.begin(), "sent") == "sent"


def test_a_receiver_that_is_gone_disables_its_channel(fired: AlertSession) -> None:
    """Until somebody enables it, or it gets another address."""
    assert fired.settle_attempt(fired.begin(), "refused", status=410, gone=True) == "refused"
    fired.observe("roof", "wall")
    assert fired.channel() == 1
    assert fired.begin() is None
    assert fired.value("SELECT livewell.enable_channel('ops')") is True
    assert fired.settle_attempt(fired.begin(), "refused", status=410, gone=True) == "refused"
    fired.observe("roof", "wall", "door")
    fired.channel(source="env:OTHER")
    assert fired.begin() is not None


def test_the_most_urgent_is_told_first(alerts: AlertSession) -> None:
    """Then the oldest."""
    alerts.observe("late", level="P2", rule="a")
    alerts.observe("urgent", level="P0", rule="b")
    alerts.observe("soon", level="P1", rule="c")
    alerts.channel()
    subjects = [alerts.rows("SELECT subject FROM livewell.begin_attempt('ops', 30)")[0][0] for _ in range(3)]
    assert subjects == ["urgent", "soon", "late"]


def test_a_channel_is_told_of_its_levels_only(alerts: AlertSession) -> None:
    """P1 means P0 and P1."""
    for level in ("P0", "P1", "P2"):
        alerts.observe("x", rule=level.lower(), level=level)
    assert alerts.channel(level="P1") == 2


def test_a_new_channel_is_told_of_the_last_hour_and_not_of_last_year(alerts: AlertSession) -> None:
    """What fired while a deployment was starting is told."""
    alerts.observe("old")
    alerts.advance(3601)
    alerts.observe("old", "new")
    assert alerts.channel() == 1


def test_what_could_not_be_told_within_a_day_is_given_up(fired: AlertSession) -> None:
    """Yesterday's alarm helps nobody."""
    fired.advance(86401)
    assert fired.begin() is None
    assert fired.told() == ["refused"]
    assert fired.warnings() == ["a notification could not be delivered within a day"]
