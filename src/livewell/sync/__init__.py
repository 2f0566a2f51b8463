"""Livewell for blocking code: what `app.sync` is made of.

    thread of the caller ──make a coroutine──▶ Portal ──▶ one event loop, one thread, the async API itself
                         ◀──answer or error──

call.py         one coroutine, and the thread that waits for it
portal.py       the way into a running loop
thread.py       the thread and the loop, where the app has none of its own
opening.py      when app.sync is open, and in which loop
mirror.py       makes a blocking method of an async one
transaction.py  a transaction that blocking code holds open
admin.py        what people do with a queue
facade.py       Sync, the object behind `app.sync`

Nothing here knows how a job is enqueued or a list is read: that is written once, async.
"""

from livewell.sync.facade import Sync
from livewell.sync.transaction import SyncTransaction

__all__ = ["Sync", "SyncTransaction"]
