"""Install and upgrade the schema, and say whether it fits this release.

    nothing ──migrate──▶ current ──a new package──▶ older ──migrate──▶ current
                            │
                            ├──changed by hand──▶ drift ──migrate (functions), by hand (tables)──▶ current
                            └──someone else's newer package migrated──▶ newer: fine for a worker of the same or the previous minor version

`bundle` reads the SQL files of this package, `state` what a database has, `plan` compares the two, `script` turns the difference into SQL, `apply` runs it in one
polite transaction. `render` writes the same SQL for a person to run.
"""

from livewell.db.migrate.apply import MigrationReport, migrate
from livewell.db.migrate.bundle import Bundle
from livewell.db.migrate.check import Problem, check, require_current
from livewell.db.migrate.script import render

__all__ = ["Bundle", "MigrationReport", "Problem", "check", "migrate", "render", "require_current"]
