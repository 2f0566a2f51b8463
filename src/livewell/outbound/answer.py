"""What an upstream answered, whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["Answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, whatever its status. A redirect is an answer too: nobody followed it."""

    status: int
    headers: Mapping[str, str] = field(repr=False)  # lower-case names; a repeated header is joined with ", "
    body: bytes = field(repr=False)  # decoded
    wire_bytes: int  # status line, headers and body as received
    decoded_bytes: int
    had_length: bool  # Content-Length was there, or the status has no body
    seconds: float
    alone: bool  # its connection had carried no other question: it can be nobody else's answer
    retire: Callable[[], None] = field(repr=False)  # ask nothing more on its connection
