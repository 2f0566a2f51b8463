"""observe_alerts and lasting.

An alert fires once, cools, and is armed again only when its condition has been gone for long enough
(R23).
"""

from __future__ import annotations

import psycopg
import pytest

from tests.support.alerts_sql import AlertSession


def test_a_condition_that_holds_fires_once_however_often_it_is_seen(alerts: AlertSession) -> None:
    """No repeats."""
    assert alerts.observe("roof") == (1, 0, 0)
    for _ in range(50):
        alerts.advance(60)
        assert alerts.observe("roof") == (0, 0, 0)
    assert alerts.firings() == 1


def test_a_secret_in_a_subject_is_neither_stored_nor_told(alerts: AlertSession) -> None:
    """L10: as in the summary; and it is one alert, whatever the secret.

    In 0.5.0 the password was in the row and in the webhook.
    """
    for password in ("CANARY", "ANOTHER"):
        alerts.observe(f"https://u:{password}@host/")

    assert (
        alerts.rows("SELECT subject FROM livewell.alert UNION ALL SELECT subject FROM livewell.alert_firing")
        == [("https://u:***@host/",)] * 2
    )
    assert alerts.firings() == 1


def test_a_condition_that_comes_and_goes_is_one_firing(alerts: AlertSession) -> None:
    """No flapping: it is never gone for ten minutes."""
    for _ in range(20):
        alerts.observe("roof")
        alerts.advance(60)
        alerts.observe()
        alerts.advance(9 * 60)
    assert alerts.firings() == 1
    assert alerts.alert_states() == ["cooling"]


def test_gone_for_long_enough_it_is_armed_and_fires_again(alerts: AlertSession) -> None:
    """A second firing with a row of its own; the first has its end."""
    alerts.observe("roof")
    alerts.observe()
    alerts.advance(599)
    assert alerts.observe() == (0, 0, 0)
    alerts.advance(1)
    assert alerts.observe() == (0, 0, 1)
    assert alerts.alert_states() == ["armed"]
    assert alerts.observe("roof") == (1, 0, 0)
    assert alerts.rows("SELECT ended_at IS NOT NULL FROM livewell.alert_firing ORDER BY id") == [(True,), (False,)]
    assert alerts.value("SELECT firings FROM livewell.alert") == 2


def test_it_is_not_armed_in_the_evaluation_that_sees_it_again(alerts: AlertSession) -> None:
    """The condition was away for an hour in which nobody looked, and is back: the same firing."""
    alerts.observe("roof")
    alerts.observe()
    alerts.advance(3600)
    assert alerts.observe("roof") == (0, 0, 0)
    assert alerts.alert_states() == ["fired"]


def test_each_subject_and_each_rule_stands_for_itself(alerts: AlertSession) -> None:
    """One may cool while the other goes on."""
    assert alerts.observe("roof", "wall") == (2, 0, 0)
    assert alerts.observe("roof", rule="rain") == (1, 0, 0)
    assert alerts.observe("wall") == (0, 1, 0)
    assert alerts.alert_states() == ["cooling", "fired", "fired"]


def test_a_subject_that_is_named_twice_fires_once(alerts: AlertSession) -> None:
    """A careless rule does not fail."""
    assert alerts.observe("roof", "roof") == (1, 0, 0)


def test_more_subjects_than_anybody_reads_are_refused(alerts: AlertSession) -> None:
    """A bound, and it says so."""
    with pytest.raises(psycopg.Error, match="at most 1000"):
        alerts.observe(*(str(n) for n in range(1001)))


def test_secrets_in_a_summary_are_masked(alerts: AlertSession) -> None:
    """What a rule says may come from an upstream's words."""
    alerts.rows("SELECT livewell.observe_alerts('sky', 'P1', '1 hour', ARRAY['x'], ARRAY['password=hunter2'])")
    assert alerts.value("SELECT summary FROM livewell.alert_firing") == "password=***"


def lasting(alerts: AlertSession, *subjects: str) -> list[str]:
    return alerts.column(
        "SELECT subject FROM livewell.lasting('deep', %s, '30 minutes', livewell.now())", list(subjects)
    )


def test_a_condition_must_be_seen_at_every_look_for_its_time(alerts: AlertSession) -> None:
    """Once gone, it begins anew."""
    for _ in range(30):
        assert lasting(alerts, "a", "b") == []
        alerts.advance(60)
    assert lasting(alerts, "a") == ["a"]
    alerts.advance(60)
    assert lasting(alerts, "a", "b") == ["a"]
    assert alerts.value("SELECT count(*) FROM livewell.alert_lasting") == 2


def test_what_nobody_looked_at_is_not_known_to_have_lasted(alerts: AlertSession) -> None:
    """The evaluator was away for an hour."""
    lasting(alerts, "a")
    alerts.advance(3600)
    assert lasting(alerts, "a") == []


def test_old_firings_are_forgotten_with_what_was_told_of_them(alerts: AlertSession) -> None:
    """But nothing that still goes on."""
    alerts.observe("old", "new")
    alerts.channel()
    alerts.settle_attempt(alerts.begin())
    alerts.observe("new")
    alerts.advance(600)
    alerts.observe("new")
    alerts.advance(40 * 86400)
    assert alerts.value("SELECT livewell.prune_alerts(30, 100)") == 2
    assert alerts.column("SELECT subject FROM livewell.alert") == ["new"]
    assert alerts.column("SELECT subject FROM livewell.alert_firing") == ["new"]
    assert alerts.value("SELECT livewell.prune_alerts(30, 100)") == 0
