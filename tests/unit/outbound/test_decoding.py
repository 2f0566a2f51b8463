"""Decoding: what was packed comes back byte for byte, and nothing unpacks past its caps."""

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.outbound.decoding import RATIO_MAX, decoder
from livewell.outbound.failure import BodyRefused


def packed(encoding: str, data: bytes) -> bytes:
    raw = zlib.compressobj(6, zlib.DEFLATED, -15)
    return {
        "": lambda: data,
        "gzip": lambda: gzip.compress(data, mtime=0),
        "deflate": lambda: zlib.compress(data),
        "raw": lambda: raw.compress(data) + raw.flush(),
    }[encoding]()


def unpacked(encoding: str, wire: bytes, *, step: int = 65_536, room: int = 1_000_000) -> bytes:
    body = decoder(encoding.replace("raw", "deflate"), room)
    for start in range(0, len(wire), step):
        body.feed(wire[start : start + step])
    return body.finish()


def refusal(encoding: str, wire: bytes, **options: int) -> str:
    with pytest.raises(BodyRefused) as caught:
        unpacked(encoding, wire, **options)
    return caught.value.reason


@given(
    encoding=st.sampled_from(["", "gzip", "deflate", "raw"]),
    data=st.binary(min_size=1, max_size=5_000),
    times=st.integers(1, 100),
    step=st.integers(1, 5_000),
)
def test_what_was_packed_comes_back(encoding: str, data: bytes, times: int, step: int) -> None:
    """In any encoding, cut into pieces of any size."""
    whole = data * times
    assert unpacked(encoding, packed(encoding, whole), step=step) == whole


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_every_cut_of_a_packed_body_is_noticed(encoding: str) -> None:
    """The stream knows its end, also when no Content-Length does."""
    wire = packed(encoding, b'[{"symbol":"AAPL","price":231.4}]' * 3)

    assert {refusal(encoding, wire[:size]) for size in range(1, len(wire))} == {"truncated"}


def test_gzip_in_several_members_is_one_body() -> None:
    """RFC 1952 allows it, and servers that append do it."""
    assert unpacked("gzip", gzip.compress(b"ab") + gzip.compress(b"cd"), step=7) == b"abcd"


@pytest.mark.parametrize(
    ("encoding", "wire"),
    [
        ("gzip", b"[1,2,3] is not gzip"),
        ("gzip", gzip.compress(b"x") + b"garbage"),
        ("deflate", zlib.compress(b"x") + b"garbage"),
        ("gzip", gzip.compress(b"abc")[:-8] + b"\0" * 8),
    ],
    ids=["no gzip", "rubbish after gzip", "rubbish after deflate", "wrong checksum"],
)
def test_a_body_that_is_not_what_it_says_is_refused(encoding: str, wire: bytes) -> None:
    """Wrong magic, rubbish after the end, a checksum that does not fit."""
    assert refusal(encoding, wire) == "content_type"


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "gzip, br", "GZIP,GZIP", "x" * 5000, "*"])
def test_other_and_nested_encodings_are_refused(encoding: str) -> None:
    """We asked for gzip alone (F-D14).

    What was said is told whole: it is cut after our credential was looked for in it (M3).
    """
    with pytest.raises(BodyRefused) as caught:
        decoder(encoding, 1000)

    assert caught.value.reason == "content_type"
    assert encoding.lower() in caught.value.detail.lower()


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate"])
def test_a_body_over_its_bound_is_too_large(encoding: str) -> None:
    """One byte more than allowed is too many, exactly that many is not."""
    data = bytes(range(256)) * 40
    wire = packed(encoding, data)

    assert unpacked(encoding, wire, room=len(data)) == data
    assert refusal(encoding, wire, room=len(data) - 1) == "too_large"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_is_cut_before_it_fills_memory(encoding: str) -> None:
    """300 MB of zeros arrive as 300 KB.

    What is unpacked stays below three megabytes, whatever the bound says.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    wire = b"".join(packer.compress(bytes(1_000_000)) for _ in range(300)) + packer.flush()
    tracemalloc.start()
    try:
        assert refusal(encoding, wire, room=500_000_000) == "bomb"
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_honest_repetition_is_no_bomb() -> None:
    """The same row a thousand times packs well, and stays under the ratio."""
    data = b'{"symbol":"AAPL","price":231.41,"volume":1234567},' * 1_000
    wire = packed("gzip", data)

    assert len(data) / len(wire) > RATIO_MAX / 2
    assert unpacked("gzip", wire) == data
