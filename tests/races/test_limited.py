"""Claims of limited queues beside each other: who waited for the locks has not lost the time."""

from __future__ import annotations

import threading
import time

from tests.support.queue_sql import QueueSession

PERMIT = "SELECT permit_seconds FROM livewell.claim_limited(%s, 'work', 1)"
MORE = "SELECT permit_seconds FROM livewell.take_permits(%s, %s, %s, 1)"
HELD_SECONDS = 0.3


def while_locked(queue: QueueSession, other: QueueSession, query: str, *params: object) -> float:
    """Ask while another session holds the limiter and its queue; answers the permit's seconds."""
    answers: list[float] = []
    asking = threading.Thread(target=lambda: answers.append(queue.value(query, *params)))
    with other.connection.transaction():
        other.rows("SELECT FROM livewell.queue FOR NO KEY UPDATE")
        other.rows("SELECT FROM livewell.limiter FOR NO KEY UPDATE")
        asking.start()
        time.sleep(HELD_SECONDS)  # real waiting is what is measured
    asking.join()
    return answers[0]


def test_a_permit_lasts_from_the_grant_and_not_from_the_wait_for_it(queue: QueueSession, other: QueueSession) -> None:
    """The worker counts from the sending of its claim.

    What it waited inside is added, else twenty that ask at once burn each other's permits. Seen to
    fail without.
    """
    queue.limiter(rate_calls=60, rate_seconds=60, permit_seconds=1)
    queue.declare(limiter="api")
    queue.enqueue(2)
    begun = time.monotonic()
    permit = while_locked(queue, other, PERMIT, queue.register())
    assert 1 + HELD_SECONDS * 0.5 < permit <= 1 + time.monotonic() - begun

    [claim] = queue.claim_limited(queue.register(), calls=1)
    begun = time.monotonic()
    permit = while_locked(queue, other, MORE, claim.worker, claim.id, claim.fence)
    assert 1 + HELD_SECONDS * 0.5 < permit <= 1 + time.monotonic() - begun
