"""H6: streamed sessions with as many keys as they may have; a public key.

They go on until the server follows as many keys as it may.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from tests.faults.siege.crew import Crew
from tests.faults.siege.line import Line

KEY = re.compile(rb'"key":"([^"]+)"')


async def attack(crew: Crew, address: str) -> None:
    """Keys that nobody else of the crew has; then stay.

    When they do not fit, half as many are tried next, down to one: the last place is taken, too.
    """
    keys, first = int(crew.options["keys"]), crew.seen["keys"] % int(crew.options["stored"])
    crew.seen["keys"] += keys
    pairs = [{"type": "quote", "key": f"K{first + number + 1}"} for number in range(keys)]
    async with crew.line(address) as line:
        opened = await _patiently(crew, line, "POST", "/v1/sessions")
        path = f"/v1/sessions/{opened['session']}"
        told = await _patiently(crew, line, "PUT", f"{path}/subscriptions", {"subscriptions": pairs})
        for one in told["subscriptions"]:
            crew.seen[one["answer"]] += 1
        await line.send(crew.head("GET", f"{path}/stream"))
        answer = await line.answer()
        crew.seen[f"stream {answer.status}"] += 1
        if answer.status == 200:
            await _stream(crew, line)
        crew.options["keys"] = max(1, min(keys // 2, crew.options["keys"]))


async def _stream(crew: Crew, line: Line) -> None:
    """Count the keys of which a reading comes, each once, and farewells."""
    tail, followed = b"", set[bytes]()
    while True:
        data = tail + await line.read()
        *whole, tail = data.split(b"\n\n")
        keys = {found[1] for text in whole if b"event: reading" in text and (found := KEY.search(text))} - followed
        followed |= keys
        crew.seen["followed"] += len(keys)
        crew.seen["byes"] += sum(b"event: bye" in text for text in whole)


async def _patiently(crew: Crew, line: Line, method: str, path: str, document: object = None) -> Any:
    """As often as it is told to come back; an attacker that keeps to the rates.

    Anything else is no attack.
    """
    while True:
        answer = await crew.ask(line, method, path, document)
        if answer.status < 400:
            return answer.json()
        await asyncio.sleep(min(5.0, float(answer.headers.get("retry-after", "1"))))
