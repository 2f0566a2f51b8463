"""Postgres: connections with deadlines, notifications, migrations, the embedded server.

Only this package imports psycopg. Everything above speaks to the database through Database, Transaction and Listener.
"""

from livewell.db.connection import Row
from livewell.db.database import Database, Transaction
from livewell.db.listen import Listener
from livewell.db.presence import Presence

__all__ = ["Database", "Listener", "Presence", "Row", "Transaction"]
