"""Ask the upstream "has it changed since?". Pure.

Here are the headers of a conditional request, and what an answer gives for the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from livewell.refresh.result import Result, Results, Value

_CHARS_MAX = 100  # of an ETag or Last-Modified


@dataclass(frozen=True, slots=True)
class Validator:
    """What the upstream said of a value when it gave it, and the hash of that value."""

    etag: str | None
    last_modified: str | None
    content_hash: bytes

    @property
    def headers(self) -> dict[str, str]:
        """The conditional headers."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}


def add_validators(results: Results, headers: Mapping[str, str]) -> Results:
    """Results with the answer's ETag and Last-Modified.

    They belong to the whole answer, so only to one about one key.
    """
    if len(results) > 1:
        return results
    etag, last_modified = _sendable(headers, "etag"), _sendable(headers, "last-modified")
    return {key: _with(result, etag, last_modified) for key, result in results.items()}


def _with(result: Result, etag: str | None, last_modified: str | None) -> Result:
    return replace(result, etag=etag, last_modified=last_modified) if isinstance(result, Value) else result


def _sendable(headers: Mapping[str, str], name: str) -> str | None:
    """The header, if it may be sent back as one; anything else is not kept."""
    text = headers.get(name, "").strip()
    return text if 0 < len(text) <= _CHARS_MAX and text.isascii() and text.isprintable() else None
