"""What the upstream does with a call, as a value that a test writes and the server's process reads.

A behaviour says which calls it is for (path, key, credential, share, times) and how they are
answered. The default one answers every key with its next version.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from livewell.errors import LivewellError

__all__ = ["Behaviour", "BehaviourRefused", "Body", "Fault", "Length"]

Body = Literal["values", "empty", "error", "html", "huge"]
Length = Literal["stated", "chunked", "until_close"]
Fault = Literal[
    "none",
    "hang",  # the request is read, and nothing ever comes
    "hang_in_body",  # head and cut_at_bytes of the body, then nothing
    "close_before_head",  # FIN instead of an answer: what a kept-alive connection dies of
    "reset_before_head",
    "close_in_body",  # after cut_at_bytes of the body (0: right after the head)
    "reset_in_body",
    "close_after_answer",  # a whole answer that promises keep-alive, then FIN
]


class BehaviourRefused(LivewellError):
    """A behaviour that cannot be meant; the message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Which calls, and how they are answered. Instants and lengths carry their unit in the name."""

    name: str = ""

    # ── which calls ──
    path: str | None = None
    key: str | None = None
    credential: str | None = None  # as the log names it
    times: int | None = None  # used up after so many calls
    share: float = 1.0  # of the calls that fit, drawn from the server's seed

    # ── the answer ──
    status: int = 200
    body: Body = "values"
    content: bytes | None = None  # the exact body, instead of a made one
    message: str = "Invalid request."  # of an error body
    headers: Mapping[str, str] = field(default_factory=dict)  # added, or instead of ours; Retry-After, Location, …
    size_bytes: int = 0  # of a huge body; with gzip it is a bomb
    gzip: int | None = None  # layers; None: one if the client accepts it
    length: Length = "stated"
    truncate_at_bytes: int | None = None  # of the content: valid HTTP, broken JSON

    # ── the values ──
    advance: bool = True  # False: the same version again
    versions_back: int = 0  # an older version, with the timestamp it had
    timestamp_shift_seconds: int = 0
    missing: tuple[str, ...] = ()  # keys without a row
    answer_key: str | None = None  # rows say this key, whatever was asked
    fields: Mapping[str, Any] = field(default_factory=dict)  # added to every row, or instead of ours
    without: tuple[str, ...] = ()  # fields left out of every row

    # ── the way there ──
    delay_seconds: float = 0.0
    delay_jitter_seconds: float = 0.0  # up to so much more, drawn from the seed
    drip_bytes_per_second: float | None = None
    fault: Fault = "none"
    cut_at_bytes: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (("body", Body), ("length", Length), ("fault", Fault)):
            if getattr(self, name) not in get_args(allowed):
                msg = f"{name}={getattr(self, name)!r}: it is one of {', '.join(get_args(allowed))}"
                raise BehaviourRefused(msg)
        if (self.times is not None and self.times < 1) or not 0 < self.share <= 1:
            msg = f"times={self.times}, share={self.share}: times is at least 1, share above 0 and at most 1"
            raise BehaviourRefused(msg)
        if self.drip_bytes_per_second is not None and self.drip_bytes_per_second <= 0:
            msg = f"drip_bytes_per_second={self.drip_bytes_per_second}: it is above 0; for silence use fault='hang'"
            raise BehaviourRefused(msg)

    def encode(self) -> str:
        """Write it as JSON, for the server's process."""
        values = dataclasses.asdict(self)
        values["content"] = None if self.content is None else self.content.decode("latin-1")
        return json.dumps(values)

    @classmethod
    def decode(cls, values: Mapping[str, Any]) -> Self:
        """Read what encode wrote."""
        content = values["content"]
        return cls(
            **{
                **values,
                "content": None if content is None else content.encode("latin-1"),
                "missing": tuple(values["missing"]),
                "without": tuple(values["without"]),
            }
        )
