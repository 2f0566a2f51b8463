"""Consumers that are killed between effect and acknowledgement, and a broker that delivers again.

    unacknowledged ──delivered to two consumers, twice each──▶ effect ──commit──▶ acknowledged
          ▲                                     │                │
          └──────────────────── kill -9 ────────┴────────────────┘

The broker is this process. It knows what was acknowledged from a pipe, so a consumer that is killed
leaves nothing behind but its commits.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from contextlib import suppress

from livewell import Livewell

EVENTS = [f"shop-{n:02}" for n in range(12)]
ROUNDS_WITH_KILLS = 6
app = Livewell()
careless = "careless" in sys.argv


def consume(deliveries: list[str], dies_at: int, dies_before_commit: bool, acknowledge: int) -> None:
    """Handle each delivery; die at one of them."""
    for n, event_id in enumerate(deliveries):
        with app.sync.inbox(event_id, consumer="billing") as first:
            if first or careless:
                first.tx.execute("INSERT INTO effect VALUES (%s)", (event_id,))
            if n == dies_at and dies_before_commit:
                os.kill(os.getpid(), signal.SIGKILL)
        if n == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(acknowledge, f"{event_id}\n".encode())


def main() -> None:
    """Deliver until everything is acknowledged."""
    dice = random.Random(7)
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    left, killed, delivered, rounds = set(EVENTS), 0, 0, 0
    while left:
        children = []
        for n in range(2):
            deliveries = sorted(left) * 2
            dice.shuffle(deliveries)
            delivered += len(deliveries)
            dies_at = dice.randrange(min(3, len(deliveries))) if rounds < ROUNDS_WITH_KILLS else -1
            child = os.fork()
            if child == 0:
                consume(deliveries, dies_at, (rounds + n) % 2 == 0, writes)
                os._exit(0)
            children.append(child)
        for child in children:
            killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        with suppress(BlockingIOError):  # nobody lived to acknowledge anything
            left -= set(os.read(reads, 65_536).decode().split())
        rounds += 1
    print(f"events={len(EVENTS)} deliveries={delivered} killed={killed}")


if __name__ == "__main__":
    main()
