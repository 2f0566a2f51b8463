"""F-B15: a producer holds its transaction open while others commit, before it and after it.

Its events have low numbers and become visible late. Nobody else waits for it: what others emit
meanwhile arrives while it is open. When it commits, its events arrive too, and none is skipped. On
one key, short transactions are interleaved at random: no event whose transaction began after
another's commit arrives before it.

What it guards against was seen in tests/sql/outbox/test_mark.py, and with numbers from a cache in
tests/races/test_outbox.py.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import psycopg

from tests.faults.outbox_fleet import EMIT, OutboxFleet, open_outbox
from tests.faults.outbox_relay import TOPIC
from tests.faults.scenario import Findings, Scale

CODE = "F-B15"
TITLE = "Transactions that commit late and in another order"

LATE = 5  # events of the long transaction
SHARED = "shared"


async def run(scale: Scale) -> Findings:
    """One long transaction, and many short ones on one key."""
    findings = Findings()
    async with open_outbox(scale) as fleet:
        await fleet.relays(2)
        history: dict[str, tuple[float, float]] = {}
        async with fleet.emitting(3):
            sharing = [asyncio.create_task(_share(fleet, history, scale.pick(30, 500))) for _ in range(4)]
            held = await _hold(fleet, findings, scale.pick(3, 60))
            await asyncio.gather(*sharing)
        findings.fired = LATE + len(history)
        findings.figures["converged_seconds"] = await fleet.converge(findings, 30)
        fleet.audit(findings)
        overtaken = _overtaken([one.id for one in fleet.received() if one.id in history], history)
        findings.check(
            not overtaken, f"{len(overtaken)} overtook what was committed before they began: {overtaken[:3]}"
        )
        findings.figures |= {"shared": len(history), "overtaken": len(overtaken), **held}
    return findings


async def _hold(fleet: OutboxFleet, findings: Findings, seconds: float) -> dict[str, Any]:
    """Emit, wait so long, commit; meanwhile others arrive."""
    async with await psycopg.AsyncConnection.connect(fleet.dsn) as connection:
        await connection.execute("SET idle_in_transaction_session_timeout = 0")
        ids = [
            (await (await connection.execute(EMIT, (TOPIC, f'{{"seq": {n}}}', "late", ""))).fetchone() or [""])[0]
            for n in range(1, LATE + 1)
        ]
        before = len(fleet.received())
        await asyncio.sleep(seconds)
        fleet.emit("quick")
        findings.check(await fleet.arrives("quick"), "another key waited for the long one")
        meanwhile = len(fleet.received()) - before
        findings.check(meanwhile > LATE, f"only {meanwhile} others arrived while it was open")
        findings.check(not {one.id for one in fleet.received()} & set(ids), "an event arrived before its commit")
        await connection.commit()
    fleet.acknowledged.update(ids)
    return {"held_seconds": seconds, "arrived_meanwhile": meanwhile}


async def _share(fleet: OutboxFleet, history: dict[str, tuple[float, float]], n: int) -> None:
    """Transactions on one key: when each began, and when its commit was answered."""
    async with await psycopg.AsyncConnection.connect(fleet.dsn, autocommit=True) as connection:
        for _ in range(n):
            await connection.execute("BEGIN")
            began = time.monotonic()
            await asyncio.sleep(fleet.chance.uniform(0, 0.02))
            row = await (await connection.execute(EMIT, (TOPIC, '{"seq": 1}', SHARED, ""))).fetchone()
            await asyncio.sleep(fleet.chance.uniform(0, 0.02))
            await connection.execute("COMMIT")
            if row is not None:
                history[row[0]] = (began, time.monotonic())
                fleet.acknowledged.add(row[0])


def _overtaken(arrived: list[str], history: dict[str, tuple[float, float]]) -> list[str]:
    """Events that came before one that was committed before they began."""
    latest_begin, found = 0.0, []
    for name in dict.fromkeys(arrived):
        began, committed = history[name]
        if committed < latest_begin:
            found.append(name)
        latest_begin = max(latest_begin, began)
    return found
