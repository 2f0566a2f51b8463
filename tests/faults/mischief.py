"""A hostile upstream in a process of its own.

Some keys are ill, some answers were never asked for, and walls come when they are least welcome.

    python -m tests.faults.mischief LOG SEED        prints "listening on PORT"

Every answer carries a mark, `type|key|n`, which the product stores like any other column: a row
whose mark names another type or key was stored under the wrong one. n grows with time, so the log
says whether, and since when, a mark was true. Ill keys (ILL-500, ILL-HTML, …) are honest for their
first answers, then ill for ever. The log has a line for every call as it came, and for every honest
answer as it left; answers that nobody asked for are not honest.

    asked ──▶ [held, if ordered] ──▶ answered ──▶ with some luck: a second answer at once, or before the next one on this connection
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from livewell.testing.history import AppendLog

ILL = ("500", "HTML", "NAN", "NUL", "TWICE", "SURROGATE", "EMPTY", "HANG", "403")
TYPES = ("price", "rating", "annual", "quarter")
HONEST_FIRST = 2  # answers of an ill key before it falls ill
TURN_SECONDS = 3  # n grows so often
UNASKED_SHARE = 0.15  # of the answers on a connection
HANG_SECONDS = 60.0
HEAD_BYTES_MAX = 16_384


@dataclass(slots=True)
class Upstream:
    """What all connections share."""

    log: AppendLog
    chance: random.Random
    held: asyncio.Event = field(default_factory=asyncio.Event)  # set: answers go out
    waiting: int = 0  # calls that are held
    wall_seconds: int = 0  # > 0: held calls, and those that come until the order is taken back, meet a wall
    unasked: bool = False
    n: int = 0  # of the answer that is being made
    honest: dict[tuple[str, str], int] = field(default_factory=dict)  # answers so far, of each type and key
    connections: int = 0

    def note(self, event: str, **facts: object) -> None:
        """Write it down, with an instant that every process of this machine reads alike."""
        self.log.append(json.dumps({"event": event, "at": time.monotonic(), "wall": time.time(), **facts}))

    # ── what is answered ──

    def row(self, kind: str, key: str) -> str:
        """The true row of a key, now."""
        now = time.time()
        symbol = "" if kind == "rating" else f'"symbol": {json.dumps(key)}, '
        last = f'"last": {self.n}.5, ' if kind == "price" else ""  # nothing else can be taken for a price
        return f'{{{symbol}{last}"at": {int(now)}, "n": {self.n}, "mark": "{kind}|{key}|{self.n}"}}'

    def answer(self, kind: str, keys: list[str], condition: str | None) -> bytes | None:
        """The bytes of the answer; None: none ever comes."""
        self.n = int(time.time() // TURN_SECONDS)
        rows, honest = [], []
        for key in keys:
            ill = key.removeprefix("ILL-") if key.startswith("ILL-") else None
            if ill is None or self.honest.get((kind, key), 0) < HONEST_FIRST:
                rows.append(self.row(kind, key))
                honest.append(key)
            elif len(keys) == 1 and ill in ("500", "HTML", "HANG", "403"):
                return self._alone(ill)
            else:
                rows += _poisoned(ill, self.row(kind, key))
        if len(keys) == 1 and honest:
            tag = f'"{kind}|{keys[0]}|{self.n}"'
            self._serve(kind, honest)
            if condition == tag:
                return _response(304, b"", ETag=tag)
            return _response(200, f"[{rows[0]}]".encode(), ETag=tag)
        self._serve(kind, honest)
        return _response(200, f"[{', '.join(rows)}]".encode("utf-8", "surrogatepass"))

    def forged(self, asked: str) -> bytes:
        """An answer to a question that was not asked.

        True of another type or of a key that nobody asks for, or an end that names nothing.

        Never of the asked type with a key that may be asked next: no client could tell that from
        the true answer.
        """
        kind = self.chance.choice(TYPES)
        key = f"K{self.chance.randrange(20) + (20 if kind == asked else 0):02d}"
        whole = _response(200, f"[{self.row(kind, key)}]".encode(), ETag='"forged"')
        return self.chance.choice(
            (whole, whole, whole, _response(304, b""), _response(200, b"[]"), _response(404, b"{}"))
        )

    def _serve(self, kind: str, keys: list[str]) -> None:
        for key in keys:
            self.honest[kind, key] = self.honest.get((kind, key), 0) + 1
            self.note("honest", kind=kind, key=key, n=self.n)

    def _alone(self, ill: str) -> bytes | None:
        if ill == "HANG":
            return None
        if ill == "HTML":
            return _response(200, b"<html><body>Sorry</body></html>", kind="text/html")
        return _response(int(ill), b'{"error": "no"}')

    # ── connections ──

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: a question after the other."""
        self.connections += 1
        connection, owed = self.connections, b""
        try:
            while (head := await reader.readuntil(b"\r\n\r\n"))[:1]:
                target, headers = _parse(head)
                if target.path == "/_order":
                    body = await reader.readexactly(int(headers["content-length"]))
                    writer.write(_response(200, json.dumps(self._order(json.loads(body))).encode()))
                    continue
                asked = parse_qs(target.query)
                kind = {"/prices": "price"}.get(target.path, target.path[1:])
                keys = (asked.get("symbols") or asked["symbol"])[0].split(",")
                self.note("call", kind=kind, keys=keys, connection=connection)
                data = await self._decide(kind, keys, headers.get("if-none-match"))
                if data is None:
                    await asyncio.sleep(HANG_SECONDS)
                    return
                data, owed = owed + data, b""
                if self.unasked and self.chance.random() < UNASKED_SHARE:
                    self.note("unasked", connection=connection)
                    if self.chance.random() < 0.5:
                        data += self.forged(kind)
                    else:
                        owed = self.forged(kind)
                writer.write(data)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            return  # the client has left
        finally:
            writer.close()

    async def _decide(self, kind: str, keys: list[str], condition: str | None) -> bytes | None:
        if not self.held.is_set():
            self.waiting += 1
            try:
                await self.held.wait()
            finally:
                self.waiting -= 1
        if self.wall_seconds:
            self.note("wall", seconds=self.wall_seconds)
            return _response(429, b'{"error": "too many"}', **{"Retry-After": str(self.wall_seconds)})
        return self.answer(kind, keys, condition)

    def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        if "hold" in order:
            self.held.clear() if order["hold"] else self.held.set()
        self.wall_seconds = order.get("wall_seconds", self.wall_seconds)
        self.unasked = order.get("unasked", self.unasked)
        return {"waiting": self.waiting}


def _poisoned(ill: str, row: str) -> list[str]:
    """The row of an ill key among honest ones; those that have none are left out."""
    match ill:
        case "NAN":
            return [row.replace('"n": ', '"n": NaN, "x": ')]
        case "NUL":
            return [row.replace('"mark": "', '"mark": "\\u0000')]
        case "TWICE":
            return [row.replace('"n": ', '"n": 1, "n": ')]
        case "SURROGATE":
            return [row.replace('"mark": "', '"mark": "\\ud800')]
        case _:
            return []


def _response(status: int, body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _parse(head: bytes) -> tuple[Any, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return urlsplit(first.split(" ")[1]), headers


async def main(path: str, seed: str) -> None:
    """Serve until killed."""
    upstream = Upstream(AppendLog(Path(path)), random.Random(int(seed)))
    upstream.held.set()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
