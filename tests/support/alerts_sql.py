"""Alerts as a test speaks them: rules evaluated, what is wrong, what was told.

On rows that the product's own functions made.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.outbox_sql import TABLES as OUTBOX_TABLES
from tests.support.queue_sql import Row
from tests.support.store_sql import StoreSession

TABLES = (
    "notification_attempt",
    "notification",
    "alert_firing",
    "alert",
    "alert_channel",
    "alert_rule",
    "alert_lasting",
    "alert_silence",
    "run",
    "schedule",
    "pulse",
)
CHANNEL = {"name": "ops", "kind": "discord", "source": "env:OPS", "level": "P2", "repeats": False}


class AlertSession(StoreSession):
    """One session on one connection; the clock stands still until it is moved."""

    def reset(self) -> None:
        self.connection.execute(
            "; ".join(f"DELETE FROM livewell.{table}" for table in (*TABLES, *OUTBOX_TABLES)).encode()
        )
        super().reset()

    # -- rules ------------------------------------------------------------------------------------

    def observe(self, *subjects: str, rule: str = "sky", level: str = "P1", hysteresis: str = "10 minutes") -> Row:
        """This rule's condition holds for these subjects now: (fired, cooled, rearmed)."""
        return self.rows(
            "SELECT * FROM livewell.observe_alerts(%s, %s, %s::interval, %s, %s)",
            rule,
            level,
            hysteresis,
            list(subjects),
            [f"the {subject} is falling" for subject in subjects],
        )[0]

    def evaluate(self, rule: str) -> Row:
        """(answer, fired, cooled, rearmed)."""
        return self.rows("SELECT * FROM livewell.evaluate_rule(%s)", rule)[0]

    def alert_states(self) -> list[str]:
        """Every alert's state, by number."""
        return self.column("SELECT state::text FROM livewell.alert ORDER BY id")

    def firings(self) -> int:
        return int(self.value("SELECT count(*) FROM livewell.alert_firing"))

    # -- telling ----------------------------------------------------------------------------------

    def channel(self, **columns: Any) -> int:
        """Declare one channel; answers how many notifications that made."""
        return int(self.value("SELECT livewell.declare_channels(%s::jsonb, 100)", json.dumps([{**CHANNEL, **columns}])))

    def begin(self, channel: str = "ops", *, lease: float = 30) -> int | None:
        """The number of an attempt, or None when there is nothing to send."""
        rows = self.rows("SELECT attempt_id FROM livewell.begin_attempt(%s, %s)", channel, lease)
        return int(rows[0][0]) if rows else None

    def settle_attempt(
        self,
        attempt: int | None,
        outcome: str = "sent",
        *,
        status: int | None = None,
        again: bool = False,
        quiet: float | None = None,
        gone: bool = False,
    ) -> str:
        """The state of the notification afterwards."""
        return str(
            self.value(
                "SELECT livewell.settle_attempt(%s, %s, %s, 'as a test says', %s, %s, %s)",
                attempt,
                outcome,
                status,
                again,
                quiet,
                gone,
            )
        )

    def expire_attempts(self) -> int:
        return int(self.value("SELECT livewell.expire_attempts(100)"))

    def told(self) -> list[str]:
        """The state of every notification."""
        return self.column("SELECT state::text FROM livewell.notification ORDER BY firing_id, channel")

    def warnings(self, place: str = "alerts") -> list[str]:
        return self.column("SELECT what FROM livewell.warning WHERE place = %s ORDER BY what", place)
