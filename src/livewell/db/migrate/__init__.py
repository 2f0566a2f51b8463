"""Install and upgrade the schema, and say whether it fits this release.

    nothing ──migrate──▶ current ──a new package──▶ older ──migrate──▶ current
                            │
                            ├──changed by hand──▶ drift ──migrate (functions), by hand (tables)──▶ current
                            └──someone else's newer package migrated──▶ newer: fine for a worker of the same or the previous minor version

bundle.py  the SQL files that this release carries
state.py   what a database has
plan.py    the difference between the two
script.py  the difference as SQL, to be run or to be read by a DBA
apply.py   runs it, in one transaction that keeps nobody waiting
check.py   says whether a schema fits this release
"""

from livewell.db.migrate.apply import MigrationReport, migrate
from livewell.db.migrate.bundle import Bundle
from livewell.db.migrate.check import Problem, check, require_current
from livewell.db.migrate.script import render

__all__ = ["Bundle", "MigrationReport", "Problem", "check", "migrate", "render", "require_current"]
