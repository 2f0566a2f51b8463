"""Turns: a task with much to do does a little of it in each round of the event loop.

So rounds stay short.

    ask ──a turn is left in this round──▶ go on
     └───none is──▶ wait ──next round──▶ go on, in the order of asking

A change takes several rounds from the listener to the client. When 200 clients come at once with a
thousand keys each, a round in which all of them send a part takes 80 ms; with turns it takes a few.
"""

from __future__ import annotations

import asyncio
from collections import deque

PER_ROUND = 4


class LoopTurns:
    """The turns of one event loop."""

    def __init__(self, per_round: int = PER_ROUND) -> None:
        self._per_round = per_round
        self._left = per_round
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._round_ends = False

    async def take(self) -> None:
        """Wait for a turn; bounded by those who asked before."""
        loop = asyncio.get_running_loop()
        if not self._round_ends:
            self._round_ends = True
            loop.call_soon(self._next_round)
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self) -> None:
        self._left = self._per_round
        while self._waiting and self._left > 0:
            turn = self._waiting.popleft()
            if not turn.done():  # done: the task that asked was cancelled
                turn.set_result(None)
                self._left -= 1
        self._round_ends = bool(self._waiting)
        if self._round_ends:
            asyncio.get_running_loop().call_soon(self._next_round)
