"""A transaction that blocking code holds open.

    begin ──▶ held ──block ends──▶ commit ──▶ on_commit (nudges)
               └──block raises, app.sync closes──▶ cancelled ──▶ rollback

One coroutine holds the async transaction from begin to end, so that it is closed whatever happens
to the thread; each statement is a call of its own. A thread that never ends its block is bounded by
the server (idle_in_transaction_seconds), as in async code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress

from livewell.db import Transaction
from livewell.errors import DatabaseUnavailable
from livewell.sync.call import Call
from livewell.sync.mirror import Mirror, blocking
from livewell.sync.portal import Portal


class SyncTransaction(Mirror[Transaction]):
    """One open transaction; give it as tx= to whatever shall commit with it."""

    def __init__(self, portal: Portal, transaction: Transaction) -> None:
        super().__init__(lambda: portal, lambda: transaction)
        self.held = transaction

    execute = blocking(Transaction.execute)
    fetch = blocking(Transaction.fetch)


@contextmanager
def held(portal: Portal, begin: Callable[[], AbstractAsyncContextManager[Transaction]]) -> Iterator[SyncTransaction]:
    """Begin; commit when the block ends, roll back when it raises."""
    begun: list[Transaction] = []
    ended = asyncio.Event()

    async def hold(call: Call[Transaction]) -> Transaction:
        async with begin() as transaction:
            begun.append(transaction)
            call.ready()
            await ended.wait()
        return transaction

    with portal.call(hold) as call:
        call.start()
        call.wait(portal.wait_seconds)
        transaction = begun[0] if begun else call.result()  # result() raises why it did not begin
        try:
            yield SyncTransaction(portal, transaction)
        except BaseException:
            _roll_back(call, portal.wait_seconds)
            raise
        portal.send(ended.set)
        call.wait(portal.wait_seconds)
        call.result()


def _roll_back(call: Call[Transaction], seconds: float) -> None:
    """Wait for it: whoever handles the error must not meet locks of ours.

    Without an answer the server does it by itself.
    """
    if call.cancel():
        with suppress(DatabaseUnavailable):
            call.wait(seconds)
