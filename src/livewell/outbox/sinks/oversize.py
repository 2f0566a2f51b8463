"""The words for an event that is too large for its receiver.

It is settled as refused, never dropped without a trace: the dead letter names both sizes.
"""

from __future__ import annotations

from livewell.outbox.sink import Outcome, Verdict


def oversize(body: bytes, bytes_max: int | None, kind: str) -> Outcome | None:
    """The refusal of a payload that is too large; None if it is not."""
    if bytes_max is None or len(body) <= bytes_max:
        return None
    return Outcome(Verdict.REFUSED, f"a payload of {len(body)} bytes: this {kind} sink takes {bytes_max}")
