"""However evaluators and senders meet, a firing is one firing, and one attempt at a time is under way."""

from __future__ import annotations

import pytest

from tests.support.alerts_sql import AlertSession
from tests.support.interleave import Given, Outcome, session, violations
from tests.support.variants import Change, variant

OBSERVE = "SELECT fired FROM livewell.observe_alerts('sky', 'P1', '10 minutes', ARRAY['roof'], ARRAY['falling'])"
EVALUATE = "SELECT answer, fired FROM livewell.evaluate_rule('queue_deep')"
BEGIN = "SELECT attempt_id FROM livewell.begin_attempt('ops', 30)"
SILENCE = "SELECT livewell.silence_alerts('sky', '', 3600, 'test')"
ATTEMPTS = "SELECT count(*) FROM livewell.notification_attempt"
TEST = "SELECT livewell.test_channel('ops')"
SETTLE = "SELECT livewell.settle_attempt(%(attempt)s, '{0}', 200, 'x', true)"

NO_RULE_LOCK: Change = ("PERFORM FROM livewell.alert_rule r WHERE r.name = p_rule FOR UPDATE;", "")
EARLY: tuple[Change, ...] = (
    NO_RULE_LOCK,
    (
        "    UPDATE livewell.alert_rule r SET level = p_level, hysteresis = p_hysteresis, evaluated_at = v_now WHERE r.name = p_rule;\n",
        "",
    ),
    (
        "    INSERT INTO livewell.alert_rule (name, level, hysteresis) VALUES (p_rule, p_level, p_hysteresis) ON CONFLICT (name) DO NOTHING;\n",
        "",
    ),
)
NO_CHANNEL_LOCK: tuple[Change, ...] = (
    ("WHERE c.name = p_channel FOR UPDATE;", "WHERE c.name = p_channel;"),
    (" FOR UPDATE OF n SKIP LOCKED;", ";"),
)
NO_SILENCE_LOCK: Change = ("PERFORM FROM livewell.alert_channel c ORDER BY c.name FOR UPDATE;", "")


async def evaluators(alerts: AlertSession, dsn: str, *, known: bool) -> list[str]:
    """Three see the same condition for the first time, or after it was armed again."""

    def prepare() -> Given:
        alerts.reset()
        if known:
            alerts.observe("roof")
            alerts.observe()
            alerts.advance(601)
            alerts.observe()
        return {"before": alerts.firings()}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        made = alerts.firings() - outcome.given["before"]
        alerts.channel()
        told = alerts.value("SELECT count(*) FROM livewell.notification") - outcome.given["before"]
        return None if (made, told) == (1, 1) else f"{made} firings, {told} notifications"

    sessions = [session(name, OBSERVE) for name in ("a", "b", "c")]
    return await violations(dsn, sessions, prepare=prepare, judge=judge)


@pytest.mark.parametrize("known", [False, True])
async def test_three_evaluators_fire_once(alerts: AlertSession, queue_dsn: str, known: bool) -> None:
    """In all 90 orders."""
    assert await evaluators(alerts, queue_dsn, known=known) == []


async def test_without_the_rules_lock_they_fire_more_than_once(alerts: AlertSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "observe_alerts", *EARLY):
        assert any("firings" in line for line in await evaluators(alerts, queue_dsn, known=True))


async def test_a_rule_with_a_history_is_counted_once(alerts: AlertSession, queue_dsn: str) -> None:
    """Two evaluate the same rule at the moment its time is reached."""

    def prepare() -> Given:
        alerts.reset()
        alerts.enqueue(1001)
        for _ in range(30):
            alerts.evaluate("queue_deep")
            alerts.advance(60)
        return {}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        return None if alerts.firings() == 1 else f"{alerts.firings()} firings"

    found = await violations(queue_dsn, [session("a", EVALUATE), session("b", EVALUATE)], prepare=prepare, judge=judge)
    assert found == []


