"""What all connections of the simulator share: one market, one policy, one log.

After a crash it reads back from its log what it must still know: the calls its limit let in, the
bytes it sent, the counts, the last number. The market needs no memory. The program that starts it
gives it the knobs anew.
"""

import random
import time
from pathlib import Path
from typing import Any

import orjson

from livewell.apps.market.simulator.answer import Answer
from livewell.apps.market.simulator.data.prices import Market
from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.oracle.log import LogWriter, read_events
from livewell.apps.market.simulator.policy.decide import Policy
from livewell.apps.market.simulator.request import ApiRequest
from livewell.errors import LivewellError
from livewell.testing.http import Request

__all__ = ["Server"]

NOT_ADMITTED = ("old_path", "no_key", "suspended_account", "limit", "malformed")


class Server:
    """What all connections share."""

    def __init__(self, log: Path, *, seed: int, symbols: int, knobs: Knobs) -> None:
        self.policy = Policy(Market(seed, symbols), knobs)
        self.random = random.Random(seed)  # noqa: S311 - latency, drawn for repeatable runs
        self._number = 0
        for event in read_events(log):
            self._restore(event)
        self.log = LogWriter(log)
        self._write(event="started", seed=seed, symbols=symbols, knobs=knobs.as_json())

    def wall(self) -> float:
        """Give the simulator's own time of day."""
        return time.time() + self.policy.knobs.clock_shift_seconds

    def received(
        self,
        request: ApiRequest,
        symbols: tuple[str, ...],
        answer: Answer,
        *,
        at_ns: int,
        wall: float,
        sent_bytes: int | None,
    ) -> int:
        """Write a call down and count it; sent_bytes None: its answer takes its time, ended() will
        tell.
        """
        self._number += 1
        self.policy.count(answer.kind)
        event: dict[str, Any] = {
            "event": "call",
            "n": self._number,
            "at_ns": at_ns,
            "wall": wall,
            "path": request.path,
            "keys": symbols,
            "query": {name: value for name, value in request.query.items() if name not in ("symbol", "symbols")},
            "credential": request.credential,
            "answer": answer.kind,
            "status": 0 if answer.delivery in ("hang", "reset", "closed") else answer.status,
            "digest": answer.digest,
            "source_at": answer.source_at,
            "bytes": sent_bytes or 0,
            "ended_ns": None if sent_bytes is None else time.monotonic_ns(),
        }
        if request.call_id:
            event["call_id"] = request.call_id
        self.log.write(event)
        if sent_bytes:
            self.policy.bandwidth.book(request.credential, wall, sent_bytes)
        return self._number

    def ended(self, number: int, credential: str, how: str, sent_bytes: int, ended_ns: int) -> None:
        """Write down how a slow answer ended."""
        self.log.write({"event": "ended", "n": number, "at_ns": ended_ns, "how": how, "bytes": sent_bytes})
        self.policy.bandwidth.book(credential, self.wall(), sent_bytes)

    def order(self, request: Request) -> tuple[int, dict[str, Any]]:
        """Take an order or give a figure; in force when the answer is sent."""
        try:
            match request.method, request.path:
                case "GET", "/_counts":
                    return 200, self.policy.report()
                case "GET", "/_knobs":
                    return 200, self.policy.knobs.as_json()
                case "POST", "/_control":
                    return 200, self._control(orjson.loads(request.body))
        except (LivewellError, orjson.JSONDecodeError, TypeError, ValueError, KeyError) as error:
            return 400, {"error": f"{type(error).__name__}: {error}"[:2_000]}
        return 404, {"error": "there are POST /_control, GET /_counts and GET /_knobs"}

    def _control(self, order: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(order) - {"knobs", "next"})
        if unknown:
            msg = f"an order has knobs and next, not {unknown[0]!r}"
            raise ValueError(msg)
        if "knobs" in order:
            self.policy.turn(order["knobs"])
        if "next" in order:
            self.policy.queue(order["next"])
        self._write(event="knobs", knobs=self.policy.knobs.as_json(), next=order.get("next", []))
        return self.policy.knobs.as_json()

    def _restore(self, event: dict[str, Any]) -> None:
        if event["event"] == "call":
            self._number = max(self._number, event["n"])
            self.policy.count(event["answer"])
            self.policy.bandwidth.book(event["credential"], event["wall"], event["bytes"])
            if self.policy.knobs.calls_max is not None and event["answer"] not in NOT_ADMITTED:
                self.policy.window.remember(
                    event["credential"], event["at_ns"], window_seconds=self.policy.knobs.window_seconds
                )

    def _write(self, **event: Any) -> None:
        self.log.write({**event, "at_ns": time.monotonic_ns(), "wall": self.wall()})
