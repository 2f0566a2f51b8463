"""What an app has while it is open: the database, the way to wake workers, the way to enqueue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.queue.enqueue import Enqueuer
from livewell.settings import Settings


@dataclass(frozen=True, slots=True)
class Opened:
    """Made by connect(), ended by close()."""

    database: Database
    nudger: Nudger
    enqueuer: Enqueuer

    @classmethod
    async def connect(cls, conninfo: str, settings: Settings) -> Self:
        """Connect; what is half open after an error is closed."""
        listen = settings.listen_url
        database = Database(
            conninfo, settings, listen_conninfo=listen.get_secret_value() if listen is not None else None
        )
        try:
            await database.open()
        except BaseException:
            await database.close()
            raise
        nudger = Nudger(database)
        return cls(database, nudger, Enqueuer(database, nudger))

    async def close(self) -> None:
        """Disconnect."""
        await self.nudger.close()
        await self.enqueuer.close()
        await self.database.close()
