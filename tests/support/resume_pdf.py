"""Read a PDF of a résumé back, as a machine that screens applicants would: by pypdf alone."""

from __future__ import annotations

import io
import json
import re
from typing import Any

from pypdf import PdfReader
from pypdf.generic import DictionaryObject

from livewell.apps.resumes.view import MARK, view_of

SIGNS = "·•,:—"  # what templates put between fields


def reader_of(pdf: bytes) -> PdfReader:
    return PdfReader(io.BytesIO(pdf))


def text_of(pdf: bytes) -> str:
    return "\n".join(page.extract_text() for page in reader_of(pdf).pages)


def fields_of(resume: dict[str, Any]) -> list[str]:
    """Every text that the document prints, in the order of reading."""
    view = view_of(json.loads(json.dumps(resume)))
    found = [view["name"], view["label"], *(item["shown"] for item in view["contact"])]
    for section in view["sections"]:
        found += [section["title"], *section.get("paragraphs", [])]
        for entry in section.get("entries", []):
            found += _fields_of_entry(entry, section["kind"])
    return [field for field in found if field]


def _fields_of_entry(entry: dict[str, Any], kind: str) -> list[str]:
    if kind == "rows":
        return [entry["name"], entry["level"], *entry["words"]]
    if kind == "quotes":
        return [*entry["paragraphs"], entry["name"]]
    link = [entry["link"]["shown"]] if entry["link"] else []
    head = [entry["heading"], *entry["beside"], *link, entry["dates"]]
    return [*head, *entry["paragraphs"], *entry["points"], *entry["tags"]]


def unread(pdf: bytes, resume: dict[str, Any]) -> str | None:
    """The first field that cannot be read back, or what is read beside the fields. None: all is well.

    Words must be whole: only a line may end inside a word, behind a hyphen or where the view cut it.
    """
    text = text_of(pdf)
    at = 0
    for field in fields_of(resume):
        match = re.compile(rf"[\s{SIGNS}]*" + _pattern(field)).match(text, at)
        if match is None:
            return f"{field!r} is not at {text[at : at + 200]!r}"
        at = match.end()
    rest = text[at:].strip(SIGNS + " \n")
    return f"more: {rest!r}" if rest else None


def _pattern(field: str) -> str:
    pieces = [re.sub(r"(?<=[-–/])(?=.)", MARK, word).split(MARK) for word in field.split()]
    words = [r"\n?".join(re.escape(piece) for piece in word) for word in pieces]
    return r"\s+".join(words)


def structure_of(pdf: bytes) -> list[str]:
    """The kinds of the structure tree, in the order of reading."""
    found: list[str] = []

    def walk(node: object) -> None:
        node = node.get_object() if hasattr(node, "get_object") else node
        if isinstance(node, DictionaryObject):
            if "/S" in node:
                found.append(str(node["/S"]).lstrip("/"))
            walk(node.get("/K"))
        elif isinstance(node, list):
            for part in node:
                walk(part)

    walk(reader_of(pdf).trailer["/Root"]["/StructTreeRoot"])  # type: ignore[index]
    return found


def images_of(pdf: bytes) -> list[tuple[int, int, str]]:
    """Width, height and mode of every picture."""
    images = [image for page in reader_of(pdf).pages for image in page.images]
    return [(image.image.width, image.image.height, image.image.mode) for image in images if image.image]


def colours_of(pdf: bytes) -> set[int]:
    """How many components the colour spaces have that pages draw with: {1} is grey."""
    counts = set()
    for page in reader_of(pdf).pages:
        content = page.get_contents()
        data = content.get_data() if content is not None else b""
        if re.search(rb"[\d.]+ [\d.]+ [\d.]+ (?:rg|RG)\b", data):
            counts.add(3)
        if re.search(rb"[\d.]+ [\d.]+ [\d.]+ [\d.]+ (?:k|K)\b", data):
            counts.add(4)
        resources: Any = page["/Resources"]
        spaces = list(resources.get("/ColorSpace", {}).values())
        spaces += [part.get_object().get("/ColorSpace") for part in resources.get("/XObject", {}).values()]
        for space in spaces:
            counts.add(_components(space.get_object()))
    return counts


def _components(space: Any) -> int:
    if isinstance(space, list) and str(space[0]) == "/ICCBased":
        return int(space[1].get_object()["/N"])
    return {"/DeviceGray": 1, "/CalGray": 1, "/DeviceRGB": 3, "/CalRGB": 3, "/DeviceCMYK": 4}[
        str(space[0] if isinstance(space, list) else space)
    ]
