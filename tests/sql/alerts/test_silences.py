"""Silences: nobody is told until their end, and then of what is still wrong. Tests of channels."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.alerts_sql import AlertSession

HOUR = 3600


@pytest.fixture
def fired(alerts: AlertSession) -> AlertSession:
    """The rule is known, and one channel."""
    alerts.observe("wall")
    alerts.channel()
    alerts.settle_attempt(alerts.begin())
    return alerts


def silence(alerts: AlertSession, subject: str = "", *, seconds: float = HOUR, rule: str = "sky") -> object:
    return alerts.value("SELECT livewell.silence_alerts(%s, %s, %s, 'test')", rule, subject, seconds)


def unsilence(alerts: AlertSession, subject: str = "") -> object:
    return alerts.value("SELECT livewell.unsilence_alerts('sky', %s)", subject)


def shown(alerts: AlertSession) -> list[tuple[object, ...]]:
    """Subject, whether it is silenced now, and notifications that were never sent because of a silence."""
    return alerts.rows(
        "SELECT subject, silenced_until IS NOT NULL, silenced FROM livewell.list_alerts('all', 0, 100) ORDER BY 1"
    )


@pytest.mark.parametrize("subject", ["", "roof"])
def test_a_silenced_alert_tells_nobody_until_the_end_and_then_it_does(fired: AlertSession, subject: str) -> None:
    """Of a whole rule, or of one subject; the alert still fires and is shown as silenced."""
    assert silence(fired, subject) is not None
    fired.observe("wall", "roof")
    assert fired.channel() == 1
    assert fired.begin() is None
    assert ("roof", True, 0) in shown(fired)
    fired.advance(HOUR - 1)
    fired.observe("wall", "roof")
    assert fired.begin() is None
    fired.advance(2)
    assert fired.begin() is not None
    assert shown(fired) == [("roof", False, 0), ("wall", False, 0)]


def test_other_subjects_and_rules_are_told(fired: AlertSession) -> None:
    """A silence covers what it names."""
    silence(fired, "roof")
    fired.observe("wall", "door")
    fired.observe("roof", rule="sea")
    assert fired.channel() == 2
    assert [fired.begin() is not None for _ in range(3)] == [True, True, False]


def test_what_is_over_before_the_end_is_told_to_nobody(fired: AlertSession) -> None:
    """And the history says that a silence was the reason."""
    silence(fired)
    fired.observe("roof")
    fired.channel()
    fired.observe()
    fired.advance(601)
    fired.observe()
    fired.advance(HOUR)
    assert fired.begin() is None
    assert fired.rows("SELECT subject, silenced FROM livewell.list_firings(NULL, 10)") == [("roof", 1), ("wall", 0)]
    number = fired.value("SELECT id FROM livewell.alert WHERE subject = 'roof'")
    assert fired.column("SELECT state FROM livewell.list_attempts(%s)", number) == ["silenced"]


def test_what_cools_at_the_end_waits_whether_it_comes_back(fired: AlertSession) -> None:
    """If it does, people are told; it is the same firing, so nobody would be told later."""
    silence(fired)
    fired.observe("roof")
    fired.channel()
    fired.advance(HOUR - 60)
    fired.observe()
    fired.advance(120)
    assert fired.begin() is None
    fired.observe("roof")
    assert fired.begin() is not None


def test_a_week_of_silence_is_not_given_up_as_undeliverable(fired: AlertSession) -> None:
    """What is older than a day is refused otherwise."""
    silence(fired, seconds=7 * 86400)
    fired.observe("roof")
    fired.channel()
    fired.advance(7 * 86400 - 10)
    assert fired.begin() is None
    fired.advance(20)
    assert fired.begin() is not None
    assert fired.warnings() == []


def test_a_silence_can_be_ended_made_longer_and_made_shorter(fired: AlertSession) -> None:
    """It begins with the call; the end of one that is not in force says so."""
    fired.observe("wall", "roof")
    fired.channel()
    assert unsilence(fired) is False
    silence(fired)
    assert unsilence(fired) is True
    assert unsilence(fired) is False
    assert fired.begin() is not None
    first, second = silence(fired, seconds=HOUR), silence(fired, seconds=60)
    assert second < first  # type: ignore[operator]
    assert fired.value("SELECT count(*) FROM livewell.list_silences()") == 1
    fired.advance(61)
    assert fired.value("SELECT count(*) FROM livewell.list_silences()") == 0


def test_nothing_is_silenced_for_ever_and_no_unknown_rule(fired: AlertSession) -> None:
    """Seven days at most."""
    for seconds in (0, -1, 7 * 86400 + 1, float("nan"), float("inf")):
        with pytest.raises(psycopg.Error, match="a silence lasts"):
            silence(fired, seconds=seconds)
    assert silence(fired, rule="nothing") is None


def test_silences_that_are_long_over_are_forgotten(fired: AlertSession) -> None:
    """With the other things of old."""
    silence(fired)
    fired.advance(40 * 86400)
    fired.value("SELECT livewell.prune_alerts(30, 100)")
    assert fired.value("SELECT count(*) FROM livewell.alert_silence") == 0


def test_a_test_goes_through_its_channel_only_and_is_no_alert(fired: AlertSession) -> None:
    """Recorded as every message is."""
    fired.channel(name="other")
    fired.begin("other")
    assert fired.value("SELECT livewell.test_channel('ops')") == "nobody"  # no worker was here
    assert fired.value("SELECT livewell.test_channel('ops')") == "waiting"
    assert fired.channel(name="other") == 0
    assert fired.begin("other") is None
    [(attempt, rule, summary)] = fired.rows("SELECT attempt_id, rule, summary FROM livewell.begin_attempt('ops', 30)")
    assert (rule, "Nothing is wrong" in summary) == ("channel_test", True)
    fired.settle_attempt(attempt, "refused", status=404)
    assert ("ops", "refused", 404) in fired.rows("SELECT name, test_state, test_status FROM livewell.list_channels()")
    assert fired.value("SELECT livewell.test_channel('ops')") == "nobody"
    assert [subject for subject, *_ in shown(fired)] == ["wall"]
    assert fired.rows("SELECT * FROM livewell.list_firings(NULL, 10)") == []


def test_a_channel_that_is_gone_is_not_tested(fired: AlertSession) -> None:
    """Enable it first."""
    fired.rows("UPDATE livewell.alert_channel SET disabled_at = livewell.now() WHERE name = 'ops'")
    assert fired.value("SELECT livewell.test_channel('ops')") == "disabled"
    assert fired.value("SELECT livewell.test_channel('nobody')") == "unknown"
