"""H7: new sessions with keys that nobody knows, again and again, so that a budget per session is none; a public key."""

from __future__ import annotations

import string

from tests.faults.siege.crew import Crew

KEYS = 20  # what one user may bring up in a minute
PREFIX = "ZZ"


async def attack(crew: Crew, address: str) -> None:
    """Open a session, subscribe, forget it."""
    keys = [PREFIX + "".join(crew.random.choices(string.ascii_uppercase, k=8)) for _ in range(KEYS)]
    async with crew.line(address) as line:
        opened = await crew.ask(line, "POST", "/v1/sessions")
        if opened.status != 201:
            return
        pairs = {"subscriptions": [{"type": "quote", "key": key} for key in keys]}
        told = await crew.ask(line, "PUT", f"/v1/sessions/{opened.json()['session']}/subscriptions", pairs)
        if told.status == 200:
            for one in told.json()["subscriptions"]:
                crew.seen[one["answer"]] += 1
