"""list_urgent_alerts: the worst first, over all pages."""

from __future__ import annotations

import random

from tests.support.alerts_sql import AlertSession

LIST = "SELECT state, level, id FROM livewell.list_urgent_alerts(%s, %s, %s, %s)"
FILL = """
INSERT INTO livewell.alert (rule, subject, state, level, summary, fired_at, clear_since)
VALUES ('wall', %s, %s::livewell.alert_state, %s, 'wet', now(), CASE WHEN %s = 'cooling' THEN now() END)
"""


def test_pages_go_on_by_state_level_and_number(alerts: AlertSession) -> None:
    """In any order of numbers: the last P0 that fired comes before the first P1.

    Before, pages were by number, and each was sorted by itself.
    """
    dice = random.Random(7)
    alerts.rows("DELETE FROM livewell.alert")
    for n in range(40):
        state = dice.choice(("fired", "cooling", "armed"))
        alerts.rows(FILL, f"s{n}", state, dice.choice(("P0", "P1", "P2")), state)
    wanted = alerts.rows(
        "SELECT state::text, level, id FROM livewell.alert WHERE state <> 'armed' ORDER BY state <> 'fired', level, id"
    )

    seen, place = [], (None, None, None)
    while page := alerts.rows(LIST, *place, 3):
        seen += page
        state, level, number = page[-1]
        place = (state == "cooling", level, number)
    assert seen == wanted


def test_the_order_is_read_from_its_index(alerts: AlertSession) -> None:
    """A page of many alerts reads a page."""
    alerts.rows(
        "INSERT INTO livewell.alert (rule, subject, state, level, summary) "
        "SELECT 'many', 's' || n, CASE WHEN n % 50 = 0 THEN 'fired' ELSE 'armed' END::livewell.alert_state, 'P1', 'x' "
        "FROM generate_series(1, 20000) n"
    )
    plan = alerts.column(
        "EXPLAIN SELECT a.id FROM livewell.alert a WHERE a.state <> 'armed' "
        "ORDER BY a.state <> 'fired', a.level, a.id LIMIT 50"
    )
    assert "alert_urgent_idx" in "\n".join(plan)
