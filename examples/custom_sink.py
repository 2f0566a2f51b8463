"""A sink of your own: events go into a SQLite file, and Livewell's checks say whether it is a good one.

Put the class and KIND into a package, and name KIND in its pyproject.toml:

    [project.entry-points."livewell.sinks"]
    sqlite = "your_package.sink:KIND"

Then `sqlite` is a kind of sink like any other. Run: python examples/custom_sink.py
"""

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, Sink, SinkAway, Verdict, lanes
from livewell.outbox.sinks.kind import SinkContext, SinkKind, SinkParts
from livewell.outbox.sinks.options import Options, read_options
from livewell.testing.sinks import Received, checks


class SqliteOptions(Options):
    """What may be said of it; anything else is refused when the sink is made."""

    path: str
    event_bytes_max: int = 1_000_000


class SqliteSink:
    """One table. The id is its key, so an event that comes again is already there."""

    dedupes = True

    def __init__(self, parts: SinkParts) -> None:
        self._path: str = parts.options.path
        self.event_bytes_max: int | None = parts.options.event_bytes_max
        self._file: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Called again after SinkAway."""
        if self._file is None:
            try:
                self._file = sqlite3.connect(self._path)
                self._file.execute("CREATE TABLE IF NOT EXISTS event (id text PRIMARY KEY, key text, payload text)")
            except sqlite3.Error as error:
                raise SinkAway(f"{self._path} cannot be opened: {error}") from error

    async def close(self) -> None:
        """Never raises."""
        if self._file is not None:
            self._file.close()
            self._file = None

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """One transaction; of a lane nothing behind an event that is refused."""
        await self.open()
        assert self._file is not None
        taken: list[Event] = []
        for lane in lanes(events):
            for event in lane:
                size = len(event.payload.encode())
                if self.event_bytes_max is not None and size > self.event_bytes_max:
                    settle(event, Outcome(Verdict.REFUSED, f"{size} bytes: {self.event_bytes_max} are allowed"))
                    break
                taken.append(event)
        try:
            with self._file:
                self._file.executemany(
                    "INSERT INTO event VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    [(event.id, event.key, event.payload) for event in sorted(taken, key=lambda one: one.number)],
                )
        except sqlite3.Error as error:  # rolled back: nothing was taken, and no event is to blame
            await self.close()
            raise SinkAway(f"{self._path} cannot be written: {error}") from error
        for event in taken:
            settle(event, DELIVERED)


KIND = SinkKind(options=SqliteOptions, make=SqliteSink, has_address=False)


class SqliteLab:
    """What the checks need: sinks, and what the receiver really has. A network would add cuts and delays."""

    secret = ""
    event_bytes_max = 10_000
    middle_bytes = mock_repeats_max = 0

    def __init__(self, path: str) -> None:
        self._path = path

    def sink(self) -> Sink:
        """A new one for the same file."""
        options = read_options("sqlite", SqliteOptions, {"path": self._path, "event_bytes_max": self.event_bytes_max})
        return KIND.make(SinkParts("sqlite", options, SinkContext()))

    async def received(self) -> list[Received]:
        """In the order of arrival."""
        file = sqlite3.connect(self._path)
        rows = file.execute("SELECT id, payload, key FROM event ORDER BY rowid").fetchall()
        file.close()
        return [Received(*row) for row in rows]


async def main() -> None:
    """Run every check that needs no network, each on a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for number, check in enumerate(checks()):
            await check(SqliteLab(str(Path(folder) / f"{number}.db")))
            print(f"passed: {check.__name__.replace('_', ' ')}")


if __name__ == "__main__":
    asyncio.run(main())
