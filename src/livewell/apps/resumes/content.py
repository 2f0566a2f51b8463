"""What somebody sends becomes the content of a version: checked by the schema, in its one canonical form.

bytes, a dictionary ──schema──▶ Resume ──canonical──▶ text        └──wrong──▶ InvalidResume: the place, and never the text (E15)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import ValidationError

from livewell.apps.resumes.schema import Resume
from livewell.errors import InvalidResume

UNNAMED = "Résumé"
_NAME_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Content:
    """A document as it is kept. person: whom it is about, for its name."""

    text: str
    person: str


def read_content(document: Mapping[str, Any] | bytes | Resume, *, bytes_max: int) -> Content:
    """Check it; a document that is too large or does not fit the schema raises InvalidResume."""
    resume = document if isinstance(document, Resume) else _read(document, bytes_max)
    text = resume.canonical()
    if len(text) > bytes_max:
        raise InvalidResume("document", f"{len(text):,} bytes are too many; at most {bytes_max:,} are allowed")
    name = (resume.basics.name or "").strip() if resume.basics is not None else ""
    return Content(text.decode(), name[:_NAME_CHARS_MAX] or UNNAMED)


def _read(document: Mapping[str, Any] | bytes, bytes_max: int) -> Resume:
    if isinstance(document, bytes):
        document = _parse(document, bytes_max)
    try:
        return Resume.model_validate(document)
    except ValidationError as error:
        _refuse(error)


def _parse(text: bytes, bytes_max: int) -> Mapping[str, Any]:
    if len(text) > 2 * bytes_max:  # spaces may go
        raise InvalidResume("document", f"{len(text):,} bytes are too many; at most {bytes_max:,} are allowed")
    try:
        found = json.loads(text.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        raise InvalidResume("document", "this is not JSON") from None
    if not isinstance(found, dict):
        raise InvalidResume("document", "a résumé is a JSON object")
    return found


def _refuse(error: ValidationError) -> NoReturn:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    raise InvalidResume(_place(first["loc"]), first["msg"].removeprefix("Value error, ")) from None


def _place(parts: tuple[str | int, ...]) -> str:
    """document.work[2].summary: as people write it."""
    place = "document"
    for part in parts:
        place += f"[{part}]" if isinstance(part, int) else f".{part[:60]}"
    return place
