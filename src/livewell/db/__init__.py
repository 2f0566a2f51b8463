"""Postgres. Only this package imports psycopg.

Everything above speaks to the database through Database, Transaction and Listener.

database.py    the pool, single calls and transactions
connection.py  one connection with a deadline on every call; errors turned into ours
link.py        a connection of one's own, past the pool
session.py     what our sessions need, whatever the server's defaults are
listen.py      hear nudges, and notice when nothing is heard
foreign.py     a transaction that the caller opened, with whatever library
foreign_kind.py      which library that is, and how a transaction is opened there
async_foreign.py     one statement in it, async
blocking_foreign.py  the same, blocking
nudge.py       wake others without NOTIFY in anybody's transaction
presence.py    is the database there?
acts.py        who is acting, and what was done
prepare.py     find the server, and bring its schema up to date
migrate/       install and upgrade the schema
embedded/      a Postgres server of our own
scratch.py     databases for tests and demos
open_app.py    what every opened app has of the database
capability.py  what the database offers to the rest
"""

from livewell.db.connection import Row
from livewell.db.database import Database, Transaction
from livewell.db.listen import Listener
from livewell.db.presence import Presence

__all__ = ["Database", "Listener", "Presence", "Row", "Transaction"]
