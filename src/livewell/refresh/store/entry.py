"""What the store takes for one refresh job: whose job it is, the result, and what the call cost.

Its JSON form is for store_refreshes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from livewell.queue.job import Job
from livewell.refresh.result import Failure, Forgotten, Missing, Result, Same, Singly, Unproven, Value


@dataclass(frozen=True, slots=True)
class Entry:
    """The result of one job. The first job of a call carries what the call cost."""

    id: int
    fence: int
    call: int  # the fence of the call's first job
    queue: str
    kind: str
    credential: str | None
    type: str
    key: str
    version: int
    result: Result
    sent: float  # monotonic, just before the request was written
    used: int = 0  # units of the budget
    wire_bytes: int = 0
    decoded_bytes: int = 0

    @classmethod
    def of(cls, job: Job, data_type: str, key: str, *, version: int, result: Result, sent: float) -> Self:
        """The entry of a claimed job; nothing was used."""
        claimed, permit = job.claimed, job.permitted
        return cls(
            id=job.id,
            fence=claimed.fence,
            call=permit.call if permit is not None else claimed.fence,
            queue=claimed.queue,
            kind=claimed.kind,
            credential=permit.credential if permit is not None else None,
            type=data_type,
            key=key,
            version=version,
            result=result,
            sent=sent,
        )

    def document(self, now: float) -> dict[str, Any]:
        """As store_refreshes.sql reads it, with the age of the answer at this monotonic time."""
        return {
            "id": self.id,
            "fence": self.fence,
            "call": self.call,
            "queue": self.queue,
            "kind": self.kind,
            "credential": self.credential,
            "type": self.type,
            "key": self.key,
            "version": self.version,
            "used": self.used,
            "wire": self.wire_bytes,
            "decoded": self.decoded_bytes,
            "age_seconds": round(max(0.0, now - self.sent), 4),
            "outcome": self.result.outcome,
            **_details(self.result),
        }


def _details(result: Result) -> dict[str, Any]:
    match result:
        case Value():
            return {
                "rows": result.rows,
                "source_at": result.source_at,
                "event_at": result.event_at,
                "hash": result.content_hash.hex(),
                "etag": result.etag,
                "last_modified": result.last_modified,
            }
        case Same(content_hash):
            return {"hash": content_hash.hex()}
        case Missing():
            return {}
        case Failure():
            return {
                "reason": result.reason.value,
                "error": result.detail,
                "blame": result.blame.value,
                "delay_seconds": result.retry_after_seconds,
            }
        case Singly() | Unproven() | Forgotten():
            return {"error": result.detail}
