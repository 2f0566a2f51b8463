"""What an open app gives to whoever acts on its database.

Livewell, of which lower packages may not know.
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
