"""How a download is answered (E8): pure, by the rules of RFC 9110 and RFC 6266."""

from __future__ import annotations

from email.message import Message
from email.utils import collapse_rfc2231_value
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.exports.downloads import Answer, Part, Wanted, answer, content_disposition, etag, read_range

TAG = etag(b"\x01" * 32)


def ask(method: str = "GET", length: int = 100, **headers: str) -> Answer:
    request = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer(request, tag=TAG, length=length, content_type="application/pdf", file_name="cv.pdf", method=method)


def test_a_plain_request_gets_the_whole_file() -> None:
    """With its length, its tag, its name, and a promise that parts can be had."""
    got = ask()
    assert (got.status, got.start, got.end) == (200, 0, 100)
    assert got.headers["Content-Length"] == "100"
    assert got.headers["ETag"] == f'"{"01" * 32}"'
    assert got.headers["Accept-Ranges"] == "bytes"
    assert got.headers["Content-Type"] == "application/pdf"
    assert got.headers["Content-Disposition"] == 'attachment; filename="cv.pdf"'
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["Cache-Control"] == "private, no-cache"
    assert got.is_from_the_start


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (None, "whole"),
        ("bytes=0-9", Part(0, 10)),
        ("bytes=0-0", Part(0, 1)),
        ("bytes=90-", Part(90, 100)),
        ("bytes=99-99", Part(99, 100)),
        ("bytes=0-1000", Part(0, 100)),
        ("bytes=-10", Part(90, 100)),
        ("bytes=-1000", Part(0, 100)),
        ("bytes=-0", "nothing"),
        ("bytes=100-", "nothing"),
        ("bytes=100-200", "nothing"),
        ("bytes=9-5", "whole"),
        ("bytes=200-100", "whole"),
        ("bytes=0-9,20-29", "whole"),
        ("bytes=-", "whole"),
        ("bytes=", "whole"),
        ("bytes", "whole"),
        ("items=0-9", "whole"),
        ("bytes=a-b", "whole"),
        ("bytes=0x0-0x9", "whole"),
        ("bytes=+0-9", "whole"),
        ("bytes=٠-٩", "whole"),
        ("bytes=0-9\n", "whole"),
        ("Bytes = 0 - 9 ", Part(0, 10)),
        ("bytes=" + "9" * 30 + "-", "whole"),
    ],
)
def test_a_range_is_read_as_the_standard_says(header: str | None, wanted: Wanted) -> None:
    """One range, from the start or from the end; several, and what is no range, are the whole file."""
    assert read_range(header, 100) == wanted


def test_of_an_empty_file_no_range_can_be_had() -> None:
    """Neither the first byte nor the last ones."""
    assert [read_range(header, 0) for header in ("bytes=0-", "bytes=-5", "bytes=0-0")] == ["nothing"] * 3


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 200))
def test_every_range_stays_inside_the_file(first: int, last: int, length: int) -> None:
    """Never negative, never behind the end, never empty."""
    for header in (f"bytes={first}-{last}", f"bytes={first}-", f"bytes=-{last}"):
        got = read_range(header, length)
        assert got in ("whole", "nothing") or (isinstance(got, Part) and 0 <= got.start < got.end <= length)


def test_a_part_says_which() -> None:
    """206 with Content-Range; what is not there is a 416 with the length."""
    part = ask(range="bytes=10-19")
    assert (part.status, part.start, part.end) == (206, 10, 20)
    assert part.headers["Content-Range"] == "bytes 10-19/100"
    assert part.headers["Content-Length"] == "10"
    assert not part.is_from_the_start
    beyond = ask(range="bytes=100-")
    assert (beyond.status, beyond.has_body) == (416, False)
    assert beyond.headers["Content-Range"] == "bytes */100"


@pytest.mark.parametrize(
    ("if_range", "status"),
    [
        (TAG, 206),
        (f"W/{TAG}", 200),
        ('"other"', 200),
        ("Thu, 19 Nov 2026 21:45:00 GMT", 200),
        ("", 200),
        ("x" * 5_000, 200),
    ],
)
def test_a_part_of_another_file_is_never_given(if_range: str, status: int) -> None:
    """If-Range fits by the strong tag only; a date cannot fit, because none was given."""
    assert ask(range="bytes=10-19", if_range=if_range).status == status


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (TAG, 304),
        (f"W/{TAG}", 304),
        ("*", 304),
        (f'"a", "b,c" , {TAG}', 304),
        ('"other"', 200),
        (TAG.strip('"'), 200),
        ("", 200),
        ('"', 200),
        (",,,", 200),
        ("x" * 5_000, 200),
    ],
)
def test_who_has_it_already_is_told_so(header: str, status: int) -> None:
    """If-None-Match, in its weak comparison, before any range."""
    got = ask(if_none_match=header, range="bytes=500-")
    assert got.status == (304 if status == 304 else 416)
    assert ask(if_none_match=header).status == status


@pytest.mark.parametrize(("header", "status"), [(TAG, 200), ("*", 200), (f"W/{TAG}", 412), ('"other"', 412)])
def test_who_wants_only_one_version_gets_no_other(header: str, status: int) -> None:
    """If-Match, in its strong comparison."""
    assert ask(if_match=header).status == status


def test_a_head_has_the_headers_of_the_whole_file() -> None:
    """A range means nothing to it."""
    assert ask("HEAD", range="bytes=0-9").headers == ask().headers


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("cv.pdf", 'attachment; filename="cv.pdf"'),
        (
            "Lebenslauf Müller.pdf",
            "attachment; filename=\"Lebenslauf Muller.pdf\"; filename*=UTF-8''Lebenslauf%20M%C3%BCller.pdf",
        ),
        ("履歴書.pdf", f"attachment; filename=\"___.pdf\"; filename*=UTF-8''{quote('履歴書')}.pdf"),
        ("100%.pdf", "attachment; filename=\"100_.pdf\"; filename*=UTF-8''100%25.pdf"),
        ('a"b\r\nSet-Cookie: x.pdf', 'attachment; filename="a_b Set-Cookie_ x.pdf"'),
        ("../../x.pdf", 'attachment; filename="_.._x.pdf"'),
    ],
)
def test_the_name_is_there_in_utf8_and_in_ascii(name: str, header: str) -> None:
    """RFC 6266; nothing of a name can end the header or leave the folder."""
    assert content_disposition(name) == header


@given(st.text(max_size=80))
def test_every_name_gives_one_clean_header_that_can_be_read_back(name: str) -> None:
    """Printable ASCII only, and another program reads the very name."""
    header = content_disposition(name)
    assert header.isascii()
    assert header.isprintable()
    message = Message()
    message["Content-Disposition"] = header
    found = message.get_param("filename", header="Content-Disposition")
    plain = header.split('"')[1]
    assert not set(plain) & set('%\\;"/')
    if "filename*" not in header:
        assert found == plain
    else:
        assert collapse_rfc2231_value(found) not in ("", None)  # type: ignore[arg-type]
