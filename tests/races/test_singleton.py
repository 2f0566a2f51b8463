"""Singletons: there is one holder at a time, and an old term opens nothing.

That holds however acquirers, renewals, releases and work meet.
"""

from __future__ import annotations

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.refresh_sql import RefreshSession
from tests.support.variants import Change, variant

ACQUIRE = "SELECT answer, fence FROM livewell.acquire_singleton('work', '{0}', {1}, interval '1 minute')"
HOLD = "SELECT livewell.hold_singleton('work', %(fence)s)"

NO_LOCK: Change = ("WHERE s.name = p_name FOR NO KEY UPDATE;", "WHERE s.name = p_name;")
OLD_FENCE: Change = ("IF v_row.expires_at > v_now THEN", "IF v_row.expires_at > v_now OR p_fence IS NOT NULL THEN")


async def acquirers(refresh: RefreshSession, dsn: str) -> list[str]:
    """A frozen holder renews a term that has run out, while two others ask for it."""

    def prepare() -> Given:
        refresh.reset()
        fence = refresh.hold("work")
        refresh.rows("UPDATE livewell.singleton SET expires_at = livewell.now() - interval '1 second'")
        return {"fence": fence}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        held = {name: rows[0][1] for name in ("frozen", "b", "c") if (rows := outcome.answer(name))[0][0] == "held"}
        if len(held) != 1:
            return f"{sorted(held)} hold it at once"
        return None if held != {"frozen": outcome.given["fence"]} else "an old term was renewed"

    return await violations(
        dsn,
        [
            session("frozen", ACQUIRE.format("a", "%(fence)s")),
            session("b", ACQUIRE.format("b", "NULL")),
            session("c", ACQUIRE.format("c", "NULL")),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_one_of_three_gets_it_and_never_under_the_old_fence(refresh: RefreshSession, queue_dsn: str) -> None:
    """In all 90 orders."""
    assert await acquirers(refresh, queue_dsn) == []


async def test_without_the_rows_lock_several_hold_it(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "acquire_singleton", NO_LOCK):
        assert any("hold it at once" in line for line in await acquirers(refresh, queue_dsn))


async def test_if_an_old_term_could_be_renewed_it_would_be(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose: the frozen holder goes on as if nothing had happened."""
    with variant(queue_dsn, "acquire_singleton", OLD_FENCE):
        assert any("old term was renewed" in line for line in await acquirers(refresh, queue_dsn))
