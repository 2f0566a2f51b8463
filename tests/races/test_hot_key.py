"""One key that everybody looks at.

Thousands subscribe at once, beside a due check that dispatches it again and again.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.support.refresh_sql import RefreshSession

CLIENTS = 8
EACH = 60
WAITS = (
    "SELECT coalesce(max(extract(epoch FROM pg_catalog.clock_timestamp() - l.waitstart)), 0)::float8 FROM "
    "pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT l.granted AND d.datname = current_database()"
)


def test_nobody_waits_for_a_lock_on_a_hot_key_and_it_is_dispatched_every_time(
    refresh: RefreshSession, queue_dsn: str
) -> None:
    """Share locks do not meet each other, nor the lock of a dispatch.

    No wait of 50 ms is ever seen.
    """
    refresh.subscribe(refresh.open("first"), "AAPL", user="first")
    fence = refresh.hold()
    over = threading.Event()

    def client(number: int) -> int:
        with RefreshSession(queue_dsn) as mine:
            for n in range(EACH):
                user = f"user {number} {n}"
                mine.subscribe(mine.open(user), "AAPL", user=user)
        return EACH

    def look() -> float:
        longest = 0.0
        with RefreshSession(queue_dsn) as mine:
            while not over.is_set():
                longest = max(longest, mine.value(WAITS))
        return longest

    dispatched = []
    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        looking = pool.submit(look)
        clients = [pool.submit(client, number) for number in range(CLIENTS)]
        give_up = time.monotonic() + 60
        while not all(one.done() for one in clients):
            refresh.rows("UPDATE livewell.ledger SET due_at = livewell.now(), demanded_at = livewell.now()")
            refresh.rows("DELETE FROM livewell.job")
            dispatched.append(refresh.dispatch(fence)["inserted"])
            assert time.monotonic() < give_up, "the subscribers do not come to an end"
        over.set()
        longest = looking.result()

    assert sum(one.result() for one in clients) == CLIENTS * EACH
    assert refresh.viewers() == CLIENTS * EACH + 1
    assert set(dispatched) == {1}, "a dispatch skipped the key because somebody was subscribing to it"
    assert longest < 0.05