async def senders(alerts: AlertSession, dsn: str) -> list[str]:
    """Two begin, and a third settles an attempt that was refused for now."""

    def prepare() -> Given:
        alerts.reset()
        alerts.observe("roof")
        alerts.channel()
        attempt = alerts.begin()
        alerts.rows("UPDATE livewell.notification SET next_at = livewell.now() - interval '1 hour'")
        return {"attempt": attempt}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        begun = [name for name in ("a", "b") if outcome.answer(name)]
        under_way = alerts.value("SELECT count(*) FROM livewell.notification_attempt WHERE outcome = 'pending'")
        if len(begun) > 1 or under_way > 1:
            return f"{begun} send at once"
        return None

    return await violations(
        dsn,
        [session("a", BEGIN), session("b", BEGIN), session("settles", SETTLE.format("refused"))],
        prepare=prepare,
        judge=judge,
    )


async def test_one_attempt_is_under_way_at_a_time(alerts: AlertSession, queue_dsn: str) -> None:
    """Whoever begins, and whenever the last one is settled."""
    assert await senders(alerts, queue_dsn) == []


async def test_without_the_channels_lock_two_send_at_once(alerts: AlertSession, queue_dsn: str) -> None:
    """Broken on purpose: both take the same notification."""

    def prepare() -> Given:
        alerts.reset()
        alerts.observe("roof")
        alerts.channel()
        return {}

    def judge(outcome: Outcome) -> str | None:
        begun = [name for name in ("a", "b") if outcome.answer(name)]
        return f"{begun} send at once" if len(begun) > 1 else None

    pair = [session("a", BEGIN), session("b", BEGIN)]
    assert await violations(queue_dsn, pair, prepare=prepare, judge=judge) == []
    with variant(queue_dsn, "begin_attempt", *NO_CHANNEL_LOCK):
        assert any("at once" in line for line in await violations(queue_dsn, pair, prepare=prepare, judge=judge))


async def test_a_yes_is_never_lost_to_somebody_who_gives_up(alerts: AlertSession, queue_dsn: str) -> None:
    """The sender settles at the moment its lease is found to have run out."""

    def prepare() -> Given:
        alerts.reset()
        alerts.observe("roof")
        alerts.channel()
        attempt = alerts.begin()
        alerts.advance(31)
        return {"attempt": attempt}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        return None if alerts.told() == ["sent"] else f"it is {alerts.told()}"

    sessions = [session("sender", SETTLE.format("sent")), session("expires", "SELECT livewell.expire_attempts(10)")]
    assert await violations(queue_dsn, sessions, prepare=prepare, judge=judge) == []


async def silenced(alerts: AlertSession, dsn: str) -> list[str]:
    """A sender begins while somebody silences the rule, and then counts what was begun."""

    def prepare() -> Given:
        alerts.reset()
        alerts.observe("roof")
        alerts.channel()
        return {}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        [(seen,)] = outcome.answer("silences", 1)
        begun = alerts.value(ATTEMPTS)
        return None if seen == begun else f"{seen} attempts when the silence had begun, then {begun}"

    sessions = [session("sends", BEGIN), session("silences", SILENCE, ATTEMPTS)]
    return await violations(dsn, sessions, prepare=prepare, judge=judge)


async def test_nothing_begins_after_a_silence(alerts: AlertSession, queue_dsn: str) -> None:
    """Whoever sends holds the channel; a silence waits for it, and is known to the next."""
    assert await silenced(alerts, queue_dsn) == []


async def test_without_the_lock_of_all_channels_an_attempt_begins_in_silence(
    alerts: AlertSession, queue_dsn: str
) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "silence_alerts", NO_SILENCE_LOCK):
        assert any("then 1" in line for line in await silenced(alerts, queue_dsn))


async def test_two_who_test_a_channel_at_once_make_one_message(alerts: AlertSession, queue_dsn: str) -> None:
    """The second is told that the first waits."""

    def prepare() -> Given:
        alerts.reset()
        alerts.channel()
        return {}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        made = alerts.firings()
        return None if made == 1 else f"{made} messages"

    pair = [session("a", TEST), session("b", TEST)]
    assert await violations(queue_dsn, pair, prepare=prepare, judge=judge) == []
    with variant(queue_dsn, "test_channel", ("WHERE c.name = p_channel FOR UPDATE;", "WHERE c.name = p_channel;")):
        assert any("messages" in line for line in await violations(queue_dsn, pair, prepare=prepare, judge=judge))
