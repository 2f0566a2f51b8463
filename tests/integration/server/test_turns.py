"""Turns: nobody who has much to do makes a round of the event loop long."""

from __future__ import annotations

import asyncio

from livewell.server.streams.loop_turns import LoopTurns


async def test_so_many_go_on_in_each_round_in_the_order_of_asking() -> None:
    """Twenty ask at once, three may in a round; somebody who needs no turn is served in between."""
    turns, done = LoopTurns(3), list[int]()

    async def work(number: int) -> None:
        await turns.take()
        done.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(20)]
    rounds = []
    while len(done) < 20:
        before = len(done)
        await asyncio.sleep(0)
        rounds.append(len(done) - before)

    assert done == list(range(20))
    assert max(rounds) <= 3
    await asyncio.gather(*tasks)


async def test_who_gives_up_takes_nobodys_turn() -> None:
    """And a turn that nobody waits for costs nothing."""
    turns = LoopTurns(1)
    await turns.take()
    waiting = [asyncio.create_task(turns.take()) for _ in range(5)]
    await asyncio.sleep(0)
    for task in waiting[:4]:
        task.cancel()

    async with asyncio.timeout(5):
        await waiting[4]
    await turns.take()
