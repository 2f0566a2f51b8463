"""One call as the upstream saw it, and the file it is written down in.

    received (status chosen, versions chosen) ──▶ answered | cut | client_left | stopped
                                              └──▶ killed: the upstream died over it

Two lines per call: one when it was received, before a byte of the answer leaves, so that no death
of a client or of the upstream hides a call; one when the answer is over. Instants are
CLOCK_MONOTONIC, which all processes of a machine share.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from livewell.testing.history import AppendLog

__all__ = ["Call", "CallLog", "Ending", "call_id", "credential_name"]

Ending = Literal["answered", "cut", "client_left", "stopped", "killed"]


@dataclass(frozen=True, slots=True)
class Call:
    """One request that reached the upstream, and what became of it.

    status 0: no status line was to be sent. ended_ns None: still being answered. Byte counts are
    what the kernel took: wire_bytes is head and body as sent, content_bytes the body before
    compression (exact when answered in full).
    """

    number: int
    at_ns: int
    method: str
    path: str
    keys: tuple[str, ...] = ()
    credential: str = ""
    call_id: str = ""
    connection: int = 0
    status: int = 200
    behaviour: str = ""
    versions: Mapping[str, int] = field(default_factory=dict, hash=False)
    ended_ns: int | None = None
    ending: Ending | None = None
    wire_bytes: int = 0
    body_bytes: int = 0
    content_bytes: int = 0

    @property
    def jobs(self) -> tuple[tuple[int, int], ...]:
        """The (job id, fence) pairs of its X-Livewell-Call header; none when there was no header,
        or no sense in it.
        """
        try:
            pairs = [part.split("-") for part in self.call_id.split(",")]
            return tuple((int(job), int(fence)) for job, fence in pairs)
        except ValueError:
            return ()


def call_id(*jobs: tuple[int, int]) -> str:
    """Write the X-Livewell-Call header: the job and fence of every job that one call serves."""
    return ",".join(f"{job}-{fence}" for job, fence in jobs)


def credential_name(secret: str) -> str:
    """Name a credential without telling it: one that starts with fake- is no secret, of another a
    short hash remains.
    """
    if not secret or (secret.startswith("fake-") and len(secret) <= 64):
        return secret
    return "#" + hashlib.sha256(secret.encode()).hexdigest()[:8]


class CallLog:
    """The upstream's own history: the server writes it, the test reads it."""

    def __init__(self, path: Path) -> None:
        self._lines = AppendLog(path)

    def started(self) -> None:
        """Write that a server begins: whatever is open now was killed with the one before."""
        self._write({"event": "started", "at_ns": time.monotonic_ns()})

    def received(self, call: Call) -> None:
        """Write a call down; it is in the kernel's hands when this returns."""
        line = asdict(call)
        for later in ("ended_ns", "ending", "wire_bytes", "body_bytes", "content_bytes"):
            del line[later]
        self._write({"event": "received", **line})

    def ended(self, call: Call) -> None:
        """Write how a call ended."""
        names = ("number", "ended_ns", "ending", "wire_bytes", "body_bytes", "content_bytes")
        self._write({"event": "ended", **{name: getattr(call, name) for name in names}})

    def read(self) -> list[Call]:
        """Every call so far, in the order of receipt."""
        calls: dict[int, Call] = {}
        open_calls: set[int] = set()
        for line in self._lines.read():
            event: dict[str, Any] = json.loads(line)
            match event.pop("event"):
                case "received":
                    call = Call(**{**event, "keys": tuple(event["keys"])})
                    calls[call.number] = call
                    open_calls.add(call.number)
                case "ended":
                    calls[event["number"]] = replace(calls[event["number"]], **event)
                    open_calls.discard(event["number"])
                case "started":
                    # Nobody was received between the death and this start, so this instant bounds
                    # the call well enough.
                    _end_killed(calls, open_calls, event["at_ns"])
                    open_calls.clear()
        return sorted(calls.values(), key=lambda call: call.at_ns)

    def _write(self, event: dict[str, Any]) -> None:
        self._lines.append(json.dumps(event, ensure_ascii=False, separators=(",", ":")))


def _end_killed(calls: dict[int, Call], numbers: Iterable[int], at_ns: int) -> None:
    for number in numbers:
        calls[number] = replace(calls[number], ended_ns=at_ns, ending="killed")
