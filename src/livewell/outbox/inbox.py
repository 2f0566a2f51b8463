"""Handle an event once: `async with app.inbox(event.id, consumer="billing") as first: …`.

    the mark is new ──block ends──▶ mark and effects commit together
        │             └──block raises, process dies──▶ neither is there; the next delivery is the first
    the mark is there ──▶ `first` is false: acknowledge and do nothing
    another copy is being handled ──▶ wait for its end, then one of the two above

Events arrive at least once, each time with the same id. The mark (consumer, id) is written in the
transaction in which the handler works, so its effects in this database happen exactly once. Effects
elsewhere (a mail, a call) do not: they may be there although the transaction rolled back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from livewell.db import Transaction
from livewell.db.foreign import Foreign, fetch_in
from livewell.db.open_app import OpenApp

_SEE = "SELECT livewell.see_event(%s, %s)"
T = TypeVar("T")
Tx = TypeVar("Tx", bound=Transaction | Foreign)


@dataclass(frozen=True, slots=True)
class Sight(Generic[T]):
    """What an inbox answers: true if the consumer sees the event for the first time.

    tx: the transaction that the mark is in. Work in it: then the effects commit with the mark.
    """

    is_first: bool
    tx: T

    def __bool__(self) -> bool:
        return self.is_first


class Inbox:
    """`app.inbox` of an open app."""

    def __init__(self, app: OpenApp) -> None:
        self._database = app.database

    @overload
    def __call__(self, event_id: str, *, consumer: str) -> AbstractAsyncContextManager[Sight[Transaction]]: ...

    @overload
    def __call__(self, event_id: str, *, consumer: str, tx: Tx) -> AbstractAsyncContextManager[Sight[Tx]]: ...

    def __call__(self, event_id: str, *, consumer: str, tx: Any = None) -> AbstractAsyncContextManager[Sight[Any]]:
        """Enter it around what the event causes.

        consumer: who handles it; each consumer sees an event once. With tx the mark is in that
        transaction, and an error must leave it too. Without, a transaction is opened for the block
        and given as `first.tx`; it commits when the block ends and rolls back when it raises.
        """
        return self._in(event_id, consumer, tx)

    @asynccontextmanager
    async def _in(self, event_id: str, consumer: str, tx: Any) -> AsyncIterator[Sight[Any]]:
        if tx is not None:
            yield Sight(await self.see(event_id, consumer, tx), tx)
            return
        async with self._database.transaction() as own:
            yield Sight(await self.see(event_id, consumer, own), own)

    async def see(self, event_id: str, consumer: str, tx: Transaction | Foreign) -> bool:
        """Mark an event as seen in this transaction; False if it was before."""
        [(is_first,)] = await fetch_in(tx, _SEE, (consumer, event_id), open_only=True)
        return bool(is_first)
