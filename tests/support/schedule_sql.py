"""The schedule functions as a test speaks them.

A schedule by its rule, a slot by its number of minutes, and what became of it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.support.queue_sql import QueueSession, Row

TABLES = ("run", "schedule", "pulse", "singleton")
NAME = "nightly"
MINUTE = timedelta(minutes=1)
BEGIN = "SELECT answer, run_id, fence, wait_seconds FROM livewell.begin_run(%s, %s, %s, %s, %s, %s, %s, %s, %s)"


class ScheduleSession(QueueSession):
    """One session on one connection."""

    def reset(self) -> None:
        """Empty everything; one schedule that is due every minute, and due now."""
        self.connection.execute("; ".join(f"DELETE FROM livewell.{table}" for table in TABLES).encode())
        super().reset()
        self.every()

    def every(
        self,
        name: str = NAME,
        *,
        every: timedelta = MINUTE,
        missed: str = "once",
        timeout: float = 3600,
        at_once: bool = True,
    ) -> None:
        """Declare an interval."""
        self.rows(
            "SELECT livewell.declare_schedule(%s, 'interval', NULL, NULL, %s, NULL, %s, %s * interval '1 "
            "second', false, %s)",
            name,
            every,
            missed,
            timeout,
            at_once,
        )

    def cron(self, text: str = "0 2 * * *", zone: str = "UTC", *, name: str = NAME, missed: str = "once") -> None:
        """Declare a cron text."""
        self.rows(
            "SELECT livewell.declare_schedule(%s, 'cron', %s, %s, NULL, NULL, %s, interval '1 hour', false, false)",
            name,
            text,
            zone,
            missed,
        )

    def due(self, name: str = NAME) -> datetime:
        """The slot that is next."""
        at: datetime = self.value("SELECT due_at FROM livewell.schedule WHERE name = %s", name)
        return at

    def begin(
        self, who: str = "a", *, name: str = NAME, lease: float = 60, slots: int = 1, after: timedelta = MINUTE
    ) -> dict[str, Any]:
        """Begin the last of so many due slots, as a scheduler does; the ones before are missed."""
        due = self.due(name)
        slot = due + after * (slots - 1)
        answer, run, fence, wait = self.rows(
            BEGIN,
            name,
            who,
            due,
            slot,
            slot + after,
            after,
            slots - 1,
            slot - after if slots > 1 else None,
            timedelta(seconds=lease),
        )[0]
        return {"answer": answer, "run": run, "fence": fence, "wait": wait}

    def close_run(
        self, begun: dict[str, Any], *, ok: bool = True, error: str | None = None, rows: int | None = None
    ) -> bool:
        return bool(
            self.value("SELECT livewell.finish_run(%s, %s, %s, %s, %s)", begun["run"], begun["fence"], ok, error, rows)
        )

    def keep(self, begun: dict[str, Any], lease: float = 60) -> bool:
        return bool(
            self.value("SELECT livewell.renew_run(%s, %s, %s)", begun["run"], begun["fence"], timedelta(seconds=lease))
        )

    def tick(self, *names: str) -> list[Row]:
        """What is due of these."""
        return self.rows("SELECT * FROM livewell.tick_schedules(%s, 'test')", list(names or (NAME,)))

    def runs(self, *columns: str) -> list[Row]:
        """The history, oldest first."""
        return self.rows(f"SELECT {', '.join(columns or ('state::text', 'reason'))} FROM livewell.run ORDER BY id")

    def late(self) -> list[str]:
        """Names of what is late."""
        return [str(name) for name in self.column("SELECT name FROM livewell.late_schedules()")]

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.rows("UPDATE livewell_test.clock SET ahead = ahead + %s * interval '1 second'", seconds)

    def freeze(self) -> None:
        """Stop the clock; advance still moves it."""
        self.rows("UPDATE livewell_test.clock SET frozen_at = clock_timestamp()")
