"""A crew: connections of one kind of attack, from some addresses, and what came of them."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.faults.siege.line import Answer, Line
from tests.faults.siege.peers import Peers


@dataclass(slots=True)
class Crew:
    """Connections of one kind, and what came of them."""

    kind: str
    addresses: list[str]
    connections: int
    host: str
    port: int
    until: float
    key: str = ""  # a public one, where the kind needs it
    options: dict[str, Any] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    held_seconds_max: float = 0.0
    random: random.Random = field(default_factory=random.Random)
    peers: Peers = field(init=False)

    def __post_init__(self) -> None:
        self.peers = Peers(self.port)

    def pace(self, name: str, default: float) -> float:
        """How fast, as the scenario says, or else so fast."""
        return float(self.options.get(name, default))

    @property
    def over(self) -> bool:
        """The attack has ended."""
        return time.monotonic() >= self.until

    def line(self, address: str, **options: Any) -> Line:
        """One more connection."""
        return Line(self.host, self.port, address, **options)

    def head(self, method: str, path: str, *more: str) -> bytes:
        """A request's head, without the empty line only if nothing follows it."""
        key = [f"Authorization: Bearer {self.key}"] if self.key else []
        return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}", *key, *more, "", ""]).encode(
            "latin-1"
        )

    def note(self, answer: Answer) -> Answer:
        """Count an answer by its status."""
        self.seen[str(answer.status)] += 1
        return answer

    async def ask(self, line: Line, method: str, path: str, document: object = None) -> Answer:
        """One request with a JSON body, or none."""
        body = b"" if document is None else json.dumps(document).encode()
        head = self.head(method, path, "Content-Type: application/json", f"Content-Length: {len(body)}")
        await line.send(head + body)
        return self.note(await line.answer())
