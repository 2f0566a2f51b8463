"""How a download is answered: whole, in part, not at all. Pure; no framework and no store is known here.

    If-Match does not fit          412
    If-None-Match fits             304
    Range, with If-Range if there  206, or 416 with the length
    anything else                  200, whole

A file never changes under its ETag, which is its SHA-256, so a part fetched today and one fetched
tomorrow are parts of one file. Only one range is answered in parts; who asks for several at once,
or in a way that the standard does not know, gets the whole file, as RFC 9110 allows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from livewell.exports.zip.names import safe_name

HEADER_CHARS_MAX = 4_096  # a longer condition is taken as if it were not there
_RANGE = re.compile(r"(?i)bytes[ \t]*=[ \t]*(?:([0-9]{1,19})[ \t]*-[ \t]*([0-9]{1,19})?|-[ \t]*([0-9]{1,19}))[ \t]*")
_TAG = re.compile(r'[ \t]*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?:,|$)')


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and headers; for 200 and 206 the bytes from start up to end are the body.

    After a HEAD no body is sent, and the headers are the same.
    """

    status: Literal[200, 206, 304, 412, 416]
    start: int = 0
    end: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_body(self) -> bool:
        """True where bytes of the file follow."""
        return self.status in (200, 206)

    @property
    def is_from_the_start(self) -> bool:
        """True for a download that begins; a part that follows is the same download."""
        return self.has_body and self.start == 0


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes from start up to end."""

    start: int
    end: int


Wanted = Part | Literal["whole", "nothing"]


def etag(sha256: bytes | str) -> str:
    """The strong ETag of bytes with this SHA-256."""
    return f'"{sha256 if isinstance(sha256, str) else sha256.hex()}"'


def answer(
    request: Mapping[str, str], *, tag: str, length: int, content_type: str, file_name: str, method: str = "GET"
) -> Answer:
    """What to answer to a request with these headers (names in small letters).

    tag: as etag() makes it
    """
    common = {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",  # asked again each time: a deleted file is gone at once
        "Vary": "Authorization, Cookie",
    }
    if_match = _header(request, "if-match")
    if if_match is not None and not _fits(if_match, tag, strong=True):
        return Answer(412, headers={**common, "Content-Length": "0"})
    if_none_match = _header(request, "if-none-match")
    if if_none_match is not None and _fits(if_none_match, tag, strong=False):
        return Answer(304, headers=common)
    wanted: Wanted = "whole"
    if method == "GET" and _may_be_partial(request, tag):
        wanted = read_range(_header(request, "range"), length)
    if wanted == "nothing":
        return Answer(416, headers={**common, "Content-Range": f"bytes */{length}", "Content-Length": "0"})
    head = {
        **common,
        "Content-Type": content_type,
        "Content-Disposition": content_disposition(file_name),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    if isinstance(wanted, Part):
        size = f"bytes {wanted.start}-{wanted.end - 1}/{length}"
        head |= {"Content-Range": size, "Content-Length": str(wanted.end - wanted.start)}
        return Answer(206, wanted.start, wanted.end, head)
    return Answer(200, 0, length, {**head, "Content-Length": str(length)})


def read_range(header: str | None, length: int) -> Wanted:
    """The part that a Range header asks for; "nothing" if no byte of it is there.

    "whole": no header, several ranges, another unit, or no range at all.
    """
    match = _RANGE.fullmatch(header) if header is not None else None
    if match is None:
        return "whole"
    first, last, suffix = match.groups()
    if suffix is not None:
        count = min(int(suffix), length)
        return Part(length - count, length) if count else "nothing"
    start = int(first)
    if last is not None and int(last) < start:
        return "whole"  # no valid range: it is ignored
    if start >= length:
        return "nothing"
    return Part(start, length if last is None else min(int(last) + 1, length))


def content_disposition(file_name: str) -> str:
    """Save it, under this name (RFC 6266): in UTF-8, and for old programs in ASCII."""
    name = safe_name(file_name)
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(sign if " " <= sign <= "~" else "" if unicodedata.combining(sign) else "_" for sign in plain)
    plain = safe_name(re.sub(r"[%;'\"\\]", "_", plain))
    if plain == name:
        return f'attachment; filename="{name}"'
    extended = quote(name, safe="!#$&+-.^_`|~")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{extended}"


def _header(request: Mapping[str, str], name: str) -> str | None:
    value = request.get(name)
    return None if value is None or len(value) > HEADER_CHARS_MAX else value


def _may_be_partial(request: Mapping[str, str], tag: str) -> bool:
    """If-Range with the very tag, or none. A date never fits: we give none that it could compare."""
    if "if-range" not in request:
        return True
    return (_header(request, "if-range") or "").strip(" \t") == tag


def _fits(condition: str, tag: str, *, strong: bool) -> bool:
    """True if `*` or one of the tags is ours; the weak form of it only where that may be."""
    if condition.strip(" \t") == "*":
        return True
    place = 0
    while (match := _TAG.match(condition, place)) is not None:
        if (match[1] if strong else match[1].removeprefix("W/")) == tag:
            return True
        if match.end() == place:
            break
        place = match.end()
    return False
