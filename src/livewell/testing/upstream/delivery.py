"""Send an answer the way its behaviour wants: late, by drops, half, or with a reset.

waiting ──▶ head ──▶ body ──▶ answered
   └──────────┴────────┴──▶ cut (we broke it) | client_left
"""

from livewell.testing.http import LAST_CHUNK, ClientLeft, Connection, Delivery
from livewell.testing.upstream.answer import Answer
from livewell.testing.upstream.behaviour import Behaviour
from livewell.testing.upstream.call import Ending

__all__ = ["AnswerDelivery"]


class AnswerDelivery:
    """One answer on its way, and what the log says of it."""

    def __init__(self, connection: Connection) -> None:
        self._delivery = Delivery(connection)
        self._ending: Ending = "stopped"
        self.content_bytes = 0

    async def send(self, answer: Answer, behaviour: Behaviour, delay_seconds: float) -> Ending:
        """Send it, and say how it ended."""
        try:
            if delay_seconds > 0:
                await self._delivery.pause(delay_seconds)
            self._ending = await self._send(answer, behaviour)
        except ClientLeft:
            self._ending = "client_left"
        return self._ending

    @property
    def wire_bytes(self) -> int:
        """Head and body as sent."""
        return self._delivery.sent_bytes

    @property
    def body_bytes(self) -> int:
        """The body as sent, without the frames of its chunks."""
        return self._delivery.body_bytes

    @property
    def ended_ns(self) -> int:
        """When it ended."""
        return self._delivery.ended_ns if self._ending in ("answered", "cut") else self._delivery.left_ns

    async def _send(self, answer: Answer, behaviour: Behaviour) -> Ending:
        fault = behaviour.fault
        if fault == "hang":
            await self._delivery.hang()
        if not answer.head:
            return self._cut(reset=fault == "reset_before_head")
        await self._delivery.send(answer.head)
        whole = await self._send_body(answer, behaviour)
        if fault == "hang_in_body":
            await self._delivery.hang()
        if not whole:
            return self._cut(reset=fault == "reset_in_body")
        return "answered"

    async def _send_body(self, answer: Answer, behaviour: Behaviour) -> bool:
        """Send the body, or the part before the cut; say whether it was all."""
        delivery, rate = self._delivery, behaviour.drip_bytes_per_second
        cut = behaviour.cut_at_bytes if behaviour.fault.endswith("_in_body") else None
        for piece in answer.body:
            room = len(piece.data) if cut is None else cut - delivery.body_bytes
            await delivery.send_body(piece.data[:room], bytes_per_second=rate, chunked=answer.chunked)
            self.content_bytes += piece.content_bytes
            if cut is not None and delivery.body_bytes >= cut:
                return False
        if cut is not None:
            return False
        if answer.chunked:
            await delivery.send(LAST_CHUNK)
        return True

    def _cut(self, *, reset: bool) -> Ending:
        self._delivery.cut(reset=reset)
        return "cut"
