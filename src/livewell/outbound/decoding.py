"""Undo Content-Encoding step by step, under two caps.

One cap is on the decoded bytes, the other on how many times larger they are than what came.

The caps are checked after each step, so a bomb costs about a megabyte of memory. gzip (all
members), deflate in both its spellings, and nothing else: we ask for gzip alone.
"""

import zlib

from livewell.outbound.failure import BodyRefused

__all__ = ["RATIO_MAX", "Decoder", "decoder"]

RATIO_MAX = 200  # rows of JSON pack 5 to 30 times, the same row again and again about 100; a bomb of zeros 1,000
_RATIO_FROM_BYTES = 1_048_576  # below this a ratio says nothing
_MEMBERS_MAX = 1_000
_STEP_BYTES = 262_144  # unpacked at once; the caps are looked at after each


class Decoder:
    """No encoding: only counted."""

    def __init__(self, body_bytes_max: int) -> None:
        self._parts: list[bytes] = []
        self._room = body_bytes_max
        self.decoded_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Take a piece as it came; raises BodyRefused."""
        self._keep(chunk)

    def finish(self, *, may_be_empty: bool = True) -> bytes:  # noqa: ARG002 - of those that unpack
        """Give the whole body; raises BodyRefused where its encoding did not come to an end.

        Packed, nothing is not empty.
        """
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def _keep(self, data: bytes) -> None:
        self.decoded_bytes += len(data)
        if self.decoded_bytes > self._room:
            raise BodyRefused("too_large", f"the body has more than {self._room} bytes")
        self._parts.append(data)


class _Inflater(Decoder):
    """gzip and deflate."""

    def __init__(self, body_bytes_max: int, *, gzip: bool) -> None:
        super().__init__(body_bytes_max)
        self._gzip = gzip
        self._stream = zlib.decompressobj(31 if gzip else 15)
        self._members = 1
        self._fed = False
        self._consumed_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Unpack as much as there is room for, and one byte more to know."""
        if not self._gzip and not self._fed and not _has_zlib_head(chunk):
            self._stream = zlib.decompressobj(-15)  # some servers leave the head out
        self._fed = True
        data, full = chunk, False
        while data or full:
            if self._stream.eof:
                self._next_member()
            step = min(self._room - self.decoded_bytes + 1, _STEP_BYTES)
            unpacked = self._unpack(data, step)
            rest = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            self._consumed_bytes += len(data) - len(rest)
            self._keep(unpacked)
            full = len(unpacked) == step and not self._stream.eof  # zlib may hold back more, with no input left
            data = rest

    def _unpack(self, data: bytes, step: int) -> bytes:
        try:
            return self._stream.decompress(data, step)
        except zlib.error:
            raise BodyRefused("content_type", "the body is not what its Content-Encoding says") from None

    def finish(self, *, may_be_empty: bool = True) -> bytes:
        """A stream that did not reach its end was cut."""
        if not self._stream.eof and (self._fed or not may_be_empty):
            raise BodyRefused("truncated", "the compressed body ends too early")
        return super().finish(may_be_empty=may_be_empty)

    def _next_member(self) -> None:
        self._members += 1
        if not self._gzip or self._members > _MEMBERS_MAX:
            raise BodyRefused("content_type", "bytes after the end of the compressed body")
        self._stream = zlib.decompressobj(31)

    def _keep(self, data: bytes) -> None:
        unpacked = self.decoded_bytes + len(data)
        if unpacked > _RATIO_FROM_BYTES and unpacked > RATIO_MAX * self._consumed_bytes:
            raise BodyRefused("bomb", f"the body unpacks to more than {RATIO_MAX} times its size")
        super()._keep(data)


def _has_zlib_head(chunk: bytes) -> bool:
    """RFC 1950: method 8, and the first two bytes divide by 31 (of a lone first byte only the method is known)."""
    return chunk[0] & 0x0F == 8 and (len(chunk) < 2 or int.from_bytes(chunk[:2], "big") % 31 == 0)


def decoder(content_encoding: str, body_bytes_max: int) -> Decoder:
    """Choose by the header.

    Raises BodyRefused for encodings we did not ask for, and for one inside another.
    """
    match content_encoding.strip().lower():
        case "" | "identity":
            return Decoder(body_bytes_max)
        case "gzip" | "x-gzip":
            return _Inflater(body_bytes_max, gzip=True)
        case "deflate":
            return _Inflater(body_bytes_max, gzip=False)
        case other:
            raise BodyRefused("content_type", f"Content-Encoding {other!r} is not gzip, deflate or identity")
