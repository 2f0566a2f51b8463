"""What an open app gives to code that acts on its database.

Livewell is such an app, but lower packages may not import it.
"""

from __future__ import annotations

from typing import Protocol

from livewell.db import Database
from livewell.db.nudge import Nudger


class OpenApp(Protocol):
    """An app with an open database."""

    @property
    def database(self) -> Database:
        """The open database; raises LivewellError when there is none."""

    @property
    def nudger(self) -> Nudger:
        """Wakes waiting workers."""
